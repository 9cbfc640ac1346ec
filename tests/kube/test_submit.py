"""`arena submit` and a real API server with the operators' own definitions: what is printed, and that a dry run is the same objects."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from tests.cli.test_submit import DOCUMENT_000
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.crds import install_job_kinds
from tests.properties.flag_sets import flag_sets

Manifest = dict[str, Any]
GIVEN_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences")


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as started:
        install_job_kinds(started.admin)
        yield started


def arena(cluster: ControlPlane, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "from fairlead.main import run_arena; run_arena()"
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LANG": "C.UTF-8", "KUBECONFIG": str(cluster.kubeconfig)}
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60, env=env, check=False)


def as_asked(manifest: Manifest) -> Manifest:
    """Without what a server gives each object of its own."""
    meta = {key: value for key, value in manifest["metadata"].items() if key not in GIVEN_BY_SERVER}
    meta["annotations"] = {
        key: value for key, value in meta.get("annotations", {}).items() if not key.startswith("deployment.kubernetes.io/")
    }
    spec = manifest.get("spec")
    if manifest["kind"] == "Service":
        ports = [{key: value for key, value in port.items() if key != "nodePort"} for port in spec["ports"]]
        spec = {**{key: value for key, value in spec.items() if key not in ("clusterIP", "clusterIPs")}, "ports": ports}
    rest = {key: value for key, value in manifest.items() if key not in ("status", "spec", "metadata")}
    return {**rest, "metadata": meta, "spec": spec}


def one_by_one(printed: str) -> list[Manifest]:
    """What `kubectl -o json` prints of one object, of a list, or of several objects in a row."""
    decoder, found, place = json.JSONDecoder(), [], 0
    while place < len(printed.rstrip()):
        value, end = decoder.raw_decode(printed, place)
        found += value["items"] if value["kind"] == "List" else [value]
        place = end + len(printed[end:]) - len(printed[end:].lstrip())
    return found


def test_the_command_of_document_000_makes_an_object_that_the_operator_accepts(cluster: ControlPlane) -> None:
    words = DOCUMENT_000.replace("\\\n", " ")
    line = f"{sys.executable} -c 'from fairlead.main import run_arena; run_arena()' submit {words}"
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "KUBECONFIG": str(cluster.kubeconfig)}
    first = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, env=env, check=False)
    assert (first.returncode, first.stdout) == (0, "mpijob.kubeflow.org/mpi-test created\n"), first.stderr
    assert "You can run `arena get mpi-test --type mpijob -n default` to check the job status" in first.stderr
    [job] = cluster.admin.get("mpijobs")
    assert job["apiVersion"] == "kubeflow.org/v2beta1" and job["metadata"]["annotations"]["arena.kubeflow.org/username"]
    again = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, env=env, check=False)
    assert (again.returncode, again.stdout) == (1, "")
    assert "the job mpi-test is already exist, please delete it first. use 'arena delete mpi-test'" in again.stderr
    cluster.admin.delete("mpijob", "mpi-test", "-n", "default")


def test_what_the_served_schema_lacks_is_left_out_with_a_word(cluster: ControlPlane) -> None:
    ended = arena(cluster, "submit", "tf", "--name=late", "--image=i", "--starting-timeout=5s", "--dry-run", "run")
    assert ended.returncode == 0 and "knows no `spec.startingDeadlineSeconds`" in ended.stderr
    assert "runPolicy" in yaml.safe_load(ended.stdout)["spec"]


def test_a_priority_and_a_namespace_that_do_not_exist(cluster: ControlPlane) -> None:
    ended = arena(cluster, "submit", "mpi", "--name=j", "--image=i", "-p", "absent", "run")
    assert ended.returncode == 1 and "the priority absent doesn't exist" in ended.stderr
    ended = arena(cluster, "submit", "mpi", "--name=j", "--image=i", "-p", "system-cluster-critical", "-n", "absent", "run")
    assert ended.returncode == 1 and 'namespaces \\"absent\\" not found' in ended.stderr


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(flag_sets())
def test_a_dry_run_piped_into_kubectl_makes_the_same_objects(cluster: ControlPlane, words: list[str]) -> None:
    words = [word for word in words if not word.startswith("--priority=")]  # must exist
    place = words.index("--")
    printed = arena(cluster, "submit", *words[:place], "--dry-run", *words[place:])
    assert printed.returncode == 0, printed.stderr
    told = cluster.admin.run("create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-", stdin=printed.stdout)
    done = arena(cluster, "submit", *words)
    assert done.returncode == 0, done.stderr
    labels = [line.removesuffix(" created") for line in done.stdout.splitlines()]
    made = one_by_one(cluster.admin.run("get", "-o", "json", "-n", "default", *labels))
    cluster.admin.run("delete", "--wait=true", "-n", "default", *labels)
    assert [as_asked(each) for each in made] == [as_asked(each) for each in one_by_one(told)]
    job = made[0]["metadata"]
    assert all([owner["uid"] for owner in each["metadata"]["ownerReferences"]] == [job["uid"]] for each in made[1:])
