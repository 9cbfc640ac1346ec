"""The status of Kubeflow's jobs: conditions that exclude each other, and counts by role. Pure."""

from __future__ import annotations

from typing import Any

from fairlead.wire.kube.time import parse_time
from fairlead_sim.controllers.plan import Plan, View
from fairlead_sim.objects.conditions import find_condition, is_true

Object = dict[str, Any]

_EXCLUDES = {"Running": "Restarting", "Restarting": "Running"}


def is_over(obj: Object) -> bool:
    return is_true(obj, "Succeeded") or is_true(obj, "Failed")


def set_state(status: Object, kind: str, value: str, reason: str, message: str, view: View) -> bool:
    """Set a condition as the operators do; False when one with this value and reason stood there.

    What changes goes to the end. Running and Restarting take each other's place; when the job ends
    Running becomes False where it stands.
    """
    conditions = status.get("conditions") or []
    old = find_condition(conditions, kind)
    if old is not None and (old["status"], old["reason"]) == (value, reason):
        return False
    others = [item for item in conditions if item["type"] not in (kind, _EXCLUDES.get(kind))]
    if kind in ("Succeeded", "Failed"):
        others = [
            {**item, "status": "False"} if item["type"] == "Running" else item for item in others
        ]
    since = old["lastTransitionTime"] if old is not None and old["status"] == value else view.time
    times = {"lastUpdateTime": view.time, "lastTransitionTime": since}
    status["conditions"] = [
        *others,
        {"type": kind, "status": value, **times, "reason": reason, "message": message},
    ]
    return True


def run_policy(obj: Object) -> Object:
    """`spec.runPolicy`, over the same fields of the spec itself.

    Manifests of MPIJob v1 write some of them there.
    """
    return {**obj["spec"], **(obj["spec"].get("runPolicy") or {})}


def expire(obj: Object, view: View, plan: Plan) -> None:
    """Delete a finished job once its `ttlSecondsAfterFinished` is over."""
    ttl = run_policy(obj).get("ttlSecondsAfterFinished")
    if ttl is None:
        return
    status = obj["status"]
    ended = status.get("completionTime") or next(
        item["lastTransitionTime"]
        for item in status["conditions"]
        if item["type"] in ("Succeeded", "Failed") and item["status"] == "True"
    )
    until = parse_time(ended) + ttl
    if view.now >= until:
        plan.delete.append(obj)
    else:
        plan.wake(until)
