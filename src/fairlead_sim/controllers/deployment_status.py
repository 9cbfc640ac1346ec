"""The status of a Deployment: its counts, and the conditions `Available` and `Progressing`. Pure.

A condition changes only with its status or its reason: a message alone is never written.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from fairlead.wire.kube.time import parse_time
from fairlead_sim.controllers.plan import Plan, View
from fairlead_sim.objects.conditions import find_condition, status_of

Object = dict[str, Any]
State = tuple[str, str, str]

_NO_DEADLINE = 2**31 - 1


class Counts(Struct, frozen=True, gc=False):
    """`size` is what the ReplicaSets are asked for, all others what they have."""

    wanted: int
    size: int
    replicas: int
    updated: int
    ready: int
    available: int
    terminating: int

    @property
    def is_complete(self) -> bool:
        return self.updated == self.replicas == self.available == self.wanted

    def render(self) -> Object:
        counts = {
            "replicas": self.replicas,
            "updatedReplicas": self.updated,
            "readyReplicas": self.ready,
            "availableReplicas": self.available,
            "unavailableReplicas": max(0, self.size - self.available),
        }
        return {
            **{key: value for key, value in counts.items() if value},
            "terminatingReplicas": self.terminating,
        }


def _with(
    conditions: list[Object], kind: str, state: State, time: str, *, is_progress: bool = False
) -> list[Object]:
    """The conditions with one set, at the end of the list; the same ones when status and reason
    stand already and nothing moved on.
    """
    old = find_condition(conditions, kind)
    if old is not None and (old["status"], old.get("reason")) == state[:2] and not is_progress:
        return conditions
    since = old["lastTransitionTime"] if old is not None and old["status"] == state[0] else time
    status, reason, message = state
    new = {
        "type": kind,
        "status": status,
        "lastUpdateTime": time,
        "lastTransitionTime": since,
        "reason": reason,
        "message": message,
    }
    return [*(item for item in conditions if item is not old), new]


def with_availability(
    conditions: list[Object], counts: Counts, most_unavailable: int, time: str
) -> list[Object]:
    state = (
        "False",
        "MinimumReplicasUnavailable",
        "Deployment does not have minimum availability.",
    )
    if counts.available >= counts.wanted - most_unavailable:
        state = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    return _with(conditions, "Available", state, time)


def _deadline(obj: Object) -> int | None:
    seconds = obj["spec"].get("progressDeadlineSeconds")
    return None if seconds is None or seconds >= _NO_DEADLINE else int(seconds)


def with_progressing(
    obj: Object, conditions: list[Object], state: State, time: str
) -> list[Object]:
    return conditions if _deadline(obj) is None else _with(conditions, "Progressing", state, time)


def with_pause(obj: Object, conditions: list[Object], time: str) -> list[Object]:
    """A pause and its end are reported in `Progressing`, so that the deadline starts again; a
    rollout that timed out stays so.
    """
    reason = (find_condition(conditions, "Progressing") or {}).get("reason")
    is_paused = bool(obj["spec"].get("paused"))
    if reason == "ProgressDeadlineExceeded" or is_paused == (reason == "DeploymentPaused"):
        return conditions
    state = (
        ("DeploymentPaused", "Deployment is paused")
        if is_paused
        else ("DeploymentResumed", "Deployment is resumed")
    )
    return with_progressing(obj, conditions, ("Unknown", *state), time)


def progress_of(
    obj: Object, conditions: list[Object], counts: Counts, name: str, view: View, plan: Plan
) -> list[Object]:
    """`Progressing` after a step of the rollout: done, going on, or out of time; wakes the
    controller for the deadline.
    """
    deadline = _deadline(obj)
    if deadline is None:
        return [item for item in conditions if item["type"] != "Progressing"]
    held = find_condition(conditions, "Progressing")
    if (
        held is not None
        and held.get("reason") == "NewReplicaSetAvailable"
        and counts.replicas == counts.updated
    ):
        return conditions
    if counts.is_complete:
        return _with(
            conditions,
            "Progressing",
            ("True", "NewReplicaSetAvailable", f"{name} has successfully progressed."),
            view.time,
        )
    if _moved_on(status_of(obj), counts):
        state = ("True", "ReplicaSetUpdated", f"{name} is progressing.")
        conditions = _with(conditions, "Progressing", state, view.time, is_progress=True)
        held = find_condition(conditions, "Progressing") or {}
    elif held is None:
        return conditions
    elif (
        held.get("reason") not in ("NewReplicaSetAvailable", "ProgressDeadlineExceeded")
        and _ends_at(held, deadline) < view.now
    ):
        return _with(
            conditions,
            "Progressing",
            ("False", "ProgressDeadlineExceeded", f"{name} has timed out progressing."),
            view.time,
        )
    if held.get("reason") != "ProgressDeadlineExceeded":
        plan.wake(max(view.now, _ends_at(held, deadline)) + 1.0)
    return conditions


def _ends_at(condition: Object, deadline: int) -> float:
    return parse_time(condition["lastUpdateTime"]) + deadline


def _moved_on(before: Object, counts: Counts) -> bool:
    old_before = before.get("replicas", 0) - before.get("updatedReplicas", 0)
    return bool(
        counts.updated > before.get("updatedReplicas", 0)
        or counts.replicas - counts.updated < old_before
        or counts.ready > before.get("readyReplicas", 0)
        or counts.available > before.get("availableReplicas", 0)
    )
