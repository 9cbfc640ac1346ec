"""The objects that no controller owns, kept beside the store for controllers that look for them.

It holds names only and starts from what is stored.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from fairlead_sim.objects.resources import CONTROLLER_REVISIONS, PODS, REPLICA_SETS, SERVICES
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.store.cluster import StoredCluster

Object = dict[str, Any]

KNOWN = {ref.kind: ref for ref in (PODS, REPLICA_SETS, CONTROLLER_REVISIONS, SERVICES)}
"""The kinds that controllers adopt, and Services, of which only a person's have endpoints."""


class Orphans:
    def __init__(self, cluster: StoredCluster) -> None:
        self._cluster = cluster
        self._names: dict[tuple[str, str], dict[str, None]] = {}
        for ref in KNOWN.values():
            for obj in cluster.scan(ref):
                self._note(ref, obj, is_there=True)
            cluster.subscribe(ref, partial(self._on_change, ref))

    def of(self, kind: str, namespace: str) -> list[Object]:
        found = (
            self._cluster.get(KNOWN[kind], namespace, name)
            for name in self._names.get((kind, namespace), ())
        )
        return [obj for obj in found if obj is not None]

    def _on_change(self, ref: ResourceKind, event: LoggedChange) -> None:
        self._note(ref, event.object, is_there=event.type != DELETED)

    def _note(self, ref: ResourceKind, obj: Object, *, is_there: bool) -> None:
        key, name = (ref.kind, obj["metadata"]["namespace"]), obj["metadata"]["name"]
        if is_there and not has_controller(obj):
            self._names.setdefault(key, {})[name] = None
        elif name in self._names.get(key, ()):
            del self._names[key][name]
            if not self._names[key]:
                del self._names[key]


def has_controller(obj: Object) -> bool:
    return any(owner.get("controller") for owner in obj["metadata"].get("ownerReferences") or ())
