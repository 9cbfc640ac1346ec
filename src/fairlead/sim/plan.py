"""What does a controller want done? The vocabulary between the pure controllers and the loop that carries their plans out.

A controller module has `reconcile(obj, view) -> Plan` and decides from what it sees alone; it never touches the store.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairlead.sim.chance import suffix_of
from fairlead.sim.conditions import phase_of, status_of
from fairlead.wire.kube_time import render_time

Object = dict[str, Any]


@dataclass(slots=True)
class View:
    """What a controller may look at: the time, and who is owned by whom (by uid, in the order of creation)."""

    now: float
    seed: int
    owned: Callable[[str], list[Object]]

    @property
    def time(self) -> str:
        return render_time(self.now)

    def pods_of(self, obj: Object) -> list[Object]:
        return [child for child in self.owned(obj["metadata"]["uid"]) if child["kind"] == "Pod"]

    def names_below(self, obj: Object, count: int) -> list[str]:
        """New generated names below the object's, never the same at another instant."""
        metadata = obj["metadata"]
        suffixes = [suffix_of(self.seed, metadata.get("namespace"), metadata["name"], f"{self.now:.3f}", k) for k in range(count)]
        return [f"{metadata['name']}-{suffix}" for suffix in suffixes]


@dataclass(slots=True)
class Plan:
    """What to do, in this order: create, change, delete, then write `status` (None: as it is) and come back at `wake_at`."""

    create: list[Object] = field(default_factory=list)
    change: list[tuple[Object, Object]] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    status: Object | None = None
    tell: list[tuple[str, str, str]] = field(default_factory=list)
    wake_at: float | None = None

    def normal(self, reason: str, message: str) -> None:
        self.tell.append(("Normal", reason, message))

    def warning(self, reason: str, message: str) -> None:
        self.tell.append(("Warning", reason, message))

    def wake(self, at: float) -> None:
        self.wake_at = at if self.wake_at is None else min(self.wake_at, at)


def owned_by(owner: Object) -> list[Object]:
    """The ownerReferences of something the owner controls."""
    metadata = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return [{**reference, "controller": True, "blockOwnerDeletion": True}]


def pod_from(template: Object, owner: Object, name: str, labels: dict[str, str] | None = None) -> Object:
    """A pod from a template, below its owner; `labels` are added to the template's."""
    metadata = template.get("metadata") or {}
    new: Object = {"name": name, "namespace": owner["metadata"]["namespace"], "ownerReferences": owned_by(owner)}
    new["labels"] = {**(metadata.get("labels") or {}), **(labels or {})}
    if metadata.get("annotations"):
        new["annotations"] = dict(metadata["annotations"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": new, "spec": template["spec"]}


def is_active(pod: Object) -> bool:
    """Neither finished nor on its way out."""
    return phase_of(pod) not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def restarts_of(pod: Object) -> int:
    return sum(status["restartCount"] for status in status_of(pod).get("containerStatuses") or ())
