"""The DaemonSet controller: one pod on every suitable node, pinned by node affinity.

The scheduler binds the pods.
"""

from __future__ import annotations

from typing import Any

from fairlead_sim.controllers.controller_history import (
    HASH_LABEL,
    forget_revisions,
    hash_of,
    sync_history,
)
from fairlead_sim.controllers.plan import (
    Plan,
    View,
    claim,
    generated_pod,
    is_available,
    is_going,
    scaled,
    wake_when_available,
)
from fairlead_sim.objects.conditions import is_true, phase_of
from fairlead_sim.scheduler.affinity import suits_node
from fairlead_sim.scheduler.needs import untolerated

Object = dict[str, Any]
OnNode = dict[str, list[Object]]
"""Pods by the node they are on or meant for."""

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
    pods = claim(obj, "Pod", view, plan)
    revisions, current = sync_history(obj, view, plan)
    label = hash_of(current)
    on_node: OnNode = {}
    for pod in pods:
        on_node.setdefault(_target(pod), []).append(pod)
    suits = {node["metadata"]["name"]: _should_run(obj, node) for node in view.nodes()}
    wanted = [name for name, (starts, _) in suits.items() if starts]
    over = [
        pod
        for node, found in on_node.items()
        if not suits.get(node, (False, False))[1]
        for pod in found
    ]
    over += [
        pod
        for found in on_node.values()
        for pod in found
        if phase_of(pod) in ("Succeeded", "Failed") and pod not in over
    ]
    missing = [node for node in wanted if node not in on_node]
    if not missing and (obj["spec"].get("updateStrategy") or {}).get("type") != "OnDelete":
        replaced, beside = _outdated(obj, wanted, on_node, label, view.now)
        over += [pod for pod in replaced if pod not in over]
        missing += beside
    _carry_out(obj, missing, over, label, view, plan)
    live = {
        item["metadata"]["name"]
        for item in revisions
        if item is current or hash_of(item) in {_hash(pod) for pod in pods}
    }
    forget_revisions(obj, revisions, live, plan)
    plan.status = _status(obj, wanted, on_node, label, view.now)
    wake_when_available(pods, obj, view, plan)
    return plan


def _carry_out(
    obj: Object, missing: list[str], over: list[Object], label: str, view: View, plan: Plan
) -> None:
    for node, name in zip(missing, view.names_below(obj, len(missing)), strict=True):
        plan.create.append(_pod(obj, node, name, label))
        plan.normal("SuccessfulCreate", f"Created pod: {name}")
    for pod in over:
        if not is_going(pod):
            plan.delete.append(pod)
            plan.normal("SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")


def _target(pod: Object) -> str:
    """The node a pod is on or meant for."""
    if pod["spec"].get("nodeName"):
        return str(pod["spec"]["nodeName"])
    terms = (
        ((pod["spec"].get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    ).get("nodeSelectorTerms") or ()
    fields = [
        field
        for term in terms
        for field in term.get("matchFields") or ()
        if field["key"] == "metadata.name"
    ]
    return str(fields[0]["values"][0]) if fields else ""


def _should_run(obj: Object, node: Object) -> tuple[bool, bool]:
    """Whether a pod shall start on the node, and whether one that is there may stay: only
    `NoExecute` drives it away.
    """
    spec, metadata = obj["spec"]["template"]["spec"], node["metadata"]
    if not suits_node(spec, metadata["name"], metadata.get("labels") or {}):
        return False, False
    taints = (node.get("spec") or {}).get("taints") or ()
    tolerations = [*(spec.get("tolerations") or ()), *_ALWAYS_TOLERATED]
    stays = (
        untolerated([taint for taint in taints if taint["effect"] == "NoExecute"], tolerations)
        is None
    )
    return untolerated(taints, tolerations) is None, stays


def _hash(pod: Object) -> str:
    return str((pod["metadata"].get("labels") or {}).get(HASH_LABEL, ""))


def _outdated(
    obj: Object, wanted: list[str], on_node: OnNode, label: str, now: float
) -> tuple[list[Object], list[str]]:
    """Pods of an old template that may go now, and nodes that get a new pod (`maxSurge`).

    The new pod runs beside the old one.
    """
    rolling = (obj["spec"].get("updateStrategy") or {}).get("rollingUpdate") or {}
    surge = scaled(rolling.get("maxSurge") or 0, len(wanted), round_up=True)
    pairs = {node: _old_and_new(found, label) for node, found in on_node.items()}
    if surge:
        return _replaced_beside(obj, pairs, surge, now)
    most = scaled(rolling.get("maxUnavailable", 1), len(wanted), round_up=True)
    return _replaced_in_place(obj, pairs, max(1, most), now), []


def _old_and_new(pods: list[Object], label: str) -> tuple[Object | None, Object | None]:
    staying = [pod for pod in pods if not is_going(pod)]
    old = next((pod for pod in staying if _hash(pod) != label), None)
    return old, next((pod for pod in staying if _hash(pod) == label), None)


def _replaced_in_place(
    obj: Object, pairs: dict[str, tuple[Object | None, Object | None]], most: int, now: float
) -> list[Object]:
    """Those that do not work at once, the others while enough remain."""
    broken, working, unavailable = [], [], 0
    for old, new in pairs.values():
        if old is None or new is not None:
            unavailable += new is None or old is not None or not is_available(new, obj, now)
        elif is_available(old, obj, now):
            working.append(old)
        else:
            broken.append(old)
            unavailable += 1
    return broken + working[: max(0, most - unavailable)]


def _replaced_beside(
    obj: Object, pairs: dict[str, tuple[Object | None, Object | None]], surge: int, now: float
) -> tuple[list[Object], list[str]]:
    gone: list[Object] = []
    now_nodes: list[str] = []
    later_nodes: list[str] = []
    surging = 0
    for node, (old, new) in pairs.items():
        if old is None:
            continue
        if new is None:
            (later_nodes if is_available(old, obj, now) else now_nodes).append(node)
        elif is_available(new, obj, now):
            gone.append(old)
        else:
            surging += 1
    return gone, now_nodes + later_nodes[: max(0, surge - surging)]


def _pod(obj: Object, node: str, name: str, label: str) -> Object:
    generation = (obj["metadata"].get("annotations") or {}).get(
        "deprecated.daemonset.template.generation", "1"
    )
    pod = generated_pod(
        obj["spec"]["template"],
        obj,
        name,
        {HASH_LABEL: label, "pod-template-generation": generation},
    )
    spec = pod["spec"]
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    affinity = {
        **(spec.get("affinity") or {}),
        "nodeAffinity": {_REQUIRED: {"nodeSelectorTerms": [term]}},
    }
    return {
        **pod,
        "spec": {
            **spec,
            "affinity": affinity,
            "tolerations": [*(spec.get("tolerations") or ()), *_ALWAYS_TOLERATED],
        },
    }


def _status(obj: Object, wanted: list[str], on_node: OnNode, label: str, now: float) -> Object:
    placed = [pods[0] for node in wanted if (pods := on_node.get(node))]
    available = sum(is_available(pod, obj, now) for pod in placed)
    counts = {
        "updatedNumberScheduled": sum(_hash(pod) == label for pod in placed),
        "numberAvailable": available,
        "numberUnavailable": len(wanted) - available,
    }
    return {
        "currentNumberScheduled": len(placed),
        "numberMisscheduled": sum(node not in wanted for node in on_node),
        "desiredNumberScheduled": len(wanted),
        "numberReady": sum(is_true(pod, "Ready") for pod in placed),
        "observedGeneration": obj["metadata"].get("generation", 1),
        **{key: value for key, value in counts.items() if value},
    }
