"""How an object goes away.

Deleting is a request: a running pod is given its grace, finalizers hold the object, a namespace
first loses its content, and what an object owned goes with it (`Background`), before it
(`Foreground`) or stays (`Orphan`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.wire.kube.time import parse_time, render_time
from fairlead_sim.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, PODS
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import forbidden
from fairlead_sim.store.custom_definitions import terminating
from fairlead_sim.store.protection import kept_finalizers

if TYPE_CHECKING:
    from fairlead_sim.store.cluster import StoredCluster

FOREGROUND = "foregroundDeletion"
DEFAULT_GRACE_SECONDS = 30
_IMMORTAL_NAMESPACES = ("default", "kube-public", "kube-system")


def delete(
    cluster: StoredCluster,
    ref: ResourceKind,
    old: Object,
    grace_seconds: int | None,
    propagation: str,
) -> Object:
    """Remove the object, or mark it as going and return the marked one."""
    if ref is NAMESPACES and old["metadata"]["name"] in _IMMORTAL_NAMESPACES:
        raise forbidden(ref, old["metadata"]["name"], "this namespace may not be deleted")
    if propagation == "Orphan":
        _release_dependents(cluster, old)
    if ref is CUSTOM_RESOURCE_DEFINITIONS:
        old = terminating(old, cluster.clock.now())
    grace = _grace_seconds(ref, old, grace_seconds)
    finalizers = kept_finalizers(cluster, ref, old)
    if (
        propagation == "Foreground"
        and FOREGROUND not in finalizers
        and cluster.dependents(old["metadata"]["uid"])
    ):
        finalizers.append(FOREGROUND)
    if not grace and not finalizers and ref not in (NAMESPACES, PODS):
        return _remove(cluster, ref, old)
    going = _marked(cluster, ref, old, grace, finalizers)
    if ref is NAMESPACES:
        _empty_namespace(cluster, going["metadata"]["name"])
    if FOREGROUND in finalizers:
        _delete_dependents(cluster, going["metadata"]["uid"], "Foreground")
        going = _without_foreground(cluster, ref, going)
    return finish_if_free(cluster, ref, going)


def finish_if_free(cluster: StoredCluster, ref: ResourceKind, obj: Object) -> Object:
    """Remove a deleted object that nothing keeps: no grace, no finalizers, no content."""
    metadata = obj["metadata"]
    current = cluster.get(ref, metadata.get("namespace"), metadata["name"])
    if (
        current is None
        or "deletionTimestamp" not in metadata
        or current["metadata"]["uid"] != metadata["uid"]
    ):
        return obj
    metadata = current["metadata"]
    if metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds"):
        return current
    if ref is NAMESPACES and _has_content(cluster, metadata["name"]):
        return current
    return _remove(cluster, ref, current)


def _grace_seconds(ref: ResourceKind, old: Object, asked: int | None) -> int:
    """Only pods that a kubelet holds have a grace; the second of
    two requests may only shorten it.
    """
    if ref is not PODS:
        return 0
    spec = old.get("spec") or {}
    if not spec.get("nodeName") or (old.get("status") or {}).get("phase") in (
        "Succeeded",
        "Failed",
    ):
        return 0
    grace = (
        asked
        if asked is not None
        else spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
    )
    before = old["metadata"].get("deletionGracePeriodSeconds")
    return max(0, grace if before is None else min(before, grace))


def _marked(
    cluster: StoredCluster, ref: ResourceKind, old: Object, grace: int, finalizers: list[str]
) -> Object:
    before = old["metadata"]
    if (
        before.get("deletionGracePeriodSeconds") == grace
        and before.get("finalizers", []) == finalizers
    ):
        return old
    metadata = {
        **before,
        "deletionTimestamp": render_time(_asked_at(before, cluster.clock.now()) + grace),
        "deletionGracePeriodSeconds": grace,
    }
    if finalizers:
        metadata["finalizers"] = finalizers
    if "generation" in metadata and "deletionTimestamp" not in before:
        metadata["generation"] += 1
    new = {**old, "metadata": metadata}
    if ref is NAMESPACES:
        new["status"] = {**(old.get("status") or {}), "phase": "Terminating"}
    return cluster.replace(ref, old, new)


def _asked_at(metadata: Object, now: float) -> float:
    """When the deletion was first requested.

    A second request shortens the grace, and begins no new one.
    """
    if "deletionTimestamp" not in metadata:
        return now
    return parse_time(metadata["deletionTimestamp"]) - float(
        metadata.get("deletionGracePeriodSeconds", 0)
    )


def _remove(cluster: StoredCluster, ref: ResourceKind, old: Object) -> Object:
    owners = old["metadata"].get("ownerReferences", ())
    gone = cluster.remove(ref, old)
    _delete_dependents(cluster, old["metadata"]["uid"])
    for owner in owners:
        _finish_foreground_owner(cluster, old["metadata"].get("namespace"), owner)
    if ref.namespaced:
        namespace = cluster.get(NAMESPACES, None, old["metadata"]["namespace"])
        if namespace is not None:
            finish_if_free(cluster, NAMESPACES, namespace)
    return gone


def _delete_dependents(cluster: StoredCluster, uid: str, propagation: str = "Background") -> None:
    """What `uid` owned goes, unless another owner still lives: then only the reference goes."""
    for obj in cluster.dependents(uid):
        ref = cluster.kind_of(obj)
        metadata = obj["metadata"]
        current = cluster.get(ref, metadata.get("namespace"), metadata["name"])
        if current is None or current["metadata"]["uid"] != metadata["uid"]:
            continue
        others = [owner for owner in metadata["ownerReferences"] if owner["uid"] != uid]
        if any(_is_alive(cluster, metadata.get("namespace"), owner) for owner in others):
            cluster.replace(ref, current, _owned_by(current, others))
        elif "deletionTimestamp" not in current["metadata"]:
            delete(cluster, ref, current, None, propagation)


def _release_dependents(cluster: StoredCluster, owner: Object) -> None:
    uid = owner["metadata"]["uid"]
    for obj in cluster.dependents(uid):
        others = [kept for kept in obj["metadata"]["ownerReferences"] if kept["uid"] != uid]
        cluster.replace(cluster.kind_of(obj), obj, _owned_by(obj, others))


def _owned_by(obj: Object, owners: list[Object]) -> Object:
    metadata = {key: value for key, value in obj["metadata"].items() if key != "ownerReferences"}
    return {**obj, "metadata": {**metadata, "ownerReferences": owners} if owners else metadata}


def _owner(
    cluster: StoredCluster, namespace: str | None, reference: Object
) -> tuple[ResourceKind, Object] | None:
    """The owner behind a reference.

    None when it is gone, replaced by a namesake, or of a kind that is not served.
    """
    ref = cluster.served(str(reference.get("apiVersion")), str(reference.get("kind")))
    found = cluster.get(ref, namespace, reference["name"]) if ref else None
    return (ref, found) if ref and found and found["metadata"]["uid"] == reference["uid"] else None


def _is_alive(cluster: StoredCluster, namespace: str | None, reference: Object) -> bool:
    return _owner(cluster, namespace, reference) is not None


def _finish_foreground_owner(
    cluster: StoredCluster, namespace: str | None, reference: Object
) -> None:
    owner = _owner(cluster, namespace, reference)
    if owner is None:
        return
    ref, obj = owner
    finish_if_free(cluster, ref, _without_foreground(cluster, ref, obj))


def _without_foreground(cluster: StoredCluster, ref: ResourceKind, obj: Object) -> Object:
    """An object that waits for its dependants waits no longer once none that blocks it is left."""
    uid = obj["metadata"]["uid"]
    current = cluster.get(ref, obj["metadata"].get("namespace"), obj["metadata"]["name"])
    if (
        current is None
        or current["metadata"]["uid"] != uid
        or FOREGROUND not in current["metadata"].get("finalizers", [])
    ):
        return obj
    if any(_blocks(child, uid) for child in cluster.dependents(uid)):
        return current
    metadata = {
        **current["metadata"],
        "finalizers": [kept for kept in current["metadata"]["finalizers"] if kept != FOREGROUND],
    }
    return cluster.replace(ref, current, {**current, "metadata": metadata})


def _blocks(child: Object, uid: str) -> bool:
    return any(
        owner["uid"] == uid and owner.get("blockOwnerDeletion")
        for owner in child["metadata"]["ownerReferences"]
    )


def _empty_namespace(cluster: StoredCluster, namespace: str) -> None:
    for ref in cluster.kinds():
        if ref.namespaced:
            for obj in cluster.list(ref, namespace):
                current = cluster.get(ref, namespace, obj["metadata"]["name"])
                if current is not None:
                    delete(cluster, ref, current, None, "Background")


def _has_content(cluster: StoredCluster, namespace: str) -> bool:
    return any(cluster.count(ref, namespace) for ref in cluster.kinds() if ref.namespaced)
