"""The cluster on which all numbers are compared: small, with one of everything, and each pod tied
to its node.

It has whole, shared, divided (MIG) and time-sliced cards; nodes that are silent, not ready,
cordoned, or have a broken card; jobs in each state; pods of a Deployment, of a Job and without
owner; a quota tree with waiting pods. `reported_cards` has what exporters report of its cards.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from tests.kube.control_plane import ControlPlane
from tests.kube.crds import install_job_kinds
from tests.kube.kubectl import Kubectl
from tests.kube.kwok_stages import EXIT_CODE, NOT_READY, RUN_TIME
from tests.kube.numbers.mixed_jobs import training_jobs, training_pods, write_job_statuses
from tests.kube.numbers.tied_pods import (
    CORDONED,
    FAULTY,
    GATE,
    MIG_LARGE,
    MIG_SMALL,
    NOT_READY_NODE,
    SILENT,
    USER,
    tied,
    utc,
)
from tests.kube.objects import (
    GPU,
    GPU_MEMORY,
    Object,
    cpu_node,
    gpu_node,
    job,
    namespace,
    pod,
    pod_spec,
    share_node,
)
from tests.kube.quota_line import install_crd, tree
from tests.waiting import wait_until

SPACES = ("research", "vision", "spare")
LONG_AGO = {
    "bert-worker-0": 9000,
    "web": 7200,
    "notebook": 5000,
    "small": 9000,
    "lost": 9000,
    "part": 4000,
    "young": 900,
}
"""Pods whose condition has a binding time this number of seconds ago. That is before they were
created, so no other time can be taken for it.
"""


def build_mixed_company(cluster: ControlPlane) -> None:
    """Create the company. Returns when every pod is in its final place."""
    admin = cluster.admin
    admin.create([namespace(name) for name in SPACES])
    install_job_kinds(admin)
    install_crd(cluster)
    admin.create([*_nodes(), tree(_quota())])
    wait_until("the nodes are ready", lambda: not _tainted(admin), 90)
    admin.create(training_jobs())
    admin.create([*_workloads(), *training_pods(admin), *_loose_pods(), *_gated_pods()])
    wait_until("every pod is where it will stay", lambda: _is_settled(admin), 120, 0.5)
    admin.run("cordon", CORDONED)
    admin.run("annotate", "node", NOT_READY_NODE, f"{NOT_READY}=yes")
    _fall_silent(admin)
    _write_binding_times(admin)
    write_job_statuses(admin)
    wait_until("one node is not ready", lambda: _ready_word(admin, NOT_READY_NODE) == "False", 90)


def _nodes() -> list[Object]:
    nodes = [
        gpu_node("a100-1", 4),
        gpu_node("a100-2", 4),
        gpu_node("bare-1", 3, model="Tesla-T4", memory_mib=15360),
        gpu_node(CORDONED, 4),
        gpu_node(NOT_READY_NODE, 2, model="Tesla-T4", memory_mib=15360),
        gpu_node(FAULTY, 4, healthy=3),
        _silent_to_be(gpu_node(SILENT, 4)),
        share_node("share-1", 2),
        _divided("mig-1"),
        gpu_node("sliced-1", 4, model="NVIDIA-A10", memory_mib=23028),
        cpu_node("cpu-1"),
    ]
    for number, node in enumerate(nodes, 1):
        node["status"]["addresses"] = [
            {"type": "Hostname", "address": "x"},
            {"type": "InternalIP", "address": f"10.2.0.{number}"},
        ]
    return nodes


def _divided(name: str) -> Object:
    node = cpu_node(name)
    for kind in ("capacity", "allocatable"):
        node["status"][kind] |= {MIG_LARGE: "1", MIG_SMALL: "3"}
    return node


def _silent_to_be(node: Object) -> Object:
    """The node that falls silent later. KWOK does not play it: the test writes its kubelet's
    reports, and then stops.
    """
    del node["metadata"]["annotations"]
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
    node["status"]["conditions"] = [ready]
    return node


def _quota() -> Object:
    def leaf(name: str, space: str, least: int, most: int) -> Object:
        low = {GPU: str(least), "cpu": "1", "memory": "4Gi", GPU_MEMORY: "6"}
        high = {GPU: str(most), "cpu": "32", "memory": "64Gi", GPU_MEMORY: "60"}
        return {"name": f"root.{name}", "min": low, "max": high, "namespaces": [space]}

    bounds = {GPU: "64", "cpu": "128", "memory": "512Gi", GPU_MEMORY: "200"}
    leaves = [
        leaf("research", "research", 6, 60),
        leaf("vision", "vision", 20, 60),
        leaf("spare", "spare", 2, 4),
    ]
    return {"name": "root", "min": bounds, "max": bounds, "children": leaves}


def shared(name: str, space: str, card: int, units: int, **metadata: Any) -> Object:
    grant = {"scheduler.framework.gpushare.allocation": json.dumps({"0": {str(card): units}})}
    return tied(
        pod(name, namespace=space, gpu_memory=units, annotations=grant, **metadata), "share-1"
    )


def _workloads() -> list[Object]:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {**tied({"spec": pod_spec(gpus=1)}, "a100-1")["spec"], "restartPolicy": "Always"},
    }
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "research"},
        "spec": spec,
    }
    batch = job("batch", namespace="vision", gpus=1)
    tied({"spec": batch["spec"]["template"]["spec"]}, "a100-2")
    over = job("over", namespace="vision", gpus=1, annotations={RUN_TIME: "1s", EXIT_CODE: "1"})
    tied({"spec": over["spec"]["template"]["spec"]}, "a100-1")
    return [web, batch, over]


def _loose_pods() -> list[Object]:
    ann: dict[str, Any] = {"labels": {USER: "ann"}}
    return [
        tied(pod("notebook", namespace="research", gpus=1, **ann), "a100-2"),
        tied(pod("solo", namespace="vision", gpus=1), "bare-1"),
        tied(pod("kept", namespace="vision", gpus=1), CORDONED),
        tied(pod("stuck", namespace="vision", gpus=1), NOT_READY_NODE),
        tied(pod("lost", namespace="research", gpus=1), SILENT),
        tied(pod("young", namespace="research", gpus=1, **ann), FAULTY),
        tied(pod("part", namespace="vision"), "mig-1", {MIG_SMALL: 1}),
        *(
            tied(pod(f"turn-{number}", namespace="vision", gpus=1), "sliced-1")
            for number in range(2)
        ),
        shared("serve", "vision", 0, 4),
        shared("serve-more", "vision", 0, 6),
        shared("small", "research", 1, 3, **ann),
        tied(pod("talks", namespace="spare"), "cpu-1"),
    ]


def gated(name: str, space: str, limits: dict[str, int]) -> Object:
    """A pod that waits for its quota; `limits` are of GPUs."""
    made = tied(pod(name, namespace=space), "a100-1", limits)
    made["spec"]["schedulingGates"] = [{"name": GATE}]
    return made


def _gated_pods() -> list[Object]:
    return [
        gated("queued-0", "vision", {GPU: 2}),
        gated("queued-1", "vision", {GPU: 1}),
        gated("queued-2", "vision", {}),
        gated("queued-3", "research", {GPU_MEMORY: 5}),
    ]


def _tainted(admin: Kubectl) -> list[str]:
    """Nodes that take no pods yet. The silent node needs no taint."""
    closed = [
        node["metadata"]["name"]
        for node in admin.get("nodes")
        if node["spec"].get("taints") or not _is(node, "Ready")
    ]
    return [name for name in closed if name != SILENT]


def _is(thing: Object, kind: str) -> bool:
    return any(
        c["type"] == kind and c["status"] == "True"
        for c in thing.get("status", {}).get("conditions", [])
    )


def _ready_word(admin: Kubectl, name: str) -> str:
    (node,) = [each for each in admin.get("nodes") if each["metadata"]["name"] == name]
    return str(next(c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"))


def _is_settled(admin: Kubectl) -> bool:
    """Whether every pod that has room is bound, and the pods that KWOK plays run or have ended as
    they should.
    """
    pods = admin.get("pods")
    for each in pods:
        phase, name = each["status"]["phase"], each["metadata"]["name"]
        if RUN_TIME in each["metadata"].get("annotations", {}):
            is_so = phase in ("Succeeded", "Failed")
        elif name.startswith(("queued-", "waits-")):
            is_so = True
        else:
            is_so = phase == "Running" or (
                each["spec"].get("nodeName") == SILENT and phase == "Pending"
            )
        if not is_so:
            return False
    return {"web", "batch", "over"} <= {each["metadata"]["name"].partition("-")[0] for each in pods}


def _fall_silent(admin: Kubectl) -> None:
    """The kubelet of SILENT reports that its pods run, and then stops reporting."""
    for each in admin.get("pods"):
        if each["spec"].get("nodeName") == SILENT:
            now = utc(0)
            began = {
                "state": {"running": {"startedAt": now}},
                "name": "main",
                "ready": True,
                "restartCount": 0,
                "image": "x",
                "imageID": "x",
            }
            ready = {"type": "Ready", "status": "True", "lastTransitionTime": now}
            write_status(
                admin,
                "pod",
                each,
                {
                    "phase": "Running",
                    "startTime": now,
                    "conditions": [ready],
                    "containerStatuses": [began],
                },
            )
    unknown = {
        "type": "Ready",
        "status": "Unknown",
        "reason": "NodeStatusUnknown",
        "lastTransitionTime": utc(0),
    }
    patch = json.dumps({"status": {"conditions": [unknown]}})
    admin.run("patch", "node", SILENT, "--subresource=status", "--type=strategic", "-p", patch)


def write_status(admin: Kubectl, kind: str, obj: Object, status: Object) -> None:
    """Patch the status as a kubelet does: conditions of other types stay."""
    where = ("-n", obj["metadata"]["namespace"], "--subresource=status", "--type=strategic")
    admin.run("patch", kind, obj["metadata"]["name"], *where, "-p", json.dumps({"status": status}))


def _write_binding_times(admin: Kubectl) -> None:
    for each in admin.get("pods"):
        ago = LONG_AGO.get(each["metadata"]["name"]) or LONG_AGO.get(
            each["metadata"]["labels"].get("app", "") if "labels" in each["metadata"] else ""
        )
        if ago:
            bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": utc(ago)}
            write_status(admin, "pod", each, {"conditions": [bound]})
