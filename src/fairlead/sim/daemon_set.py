"""What does the DaemonSet controller do? One pod on every node that suits it, pinned by node affinity and bound by the scheduler."""

from __future__ import annotations

from typing import Any

from fairlead.sim.affinity import suits_node
from fairlead.sim.conditions import is_true, phase_of
from fairlead.sim.needs import untolerated
from fairlead.sim.plan import Plan, View, pod_from, scaled, template_hash

Object = dict[str, Any]

HASH_LABEL = "controller-revision-hash"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_ALWAYS_TOLERATED = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
    for key, effect in (
        ("not-ready", "NoExecute"),
        ("unreachable", "NoExecute"),
        ("disk-pressure", "NoSchedule"),
        ("memory-pressure", "NoSchedule"),
        ("pid-pressure", "NoSchedule"),
        ("unschedulable", "NoSchedule"),
    )
]


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    label = template_hash(obj["spec"]["template"])
    on_node: dict[str, list[Object]] = {}
    for pod in view.pods_of(obj):
        on_node.setdefault(_target(pod), []).append(pod)
    wanted = [node["metadata"]["name"] for node in view.nodes() if _should_run(obj, node, node["metadata"]["name"] in on_node)]
    for number, node in enumerate(node for node in wanted if node not in on_node):
        name = view.names_below(obj, number + 1)[number]
        plan.create.append(_pod(obj, node, name, label))
        plan.normal("SuccessfulCreate", f"Created pod: {name}")
    over = [pod for node, pods in on_node.items() if node not in wanted for pod in pods]
    over += [pod for node in wanted for pod in on_node.get(node, ()) if phase_of(pod) in ("Succeeded", "Failed")]
    for pod in (*over, *_outdated(obj, wanted, on_node, label)):
        if "deletionTimestamp" not in pod["metadata"]:
            plan.delete.append(pod)
            plan.normal("SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")
    plan.status = _status(obj, wanted, on_node, label)
    return plan


def _target(pod: Object) -> str:
    """The node a pod is on or meant for."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    terms = pod["spec"]["affinity"]["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"]
    return str(terms[0]["matchFields"][0]["values"][0])


def _should_run(obj: Object, node: Object, has_pod: bool) -> bool:
    """A pod that is there stays despite `NoSchedule`; only `NoExecute` drives it away."""
    spec, metadata = obj["spec"]["template"]["spec"], node["metadata"]
    taints = (node.get("spec") or {}).get("taints") or ()
    feared = [taint for taint in taints if taint["effect"] == "NoExecute" or not has_pod]
    tolerations = [*(spec.get("tolerations") or ()), *_ALWAYS_TOLERATED]
    return suits_node(spec, metadata["name"], metadata.get("labels") or {}) and untolerated(feared, tolerations) is None


def _outdated(obj: Object, wanted: list[str], on_node: dict[str, list[Object]], label: str) -> list[Object]:
    """Pods of an old template that may go now: those that do not work at once, the others while enough remain."""
    strategy = obj["spec"].get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return []
    old = [pod for node in wanted for pod in on_node.get(node, ()) if pod["metadata"]["labels"].get(HASH_LABEL) != label]
    ready = sum(any(_is_available(pod) for pod in on_node.get(node, ())) for node in wanted)
    most = max(1, scaled((strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1), len(wanted), round_up=True))
    spare = max(0, most - (len(wanted) - ready))
    return [pod for pod in old if not _is_available(pod)] + [pod for pod in old if _is_available(pod)][:spare]


def _is_available(pod: Object) -> bool:
    return is_true(pod, "Ready") and "deletionTimestamp" not in pod["metadata"]


def _pod(obj: Object, node: str, name: str, label: str) -> Object:
    generation = str(obj["metadata"].get("generation", 1))
    pod = pod_from(obj["spec"]["template"], obj, name, {HASH_LABEL: label, "pod-template-generation": generation})
    spec = pod["spec"]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {**(spec.get("affinity") or {}), "nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [term]}}}
    return {**pod, "spec": {**spec, "affinity": affinity, "tolerations": [*(spec.get("tolerations") or ()), *_ALWAYS_TOLERATED]}}


def _status(obj: Object, wanted: list[str], on_node: dict[str, list[Object]], label: str) -> Object:
    placed = [pods[0] for node in wanted if (pods := on_node.get(node))]
    ready = sum(is_true(pod, "Ready") for pod in placed)
    counts = {
        "updatedNumberScheduled": sum(pod["metadata"]["labels"].get(HASH_LABEL) == label for pod in placed),
        "numberAvailable": ready,
        "numberUnavailable": len(wanted) - ready,
    }
    return {
        "currentNumberScheduled": len(placed),
        "numberMisscheduled": sum(node not in wanted for node in on_node),
        "desiredNumberScheduled": len(wanted),
        "numberReady": ready,
        "observedGeneration": obj["metadata"].get("generation", 1),
        **{key: value for key, value in counts.items() if value},
    }
