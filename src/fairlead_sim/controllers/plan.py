"""The vocabulary between the pure controllers and the loop that carries out their plans.

A controller module has `reconcile(obj, view) -> Plan` and decides from what it sees alone; it never
touches the store.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fairlead.wire.kube.time import parse_time, render_time
from fairlead_sim.objects.chance import digest, suffix_of
from fairlead_sim.objects.conditions import conditions_of, find_condition, phase_of, status_of
from fairlead_sim.schema.selector import selects

Object = dict[str, Any]


@dataclass(slots=True)
class View:
    """What a controller may read: the time, owned objects (by the owner's uid, in the order of
    creation), nodes, volumes, pods, owners.

    `orphans`: the objects of a kind in a namespace without a controller, in the order in which they
    came. `listed`: the objects of a version and kind in a namespace.
    """

    now: float
    seed: int
    owned: Callable[[str], list[Object]]
    nodes: Callable[[], list[Object]] = list
    volumes: Callable[[], list[Object]] = list
    pods_in: Callable[[str], list[Object]] = lambda namespace: []
    pods_on: Callable[[str], list[Object]] = lambda node: []
    owner: Callable[[str, Object], Object | None] = lambda namespace, reference: None
    orphans: Callable[[str, str], list[Object]] = lambda kind, namespace: []
    has_node: Callable[[str], bool] = lambda name: True
    contents: Callable[[str], dict[str, list[Object]]] = lambda namespace: {}
    listed: Callable[[str, str, str], list[Object]] = lambda version, kind, namespace: []

    def find(self, version: str, kind: str, name: str, namespace: str = "") -> Object | None:
        """An object of a version and kind, e.g. `apps/v1` and `Deployment`."""
        return self.owner(namespace, {"apiVersion": version, "kind": kind, "name": name})

    @property
    def time(self) -> str:
        return render_time(self.now)

    def pods_of(self, obj: Object) -> list[Object]:
        return self.controlled(obj, "Pod")

    def controlled(self, obj: Object, kind: str) -> list[Object]:
        """Objects that it controls, without those that only name it as an owner."""
        uid = obj["metadata"]["uid"]
        return [
            child
            for child in self.owned(uid)
            if child["kind"] == kind and is_controlled_by(child, uid)
        ]

    def names_below(self, obj: Object, count: int) -> list[str]:
        """New generated names below the object's, never the same at another instant."""
        metadata = obj["metadata"]
        suffixes = [
            suffix_of(self.seed, metadata.get("namespace"), metadata["name"], f"{self.now:.3f}", k)
            for k in range(count)
        ]
        return [f"{metadata['name']}-{suffix}" for suffix in suffixes]


@dataclass(slots=True)
class Plan:
    """What to do, in this order: create, change, delete, write `status` (None: as it is), write the
    `statuses` of other objects, delete by `force`, and come back at `wake_at`.

    A change carries over all but the status and what only the store writes. `events` are about
    the object itself, `events_about_others` normal ones about others.
    """

    create: list[Object] = field(default_factory=list)
    change: list[tuple[Object, Object]] = field(default_factory=list)
    delete: list[Object] = field(default_factory=list)
    status: Object | None = None
    statuses: list[tuple[Object, Object]] = field(default_factory=list)
    force: list[Object] = field(default_factory=list)
    events: list[tuple[str, str, str]] = field(default_factory=list)
    events_about_others: list[tuple[Object, str, str]] = field(default_factory=list)
    wake_at: float | None = None

    def normal(self, reason: str, message: str) -> None:
        self.events.append(("Normal", reason, message))

    def warning(self, reason: str, message: str) -> None:
        self.events.append(("Warning", reason, message))

    def wake(self, at: float) -> None:
        self.wake_at = at if self.wake_at is None else min(self.wake_at, at)


def owned_by(owner: Object) -> list[Object]:
    """The ownerReferences of something the owner controls."""
    metadata = owner["metadata"]
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    return [{**reference, "controller": True, "blockOwnerDeletion": True}]


def is_controlled_by(child: Object, uid: str) -> bool:
    return any(
        owner["uid"] == uid and owner.get("controller")
        for owner in child["metadata"].get("ownerReferences") or ()
    )


def claim(obj: Object, kind: str, view: View, plan: Plan) -> list[Object]:
    """The children of a kind that the object selects: its own, and orphans that it adopts.

    It releases children that it no longer selects.
    """
    chooses = selects(obj["spec"].get("selector"))
    mine = []
    for child in view.controlled(obj, kind):
        if chooses(child):
            mine.append(child)
        elif not is_going(child):
            others = [
                owner
                for owner in child["metadata"]["ownerReferences"]
                if owner["uid"] != obj["metadata"]["uid"]
            ]
            plan.change.append((child, _with_owners(child, others)))
    for orphan in view.orphans(kind, obj["metadata"]["namespace"]):
        if (
            not is_going(orphan)
            and chooses(orphan)
            and phase_of(orphan) not in ("Succeeded", "Failed")
        ):
            adopted = _with_owners(
                orphan, [*(orphan["metadata"].get("ownerReferences") or ()), *owned_by(obj)]
            )
            plan.change.append((orphan, adopted))
            mine.append(adopted)
    return mine


def _with_owners(child: Object, owners: list[Object]) -> Object:
    return {**child, "metadata": {**child["metadata"], "ownerReferences": owners}}


def is_going(obj: Object) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def pod_from(
    template: Object, owner: Object, name: str, labels: dict[str, str] | None = None
) -> Object:
    """A pod from a template, below its owner; `labels` are added to the template's."""
    metadata = template.get("metadata") or {}
    new: Object = {
        "name": name,
        "namespace": owner["metadata"]["namespace"],
        "ownerReferences": owned_by(owner),
    }
    new["labels"] = {**(metadata.get("labels") or {}), **(labels or {})}
    if metadata.get("annotations"):
        new["annotations"] = dict(metadata["annotations"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": new, "spec": template["spec"]}


def generated_pod(
    template: Object, owner: Object, name: str, labels: dict[str, str] | None = None
) -> Object:
    """Like `pod_from`, for a name with five generated characters: the pod has `generateName`."""
    pod = pod_from(template, owner, name, labels)
    return {**pod, "metadata": {"generateName": name[:-5], **pod["metadata"]}}


def template_hash(template: Object) -> str:
    return digest(0, json.dumps(template, sort_keys=True)).hex()[:10]


def scaled(value: int | str, of: int, *, round_up: bool) -> int:
    """
    >>> scaled("25%", 3, round_up=True)
    1
    >>> scaled("25%", 3, round_up=False)
    0
    >>> scaled(2, 3, round_up=True)
    2
    """
    if isinstance(value, int):
        return value
    percent = int(value.rstrip("%"))
    return -(-percent * of // 100) if round_up else percent * of // 100


def is_active(pod: Object) -> bool:
    """Neither finished nor on its way out."""
    return phase_of(pod) not in ("Succeeded", "Failed") and not is_going(pod)


def ready_since(pod: Object) -> float | None:
    """Since when the pod is Ready; None: it is not."""
    condition = find_condition(conditions_of(pod), "Ready")
    if condition is None or condition["status"] != "True":
        return None
    return (
        parse_time(condition["lastTransitionTime"]) if condition.get("lastTransitionTime") else 0.0
    )


def available_at(pod: Object, obj: Object) -> float | None:
    """From when on a Ready pod counts as available: `minReadySeconds` of its owner later."""
    since = ready_since(pod)
    return None if since is None else since + int(obj["spec"].get("minReadySeconds") or 0)


def is_available(pod: Object, obj: Object, now: float) -> bool:
    at = available_at(pod, obj)
    return at is not None and at <= now


def wake_when_available(pods: list[Object], obj: Object, view: View, plan: Plan) -> None:
    """Come back when the next Ready pod becomes available."""
    for pod in pods if obj["spec"].get("minReadySeconds") else ():
        at = available_at(pod, obj)
        if at is not None and at > view.now:
            plan.wake(at)


def restarts_of(pod: Object) -> int:
    return sum(status["restartCount"] for status in status_of(pod).get("containerStatuses") or ())
