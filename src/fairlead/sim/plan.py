"""What does a controller want done? The vocabulary between the pure controllers and the loop that carries their plans out.

A controller module has `reconcile(obj, view) -> Plan` and decides from what it sees alone; it never touches the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairlead.sim.chance import digest, suffix_of
from fairlead.sim.conditions import phase_of, status_of
from fairlead.wire.kube_time import render_time

Object = dict[str, Any]


@dataclass(slots=True)
class View:
    """What a controller may look at: the time, who is owned by whom (by uid, in the order of creation), nodes, volumes, pods, owners."""

    now: float
    seed: int
    owned: Callable[[str], list[Object]]
    nodes: Callable[[], list[Object]] = list
    volumes: Callable[[], list[Object]] = list
    pods_in: Callable[[str], list[Object]] = lambda namespace: []
    pods_on: Callable[[str], list[Object]] = lambda node: []
    owner: Callable[[str, Object], Object | None] = lambda namespace, reference: None

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
    """What to do, in this order: create, change, delete, then write `status` (None: as it is) and come back at `wake_at`.

    A change carries over spec and annotations. `tell` are events about the object itself, `tell_about` normal ones about others.
    """

    create: list[Object] = field(default_factory=list)
    change: list[tuple[Object, Object]] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    status: Object | None = None
    tell: list[tuple[str, str, str]] = field(default_factory=list)
    tell_about: list[tuple[Object, str, str]] = field(default_factory=list)
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


def template_hash(template: Object) -> str:
    return digest(0, json.dumps(template, sort_keys=True)).hex()[:10]


def scaled(value: int | str, of: int, *, round_up: bool) -> int:
    """
    >>> scaled("25%", 3, round_up=True), scaled("25%", 3, round_up=False), scaled(2, 3, round_up=True)
    (1, 0, 2)
    """
    if isinstance(value, int):
        return value
    percent = int(value.rstrip("%"))
    return -(-percent * of // 100) if round_up else percent * of // 100


def is_active(pod: Object) -> bool:
    """Neither finished nor on its way out."""
    return phase_of(pod) not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]


def restarts_of(pod: Object) -> int:
    return sum(status["restartCount"] for status in status_of(pod).get("containerStatuses") or ())
