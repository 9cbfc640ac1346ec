"""The Deployment controller: one ReplicaSet for each template, and the rolling update between them.

As the real controller it takes one small step at a time, and each step's change makes it look
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairlead_sim.controllers.deployment_status import (
    Counts,
    progress_of,
    with_availability,
    with_pause,
    with_progressing,
)
from fairlead_sim.controllers.plan import (
    Plan,
    View,
    claim,
    is_going,
    owned_by,
    scaled,
    template_hash,
)
from fairlead_sim.objects.conditions import find_condition, status_of
from fairlead_sim.schema.go_number import whole_or_none

Object = dict[str, Any]

HASH_LABEL = "pod-template-hash"
_PREFIX = "deployment.kubernetes.io/"
REVISION, HISTORY, DESIRED, MOST = (
    f"{_PREFIX}{name}"
    for name in ("revision", "revision-history", "desired-replicas", "max-replicas")
)
_NOT_COPIED = (REVISION, HISTORY, DESIRED, MOST, "kubectl.kubernetes.io/last-applied-configuration")


@dataclass(slots=True)
class _Rollout:
    """One look at a Deployment.

    `current` is the ReplicaSet of its template, `others` all older ones.
    """

    obj: Object
    view: View
    plan: Plan
    current: Object | None
    others: list[Object]
    conditions: list[Object]

    @property
    def sets(self) -> list[Object]:
        return [*self.others, self.current] if self.current is not None else list(self.others)

    @property
    def active(self) -> list[Object]:
        return [item for item in self.sets if _size(item)]

    def replace(self, old: Object, new: Object) -> None:
        self.plan.change.append((old, new))
        if old is self.current:
            self.current = new
        else:
            self.others[self.others.index(old)] = new


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    sets = claim(obj, "ReplicaSet", view, plan)
    current = next((item for item in sets if _is_template_of(obj, item)), None)
    conditions = with_pause(obj, status_of(obj).get("conditions") or [], view.time)
    rollout = _Rollout(
        obj, view, plan, current, [item for item in sets if item is not current], conditions
    )
    _sync_revision(rollout)
    if obj["spec"].get("paused") or _is_scaling(rollout):
        _scale_all(rollout)
        if obj["spec"].get("paused"):
            _forget_old(rollout)
        _write_status(rollout, is_rolling=False)
        return plan
    if _is_recreated(obj):
        _recreate(rollout)
    else:
        _roll(rollout)
    _write_status(rollout, is_rolling=True)
    return plan


# --- reading --------------------------------------------------------------------------------------


def _is_template_of(obj: Object, item: Object) -> bool:
    metadata = item["spec"]["template"].get("metadata") or {}
    labels = {
        key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL
    }
    template = {**item["spec"]["template"], "metadata": {**metadata, "labels": labels}}
    wanted = obj["spec"]["template"]
    return bool(
        template == {**wanted, "metadata": {**(wanted.get("metadata") or {}), "labels": labels}}
    ) and labels == ((wanted.get("metadata") or {}).get("labels") or {})


def _annotations(item: Object) -> dict[str, str]:
    return item["metadata"].get("annotations") or {}


def _number(item: Object, annotation: str) -> int | None:
    return whole_or_none(_annotations(item).get(annotation, ""))


def _revision(item: Object) -> int:
    return _number(item, REVISION) or 0


def _wanted(obj: Object) -> int:
    return int(obj["spec"].get("replicas", 1))


def _size(item: Object) -> int:
    return int(item["spec"].get("replicas", 0))


def _available(item: Object) -> int:
    return int(status_of(item).get("availableReplicas", 0))


def _is_recreated(obj: Object) -> bool:
    return (obj["spec"].get("strategy") or {}).get("type") == "Recreate"


def _bounds(obj: Object) -> tuple[int, int]:
    """Surge (rounded up) and unavailable (rounded down) pods; never both zero."""
    if _is_recreated(obj):
        return 0, 0
    rolling, wanted = (obj["spec"].get("strategy") or {}).get("rollingUpdate") or {}, _wanted(obj)
    surge = scaled(rolling.get("maxSurge", "25%"), wanted, round_up=True)
    unavailable = scaled(rolling.get("maxUnavailable", "25%"), wanted, round_up=False)
    if not surge and not unavailable:
        unavailable = 1
    return surge, min(unavailable, wanted)


def _is_scaling(rollout: _Rollout) -> bool:
    """Whether the number of replicas has changed since the sets were last sized."""
    desired = [_number(item, DESIRED) for item in rollout.active]
    return any(number is not None and number != _wanted(rollout.obj) for number in desired)


# --- revisions ------------------------------------------------------------------------------------


def _sync_revision(rollout: _Rollout) -> None:
    """Make the set of the wanted template the newest.

    Its revision and the Deployment's are set accordingly.
    """
    if rollout.current is None:
        return
    newest = max((_revision(item) for item in rollout.others), default=0) + 1
    annotations = _noted(rollout.obj, _annotations(rollout.current), newest)
    if annotations != _annotations(rollout.current):
        rollout.replace(rollout.current, _with_annotations(rollout.current, annotations))
    seconds = rollout.obj["spec"].get("minReadySeconds")
    if rollout.current["spec"].get("minReadySeconds") != seconds:
        spec = {
            key: value for key, value in rollout.current["spec"].items() if key != "minReadySeconds"
        }
        rollout.replace(
            rollout.current,
            {**rollout.current, "spec": {**spec, "minReadySeconds": seconds} if seconds else spec},
        )
    _note_revision(rollout, _annotations(rollout.current)[REVISION])
    if find_condition(rollout.conditions, "Progressing") is None:
        found = (
            "True",
            "FoundNewReplicaSet",
            (f'Found new replica set "{rollout.current["metadata"]["name"]}"'),
        )
        rollout.conditions = with_progressing(
            rollout.obj, rollout.conditions, found, rollout.view.time
        )


def _noted(obj: Object, held: dict[str, str], newest: int) -> dict[str, str]:
    """The annotations of a set: the Deployment's, its number,
    and the numbers that it had before.
    """
    annotations = {
        **held,
        **{key: value for key, value in _annotations(obj).items() if key not in _NOT_COPIED},
    }
    before = held.get(REVISION, "")
    number = whole_or_none(before)
    if number is None or number < newest:
        annotations[REVISION] = str(newest)
        if before:
            annotations[HISTORY] = ",".join(
                part for part in (held.get(HISTORY, ""), before) if part
            )
    return annotations


def _with_annotations(item: Object, annotations: dict[str, str]) -> Object:
    return {**item, "metadata": {**item["metadata"], "annotations": annotations}}


def _note_revision(rollout: _Rollout, revision: str) -> None:
    if _annotations(rollout.obj).get(REVISION) != revision:
        rollout.plan.change.append(
            (
                rollout.obj,
                _with_annotations(rollout.obj, {**_annotations(rollout.obj), REVISION: revision}),
            )
        )


def _forget_old(rollout: _Rollout) -> None:
    """Delete empty sets beyond the history limit, the oldest first."""
    limit = rollout.obj["spec"].get("revisionHistoryLimit")
    staying = sorted((item for item in rollout.others if not is_going(item)), key=_revision)
    surplus = staying[: max(0, len(staying) - int(10 if limit is None else limit))]
    rollout.plan.delete += [
        item for item in surplus if not _size(item) and not status_of(item).get("replicas")
    ]


# --- sizes ----------------------------------------------------------------------------------------


def _roll(rollout: _Rollout) -> None:
    if rollout.current is None:
        _create(rollout)
    elif _grow(rollout, rollout.current):
        return
    if rollout.current is None or not _shrink_old(rollout, rollout.current):
        _forget_if_complete(rollout)


def _grow(rollout: _Rollout, current: Object) -> bool:
    target = (
        min(_size(current), _wanted(rollout.obj))
        if _size(current) > _wanted(rollout.obj)
        else _allowed(rollout, _size(current))
    )
    return _scale(rollout, current, target)


def _allowed(rollout: _Rollout, size: int) -> int:
    """How many pods the new set may have now."""
    wanted = _wanted(rollout.obj)
    rolling = (rollout.obj["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    room = (
        wanted
        + scaled(rolling.get("maxSurge", "25%"), wanted, round_up=True)
        - sum(_size(item) for item in rollout.sets)
    )
    return size if room <= 0 else size + min(room, wanted - size)


def _shrink_old(rollout: _Rollout, current: Object) -> bool:
    """Shrink old sets: pods that do not work first, then those that new ones replace.

    Enough pods stay available.
    """
    old_total = sum(_size(item) for item in rollout.others)
    least = _wanted(rollout.obj) - _bounds(rollout.obj)[1]
    room = old_total + _size(current) - least - (_size(current) - _available(current))
    if not old_total or room <= 0:
        return False
    shrunk = 0
    for item in list(rollout.others):
        drop = min(room - shrunk, _size(item) - _available(item))
        if _size(item) and drop > 0:
            _scale(rollout, item, _size(item) - drop)
            shrunk += drop
    spare = sum(_available(item) for item in rollout.sets) - least
    for item in list(rollout.others):
        drop = min(_size(item), spare)
        if drop > 0:
            _scale(rollout, item, _size(item) - drop)
            spare -= drop
            shrunk += drop
    return shrunk > 0


def _recreate(rollout: _Rollout) -> None:
    """All old pods first end, then the new ones begin."""
    for item in [item for item in rollout.others if _size(item)]:
        _scale(rollout, item, 0)
    still = [
        pod
        for item in rollout.others
        for pod in rollout.view.pods_of(item)
        if status_of(pod).get("phase") not in _OVER
    ]
    if still or any(status_of(item).get("replicas") for item in rollout.others):
        return
    if rollout.current is None:
        _create(rollout)
    else:
        _scale(rollout, rollout.current, _wanted(rollout.obj))
    _forget_if_complete(rollout)


_OVER = ("Succeeded", "Failed")


def _forget_if_complete(rollout: _Rollout) -> None:
    if _counts(rollout).is_complete:
        _forget_old(rollout)


def _scale_all(rollout: _Rollout) -> None:
    """The number of replicas changed, or the rollout is paused:
    sets grow and shrink in proportion.
    """
    wanted, active = _wanted(rollout.obj), rollout.active
    if len(active) <= 1:
        newest = rollout.current or max(rollout.others, key=_creation, default=None)
        only = active[0] if active else newest
        if only is not None:
            _scale(rollout, only, wanted)
        return
    current = rollout.current
    if (
        current is not None
        and _size(current) == _number(current, DESIRED) == _available(current) == wanted
    ):
        for item in [item for item in rollout.others if _size(item)]:
            _scale(rollout, item, 0)
    elif not _is_recreated(rollout.obj):
        _scale_in_proportion(rollout, active)


def _creation(item: Object) -> tuple[str, str]:
    return item["metadata"]["creationTimestamp"], item["metadata"]["name"]


def _scale_in_proportion(rollout: _Rollout, active: list[Object]) -> None:
    wanted = _wanted(rollout.obj)
    most = wanted + _bounds(rollout.obj)[0] if wanted else 0
    missing = most - sum(_size(item) for item in active)
    # The larger first; of equal ones the newer when growing, the older when shrinking.
    ordered = sorted(sorted(active, key=_creation, reverse=missing > 0), key=_size, reverse=True)
    sizes, added = [], 0
    for item in ordered:
        share = _fraction(rollout.obj, item, most) if missing else 0
        share = min(share, missing - added) if missing > 0 else max(share, missing - added)
        sizes.append(_size(item) + share)
        added += share
    sizes[0] = max(0, sizes[0] + missing - added)
    for item, size in zip(ordered, sizes, strict=True):
        _scale(rollout, item, size, is_forced=True)


def _fraction(obj: Object, item: Object, most: int) -> int:
    """By how many pods a set grows so that its share stays what it was."""
    if not _wanted(obj):
        return -_size(item)
    before = _number(item, MOST) or int(status_of(obj).get("replicas", 0))
    return int(_size(item) * most / before + 0.5) - _size(item) if before else 0


def _scale(rollout: _Rollout, item: Object, target: int, *, is_forced: bool = False) -> bool:
    """Set the size of a set and note its Deployment.

    `forced`: note it even when the size stays.
    """
    size, wanted = _size(item), _wanted(rollout.obj)
    annotations = {
        **_annotations(item),
        DESIRED: str(wanted),
        MOST: str(wanted + _bounds(rollout.obj)[0]),
    }
    if size == target and not (is_forced and annotations != _annotations(item)):
        return False
    rollout.replace(
        item, _with_annotations({**item, "spec": {**item["spec"], "replicas": target}}, annotations)
    )
    if size != target:
        way = "up" if target > size else "down"
        rollout.plan.normal(
            "ScalingReplicaSet",
            f"Scaled {way} replica set {item['metadata']['name']} from {size} to {target}",
        )
    return size != target


# --- the new set ----------------------------------------------------------------------------------


def _create(rollout: _Rollout) -> None:
    obj = rollout.obj
    size = _wanted(obj) if _is_recreated(obj) else _allowed(rollout, 0)
    newest = max((_revision(item) for item in rollout.others), default=0) + 1
    rollout.current = replica_set(obj, template_hash(obj["spec"]["template"]), size, newest)
    rollout.plan.create.append(rollout.current)
    name = rollout.current["metadata"]["name"]
    if size:
        rollout.plan.normal("ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {size}")
    _note_revision(rollout, str(newest))
    rollout.conditions = with_progressing(
        obj,
        rollout.conditions,
        ("True", "NewReplicaSetCreated", (f'Created new replica set "{name}"')),
        rollout.view.time,
    )


def replica_set(obj: Object, label: str, replicas: int, revision: int) -> Object:
    """The ReplicaSet of the Deployment's template, whose hash is `label`."""
    spec, metadata = obj["spec"], obj["metadata"]
    template = spec["template"]
    template_metadata = template.get("metadata") or {}
    labels = {**(template_metadata.get("labels") or {}), HASH_LABEL: label}
    selector = spec.get("selector") or {}
    sizes = {DESIRED: str(_wanted(obj)), MOST: str(_wanted(obj) + _bounds(obj)[0])}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{label}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": _noted(obj, {}, revision) | sizes,
            "ownerReferences": owned_by(obj),
        },
        "spec": {
            "replicas": replicas,
            "selector": {
                **selector,
                "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: label},
            },
            "template": {**template, "metadata": {**template_metadata, "labels": labels}},
            **({"minReadySeconds": spec["minReadySeconds"]} if spec.get("minReadySeconds") else {}),
        },
    }


# --- status ---------------------------------------------------------------------------------------


def _counts(rollout: _Rollout) -> Counts:
    def total(key: str, sets: list[Object]) -> int:
        return sum(status_of(item).get(key, 0) for item in sets)

    current = [rollout.current] if rollout.current is not None else []
    return Counts(
        wanted=_wanted(rollout.obj),
        size=sum(_size(item) for item in rollout.sets),
        replicas=total("replicas", rollout.sets),
        updated=total("replicas", current),
        ready=total("readyReplicas", rollout.sets),
        available=total("availableReplicas", rollout.sets),
        terminating=total("terminatingReplicas", rollout.sets),
    )


def _write_status(rollout: _Rollout, *, is_rolling: bool) -> None:
    counts, obj = _counts(rollout), rollout.obj
    conditions = with_availability(rollout.conditions, counts, _bounds(obj)[1], rollout.view.time)
    if is_rolling:
        name = (
            (f'ReplicaSet "{rollout.current["metadata"]["name"]}"')
            if rollout.current
            else (f'Deployment "{obj["metadata"]["name"]}"')
        )
        conditions = progress_of(obj, conditions, counts, name, rollout.view, rollout.plan)
    rollout.plan.status = {
        "observedGeneration": obj["metadata"].get("generation", 1),
        **counts.render(),
        **(
            {"collisionCount": status_of(obj)["collisionCount"]}
            if "collisionCount" in status_of(obj)
            else {}
        ),
        "conditions": conditions,
    }
