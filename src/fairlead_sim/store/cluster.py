"""The objects of the simulated cluster, and what a write does to them.

The store is the API server without HTTP: versions, graceful deletion, finalizers, owners, watches.
Stored objects are immutable by convention: a write stores a new dict and shares what did not
change, so a reference to an object is a snapshot of it. Never change a dict that came out of here.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fairlead.model.changes import ChangeType
from fairlead.ports import Clock
from fairlead.wire.kube.time import render_time
from fairlead_sim.objects.object_names import ObjectNames
from fairlead_sim.objects.resources import (
    INSTALLED_KINDS,
    NAMESPACES,
    PODS,
    RESOURCES,
    SERVICES,
)
from fairlead_sim.objects.watch_log import (
    ADDED,
    DELETED,
    MODIFIED,
    EventLog,
    LoggedChange,
    Object,
    Objects,
    Predicate,
    Subscription,
)
from fairlead_sim.schema.patch import apply_merge_patch
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import (
    ApiStatus,
    already_exists,
    bad_request,
    failed_delete_precondition,
    failed_precondition,
    forbidden,
    not_found,
    stale_write,
)
from fairlead_sim.store import defaults, deletion, subresources
from fairlead_sim.store.admission import CREATE, DELETE, UPDATE, Admission, Write
from fairlead_sim.store.custom_builtin import builtin_definitions
from fairlead_sim.store.custom_definitions import CustomDefinitions
from fairlead_sim.store.pod_account import with_account
from fairlead_sim.store.priority import with_priority
from fairlead_sim.store.protection import Protection, protected
from fairlead_sim.store.service_allocation import allocated
from fairlead_sim.validation import objects as validation

Names = list[str]  # inside the class `list` is the method
FIRST_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
LOG_CAPACITY = 10_000  # events kept per kind: about what the real watch cache keeps for a busy kind

# What only the store may write; a client's values are ignored.
_SYSTEM_METADATA = (
    "uid",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)


class StoredCluster:
    """The object store.

    Every write raises `resource_version` by one, appends one event and then calls the listeners.

    Listeners are called in the order in which they were added, after the write is stored; a write
    made inside a listener is stored at once and its event is sent after the current event has
    reached all listeners, so all of them see one order.
    """

    def __init__(
        self,
        clock: Clock,
        seed: int = 0,
        resources: Sequence[ResourceKind] = RESOURCES,
        log_capacity: int = LOG_CAPACITY,
    ):
        self.clock = clock
        self.resource_version = 0
        self.names = ObjectNames(seed)
        self._kinds: dict[tuple[str, str], ResourceKind] = {}
        self._objects: dict[ResourceKind, dict[str, dict[str, Object]]] = {}
        self._logs: dict[ResourceKind, EventLog] = {}
        self._order: dict[tuple[ResourceKind, str], list[str]] = {}
        self._dependents: dict[str, dict[tuple[ResourceKind, str, str], None]] = {}
        self._listeners: dict[ResourceKind, list[Callable[[LoggedChange], None]]] = {}
        self._witnesses: list[Callable[[LoggedChange], None]] = []
        self._oldest_version = 0
        self._pending_events: deque[tuple[ResourceKind, LoggedChange]] = deque()
        self._notifying = False
        self._is_rehearsal = False
        self.admission: Admission | None = None
        self.before_read: dict[ResourceKind, Callable[[str | None, str], None]] = {}
        """Called before the API answers a read of a kind, with the object's namespace (None = all)
        and name ("" = a list).
        """
        for ref in resources:
            if ref.stored_as is None:
                self.serve(ref, log_capacity)
            else:
                self._kinds[ref.api_version, ref.kind] = ref.stored_as
        for ref in INSTALLED_KINDS:
            self.serve(ref, log_capacity)
        self._served: tuple[ResourceKind, ...] | None = None
        self._builtin = tuple(ref for ref in resources if not ref.is_custom)
        self._definitions = CustomDefinitions(self)
        self._protection = Protection(self)
        for name in FIRST_NAMESPACES:
            self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for definition in builtin_definitions(seed):
            self.load(definition)

    # --- kinds ------------------------------------------------------------------------------------

    def serve(self, ref: ResourceKind, log_capacity: int = LOG_CAPACITY) -> None:
        """Add a kind to those that can be stored."""
        self._kinds[ref.api_version, ref.kind] = ref
        self._objects[ref] = {}
        self._logs[ref] = EventLog(log_capacity)
        self._logs[ref].forgotten_version = self._oldest_version
        self._listeners[ref] = list(self._witnesses)

    def kinds(self) -> tuple[ResourceKind, ...]:
        """All kinds that are stored."""
        return tuple(self._objects)

    def served_kinds(self) -> tuple[ResourceKind, ...]:
        """All kinds that the API shows, in the order of discovery: custom ones only where a
        definition stands, some in several versions.
        """
        if self._served is None:
            self._served = (*self._builtin, *self._definitions.served)
        return self._served

    def set_views(self, before: Sequence[ResourceKind], now: Sequence[ResourceKind]) -> None:
        """Let objects be named by the versions `now` of their kind instead of `before`; as they are
        stored they keep their name.
        """
        self._served = None
        for view in before:
            if view.stored_as is None or view.api_version != view.stored_as.api_version:
                self._kinds.pop((view.api_version, view.kind), None)
        for view in now:
            self._kinds[view.api_version, view.kind] = view.stored_as or view

    def kind_of(self, obj: Object) -> ResourceKind:
        """The kind that `apiVersion` and `kind` name.

        Raises 400 when nothing of that kind is served.
        """
        api_version, kind = str(obj.get("apiVersion", "")), str(obj.get("kind", ""))
        ref = self.served(api_version, kind)
        if ref is None:
            raise bad_request(f'no kind "{kind}" is registered for version "{api_version}"')
        return ref

    def served(self, api_version: str, kind: str) -> ResourceKind | None:
        return self._kinds.get((api_version, kind))

    # --- reading ----------------------------------------------------------------------------------

    def get(self, ref: ResourceKind, namespace: str | None, name: str) -> Object | None:
        bucket = self._objects[ref].get(namespace or "" if ref.namespaced else "")
        return bucket.get(name) if bucket else None

    def list(self, ref: ResourceKind, namespace: str | None = None) -> Objects:
        """All objects (of one namespace), sorted by namespace and name."""
        return list(self.scan(ref, namespace))

    def scan(self, ref: ResourceKind, namespace: str | None = None) -> Iterator[Object]:
        """As `list`, one at a time. Do not write to the same kind while reading."""
        buckets = self._objects[ref]
        for key in sorted(buckets) if namespace is None or not ref.namespaced else [namespace]:
            bucket = buckets.get(key)
            if bucket:
                for name in self._sorted_names(ref, key, bucket):
                    yield bucket[name]

    def _sorted_names(self, ref: ResourceKind, namespace: str, bucket: dict[str, Object]) -> Names:
        names = self._order.get((ref, namespace))
        if names is None:
            names = self._order[ref, namespace] = sorted(bucket)
        return names

    def count(self, ref: ResourceKind, namespace: str) -> int:
        return len(self._objects[ref].get(namespace, ()))

    def dependents(self, uid: str) -> Objects:
        """The objects that name `uid` among their owners, in the order in which they came."""
        found = [self.get(*key) for key in self._dependents.get(uid, ())]
        return [obj for obj in found if obj is not None]

    # --- writing ----------------------------------------------------------------------------------

    def create(self, obj: Object, user: str = "", *, is_trusted: bool = False) -> Object:
        """Store a new object with system metadata and the kind's defaults; its status is kept only
        where the kind has no status of its own.

        `user` sends the request, "" = the cluster itself; here and below. `is_trusted`: nothing in
        it comes from a person, so its fields are not checked (events and leases are most of what a
        world writes).

        Raises 409 AlreadyExists, 404 for a missing namespace, 403 in a namespace that is being
        deleted, 422 for broken rules.
        """
        ref = self.kind_of(obj)
        metadata = _writers_metadata(obj)
        if metadata.get("resourceVersion"):
            raise ApiStatus(500, "", "resourceVersion should not be set on objects to be created")
        self._name_new(ref, metadata)
        self._check_namespace(ref, metadata)
        metadata |= {"uid": self.names.uid(), "creationTimestamp": render_time(self.clock.now())}
        if ref.has_generation:
            metadata["generation"] = 1
        new = {**obj, "metadata": metadata}
        if ref is PODS:
            new = with_priority(self, with_account(self, new))
        new = protected(ref, defaults.new_status(ref, defaults.with_defaults(ref, new)))
        new = self._admitted(Write(CREATE, ref, user, new))
        if ref is SERVICES:
            new = self._allocated(new, None)
        if not is_trusted:
            validation.check(ref, new)
        if self.get(ref, metadata.get("namespace"), metadata["name"]) is not None:
            raise already_exists(ref, metadata["name"])
        return self._store(ref, new, None, ADDED)

    def load(self, obj: Object) -> Object:
        """Store an object as it stands (status, uid and times included), as from a saved cluster;
        missing system metadata is filled in.
        """
        ref = self.kind_of(obj)
        metadata = dict(obj["metadata"])
        if "uid" not in metadata:
            metadata["uid"] = self.names.uid()
        metadata.setdefault("creationTimestamp", render_time(self.clock.now()))
        old = self.get(ref, metadata.get("namespace"), metadata["name"])
        return self._store(ref, {**obj, "metadata": metadata}, old, MODIFIED if old else ADDED)

    def begin_again(self, resource_version: int) -> None:
        """Continue after an earlier life, which has used versions up to this one: a watch from one
        of them gets 410.
        """
        self.resource_version = self._oldest_version = resource_version
        for log in self._logs.values():
            log.forgotten_version = resource_version

    def restore(self, obj: Object) -> None:
        """Put an object of an earlier life back exactly as it was, version included.

        Listeners are called; no watch can exist yet.
        """
        ref, metadata = self.kind_of(obj), obj["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        bucket = self._objects[ref].setdefault(namespace, {})
        old = bucket.get(name)
        bucket[name] = obj
        self._order.pop((ref, namespace), None)
        self._index_owners((ref, namespace, name), old, obj)
        self._pending_events.append(
            (ref, LoggedChange(ADDED, obj, None, int(metadata["resourceVersion"])))
        )
        self._notify()

    def update(self, obj: Object, user: str = "") -> Object:
        """Replace everything but system metadata and status.

        A resourceVersion, where given, must be the stored one (409).
        """
        ref, old = self._stored_like(obj)
        validation.check_deletion(ref, obj, old)
        new = {**obj, "metadata": self._kept_metadata(obj, old)}
        if "status" in ref.subresources:
            new = _with_field(new, "status", old.get("status"))
        return self._replace(ref, old, self._admitted(Write(UPDATE, ref, user, new, old)))

    def update_status(self, obj: Object, entries: Objects | None = None) -> Object:
        """Replace the status alone, and the entries of `managedFields` where they are given."""
        ref, old = self._stored_like(obj)
        new = _with_field(old, "status", obj.get("status"))
        if entries is not None:
            new["metadata"] = _with_field(old["metadata"], "managedFields", entries or None)
        return self._replace(ref, old, new, is_wish=False)

    def merge_patch(
        self, ref: ResourceKind, namespace: str | None, name: str, patch: Any, subresource: str = ""
    ) -> Object:
        """RFC 7386 on the stored object. A patch that names a stale resourceVersion is a 409."""
        old = self._existing(ref, namespace, name)
        new = apply_merge_patch(old, patch)
        return self.update_status(new) if subresource == "status" else self.update(new)

    def mutate(
        self,
        ref: ResourceKind,
        namespace: str | None,
        name: str,
        change: Callable[[Object], Object | None],
    ) -> Object | None:
        """For controllers and kubelets: store the result of `change`, spec and status in one write.

        `change` must not alter its argument; None or the same object means no write. Returns the
        stored object, None when there is none.
        """
        old = self.get(ref, namespace, name)
        if old is None:
            return None
        new = change(old)
        if new is None or new is old:
            return old
        return self._replace(
            ref, old, {**new, "metadata": self._kept_metadata(new, old)}, is_trusted=True
        )

    def delete(
        self,
        ref: ResourceKind,
        namespace: str | None,
        name: str,
        grace_seconds: int | None = None,
        uid: str | None = None,
        propagation: str = "Background",
        resource_version: str | None = None,
        user: str = "",
    ) -> Object:
        """Delete, or begin to: a running pod gets its grace (the kubelet ends it with
        `grace_seconds=0`), finalizers keep an object.

        Returns the object as it then is; `get` shows whether it is gone. `uid` and
        `resource_version` are preconditions (409).
        """
        old = self._existing(ref, namespace, name)
        for what, key, wanted in (
            ("UID", "uid", uid),
            ("ResourceVersion", "resourceVersion", resource_version),
        ):
            found = old["metadata"][key]
            if wanted is not None and wanted != found:
                raise failed_delete_precondition(ref, name, what, wanted, found)
        self._admitted(Write(DELETE, ref, user, old, old))
        return deletion.delete(self, ref, old, grace_seconds, propagation)

    def bind(self, namespace: str, name: str, binding: Object, user: str = "") -> Object:
        """`pods/binding`: give a pod its node."""
        named = {
            **binding,
            "metadata": {"name": name, "namespace": namespace, **(binding.get("metadata") or {})},
        }
        return subresources.bind(
            self,
            namespace,
            name,
            self._admitted(Write(CREATE, PODS, user, named, subresource="binding")),
        )

    def evict(self, namespace: str, name: str, options: Object) -> None:
        """`pods/eviction`: delete a pod if its disruption budget allows."""
        subresources.evict(self, namespace, name, options)

    def scale(
        self,
        ref: ResourceKind,
        namespace: str,
        name: str,
        wish: Object,
        entries: Objects | None = None,
    ) -> Object:
        """`scale`: set the replicas, and the object's `managedFields`; returns the new Scale."""
        return subresources.scale(self, ref, namespace, name, wish, entries)

    def scaled(self, ref: ResourceKind, obj: Object, replicas: int) -> Object:
        """The object with this number of replicas."""
        return subresources.scaled(ref, obj, replicas)

    def scale_of(self, ref: ResourceKind, obj: Object) -> Object:
        return subresources.scale_of(ref, obj)

    def rehearsal(self) -> StoredCluster:
        """A copy of this cluster with checked writes that change nothing here (`dryRun=All`)."""
        twin = copy.copy(self)
        twin.names = copy.copy(self.names)
        twin._is_rehearsal = True
        return twin

    # --- what deletion and defaults build on ------------------------------------------------------

    def replace(self, ref: ResourceKind, old: Object, new: Object) -> Object:
        """Store `new` as it stands over `old`: system metadata included.

        For the store's own parts.
        """
        return self._store(ref, new, old, MODIFIED)

    def remove(self, ref: ResourceKind, old: Object) -> Object:
        """Take the object out, whatever its grace or finalizers."""
        return self._store(ref, old, old, DELETED)

    def _admitted(self, write: Write) -> Object:
        return write.new if self.admission is None else self.admission(write)

    def _existing(self, ref: ResourceKind, namespace: str | None, name: str) -> Object:
        old = self.get(ref, namespace, name)
        if old is None:
            raise not_found(ref, name)
        return old

    def _stored_like(self, obj: Object) -> tuple[ResourceKind, Object]:
        ref = self.kind_of(obj)
        metadata = obj.get("metadata") or {}
        name = str(metadata.get("name") or "")
        old = self._existing(ref, metadata.get("namespace"), name)
        version, uid = metadata.get("resourceVersion"), metadata.get("uid")
        if uid and uid != old["metadata"]["uid"]:
            raise failed_precondition(ref, name, "UID", uid, old["metadata"]["uid"])
        if version and version != old["metadata"]["resourceVersion"]:
            if not version.isdecimal():
                raise ApiStatus(500, "", f'strconv.ParseUint: parsing "{version}": invalid syntax')
            raise stale_write(ref, name)
        return ref, old

    def _kept_metadata(self, new: Object, old: Object) -> Object:
        """The writer's labels, annotations, finalizers and owners; the store's everything else.

        The owners of fields stay as they are unless `new` has entries of its own.
        """
        before = old["metadata"]
        metadata = _writers_metadata(new)
        if "managedFields" in before and "managedFields" not in (new.get("metadata") or {}):
            metadata["managedFields"] = before["managedFields"]
        metadata |= {key: before[key] for key in _SYSTEM_METADATA if key in before}
        metadata["resourceVersion"] = before["resourceVersion"]
        return metadata

    def _replace(
        self,
        ref: ResourceKind,
        old: Object,
        new: Object,
        *,
        is_wish: bool = True,
        is_trusted: bool = False,
    ) -> Object:
        """Check and store a changed object; nothing happens when nothing changed.

        What is no wish (a status) is no new generation.
        """
        # a status write, the most frequent one, has nothing to fill in
        if new.get("spec") is not old.get("spec") or "spec" not in new:
            new = defaults.with_defaults(ref, new)
            if ref is SERVICES:
                new = self._allocated(new, old)
        if new == old:
            return old
        if not is_trusted:
            validation.check(ref, new, old)
        if is_wish and ref.has_generation and defaults.is_new_generation(ref, old, new):
            new["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        stored = self._store(ref, new, old, MODIFIED)
        return deletion.finish_if_free(self, ref, stored)

    def _allocated(self, new: Object, old: Object | None) -> Object:
        """A Service with the address and the ports on the nodes that it is given."""
        # a released value is not allocated again at once
        number = self.names.counter + (self.resource_version if old else 0)
        return allocated(new, old, lambda: self.scan(SERVICES), number)

    def _name_new(self, ref: ResourceKind, metadata: Object) -> None:
        prefix = metadata.get("generateName")
        if metadata.setdefault("name", "") or not prefix:
            return
        metadata["name"] = self.names.generated(prefix)
        while self.get(ref, metadata.get("namespace"), metadata["name"]) is not None:
            metadata["name"] = self.names.generated(prefix)

    def _check_namespace(self, ref: ResourceKind, metadata: Object) -> None:
        if not ref.namespaced:
            metadata.pop("namespace", None)
            return
        namespace = self.get(NAMESPACES, None, metadata.setdefault("namespace", "default"))
        if namespace is None:
            raise not_found(NAMESPACES, metadata["namespace"])
        if "deletionTimestamp" in namespace["metadata"]:
            why = (
                f"unable to create new content in namespace {metadata['namespace']} because it is "
                "being terminated"
            )
            raise forbidden(ref, metadata.get("name", ""), why)

    def _store(
        self, ref: ResourceKind, new: Object, old: Object | None, event_type: ChangeType
    ) -> Object:
        if self._is_rehearsal:
            return new
        self.resource_version += 1
        metadata = {**new["metadata"], "resourceVersion": str(self.resource_version)}
        stored = {**new, "metadata": metadata}
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        bucket = self._objects[ref].setdefault(namespace, {})
        if event_type == DELETED:
            del bucket[name]
        else:
            bucket[name] = stored
        if event_type != MODIFIED:
            self._order.pop((ref, namespace), None)
        self._index_owners((ref, namespace, name), old, None if event_type == DELETED else stored)
        event = LoggedChange(event_type, stored, old, self.resource_version)
        self._logs[ref].append(event)
        self._pending_events.append((ref, event))
        self._notify()
        return stored

    def _index_owners(
        self, key: tuple[ResourceKind, str, str], old: Object | None, new: Object | None
    ) -> None:
        before = old["metadata"].get("ownerReferences") if old else None
        after = new["metadata"].get("ownerReferences") if new else None
        if before is after:
            return
        for owner in before or ():
            owned = self._dependents.get(owner["uid"], {})
            owned.pop(key, None)
            if not owned:
                self._dependents.pop(owner["uid"], None)
        for owner in after or ():
            self._dependents.setdefault(owner["uid"], {})[key] = None

    # --- watching ---------------------------------------------------------------------------------

    def subscribe(
        self, ref: ResourceKind, listener: Callable[[LoggedChange], None]
    ) -> Callable[[], None]:
        """Call `listener` after every write of this kind; the returned function ends it."""
        self._listeners[ref].append(listener)
        return lambda: self._listeners[ref].remove(listener)

    def witness(self, listener: Callable[[LoggedChange], None]) -> None:
        """As `subscribe`, for every kind, also for those served later."""
        self._witnesses.append(listener)
        for listeners in self._listeners.values():
            listeners.append(listener)

    def _notify(self) -> None:
        if self._notifying:
            return
        self._notifying = True
        try:
            while self._pending_events:
                ref, event = self._pending_events.popleft()
                for listener in tuple(self._listeners[ref]):
                    listener(event)
        finally:
            self._notifying = False

    def watch(
        self,
        ref: ResourceKind,
        namespace: str | None = None,
        since: int | None = None,
        matches: Predicate | None = None,
    ) -> Subscription:
        """Read along from resourceVersion `since` on (None: from now on).

        Raises 410 when `since` is no longer kept.
        """
        log = self._logs[ref]
        cursor = log.end if since is None else log.cursor_after(since)
        return Subscription(
            log, cursor, _in_namespace(namespace, matches), lambda: self.resource_version
        )

    def watchers(self, ref: ResourceKind) -> int:
        """How many read along."""
        return self._logs[ref].readers

    def compact(self, ref: ResourceKind) -> None:
        """Forget all events of a kind: a watch from an older version gets 410."""
        log = self._logs[ref]
        log.forget(log.end)


def _writers_metadata(obj: Object) -> Object:
    """The metadata that is the writer's, without empty lists and
    maps, which the API never shows.
    """
    return {
        key: value
        for key, value in (obj.get("metadata") or {}).items()
        if key not in _SYSTEM_METADATA and value not in ({}, [], None)
    }


def _with_field(obj: Object, field: str, value: Any) -> Object:
    """`obj` with one field replaced, or without it when `value` is None."""
    rest = {key: kept for key, kept in obj.items() if key != field}
    return rest if value is None else {**rest, field: value}


def _in_namespace(namespace: str | None, matches: Predicate | None) -> Predicate | None:
    if namespace is None:
        return matches
    if matches is None:
        return lambda obj: obj["metadata"].get("namespace") == namespace
    return lambda obj: obj["metadata"].get("namespace") == namespace and matches(obj)
