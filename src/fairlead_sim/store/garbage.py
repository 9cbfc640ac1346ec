"""Objects that name an owner that does not exist: such an object is deleted.

An object with another owner keeps only that owner. What is deleted with an owner is in `deletion`;
this is for objects that are created, or choose an owner, too late.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.time.timers import Timers

Object = dict[str, Any]

DELAY_SECONDS = 1.0


class GarbageCollector:
    def __init__(self, cluster: StoredCluster, timers: Timers) -> None:
        self._cluster = cluster
        self._timers = timers
        cluster.witness(self._on_change)

    def _on_change(self, event: LoggedChange) -> None:
        metadata = event.object["metadata"]
        owners = metadata.get("ownerReferences")
        before = (
            event.previous["metadata"].get("ownerReferences")
            if event.previous is not None
            else None
        )
        if (
            not owners
            or owners == before
            or event.type == DELETED
            or not self._missing(event.object)
        ):
            return
        ref = self._cluster.kind_of(event.object)
        self._timers.after(
            DELAY_SECONDS,
            partial(
                self._collect, ref, metadata.get("namespace"), metadata["name"], metadata["uid"]
            ),
        )

    def _missing(self, obj: Object) -> list[Object]:
        """The owners that are gone; one of a kind that is not served counts as there."""
        metadata = obj["metadata"]
        missing = []
        for owner in metadata["ownerReferences"]:
            ref = self._cluster.served(str(owner.get("apiVersion")), str(owner.get("kind")))
            found = (
                self._cluster.get(ref, metadata.get("namespace"), owner["name"]) if ref else None
            )
            if ref is not None and (found is None or found["metadata"]["uid"] != owner["uid"]):
                missing.append(owner)
        return missing

    def _collect(self, ref: ResourceKind, namespace: str | None, name: str, uid: str) -> None:
        obj = self._cluster.get(ref, namespace, name)
        if (
            obj is None
            or obj["metadata"]["uid"] != uid
            or not obj["metadata"].get("ownerReferences")
        ):
            return
        missing = self._missing(obj)
        kept = [owner for owner in obj["metadata"]["ownerReferences"] if owner not in missing]
        if missing and not kept:
            self._cluster.delete(ref, namespace, name, uid=uid)
        elif missing:
            self._cluster.mutate(
                ref,
                namespace,
                name,
                lambda old: {**old, "metadata": {**old["metadata"], "ownerReferences": kept}},
            )
