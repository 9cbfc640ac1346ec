"""A store in front of the store, which knows every served version of every kind.

What the schema of a custom resource refuses or fills in, it does here, at the door: controllers
inside the cluster write to the store itself. Objects that need no change pass as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from fairlead_sim.objects.watch_log import Object, Objects, Predicate, Subscription
from fairlead_sim.schema.crd import CustomVersion, scale_errors
from fairlead_sim.schema.crd_schema import defaulted, schema_errors
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import FieldError, bad_request, forbidden, invalid
from fairlead_sim.schema.versions import from_stored, to_stored
from fairlead_sim.store.cluster import StoredCluster


@dataclass(frozen=True, slots=True)
class VersionedEvent:
    """An event of the store, its object in another version."""

    type: str
    object: Object


class VersionedWatch:
    """A watch of the store, its objects in another version."""

    def __init__(self, watch: Subscription, view: ResourceKind) -> None:
        self._watch = watch
        self._view = view
        self.wait = watch.wait
        self.bookmark_version = watch.bookmark_version
        self.close = watch.close

    def poll(self, limit: int = 500) -> list[VersionedEvent]:
        return [
            VersionedEvent(event.type, _shown(event.object, self._view))
            for event in self._watch.poll(limit)
        ]


Watch = Subscription | VersionedWatch


class Versions:
    """The store as the API serves it: it knows every served version of every kind."""

    def __init__(self, store: StoredCluster) -> None:
        self._store = store
        self.bind, self.evict = store.bind, store.evict
        self.scale, self.scale_of, self.scaled = store.scale, store.scale_of, store.scaled
        self._kinds: Sequence[ResourceKind] = ()
        self._named: dict[tuple[object, object], ResourceKind] = {}

    @property
    def resource_version(self) -> int:
        return self._store.resource_version

    def kinds(self) -> Sequence[ResourceKind]:
        return self._store.served_kinds()

    served_kinds = kinds

    # --- reading ----------------------------------------------------------------------------------

    def get(self, ref: ResourceKind, namespace: str | None, name: str) -> Object | None:
        obj = self._store.get(ref.stored_as or ref, namespace, name)
        return obj if obj is None else _shown(obj, ref)

    def list(self, ref: ResourceKind, namespace: str | None = None) -> Objects:
        objects = self._store.list(ref.stored_as or ref, namespace)
        return objects if ref.stored_as is None else [_shown(obj, ref) for obj in objects]

    def prepare_read(self, ref: ResourceKind, namespace: str | None, name: str) -> None:
        """Let the cluster bring up to date what it writes only if it is read; see `before_read`."""
        prepare = self._store.before_read.get(ref.stored_as or ref)
        if prepare is not None:
            prepare(namespace, name)

    def watch(
        self,
        ref: ResourceKind,
        namespace: str | None = None,
        since: int | None = None,
        matches: Predicate | None = None,
    ) -> Watch:
        if ref.stored_as is None:
            return self._store.watch(ref, namespace, since, matches)
        shown = matches and (lambda obj: matches(_shown(obj, ref)))
        return VersionedWatch(self._store.watch(ref.stored_as, namespace, since, shown), ref)

    # --- writing ----------------------------------------------------------------------------------

    def create(self, obj: Object, user: str = "") -> Object:
        ref = self._kind_of(obj)
        if ref.custom is not None:
            if ref.custom.is_terminating:
                raise forbidden(
                    ref,
                    obj["metadata"].get("name", ""),
                    "create not allowed while custom resource definition is terminating",
                )
            if "status" in ref.subresources:
                obj = _without_status(obj)
            _check(ref, obj, None)
        return _shown(self._store.create(to_stored(obj, ref), user), ref)

    def update(self, obj: Object, user: str = "") -> Object:
        ref = self._kind_of(obj)
        if ref.custom is not None:
            old = self._old(ref, obj)
            if "status" in ref.subresources and old is not None:
                obj = {**_without_status(obj), **{key: old[key] for key in old if key == "status"}}
            _check(ref, obj, old)
        return _shown(self._store.update(to_stored(obj, ref), user), ref)

    def update_status(self, obj: Object, entries: Objects | None = None) -> Object:
        ref = self._kind_of(obj)
        if ref.custom is not None:
            _check(ref, obj, self._old(ref, obj))
        return _shown(self._store.update_status(to_stored(obj, ref), entries), ref)

    def delete(self, ref: ResourceKind, namespace: str | None, name: str, **options: Any) -> Object:
        """`options` are those of the store."""
        return _shown(self._store.delete(ref.stored_as or ref, namespace, name, **options), ref)

    def rehearsal(self) -> Versions:
        return Versions(self._store.rehearsal())

    def _kind_of(self, obj: Object) -> ResourceKind:
        kinds = self._store.served_kinds()
        if kinds is not self._kinds:
            self._kinds, self._named = kinds, {(ref.api_version, ref.kind): ref for ref in kinds}
        ref = self._named.get((obj.get("apiVersion"), obj.get("kind")))
        if ref is None:
            raise bad_request(
                f'no kind "{obj.get("kind")}" is registered for version "{obj.get("apiVersion")}"'
            )
        return ref

    def _old(self, ref: ResourceKind, obj: Object) -> Object | None:
        metadata = obj["metadata"]
        return self.get(ref, metadata.get("namespace"), metadata["name"])


def _without_status(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key != "status"}


def _shown(obj: Object, view: ResourceKind) -> Object:
    """A stored object in the version of `view`, with defaults that the schema got later."""
    if view.custom is not None:
        obj = defaulted(view.custom.stored_schema, obj)
    return from_stored(obj, view)


def _faults(version: CustomVersion, obj: Object) -> list[FieldError]:
    return [*schema_errors(version.schema, obj), *scale_errors(version.scale, obj)]


def _check(ref: ResourceKind, obj: Object, old: Object | None) -> None:
    """Raise 422 for what the schema refuses.

    Faults that are older than the schema are accepted.
    """
    assert ref.custom is not None
    errors = _faults(ref.custom, obj)
    if errors and old is not None:
        known = _faults(ref.custom, old)
        errors = [error for error in errors if error not in known]
    if errors:
        raise invalid(ref, obj["metadata"].get("name", ""), errors)
