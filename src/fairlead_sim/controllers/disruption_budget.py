"""The disruption controller: how many pods of a budget may be evicted now."""

from __future__ import annotations

from typing import Any

from fairlead.wire.kube.time import parse_time
from fairlead_sim.controllers.plan import Plan, View, scaled
from fairlead_sim.objects.conditions import is_true, phase_of, with_condition
from fairlead_sim.schema.selector import selects

Object = dict[str, Any]

DELETION_SECONDS = 120.0
"""How long an eviction that was allowed counts although its pod is still there."""


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    chooses = selects(obj["spec"].get("selector"))
    pods = [
        pod
        for pod in view.pods_in(obj["metadata"]["namespace"])
        if phase_of(pod) not in ("Succeeded", "Failed") and chooses(pod)
    ]
    expected, desired = _desired(obj["spec"], pods, view)
    disrupted = _still_disrupted(obj, pods, view, plan)
    healthy = sum(_is_healthy(pod) and pod["metadata"]["name"] not in disrupted for pod in pods)
    allowed = max(0, healthy - desired) if expected else 0
    state = ("True", "SufficientPods") if allowed else ("False", "InsufficientPods")
    before = obj.get("status") or {}
    if not pods and before.get("expectedPods") != 0:
        plan.normal("NoPods", "No matching pods found")
    conditions = with_condition(
        before.get("conditions") or [], "DisruptionAllowed", *state, "", view.time
    )
    generation = obj["metadata"].get("generation", 1)
    plan.status = {
        "conditions": [
            {"observedGeneration": generation, "message": "", **condition}
            for condition in conditions
        ],
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "disruptionsAllowed": allowed,
        "expectedPods": expected,
        "observedGeneration": generation,
        **({"disruptedPods": disrupted} if disrupted else {}),
    }
    return plan


def _is_healthy(pod: Object) -> bool:
    return is_true(pod, "Ready") and "deletionTimestamp" not in pod["metadata"]


def _desired(spec: Object, pods: list[Object], view: View) -> tuple[int, int]:
    """How many pods there should be, and how many of them must stay healthy."""
    least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
    if most is not None:
        expected = _wanted_by_owners(pods, view)
        return expected, max(0, expected - scaled(most, expected, round_up=True))
    if isinstance(least, str):
        expected = _wanted_by_owners(pods, view)
        return expected, scaled(least, expected, round_up=True)
    return len(pods), int(least if least is not None else 1)


def _wanted_by_owners(pods: list[Object], view: View) -> int:
    """The replicas that the pods' owners ask for; a pod without an owner that knows counts once."""
    total, seen = 0, set()
    for pod in pods:
        owner = next(
            (
                item
                for item in pod["metadata"].get("ownerReferences") or ()
                if item.get("controller")
            ),
            None,
        )
        if owner is None:
            total += 1
        elif owner["uid"] not in seen:
            seen.add(owner["uid"])
            found = view.owner(pod["metadata"]["namespace"], owner)
            held = sum(
                any(
                    item["uid"] == owner["uid"]
                    for item in other["metadata"].get("ownerReferences") or ()
                )
                for other in pods
            )
            total += int(((found or {}).get("spec") or {}).get("replicas", held))
    return total


def _still_disrupted(obj: Object, pods: list[Object], view: View, plan: Plan) -> dict[str, str]:
    """Evictions that were allowed and have not begun."""
    staying = {
        pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]
    }
    disrupted = ((obj.get("status") or {}).get("disruptedPods") or {}).items()
    disrupted = {
        name: time
        for name, time in disrupted
        if name in staying and parse_time(time) + DELETION_SECONDS > view.now
    }
    for time in disrupted.values():
        plan.wake(parse_time(time) + DELETION_SECONDS)
    return disrupted
