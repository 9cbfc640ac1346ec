"""What does the Deployment controller do? One ReplicaSet per template, and the rolling update between them."""

from __future__ import annotations

from typing import Any

from fairlead.sim.conditions import with_condition
from fairlead.sim.plan import Plan, View, owned_by, scaled, template_hash
from fairlead.wire.kube_time import render_time

Object = dict[str, Any]

HASH_LABEL = "pod-template-hash"
REVISION = "deployment.kubernetes.io/revision"


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    sets = [child for child in view.owned(obj["metadata"]["uid"]) if child["kind"] == "ReplicaSet"]
    label = template_hash(obj["spec"]["template"])
    current = next((item for item in sets if item["metadata"]["labels"].get(HASH_LABEL) == label), None)
    others = [item for item in sets if item is not current]
    newest = max((_revision(item) for item in others), default=0) + 1
    if current is None:
        first = _allowed(obj, _total(others)) if others else _wanted(obj)
        plan.create.append(replica_set(obj, label, first, newest))
        plan.normal("ScalingReplicaSet", f"Scaled up replica set {obj['metadata']['name']}-{label} from 0 to {first}")
    else:
        newest = max(newest, _revision(current))
        current = _revised(current, newest, plan)
        _roll(obj, current, others, plan)
    _revised(obj, newest, plan)
    _forget_old(obj, others, plan)
    plan.status = _status(obj, sets, current, view)
    return plan


def _revision(item: Object) -> int:
    text = (item["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdigit() else 0


def _revised(item: Object, revision: int, plan: Plan) -> Object:
    """The object with its revision noted: a template that comes back (`kubectl rollout undo`) becomes the newest again."""
    if _revision(item) == revision:
        return item
    annotations = {**(item["metadata"].get("annotations") or {}), REVISION: str(revision)}
    new = {**item, "metadata": {**item["metadata"], "annotations": annotations}}
    plan.change.append((item, new))
    return new


def _forget_old(obj: Object, others: list[Object], plan: Plan) -> None:
    """Delete empty sets beyond the history limit, the oldest first."""
    limit = obj["spec"].get("revisionHistoryLimit", 10)
    empty = [item for item in others if not item["spec"].get("replicas") and not (item.get("status") or {}).get("replicas")]
    plan.delete += sorted(empty, key=_revision)[: max(0, len(empty) - int(10 if limit is None else limit))]


def _wanted(obj: Object) -> int:
    return int(obj["spec"].get("replicas", 1))


def _total(sets: list[Object]) -> int:
    return sum(item["spec"].get("replicas", 0) for item in sets)


def _available(sets: list[Object]) -> int:
    return sum((item.get("status") or {}).get("availableReplicas", 0) for item in sets)


def _allowed(obj: Object, existing: int) -> int:
    """How many pods the new set may have beside `existing` others."""
    strategy = obj["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0 if existing else _wanted(obj)
    surge, _ = _bounds(obj)
    return max(0, min(_wanted(obj), _wanted(obj) + surge - existing))


def _bounds(obj: Object) -> tuple[int, int]:
    """Surge (rounded up) and unavailable (rounded down) pods; never both zero."""
    rolling = (obj["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    wanted = _wanted(obj)
    surge = scaled(rolling.get("maxSurge", "25%"), wanted, round_up=True)
    unavailable = scaled(rolling.get("maxUnavailable", "25%"), wanted, round_up=False)
    return (surge, unavailable) if surge or unavailable else (surge, 1)


def _roll(obj: Object, current: Object, others: list[Object], plan: Plan) -> None:
    wanted, old_total = _wanted(obj), _total(others)
    size = current["spec"].get("replicas", 0)
    target = min(wanted, max(size, _allowed(obj, old_total))) if old_total else wanted
    if target != size:
        _scale(obj, current, target, plan)
    _, unavailable = _bounds(obj)
    recreate = (obj["spec"].get("strategy") or {}).get("type") == "Recreate"
    spare = old_total if recreate else _available([current, *others]) - (wanted - unavailable)
    for item in others:
        size = item["spec"].get("replicas", 0)
        dead = size - _available([item])
        drop = min(size, max(0, spare) + (dead if not recreate else 0))
        if size and drop > 0:
            _scale(obj, item, size - drop, plan)
            spare -= drop


def _scale(obj: Object, item: Object, target: int, plan: Plan) -> None:
    size = item["spec"].get("replicas", 0)
    plan.change.append((item, {**item, "spec": {**item["spec"], "replicas": target}}))
    way = "up" if target > size else "down"
    plan.normal("ScalingReplicaSet", f"Scaled {way} replica set {item['metadata']['name']} from {size} to {target}")


def replica_set(obj: Object, label: str, replicas: int, revision: int) -> Object:
    """The ReplicaSet of the Deployment's template, whose hash is `label`."""
    spec, metadata = obj["spec"], obj["metadata"]
    template = spec["template"]
    template_metadata = template.get("metadata") or {}
    labels = {**(template_metadata.get("labels") or {}), HASH_LABEL: label}
    selector = spec.get("selector") or {}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{metadata['name']}-{label}",
            "namespace": metadata["namespace"],
            "labels": labels,
            "annotations": {REVISION: str(revision), "deployment.kubernetes.io/desired-replicas": str(_wanted(obj))},
            "ownerReferences": owned_by(obj),
        },
        "spec": {
            "replicas": replicas,
            "selector": {**selector, "matchLabels": {**(selector.get("matchLabels") or {}), HASH_LABEL: label}},
            "template": {**template, "metadata": {**template_metadata, "labels": labels}},
        },
    }


def _status(obj: Object, sets: list[Object], current: Object | None, view: View) -> Object:
    before = obj.get("status") or {}
    wanted, available = _wanted(obj), _available(sets)
    total = sum((item.get("status") or {}).get("replicas", 0) for item in sets)
    updated = (current.get("status") or {}).get("replicas", 0) if current else 0
    counts = {
        "replicas": total,
        "updatedReplicas": updated,
        "readyReplicas": sum((item.get("status") or {}).get("readyReplicas", 0) for item in sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, wanted - available),
    }
    status: Object = {"observedGeneration": obj["metadata"].get("generation", 1), **{key: value for key, value in counts.items() if value}}
    status["conditions"] = _conditions(before.get("conditions") or [], obj, updated, total, available, view.now)
    return status


def _conditions(before: list[Object], obj: Object, updated: int, total: int, available: int, now: float) -> list[Object]:
    wanted, time = _wanted(obj), render_time(now)
    _, unavailable = _bounds(obj)
    name = f"{obj['metadata']['name']}-{template_hash(obj['spec']['template'])}"
    if available >= wanted - unavailable:
        state = ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        state = ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    conditions = with_condition(before, "Available", *state, time, updated=time)
    if updated == total == available == wanted:
        progress = ("True", "NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
    else:
        progress = ("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
    return with_condition(conditions, "Progressing", *progress, time, updated=time)
