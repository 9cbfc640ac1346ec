"""`arena serve` and `arena data list` on a real control plane: the server accepts what is created,
and what is shown is what kubectl shows.

KServe's definition is installed, not the operator: a test creates the Deployment that the operator
would create.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.crds import install_kserve
from tests.kube.kubectl import Kubectl
from tests.kube.laptop import running_laptop
from tests.kube.objects import cpu_node, gpu_node, share_node
from tests.kube.servers import arena_answer
from tests.kube.submitted import as_asked, one_by_one
from tests.properties.serving_flag_sets import serving_flag_sets
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(2, 0)

LOGS = Path(__file__).parents[2] / "test-output" / "kube"


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as started:
        started.admin.create([gpu_node("gpu-1"), share_node("share-1"), cpu_node("cpu-1")])
        install_kserve(started.admin)
        yield started


def done(*words: str, kubeconfig: Path) -> str:
    """The command's output; it must have succeeded."""
    ended = arena_answer(*words, kubeconfig=kubeconfig)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def rows(table: str) -> dict[str, dict[str, str]]:
    head, *lines = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()]
    return {row["NAME"]: row for row in (dict(zip(head, line, strict=True)) for line in lines)}


def named(admin: Kubectl, resources: str, namespace: str = "default") -> list[str]:
    return [each["metadata"]["name"] for each in admin.get(resources, "-n", namespace)]


def test_a_jobs_life(cluster: ControlPlane) -> None:
    admin, config = cluster.admin, cluster.kubeconfig
    printed = done(
        "serve",
        "custom",
        "--name=fast",
        "--version=v1",
        "--gpus=1",
        "--replicas=2",
        "--restful-port=5000",
        "--image=i",
        kubeconfig=config,
    )
    assert printed == "service/fast-v1 created\ndeployment.apps/fast-v1-custom-serving created\n"
    wait_until(
        "both pods are available",
        lambda: rows(done("serve", "list", kubeconfig=config))["fast"]["AVAILABLE"] == "2",
    )
    (service,) = [
        each
        for each in admin.get("services", "-n", "default")
        if each["metadata"]["name"] == "fast-v1"
    ]
    row = rows(done("serve", "list", "-A", kubeconfig=config))["fast"]
    assert list(row.values()) == [
        "default",
        "fast",
        "Custom",
        "v1",
        "2",
        "2",
        service["spec"]["clusterIP"],
        "RESTFUL:5000",
        "2",
    ]
    reported = json.loads(done("serve", "get", "fast", "-o", "json", kubeconfig=config))
    pods = {
        pod["metadata"]["name"]: pod
        for pod in admin.get("pods", "-n", "default", "-l", "servingName=fast")
    }
    assert {each["name"]: each["nodeName"] for each in reported["instances"]} == {
        name: pod["spec"]["nodeName"] for name, pod in pods.items()
    }
    assert reported["requestGPUs"] == 2 and {each["status"] for each in reported["instances"]} == {
        "Running"
    }
    again = arena_answer(
        "serve", "custom", "--name=fast", "--version=v1", "--port=1", "--image=i", kubeconfig=config
    )
    assert again.returncode == 1 and "the job fast is already exist" in again.stderr
    gone = arena_answer("serve", "delete", "fast", kubeconfig=config)
    assert (gone.returncode, gone.stdout) == (0, "") and (
        "fast with version v1 has been deleted successfully"
    ) in gone.stderr
    wait_until(
        "its pods are gone",
        lambda: not admin.get("pods", "-n", "default", "-l", "servingName=fast"),
    )
    wait_until("its Service is gone", lambda: "fast-v1" not in named(admin, "services"))
    assert "fast" not in rows(done("serve", "list", kubeconfig=config))


def test_a_part_of_a_card(cluster: ControlPlane) -> None:
    """The node's capacity gives the units of a card; a user who may not read nodes sees no GPUs."""
    config = cluster.kubeconfig
    words = (
        "--name=part",
        "--version=v1",
        "--gpumemory=4",
        "--model-name=m",
        "--model-path=/m",
        "--expose-service",
    )
    done("serve", "tf", *words, kubeconfig=config)
    wait_until(
        "its pod runs",
        lambda: rows(done("serve", "list", kubeconfig=config))["part"]["AVAILABLE"] == "1",
    )
    (node,) = [each for each in cluster.admin.get("nodes") if each["metadata"]["name"] == "share-1"]
    capacity = {
        name: int(value)
        for name, value in node["status"]["capacity"].items()
        if name.startswith("aliyun.com/")
    }
    part = round(4 * capacity["aliyun.com/gpu-count"] / capacity["aliyun.com/gpu-mem"], 1)
    row = rows(done("serve", "list", kubeconfig=config))["part"]
    assert row["GPU"] == str(part) and re.fullmatch(
        r"GRPC:3\d{4}->8500,RESTFUL:3\d{4}->8501", row["PORTS"]
    )
    done("serve", "delete", "part", kubeconfig=config)


def test_a_job_of_the_reference_is_shown_and_deleted(cluster: ControlPlane) -> None:
    """Created by a chart: no ownerReferences, a ConfigMap with a note beside it, and the port under
    arena's old name.
    """
    admin, config = cluster.admin, cluster.kubeconfig
    labels = {
        "servingName": "theirs",
        "servingVersion": "1",
        "servingType": "custom-serving",
        "heritage": "Helm",
        "release": "theirs-1",
    }
    meta = {"namespace": "default", "labels": labels}
    chosen = {"app": "custom-serving", "release": "theirs-1"}
    spec = {"containers": [{"name": "custom-serving", "image": "i"}]}
    template = {"metadata": {"labels": {**labels, **chosen}}, "spec": spec}
    deployment = {"replicas": 1, "selector": {"matchLabels": chosen}, "template": template}
    ports = [{"name": "restful-serving", "port": 80}]
    note = {
        "namespace": "default",
        "name": "theirs-1-custom-serving",
        "labels": {"createdBy": "arena"},
    }
    admin.create(
        [
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": {**meta, "name": "theirs-1"},
                "spec": {"selector": chosen, "ports": ports},
            },
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {**meta, "name": "theirs-1-custom-serving"},
                "spec": deployment,
            },
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": note, "data": {}},
        ]
    )
    row = rows(done("serve", "list", "-T", "custom", kubeconfig=config))["theirs"]
    assert (row["DESIRED"], row["PORTS"]) == ("1", "RESTFUL:80")
    done("serve", "delete", "theirs", kubeconfig=config)
    for resources in ("services", "deployments", "configmaps"):
        wait_until(
            f"its {resources} are gone",
            lambda each=resources: (
                not [name for name in named(admin, each) if name.startswith("theirs")]
            ),
        )


def test_kserve(cluster: ControlPlane) -> None:
    admin, config = cluster.admin, cluster.kubeconfig
    words = ("--name=iris", "--version=v1", "--model-format=sklearn", "--storage-uri=gs://m")
    assert (
        done("serve", "kserve", *words, kubeconfig=config)
        == "inferenceservice.serving.kserve.io/iris created\n"
    )
    assert rows(done("serve", "list", kubeconfig=config))["iris"]["ADDRESS"] == "N/A"
    (service,) = admin.get("inferenceservices", "-n", "default")
    labels = service["metadata"]["labels"]
    owner = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "name": "iris",
        "uid": service["metadata"]["uid"],
    }
    template = {
        "metadata": {"labels": {**labels, "x": "y"}},
        "spec": {"containers": [{"name": "kserve-container", "image": "i"}]},
    }
    metadata = {
        "name": "iris-predictor",
        "namespace": "default",
        "labels": labels,
        "ownerReferences": [owner],
    }
    spec = {"replicas": 2, "selector": {"matchLabels": {"x": "y"}}, "template": template}
    admin.create(
        [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}]
    )
    admin.patch_status("inferenceservices", "iris", "default", {"url": "http://iris.example.com"})
    wait_until(
        "both pods are available",
        lambda: rows(done("serve", "list", kubeconfig=config))["iris"]["AVAILABLE"] == "2",
    )
    row = rows(done("serve", "list", "-T", "kserve", kubeconfig=config))["iris"]
    assert (row["TYPE"], row["DESIRED"], row["ADDRESS"], row["PORTS"]) == (
        "KServe",
        "2",
        "http://iris.example.com",
        ":80",
    )
    assert (
        len(json.loads(done("serve", "get", "iris", "-o", "json", kubeconfig=config))["instances"])
        == 2
    )
    everything = (
        "--name=x --version=v1 --image=i --runtime=r --runtime-version=1 --storage-uri=s3://b/m "
        "--protocol-version=v2 --port=80"
    )
    everything += (
        " --model-format=sklearn:1 --max-replicas=3 --scale-target=5 --scale-metric=cpu "
        "--container-concurrency=2 --timeout=60"
    )
    everything += (
        " --canary-traffic-percent=10 --security-context=runAsUser=7 --affinity-policy=spread "
        "--affinity-constraint=required"
    )
    everything += (
        " -d c:/m --temp-dir=t:/t --gpus=1 --cpu=1 --share-memory=1Gi -e A=b "
        "--env-from-secret=S=s --toleration=all --selector=a=b"
    )
    printed = done("serve", "kserve", *everything.split(), "--dry-run", kubeconfig=config)
    admin.run("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=printed)
    done("serve", "delete", "iris", kubeconfig=config)
    assert not admin.get("inferenceservices", "-n", "default"), (
        "its Deployment is for the garbage collector, which learns of a new kind slowly"
    )
    assert "iris" not in rows(done("serve", "list", kubeconfig=config))
    admin.delete("deployment", "iris-predictor", "-n", "default")


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(words=serving_flag_sets())
def test_a_dry_run_piped_into_kubectl_makes_the_same_objects(
    cluster: ControlPlane, words: list[str]
) -> None:
    """The server accepts all of it without a warning: `--validate=strict` refuses fields that it
    does not know.
    """
    config = cluster.kubeconfig
    printed = done("serve", *words, "--dry-run", kubeconfig=config)
    reported = cluster.admin.run(
        "create", "--dry-run=server", "--validate=strict", "-o", "json", "-f", "-", stdin=printed
    )
    labels = [
        line.removesuffix(" created")
        for line in done("serve", *words, kubeconfig=config).splitlines()
    ]
    made = one_by_one(cluster.admin.run("get", "-o", "json", "-n", "default", *reversed(labels)))
    cluster.admin.run("delete", "--wait=true", "-n", "default", *labels)
    assert [_without_own(each) for each in made] == [
        _without_own(each) for each in one_by_one(reported)
    ]
    owner = made[0]["metadata"]["uid"]
    assert all(
        [each["uid"] for each in companion["metadata"]["ownerReferences"]] == [owner]
        for companion in made[1:]
    )


def _without_own(manifest: dict[str, Any]) -> dict[str, Any]:
    """The object without the fields that a server adds, and without a ConfigMap's missing spec."""
    return as_asked({"spec": None, **manifest})


def test_data_that_is_bound(cluster: ControlPlane) -> None:
    size = {"storage": "1Gi"}
    claimed = {"namespace": "default", "name": "tfmodel"}
    volume = {
        "capacity": size,
        "accessModes": ["ReadWriteMany"],
        "hostPath": {"path": "/x"},
        "storageClassName": "",
        "claimRef": claimed,
    }
    reported = {"annotations": {"description": "models of mnist", "owner": "tester"}}
    claim = {
        "accessModes": ["ReadWriteMany"],
        "resources": {"requests": size},
        "storageClassName": "",
        "volumeName": "tfmodel",
    }
    waiting = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": size},
        "storageClassName": "absent",
    }
    cluster.admin.create(
        [
            {
                "apiVersion": "v1",
                "kind": "PersistentVolume",
                "metadata": {"name": "tfmodel"},
                "spec": volume,
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "tfmodel", "namespace": "default", **reported},
                "spec": claim,
            },
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": "waits", "namespace": "default"},
                "spec": waiting,
            },
        ]
    )
    wait_until(
        "the claim is bound",
        lambda: "tfmodel" in rows(done("data", "list", kubeconfig=cluster.kubeconfig)),
    )
    row = rows(done("data", "list", "-A", kubeconfig=cluster.kubeconfig))
    assert list(row) == ["tfmodel"] and row["tfmodel"]["NAMESPACE"] == "default"
    assert (
        row["tfmodel"]["ACCESSMODE"],
        row["tfmodel"]["DESCRIPTION"],
        row["tfmodel"]["OWNER"],
    ) == (
        "ReadWriteMany",
        "models of mnist",
        "tester",
    )


def test_rights(cluster: ControlPlane) -> None:
    """Without the right to read Deployments there is a message; without Services a row without an
    address, and the reason.
    """
    admin = cluster.admin
    admin.run("create", "namespace", "rights")
    admin.run(
        "create", "role", "some", "-n", "rights", "--verb=list", "--resource=deployments.apps,pods"
    )
    admin.run("create", "rolebinding", "some", "-n", "rights", "--role=some", "--user=limited")
    done(
        "serve",
        "custom",
        "--name=a",
        "--version=1",
        "--port=1",
        "--image=i",
        "-n",
        "rights",
        kubeconfig=cluster.kubeconfig,
    )
    unknown, limited = (
        cluster.write_user_kubeconfig(user, ["x"]) for user in ("nobody", "limited")
    )
    refused = arena_answer("serve", "list", "-n", "rights", kubeconfig=unknown)
    assert (
        refused.returncode == 1
        and "the user has no privileges to list the serving jobs in namespace rights"
        in refused.stderr
    )
    wait_until(
        "the role counts",
        lambda: arena_answer("serve", "list", "-n", "rights", kubeconfig=limited).returncode == 0,
    )
    reported = arena_answer("serve", "list", "-n", "rights", kubeconfig=limited)
    assert (
        rows(reported.stdout)["a"]["ADDRESS"] == "N/A"
        and "skipped services: forbidden" in reported.stderr
    )
    denied = arena_answer("serve", "delete", "a", "-n", "rights", kubeconfig=limited)
    assert denied.returncode == 1 and "cannot delete resource" in denied.stderr
    data = arena_answer("data", "list", "-n", "rights", kubeconfig=limited)
    assert data.returncode == 1 and "cannot list resource" in data.stderr


def test_on_the_laptop() -> None:
    """The same on the simulated cluster, where containers write logs."""
    LOGS.mkdir(parents=True, exist_ok=True)
    with running_laptop(LOGS / "serve.log", "--scenario=documents-000", "--speed=20") as laptop:
        config = laptop.kubeconfig
        done(
            "serve",
            "custom",
            "--name=fast",
            "--version=v1",
            "--restful-port=5000",
            "--image=train:1h",
            "serve",
            kubeconfig=config,
        )
        wait_until(
            "it is available",
            lambda: rows(done("serve", "list", kubeconfig=config))["fast"]["AVAILABLE"] == "1",
        )
        assert re.fullmatch(
            r"10\.\d+\.\d+\.\d+", rows(done("serve", "list", kubeconfig=config))["fast"]["ADDRESS"]
        )
        wait_until(
            "it has written something",
            lambda: done("serve", "logs", "fast", kubeconfig=config) != "",
        )
        assert len(done("serve", "logs", "fast", "--tail=1", kubeconfig=config).splitlines()) == 1
        done("serve", "delete", "fast", kubeconfig=config)
        wait_until("it is gone", lambda: rows(done("serve", "list", kubeconfig=config)) == {})
        wait_until("its Service, too", lambda: "fast-v1" not in named(laptop.kubectl, "services"))
