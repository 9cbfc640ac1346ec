"""Objects written over HTTP: create, replace, patch, delete, and the subresources that are verbs.

A patch is computed here and stored as an update of the object it was computed from; nothing can
come between, because the store is only ever used from one event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead.model.access import Identity
from fairlead.ports import Clock
from fairlead.wire.kube.time import render_time
from fairlead_sim.api.options import check_delete_options
from fairlead_sim.api.patches import Patch
from fairlead_sim.api.reads import Reads, render_list
from fairlead_sim.api.request import ReceivedRequest, decode_object
from fairlead_sim.api.versions import Versions
from fairlead_sim.api.warnings import service_warnings
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.ownership.entries import APPLY, UPDATE, FieldWriter
from fairlead_sim.ownership.field_paths import NoStep
from fairlead_sim.ownership.field_types import kind_type, message_kind
from fairlead_sim.ownership.last_applied import KUBECTL, last_paths, with_annotation
from fairlead_sim.ownership.omission import without_empty
from fairlead_sim.ownership.ownership import (
    Applied,
    Conflicts,
    TrackedWrite,
    applied,
    conflict_error,
    ignored_paths,
    same_times,
    updated,
)
from fairlead_sim.schema.crd import ignored_parts
from fairlead_sim.schema.crd_schema import Schema
from fairlead_sim.schema.schema import UnexpectedKind, check_kind, strict_error, typed
from fairlead_sim.schema.status import (
    bad_request,
    method_not_allowed,
    not_found,
    update_without_version,
)
from fairlead_sim.store.defaults import with_decoded_defaults

# Kinds whose deletion answers with the object; all others answer with a Status once the object is
# gone.
_ANSWER_WITH_OBJECT = frozenset(
    (
        *(
            "pods",
            "podtemplates",
            "services",
            "namespaces",
            "persistentvolumes",
            "persistentvolumeclaims",
            "serviceaccounts",
        ),
        *(
            "replicationcontrollers",
            "resourcequotas",
            "csidrivers.storage.k8s.io",
            "csinodes.storage.k8s.io",
        ),
        *(
            "storageclasses.storage.k8s.io",
            "volumeattachments.storage.k8s.io",
            "volumeattributesclasses.storage.k8s.io",
        ),
    )
)


_SCALE_TYPE, _SCALE_VERSION = message_kind("autoscaling.Scale"), "autoscaling/v1"


class Writes:
    """All verbs that change a store. Each returns (HTTP status, answer).

    `check` looks at whole objects before they are stored (new, and old if there is one) and raises
    for what their writer may not write.
    """

    def __init__(
        self,
        store: Versions,
        reads: Reads,
        clock: Clock,
        check: Callable[[Identity, ReceivedRequest, Object, Object | None], None] | None = None,
    ) -> None:
        self._store = store
        self._reads = reads
        self._clock = clock
        self._check = check

    def create(self, request: ReceivedRequest, body: bytes) -> tuple[int, Object]:
        obj = self._addressed(request, self._decoded(request, body))
        return 201, self._create(request, obj, self._entries(request, None, obj))

    def update(self, request: ReceivedRequest, body: bytes) -> tuple[int, Object]:
        decoded = self._decoded(request, body)
        stored = self._store.get(request.ref, request.path.namespace, request.path.name)
        obj = self._addressed(request, decoded, stored)
        if not (decoded.get("metadata") or {}).get("name"):
            raise bad_request(
                f"the name of the object ({request.path.name} based on URL) was undeterminable: "
                "name must be provided"
            )
        old = self._reads.existing(request)
        if request.ref.is_custom and not obj["metadata"].get("resourceVersion"):
            raise update_without_version(request.ref, request.path.name)
        return 200, self._write(request, obj, self._entries(request, old, obj))

    def patch(self, request: ReceivedRequest, body: bytes) -> tuple[int, Object]:
        patch = Patch(request, body)
        old = self._store.get(request.ref, request.path.namespace, request.path.name)
        if old is None and (not patch.is_apply or request.path.subresource):
            raise not_found(request.ref, request.path.name)
        if patch.is_apply:
            return self._apply(request, patch, old)
        assert old is not None
        before = (
            self._store.scale_of(request.ref, old) if request.path.subresource == "scale" else old
        )
        new = patch.applied(before, lambda new: self._addressed(request, new, old))
        return 200, self._write(request, new, self._entries(request, old, new))

    def _apply(
        self, request: ReceivedRequest, patch: Patch, old: Object | None
    ) -> tuple[int, Object]:
        is_scale = request.path.subresource == "scale"
        wish = patch.wish(_SCALE_TYPE if is_scale else kind_type(request.ref))
        if is_scale and old is not None:
            replicas = int((wish.get("spec") or {}).get("replicas") or 0)
            wish = self._store.scaled(request.ref, _named(old), replicas)
        write = self._write_of(request, APPLY)
        done = _unless_refused(write, old, wish, force=request.is_true("force"))
        new = done.object or old or wish
        if write.writer.manager == KUBECTL:
            new = with_annotation(new, wish)
        if is_scale:
            scale = self._store.scale_of(request.ref, new)
            return 200, self._write(request, scale, done.entries)
        read = patch.accepted(new, old, lambda made: self._addressed(request, made, old))
        if old is None:
            return 201, self._create(request, read, done.entries)
        filled = _filled(request, read)
        return 200, self._write(request, read, same_times(done.entries, old, filled))

    def _entries(self, request: ReceivedRequest, old: Object | None, new: Object) -> list[Object]:
        """The `managedFields` of what a create or an update makes."""
        subresource = request.path.subresource
        if subresource == "scale" and old is not None:
            new = self._store.scaled(request.ref, old, (new.get("spec") or {}).get("replicas") or 0)
        elif subresource == "status" and old is not None:
            new = {**old, "status": new.get("status") or {}}
        else:
            new = _filled(request, new)
        try:
            return updated(self._write_of(request, UPDATE), old, new)
        except NoStep:  # what a list cannot have leaves an object without owners
            return []

    def _write_of(self, request: ReceivedRequest, operation: str) -> TrackedWrite:
        ref, subresource = request.ref, request.path.subresource
        version = "" if operation == APPLY else ref.api_version
        writer = FieldWriter(request.manager, operation, version, subresource)
        at = None if subresource == "scale" else render_time(self._clock.now())
        ignored = ignored_paths(ref, subresource)
        return TrackedWrite(kind_type(ref), writer, ref.api_version, at, ignored)

    def delete(self, request: ReceivedRequest, body: bytes) -> tuple[int, Object]:
        options = _delete_options(request, body)
        obj = self._delete(request, request.path.name, options)
        metadata = obj["metadata"]
        is_gone = self._store.get(request.ref, request.path.namespace, request.path.name) is None
        if request.ref.group_resource in _ANSWER_WITH_OBJECT or not is_gone:
            return 200, self._reads.one(request, obj)
        details = {
            "name": metadata["name"],
            "group": request.ref.group,
            "kind": request.ref.plural,
            "uid": metadata["uid"],
        }
        return 200, _success({key: value for key, value in details.items() if value})

    def delete_collection(self, request: ReceivedRequest, body: bytes) -> tuple[int, Object]:
        options = _delete_options(request, body)
        deleted = [
            self._delete(request, obj["metadata"]["name"], options, obj)
            for obj in self._reads.matching(request)
        ]
        return 200, render_list(
            request.ref, deleted, {"resourceVersion": str(self._store.resource_version)}
        )

    def bind(self, request: ReceivedRequest, body: bytes) -> tuple[int, Object]:
        binding = self._named_like_path(request, body, "v1", "Binding")
        self._store_for(request).bind(
            request.namespace, request.path.name, binding, request.who.name
        )
        return 201, _success()

    def evict(self, request: ReceivedRequest, body: bytes) -> tuple[int, Object]:
        options = (
            self._named_like_path(request, body, "policy/v1", "Eviction").get("deleteOptions") or {}
        )
        self._store_for(request, options).evict(request.namespace, request.path.name, options)
        return 201, _success()

    def _named_like_path(
        self, request: ReceivedRequest, body: bytes, api_version: str, kind: str
    ) -> Object:
        obj = decode_object(body, request.http.headers.get("content-type", ""), kind)
        check_kind(obj, api_version, kind)
        read = _typed(request, api_version, kind, obj)
        if (read.get("metadata") or {}).get("name") != request.path.name:
            raise bad_request(f"name in URL does not match name in {kind} object")
        return read

    def _decoded(self, request: ReceivedRequest, body: bytes) -> Object:
        kind = "Scale" if request.path.subresource == "scale" else request.ref.kind
        return decode_object(body, request.http.headers.get("content-type", ""), kind)

    def _store_for(self, request: ReceivedRequest, options: Any = None) -> Versions:
        return self._store.rehearsal() if request.is_dry_run(options) else self._store

    def _create(self, request: ReceivedRequest, obj: Object, entries: list[Object]) -> Object:
        if self._check is not None:
            self._check(request.who, request, obj, None)
        noted = _with_entries(obj, entries)
        return _warned_of(request, self._store_for(request).create(noted, request.who.name))

    def _write(self, request: ReceivedRequest, obj: Object, entries: list[Object]) -> Object:
        store = self._store_for(request)
        if self._check is not None:
            self._check(request.who, request, obj, self._reads.existing(request))
        if request.path.subresource == "scale":
            return store.scale(request.ref, request.namespace, request.path.name, obj, entries)
        if request.path.subresource == "status":
            return store.update_status(obj, entries)
        noted = _with_entries(obj, entries)
        return _warned_of(request, store.update(noted, request.who.name))

    def _delete(
        self, request: ReceivedRequest, name: str, options: Object, found: Object | None = None
    ) -> Object:
        conditions = options.get("preconditions") or {}
        namespace = found["metadata"].get("namespace") if found else request.path.namespace
        return self._store_for(request, options).delete(
            request.ref,
            namespace,
            name,
            grace_seconds=options.get("gracePeriodSeconds"),
            uid=conditions.get("uid"),
            propagation=options.get("propagationPolicy")
            or ("Orphan" if options.get("orphanDependents") else "Background"),
            resource_version=conditions.get("resourceVersion"),
            user=request.who.name,
        )

    def _addressed(
        self, request: ReceivedRequest, obj: Object, stored: Object | None = None
    ) -> Object:
        """The body with kind, name and namespace of the path, and without the `managedFields` of
        the stored object, which it need not bring.

        Raises 400 if the body has other values.
        """
        ref, path = request.ref, request.path
        given = obj.get("metadata")
        if not isinstance(given or {}, dict):
            _typed(request, ref.api_version, ref.kind, obj)  # refuses it in the words of the kind
        metadata = dict(given or {})
        entries = metadata.get("managedFields")
        if entries and stored is not None and entries == stored["metadata"].get("managedFields"):
            del metadata["managedFields"]
        if path.subresource != "scale":
            check_kind(obj, ref.api_version, ref.kind)
        if path.name and metadata.setdefault("name", path.name) != path.name:
            raise bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL "
                f"({path.name})"
            )
        if ref.namespaced and path.namespace:
            metadata["namespace"] = metadata.get("namespace") or path.namespace
            if metadata["namespace"] != path.namespace:
                raise bad_request(
                    "the namespace of the provided object does not match the namespace sent on "
                    "the request"
                )
        if path.subresource == "scale":
            return _typed(request, "autoscaling/v1", "Scale", {**obj, "metadata": metadata})
        schema = ref.custom.schema if ref.custom is not None else None
        read = _typed(request, ref.api_version, ref.kind, {**obj, "metadata": metadata}, schema)
        if not ref.is_custom:
            read = without_empty(kind_type(ref), read)
        if ref.kind == "CustomResourceDefinition":
            request.warnings.extend(ignored_parts(read))
        return read


def _unless_refused(
    write: TrackedWrite, old: Object | None, wish: Object, *, force: bool
) -> Applied:
    """What an apply makes; raises 409 for a change of what others own.

    What the same kubectl has applied without `--server-side` is not another's.
    """
    try:
        return applied(write, old, wish, force=force)
    except Conflicts as conflicts:
        fields = conflicts.fields
        if write.writer.manager == KUBECTL and old is not None:
            own = last_paths(write.kind, old)
            fields = {writer: others for writer, paths in fields.items() if (others := paths - own)}
            if not fields:
                return applied(write, old, wish, force=True)
        if write.writer.subresource == "scale":
            fields = {
                writer._replace(api_version=_SCALE_VERSION): paths
                for writer, paths in fields.items()
            }
        raise conflict_error(fields) from conflicts


def _with_entries(obj: Object, entries: list[Object]) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "managedFields": entries}}


def _filled(request: ReceivedRequest, obj: Object) -> Object:
    """What a writer sent, with the defaults that its kind has for it."""
    ref = request.ref
    return obj if ref.is_custom or ref.stored_as else with_decoded_defaults(ref, obj)


def _named(obj: Object) -> Object:
    """Nothing of an object but its kind and its name."""
    metadata = {
        key: obj["metadata"][key] for key in ("name", "namespace") if key in obj["metadata"]
    }
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}


def _warned_of(request: ReceivedRequest, stored: Object) -> Object:
    if (request.ref.group, request.ref.kind) == ("", "Service"):
        request.warnings.extend(service_warnings(stored))
    return stored


def _typed(
    request: ReceivedRequest, api_version: str, kind: str, obj: Object, schema: Schema | None = None
) -> Object:
    """The object with the fields that its kind has.

    Other fields are refused, reported or dropped, as `fieldValidation` asks.
    """
    read, unknown = typed(api_version, kind, obj, schema)
    warnings = [f'unknown field "{path}"' for path in unknown]
    wanted = request.query.get("fieldValidation") or "Warn"
    if unknown and wanted == "Strict":
        raise strict_error(api_version, kind, warnings)
    if wanted != "Ignore":
        request.warnings.extend(warnings)
    return read


def _delete_options(request: ReceivedRequest, body: bytes) -> Object:
    """`DeleteOptions` of the body and of the query."""
    options = (
        _read_delete_options(body, request.http.headers.get("content-type", ""))
        if body.strip()
        else {}
    )
    options |= {key: request.query[key] for key in ("propagationPolicy",) if request.query.get(key)}
    if request.query.getlist("dryRun"):
        options["dryRun"] = request.query.getlist("dryRun")
    grace = request.number("gracePeriodSeconds")
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    check_delete_options(options)
    return options


def _read_delete_options(body: bytes, content_type: str) -> Object:
    kind = "DeleteOptions"
    try:
        options = decode_object(body, content_type, kind)
        if (options.get("kind") or kind) != kind:
            raise bad_request(f"the body of a deletion is a {kind} and no `{options['kind']}`")
        return typed("v1", kind, options)[0]
    except UnexpectedKind as error:
        raise bad_request(error.why) from error


def _success(details: Object | None = None) -> Object:
    body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        body["details"] = details
    return body


def no_such_verb(request: ReceivedRequest, verb: str) -> Exception:
    return method_not_allowed(request.ref, verb)
