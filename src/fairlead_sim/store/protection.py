"""Claims and volumes in use are not removed: each has a finalizer from its creation on.

It goes with the deletion, or later: from a claim when no pod on a node uses it any more, from a
volume when it is no longer Bound. In a real cluster controllers of the controller manager do this
a moment later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_sim.objects.conditions import phase_of
from fairlead_sim.objects.mounts import mounted_claims
from fairlead_sim.objects.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from fairlead_sim.objects.watch_log import DELETED, LoggedChange, Object
from fairlead_sim.schema.resource import ResourceKind

if TYPE_CHECKING:
    from fairlead_sim.store.cluster import StoredCluster

_ENDED = ("Succeeded", "Failed")
_FINALIZERS = {
    PERSISTENT_VOLUME_CLAIMS: "kubernetes.io/pvc-protection",
    PERSISTENT_VOLUMES: "kubernetes.io/pv-protection",
}


def protected(ref: ResourceKind, new: Object) -> Object:
    """A new claim or volume with its finalizer; any other object as it is."""
    finalizer = _FINALIZERS.get(ref)
    metadata = new["metadata"]
    if finalizer is None or finalizer in metadata.get("finalizers", ()):
        return new
    finalizers = [*metadata.get("finalizers", ()), finalizer]
    return {**new, "metadata": {**metadata, "finalizers": finalizers}}


def kept_finalizers(cluster: StoredCluster, ref: ResourceKind, old: Object) -> list[str]:
    """The finalizers that hold an object which is being deleted."""
    finalizers = list(old["metadata"].get("finalizers", ()))
    finalizer = _FINALIZERS.get(ref)
    if finalizer in finalizers and not _is_used(cluster, ref, old):
        finalizers.remove(finalizer)
    return finalizers


def _is_used(cluster: StoredCluster, ref: ResourceKind, obj: Object) -> bool:
    metadata = obj["metadata"]
    if ref is PERSISTENT_VOLUMES:
        return phase_of(obj) == "Bound"
    return any(
        metadata["name"] in mounted_claims(pod) and pod["spec"].get("nodeName")
        for pod in cluster.scan(PODS, metadata["namespace"])
        if phase_of(pod) not in _ENDED
    )


class Protection:
    """Lets claims and volumes go that are deleted and not used any more."""

    def __init__(self, cluster: StoredCluster) -> None:
        self._cluster = cluster
        cluster.subscribe(PODS, self._on_pod)
        cluster.subscribe(PERSISTENT_VOLUMES, self._on_volume)

    def _on_pod(self, event: LoggedChange) -> None:
        pod = event.object
        if event.type != DELETED and phase_of(pod) not in _ENDED:
            return
        for name in mounted_claims(pod):
            self._release(PERSISTENT_VOLUME_CLAIMS, pod["metadata"]["namespace"], name)

    def _on_volume(self, event: LoggedChange) -> None:
        if event.type != DELETED and "deletionTimestamp" in event.object["metadata"]:
            self._release(PERSISTENT_VOLUMES, None, event.object["metadata"]["name"])

    def _release(self, ref: ResourceKind, namespace: str | None, name: str) -> None:
        obj = self._cluster.get(ref, namespace, name)
        if obj is None or "deletionTimestamp" not in obj["metadata"]:
            return
        finalizers = kept_finalizers(self._cluster, ref, obj)
        if finalizers != obj["metadata"].get("finalizers", []):
            metadata = {**obj["metadata"], "finalizers": finalizers}
            self._cluster.mutate(ref, namespace, name, lambda now: {**now, "metadata": metadata})
