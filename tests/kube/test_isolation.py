"""A namespace that shows users only their own jobs, on a real API server and on the simulated one:
label, ids and administrators.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.contracts.simulated import simulated_server
from tests.kube.crds import install_job_kinds
from tests.kube.kubectl import Kubectl
from tests.kube.programs import program
from tests.kube.servers import arena_answer
from tests.waiting import wait_until

from fairlead.edge.files.clock import WallClock

PRIVATE, OPEN = "private", "open-to-all"
NOT_YOURS = "you have no privileges to operate the job,because the owner of job is not you"


@pytest.fixture(scope="module", params=["simulated", "real"])
def admin(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubectl]:
    """alice and bob have a job each, and one job has no user, in a private namespace and in an open
    one; root administrates arena.
    """
    if request.param == "real":
        kubectl: Kubectl = request.getfixturevalue("control_plane").admin
        install_job_kinds(kubectl)
        yield from _with_people(kubectl)
    else:
        folder = tmp_path_factory.mktemp("isolation")
        with simulated_server(folder, WallClock()) as server:
            yield from _with_people(Kubectl(program("kubectl"), server.kubeconfig, folder))


def _with_people(kubectl: Kubectl) -> Iterator[Kubectl]:
    for name in (PRIVATE, OPEN, "arena-system"):
        kubectl.run("create", "namespace", name)
    kubectl.run("label", "namespace", PRIVATE, "arena.kubeflow.org/isolate-user=true")
    kubectl.run(
        "create",
        "configmap",
        "arena-config",
        "-n",
        "arena-system",
        "--from-literal=adminUsers=carol, root",
    )
    people = [f"--user={name}" for name in ("alice", "bob", "root", "blind")]
    kubectl.run(
        "create",
        "clusterrole",
        "jobs",
        "--verb=get,list,delete",
        "--resource=tfjobs.kubeflow.org,pods,pods/log,configmaps",
    )
    kubectl.run("create", "clusterrolebinding", "jobs", "--clusterrole=jobs", *people)
    kubectl.run("create", "clusterrole", "namespaces", "--verb=get,list", "--resource=namespaces")
    kubectl.run(
        "create", "clusterrolebinding", "namespaces", "--clusterrole=namespaces", *people[:-1]
    )
    kubectl.create(
        [
            _tfjob(namespace, owner)
            for namespace in (PRIVATE, OPEN)
            for owner in ("alice", "bob", "")
        ]
    )
    yield kubectl
    kubectl.run("delete", "clusterrole,clusterrolebinding", "jobs", "namespaces")
    kubectl.run("delete", "namespace", PRIVATE, OPEN, "arena-system", "--wait=false")


def _tfjob(namespace: str, owner: str) -> dict[str, Any]:
    labels = (
        {"arena.kubeflow.org/uid": hashlib.md5(owner.encode(), usedforsecurity=False).hexdigest()}
        if owner
        else {}
    )
    replica = {
        "replicas": 1,
        "template": {"spec": {"containers": [{"name": "tensorflow", "image": "x"}]}},
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": f"of-{owner or 'nobody'}", "namespace": namespace, "labels": labels},
        "spec": {"tfReplicaSpecs": {"Worker": replica}},
    }


class Person:
    """`arena` as typed by a user that the API server knows by impersonation."""

    def __init__(self, name: str, admin: Kubectl, folder: Path) -> None:
        document = yaml.safe_load(admin.kubeconfig.read_text(encoding="utf-8"))
        document["users"][0]["user"]["as"] = name
        self._kubeconfig = folder / f"{name}.kubeconfig"
        self._kubeconfig.write_text(yaml.safe_dump(document), encoding="utf-8")

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return arena_answer(*arguments, "-T", "tf", kubeconfig=self._kubeconfig)

    def sees(self, *where: str) -> set[str]:
        """The jobs of `list`, each `namespace/name`; AssertionError when it fails."""
        done = self("list", "-o", "json", *where)
        assert done.returncode == 0, done.stderr
        return {f"{job['namespace']}/{job['name']}" for job in json.loads(done.stdout)}


def in_all(*names: str, namespace: str = OPEN) -> set[str]:
    return {f"{namespace}/of-{name}" for name in names}


EVERYBODY = ("alice", "bob", "nobody")


def test_people_see_their_own_jobs(admin: Kubectl, tmp_path: Path) -> None:
    alice, bob = Person("alice", admin, tmp_path), Person("bob", admin, tmp_path)
    wait_until("the roles count", lambda: bob("list", "-A").returncode == 0)
    assert alice.sees("-n", PRIVATE) == in_all("alice", namespace=PRIVATE)
    assert bob.sees("-n", PRIVATE) == in_all("bob", namespace=PRIVATE)
    assert alice.sees("-n", OPEN) == in_all(*EVERYBODY)
    assert alice.sees("-A") == in_all("alice", namespace=PRIVATE) | in_all(*EVERYBODY)
    assert [
        line.split()[0] for line in alice("top", "job", "-n", PRIVATE).stdout.splitlines()[:2]
    ] == ["NAME", "of-alice"]


def test_people_touch_their_own_jobs(admin: Kubectl, tmp_path: Path) -> None:
    alice = Person("alice", admin, tmp_path)
    wait_until("the roles count", lambda: alice("get", "of-alice", "-n", PRIVATE).returncode == 0)
    for name in ("of-bob", "of-nobody"):
        for words in (["get"], ["logs"], ["top", "job"], ["delete"]):
            done = alice(*words, name, "-n", PRIVATE)
            assert (done.returncode, done.stdout) == (1, "") and NOT_YOURS in done.stderr, words
        assert alice("get", name, "-n", OPEN).returncode == 0
    assert len(admin.get("tfjobs", "-n", PRIVATE)) == 3
    absent = alice("get", "of-carol", "-n", PRIVATE)
    assert absent.returncode == 1 and "Not found training job of-carol" in absent.stderr


def test_administrators_see_and_touch_all(admin: Kubectl, tmp_path: Path) -> None:
    root = Person("root", admin, tmp_path)
    wait_until("the roles count", lambda: root("list", "-A").returncode == 0)
    assert root.sees("-n", PRIVATE) == in_all(*EVERYBODY, namespace=PRIVATE)
    assert root("get", "of-bob", "-n", PRIVATE).returncode == 0
    assert root.sees("-n", PRIVATE, "--arena-namespace", "elsewhere") == set(), (
        "there no user is called an administrator"
    )


def test_a_user_that_may_not_read_namespaces_is_not_kept_from_jobs(
    admin: Kubectl, tmp_path: Path
) -> None:
    """RBAC decides; arena's label is only a filter for convenience."""
    blind = Person("blind", admin, tmp_path)
    wait_until("the roles count", lambda: blind("list", "-A").returncode == 0)
    assert blind.sees("-n", PRIVATE) == in_all(*EVERYBODY, namespace=PRIVATE)
    assert "forbidden" not in blind("list", "-n", PRIVATE).stderr
