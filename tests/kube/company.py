"""The cluster that most tests in this folder look at: a company with 20 GPU nodes of three kinds,
60 pods, 10 Jobs and 5 training jobs.

Real kubectl creates everything and the real scheduler places it. Only the statuses of training jobs
are written by the test, because their operators do not run here.
"""

from __future__ import annotations

from typing import Any

from tests.kube.control_plane import ControlPlane
from tests.kube.crds import install_job_kinds
from tests.kube.kubectl import Kubectl
from tests.kube.kwok_stages import DELETE_DELAY, EXIT_CODE, NOT_READY, RUN_TIME
from tests.kube.objects import (
    Object,
    cpu_node,
    gpu_node,
    job,
    namespace,
    pod,
    pod_spec,
    share_node,
    shared_pod,
)
from tests.waiting import wait_until

NAMESPACES = ("research", "vision")
POD_COUNT = 60
SICK, CORDONED, FAULTY_CARDS = "gpu-16", "gpu-15", "gpu-11"
WAITING_PODS = 4
PODS_OF_JOBS = 18
"""Those that fit on a node; the pods of `too-big` do not."""


def build_company(cluster: ControlPlane) -> None:
    """Create the whole company. Returns when every pod is on its final node or is known to wait."""
    admin = cluster.admin
    admin.create([namespace(name) for name in NAMESPACES])
    install_job_kinds(admin)
    admin.create(_nodes())
    wait_until("all nodes are Ready", lambda: len(_ready_nodes(admin)) == 22)
    admin.run("cordon", CORDONED)
    admin.create([*_training_jobs(), *_jobs()])
    # The pods of Jobs first: late ones with three GPUs might find no room among the small ones.
    wait_until("pods of Jobs are bound", lambda: _bound(admin) == PODS_OF_JOBS)
    admin.create([*_training_pods(admin), *_loose_pods()])
    wait_until(
        lambda: f"every pod is where it will stay: {_phases(admin)}", lambda: _is_settled(admin)
    )
    _make_one_terminating_and_one_sick(admin)
    _write_statuses(admin)


def _nodes() -> list[Object]:
    whole = [
        gpu_node(f"gpu-{number:02}", healthy=6 if number == 11 else 8) for number in range(1, 13)
    ]
    small = [
        gpu_node(f"gpu-{number}", 4, model="Tesla-T4", memory_mib=15360) for number in range(13, 17)
    ]
    shared = [share_node(f"share-{number}") for number in range(1, 5)]
    nodes = [*whole, *small, *shared, cpu_node("cpu-1"), cpu_node("cpu-2")]
    for number, node in enumerate(nodes, start=1):
        node["status"]["addresses"] = [{"type": "InternalIP", "address": f"10.1.0.{number}"}]
    return nodes


def _jobs() -> list[Object]:
    """Ten real Jobs of two pods: six run, two complete, one fails, one requests more than any node
    has.
    """
    running = [
        job(f"train-{number}", namespace="research", parallelism=2, gpus=1 + number % 3)
        for number in range(6)
    ]
    done = [
        job(
            f"done-{number}",
            namespace="vision",
            parallelism=2,
            gpus=1,
            annotations={RUN_TIME: "1s"},
        )
        for number in range(2)
    ]
    failed = job(
        "failed",
        namespace="vision",
        parallelism=2,
        gpus=1,
        annotations={RUN_TIME: "1s", EXIT_CODE: "1"},
    )
    return [*running, *done, failed, job("too-big", namespace="vision", parallelism=2, gpus=16)]


def _loose_pods() -> list[Object]:
    """Thirty pods that no Job owns: 24 with whole GPUs (one too big, one that will hang in
    Terminating), 6 with parts of a GPU.
    """
    whole = [
        pod(f"notebook-{number:02}", namespace="research", gpus=number % 3) for number in range(22)
    ]
    slow_to_die = pod("slow-to-die", namespace="research", gpus=2, annotations={DELETE_DELAY: "1h"})
    slow_to_die["spec"]["terminationGracePeriodSeconds"] = 3600
    shared = [
        shared_pod(f"service-{number}", number % 4, 3 + number, namespace="vision")
        for number in range(6)
    ]
    return [*whole, slow_to_die, pod("greedy", namespace="research", gpus=12), *shared]


def _training_jobs() -> list[Object]:
    return [
        _mpijob("bert", workers=3, gpus=4),
        _mpijob("waits", workers=1, gpus=12),
        _mpijob("finished", workers=1, gpus=1),
        _tfjob("mnist"),
        _tfjob("broken"),
    ]


def _mpijob(name: str, *, workers: int, gpus: int) -> Object:
    replicas = {"Launcher": _replicas(1, 0), "Worker": _replicas(workers, gpus)}
    return _training_job("v2beta1", "MPIJob", name, {"mpiReplicaSpecs": replicas})


def _tfjob(name: str) -> Object:
    return _training_job(
        "v1",
        "TFJob",
        name,
        {"tfReplicaSpecs": {"Chief": _replicas(1, 1), "Worker": _replicas(1, 1)}},
    )


def _training_job(version: str, kind: str, name: str, spec: Object) -> Object:
    metadata = {"name": name, "namespace": "research"}
    return {
        "apiVersion": f"kubeflow.org/{version}",
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
    }


def _replicas(count: int, gpus: int) -> Object:
    spec = pod_spec(gpus=gpus)
    del spec["restartPolicy"]
    return {"replicas": count, "restartPolicy": "Never", "template": {"spec": spec}}


def _training_pods(admin: Kubectl) -> list[Object]:
    """The ten pods that the operators would create: bert 1+3, waits 1+1, finished 0, mnist 1+1,
    broken 1+1.
    """
    mpi = {item["metadata"]["name"]: item for item in admin.get("mpijobs")}
    tf = {item["metadata"]["name"]: item for item in admin.get("tfjobs")}
    pods = [
        _mpi_pod(mpi["bert"], "launcher", 0, 0),
        *(_mpi_pod(mpi["bert"], "worker", index, 4) for index in range(3)),
    ]
    pods += [_mpi_pod(mpi["waits"], "launcher", 0, 0), _mpi_pod(mpi["waits"], "worker", 0, 12)]
    pods += [_tf_pod(tf["mnist"], role, {}) for role in ("chief", "worker")]
    return [
        *pods,
        *(
            _tf_pod(tf["broken"], role, {RUN_TIME: "1s", EXIT_CODE: "2"})
            for role in ("chief", "worker")
        ),
    ]


def _mpi_pod(owner: Object, role: str, index: int, gpus: int) -> Object:
    labels = {
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/job-role": role,
    }
    name = f"{owner['metadata']['name']}-{role}" + ("" if role == "launcher" else f"-{index}")
    return _owned_pod(
        owner, name, gpus, {**labels, "training.kubeflow.org/replica-index": str(index)}, {}
    )


def _tf_pod(owner: Object, role: str, annotations: dict[str, str]) -> Object:
    labels = {
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/replica-type": role,
    }
    labels["training.kubeflow.org/replica-index"] = "0"
    if role == "chief":
        labels["training.kubeflow.org/job-role"] = "master"
    return _owned_pod(owner, f"{owner['metadata']['name']}-{role}-0", 1, labels, annotations)


def _owned_pod(
    owner: Object, name: str, gpus: int, labels: dict[str, str], annotations: dict[str, str]
) -> Object:
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    labels = {**labels, "training.kubeflow.org/job-name": metadata["name"]}
    owners = [{**reference, "controller": True}]
    return pod(
        name,
        namespace=metadata["namespace"],
        gpus=gpus,
        labels=labels,
        annotations=annotations,
        ownerReferences=owners,
    )


def _bound(admin: Kubectl) -> int:
    return sum("nodeName" in item["spec"] for item in admin.get("pods"))


def _ready_nodes(admin: Kubectl) -> list[str]:
    return [
        node["metadata"]["name"] for node in admin.get("nodes") if _has_condition(node, "Ready")
    ]


def _has_condition(thing: Object, kind: str) -> bool:
    return any(
        c["type"] == kind and c["status"] == "True"
        for c in thing.get("status", {}).get("conditions", [])
    )


def _is_settled(admin: Kubectl) -> bool:
    """Sixty pods: the four that fit nowhere are Pending, those with a run time have finished, all
    others are Running.
    """
    pods = admin.get("pods")
    phases = [item["status"]["phase"] for item in pods]
    will_end = [item for item in pods if RUN_TIME in item["metadata"].get("annotations", {})]
    ended = all(item["status"]["phase"] in ("Succeeded", "Failed") for item in will_end)
    return len(pods) == POD_COUNT and ended and phases.count("Pending") == WAITING_PODS


def _phases(admin: Kubectl) -> str:
    """Each pod's phase, for the message of a cluster that does not settle."""
    pods = sorted((pod["status"]["phase"], pod["metadata"]["name"]) for pod in admin.get("pods"))
    return f"{len(pods)} of {POD_COUNT} pods: {', '.join(map(' '.join, pods))}"


def _make_one_terminating_and_one_sick(admin: Kubectl) -> None:
    admin.run("delete", "pod", "slow-to-die", "-n", "research", "--wait=false")
    admin.run("annotate", "node", SICK, f"{NOT_READY}=yes")
    wait_until(f"{SICK} is NotReady", lambda: SICK not in _ready_nodes(admin))


def _write_statuses(admin: Kubectl) -> None:
    """Write the statuses that the operators would have written by now."""
    start = {"startTime": "2026-01-05T08:00:00Z"}
    end = {**start, "completionTime": "2026-01-05T09:00:00Z"}
    statuses: list[tuple[str, str, dict[str, Any]]] = [
        ("mpijobs", "bert", {**start, "conditions": _conditions("Created", "Running")}),
        ("mpijobs", "waits", {"conditions": _conditions("Created")}),
        ("mpijobs", "finished", {**end, "conditions": _conditions("Created", "Succeeded")}),
        (
            "tfjobs",
            "mnist",
            {**start, "conditions": _conditions("Created", "Running"), "replicaStatuses": {}},
        ),
        (
            "tfjobs",
            "broken",
            {**end, "conditions": _conditions("Created", "Failed"), "replicaStatuses": {}},
        ),
    ]
    for resource, name, status in statuses:
        admin.patch_status(resource, name, "research", status)


def _conditions(*kinds: str) -> list[Object]:
    moment = {
        "lastTransitionTime": "2026-01-05T08:00:00Z",
        "lastUpdateTime": "2026-01-05T08:00:00Z",
    }
    return [
        {"type": kind, "status": "True", "reason": f"Job{kind}", "message": "", **moment}
        for kind in kinds
    ]
