"""How do the kubeflow operators write a job's status? The conditions that exclude each other, and the counts by role. Pure."""

from __future__ import annotations

from typing import Any

from fairlead.sim.conditions import find_condition, is_true, with_condition
from fairlead.sim.plan import Plan, View
from fairlead.wire.kube_time import parse_time

Object = dict[str, Any]

_EXCLUDES = {"Running": "Restarting", "Restarting": "Running"}


def is_over(obj: Object) -> bool:
    return is_true(obj, "Succeeded") or is_true(obj, "Failed")


def set_state(status: Object, kind: str, value: str, reason: str, message: str, view: View) -> bool:
    """Set a condition as the operators do; False when it already stood so.

    Running and Restarting take each other's place; at the end Running stays behind as False.
    """
    conditions = status.get("conditions") or []
    old = find_condition(conditions, kind)
    if old is not None and (old["status"], old["reason"], old.get("message")) == (value, reason, message):
        return False
    conditions = [item for item in conditions if item["type"] != _EXCLUDES.get(kind)]
    running = find_condition(conditions, "Running")
    if kind in ("Succeeded", "Failed") and running is not None:
        ended = (running["reason"], running.get("message", ""))
        conditions = with_condition(conditions, "Running", "False", *ended, view.time, updated=view.time)
    status["conditions"] = with_condition(conditions, kind, value, reason, message, view.time, updated=view.time)
    return True


def run_policy(obj: Object) -> Object:
    """`spec.runPolicy` over the same fields of the spec itself, where manifests of MPIJob v1 write some of them."""
    return {**obj["spec"], **(obj["spec"].get("runPolicy") or {})}


def expire(obj: Object, view: View, plan: Plan) -> None:
    """Delete a finished job once its `ttlSecondsAfterFinished` is over."""
    ttl = run_policy(obj).get("ttlSecondsAfterFinished")
    if ttl is None:
        return
    status = obj["status"]
    ended = status.get("completionTime") or next(
        item["lastTransitionTime"] for item in status["conditions"] if item["type"] in ("Succeeded", "Failed") and item["status"] == "True"
    )
    until = parse_time(ended) + ttl
    if view.now >= until:
        plan.delete.append(obj)
    else:
        plan.wake(until)
