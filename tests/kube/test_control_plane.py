"""Does the fixture of the control plane keep its promises? Nodes are Ready, Jobs are bound and
done, components restart, nothing is left behind.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator

import pytest
from tests.kube.addresses import is_listening
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.crds import install_job_kinds
from tests.kube.kubectl import Kubectl, KubectlError
from tests.kube.kwok_stages import EXIT_CODE, NOT_READY, RUN_TIME
from tests.kube.objects import Object, gpu_node, job, pod_spec
from tests.kube.programs import program
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(2, 1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    """A cluster of this module's own: the last test stops it."""
    with running_control_plane() as control_plane:
        control_plane.admin.create([gpu_node("gpu-1"), gpu_node("gpu-2")])
        yield control_plane


def _condition(thing: Object, kind: str) -> str:
    return next(
        (c["status"] for c in thing["status"].get("conditions", []) if c["type"] == kind), "absent"
    )


def _job_is(cluster: ControlPlane, name: str, condition: str) -> bool:
    return (
        _condition(
            cluster.admin.get("jobs", f"--field-selector=metadata.name={name}")[0], condition
        )
        == "True"
    )


def test_nodes_become_ready_with_their_gpus(cluster: ControlPlane) -> None:
    wait_until(
        "both nodes are Ready",
        lambda: [_condition(n, "Ready") for n in cluster.admin.get("nodes")] == ["True", "True"],
    )
    assert [
        node["status"]["allocatable"]["nvidia.com/gpu"] for node in cluster.admin.get("nodes")
    ] == ["8", "8"]


def test_pods_of_a_job_are_bound_by_the_scheduler_and_complete(cluster: ControlPlane) -> None:
    cluster.admin.create([job("short", parallelism=4, gpus=4, annotations={RUN_TIME: "1s"})])
    wait_until("the Job is complete", lambda: _job_is(cluster, "short", "Complete"))
    pods = cluster.admin.get("pods", "-l", "job-name=short")
    assert Counter(p["spec"]["nodeName"] for p in pods) == {"gpu-1": 2, "gpu-2": 2}
    assert {p["status"]["phase"] for p in pods} == {"Succeeded"}


def test_an_exit_code_fails_the_job(cluster: ControlPlane) -> None:
    cluster.admin.create([job("bad", annotations={RUN_TIME: "0s", EXIT_CODE: "3"})])
    wait_until("the Job has failed", lambda: _job_is(cluster, "bad", "Failed"))
    state = cluster.admin.get("pods", "-l", "job-name=bad")[0]["status"]["containerStatuses"][0][
        "state"
    ]
    assert state["terminated"]["exitCode"] == 3


def test_a_node_goes_not_ready_and_comes_back_with_its_address(cluster: ControlPlane) -> None:
    def node() -> Object:
        return cluster.admin.get("nodes", "--field-selector=metadata.name=gpu-2")[0]

    def ready() -> str:
        return _condition(node(), "Ready")

    address = {"type": "InternalIP", "address": "192.0.2.7"}
    patch = json.dumps({"status": {"addresses": [address]}})
    cluster.admin.run("patch", "node", "gpu-2", "--subresource=status", "--type=merge", "-p", patch)
    cluster.admin.run("annotate", "node", "gpu-2", f"{NOT_READY}=yes")
    wait_until("gpu-2 is not Ready", lambda: ready() == "False")
    cluster.admin.run("annotate", "node", "gpu-2", f"{NOT_READY}-")
    wait_until("gpu-2 is Ready again", lambda: ready() == "True")
    assert node()["status"]["addresses"] == [address]


def test_a_limited_account_may_do_what_its_rules_allow(cluster: ControlPlane) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    reader = Kubectl(
        program("kubectl"),
        cluster.write_service_account_kubeconfig("reader", rules),
        cluster.folder,
    )
    assert isinstance(reader.get("pods"), list)
    with pytest.raises(KubectlError, match="cannot list resource"):
        reader.get("nodes")


@pytest.mark.parametrize(
    ("resources", "arguments"),
    [
        ("nodes", ()),
        ("no", ("-l", "kubernetes.io/hostname=gpu-1")),
        ("nodes,namespaces", ()),
        ("pods", ("-n", "default", "--selector=job-name")),
        ("pod", ("-A", "--field-selector", "status.phase=Succeeded")),
        ("jobs.batch", ("-n", "default")),
        ("deploy", ("-n", "default")),
        ("events", ("-n", "default", "-l", "absent")),
        ("priorityclasses", ("-n", "default")),
    ],
)
def test_the_administrator_reads_what_kubectl_prints(
    cluster: ControlPlane, resources: str, arguments: tuple[str, ...]
) -> None:
    kubectl = Kubectl(program("kubectl"), cluster.kubeconfig, cluster.folder)

    def are_alike() -> bool:  # a lease of a node is renewed meanwhile
        return cluster.admin.get(resources, *arguments) == kubectl.get(resources, *arguments)

    wait_until("both are alike", are_alike, 30)


@pytest.mark.parametrize("verb", ["create", "apply"])
def test_the_administrator_writes_strictly_and_what_is_refused_has_the_words_of_kubectl(
    cluster: ControlPlane, verb: str
) -> None:
    write = getattr(cluster.admin, verb)
    good, bad = (
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{verb}-{name}", "namespace": "default"},
            **more,
        }
        for name, more in (("good", {"data": {"a": "b"}}), ("bad", {"date": {"a": "b"}}))
    )
    with pytest.raises(KubectlError, match=r'(?s)kubectl.*unknown field "(\.|)date"'):
        write([bad, good])
    of_default = cluster.admin.get("cm", "-n", "default")
    assert [each["data"] for each in of_default if each["metadata"]["name"] == f"{verb}-good"] == [
        {"a": "b"}
    ]
    assert f"{verb}-bad" not in {each["metadata"]["name"] for each in of_default}
    manager = "kubectl-create" if verb == "create" else "kubectl"
    shown = cluster.admin.run(
        *("get", "cm", f"{verb}-good", "-n", "default", "--show-managed-fields"),
        *("-o", "jsonpath={.metadata.managedFields[*].manager}"),
    )
    assert shown == manager


def test_an_mpijob_keeps_the_status_that_is_written_for_it(cluster: ControlPlane) -> None:
    install_job_kinds(cluster.admin)
    worker = {"replicas": 2, "template": {"spec": pod_spec(gpus=4)}}
    launcher = {"replicas": 1, "template": {"spec": pod_spec()}}
    spec = {"slotsPerWorker": 4, "mpiReplicaSpecs": {"Launcher": launcher, "Worker": worker}}
    metadata = {"name": "bert", "namespace": "default"}
    cluster.admin.create(
        [
            {
                "apiVersion": "kubeflow.org/v2beta1",
                "kind": "MPIJob",
                "metadata": metadata,
                "spec": spec,
            }
        ]
    )
    running = {
        "type": "Running",
        "status": "True",
        "reason": "MPIJobRunning",
        "message": "",
        "lastTransitionTime": "2026-01-05T08:00:00Z",
    }
    cluster.admin.patch_status("mpijobs", "bert", "default", {"conditions": [running]})
    assert cluster.admin.get("mpijobs")[0]["status"]["conditions"] == [running]


def test_a_killed_api_server_comes_back_with_its_objects(cluster: ControlPlane) -> None:
    api_server = cluster.components["kube-apiserver"]
    api_server.kill()
    assert not cluster.is_api_ready()
    cluster.start_component("kube-apiserver")
    assert {node["metadata"]["name"] for node in cluster.admin.get("nodes")} == {"gpu-1", "gpu-2"}


def test_nothing_is_left_after_stop(cluster: ControlPlane) -> None:
    pids = [component.pid for component in cluster.components.values()]
    assert len(pids) == 5
    cluster.stop()
    assert [pid for pid in pids if _is_alive(pid)] == []
    assert not is_listening(cluster.port)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
