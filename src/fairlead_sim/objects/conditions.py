"""The conditions of an object's status, and how they change.

By type; `lastTransitionTime` moves only with `status`, and an equal condition stays the same
object. People may have patched a status away, so it is read through `status_of`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Object = dict[str, Any]


def with_condition(
    conditions: Sequence[Object],
    kind: str,
    status: str,
    reason: str,
    message: str,
    time: str,
    *,
    updated: str = "",
) -> list[Object]:
    """The conditions with one set; a new type goes to the end.

    `updated` fills `lastUpdateTime` where the kind has it.
    """
    old = find_condition(conditions, kind)
    new: Object = {"type": kind, "status": status}
    if updated:
        unchanged = old is not None and (old["status"], old.get("reason"), old.get("message")) == (
            status,
            reason,
            message,
        )
        new["lastUpdateTime"] = old["lastUpdateTime"] if old is not None and unchanged else updated
    new["lastTransitionTime"] = (
        old.get("lastTransitionTime", time) if old is not None and old["status"] == status else time
    )
    if reason:
        new["reason"] = reason
    if message:
        new["message"] = message
    if old is None:
        return [*conditions, new]
    return [new if condition is old else condition for condition in conditions]


def find_condition(conditions: Sequence[Object], kind: str) -> Object | None:
    return next((condition for condition in conditions if condition["type"] == kind), None)


def status_of(obj: Object) -> Object:
    return obj.get("status") or {}


def conditions_of(obj: Object) -> list[Object]:
    return status_of(obj).get("conditions") or []


def phase_of(pod: Object) -> str:
    return str(status_of(pod).get("phase", "Pending"))


def is_true(obj: Object, kind: str) -> bool:
    """Whether the object's condition of this type is `True`."""
    condition = find_condition(conditions_of(obj), kind)
    return condition is not None and condition["status"] == "True"
