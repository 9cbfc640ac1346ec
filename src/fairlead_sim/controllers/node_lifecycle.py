"""What follows from a node that is not ready: taints, and evictions of intolerant pods."""

from __future__ import annotations

from typing import Any

from fairlead.wire.kube.time import parse_time
from fairlead_sim.controllers.plan import Plan, View
from fairlead_sim.objects.conditions import conditions_of, find_condition
from fairlead_sim.scheduler.needs import tolerates

Object = dict[str, Any]

_NOT_READY, _UNREACHABLE, _CORDONED = (
    f"node.kubernetes.io/{name}" for name in ("not-ready", "unreachable", "unschedulable")
)
_OWN_TAINTS = (_NOT_READY, _UNREACHABLE, _CORDONED)


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    taints = _taints(obj, view)
    spec = {key: value for key, value in (obj.get("spec") or {}).items() if key != "taints"}
    if taints != list((obj.get("spec") or {}).get("taints") or ()):
        plan.change.append((obj, {**obj, "spec": {**spec, "taints": taints} if taints else spec}))
    driving = [taint for taint in taints if taint["effect"] == "NoExecute"]
    for pod in view.pods_on(obj["metadata"]["name"]) if driving else ():
        at = _leaves_at(pod, driving)
        if at is None or "deletionTimestamp" in pod["metadata"]:
            continue
        if view.now >= at:
            plan.delete.append(pod)
            plan.events_about_others.append(
                (pod, "TaintManagerEviction", f"Marking for deletion Pod {_path(pod)}")
            )
        else:
            plan.wake(at)
    return plan


def _taints(node: Object, view: View) -> list[Object]:
    """The node's own taints and those that its state demands; a taint that stays keeps its time."""
    held = list((node.get("spec") or {}).get("taints") or ())
    ready = find_condition(conditions_of(node), "Ready")
    state = ready["status"] if ready else "Unknown"
    wanted: list[tuple[str, str]] = []
    if state != "True":
        key = _NOT_READY if state == "False" else _UNREACHABLE
        wanted = [(key, "NoSchedule"), (key, "NoExecute")]
    if (node.get("spec") or {}).get("unschedulable"):
        wanted.append((_CORDONED, "NoSchedule"))
    kept = [
        taint
        for taint in held
        if taint["key"] not in _OWN_TAINTS or (taint["key"], taint["effect"]) in wanted
    ]
    there = {(taint["key"], taint["effect"]) for taint in kept}
    new = [
        {"key": key, "effect": effect, "timeAdded": view.time}
        for key, effect in wanted
        if (key, effect) not in there
    ]
    return [*kept, *new]


def _leaves_at(pod: Object, taints: list[Object]) -> float | None:
    """When the taints drive the pod away; None: never."""
    ends: list[float] = []
    for taint in taints:
        matching = [
            toleration
            for toleration in pod["spec"].get("tolerations") or ()
            if tolerates(toleration, taint)
        ]
        since = parse_time(taint["timeAdded"]) if "timeAdded" in taint else 0.0
        limits = [
            toleration["tolerationSeconds"]
            for toleration in matching
            if toleration.get("tolerationSeconds") is not None
        ]
        if not matching:
            ends.append(since)
        elif limits:
            ends.append(since + max(0, min(limits)))
    return min(ends, default=None)


def _path(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
