"""How are objects written over HTTP: create, replace, patch, delete, and the subresources that are verbs?

A patch is computed here and stored as an update of the object it was computed from; nothing can come between, because the store is
only ever used from one event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead.apps.api_reads import Reads, render_list
from fairlead.apps.api_request import ApiRequest, decode_body, decode_object, media_type
from fairlead.apps.api_store import Object, ObjectStore
from fairlead.model.access import Identity
from fairlead.wire.kube_crd_schema import Schema
from fairlead.wire.kube_patch import apply_json_patch, apply_merge_patch, apply_strategic_patch
from fairlead.wire.kube_resource import ResourceKind
from fairlead.wire.kube_schema import strict_error, typed
from fairlead.wire.kube_status import bad_request, method_not_allowed, not_found, unsupported_media_type, update_without_version

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

# Kinds whose deletion answers with the object; all others answer with a Status once the object is gone.
_ANSWER_WITH_OBJECT = frozenset(
    ("pods", "services", "namespaces", "persistentvolumes", "persistentvolumeclaims", "serviceaccounts", "storageclasses.storage.k8s.io")
)


class Writes:
    """All verbs that change a store. Each returns (HTTP status, answer).

    `check` looks at whole objects before they are stored (new, and old if there is one) and raises for what their writer may not write.
    """

    def __init__(
        self, store: ObjectStore, reads: Reads, check: Callable[[Identity, ApiRequest, Object, Object | None], None] | None = None
    ) -> None:
        self._store = store
        self._reads = reads
        self._check = check

    def create(self, request: ApiRequest, body: bytes) -> tuple[int, Object]:
        return 201, self._create(request, self._addressed(request, self._decoded(request, body)))

    def update(self, request: ApiRequest, body: bytes) -> tuple[int, Object]:
        decoded = self._decoded(request, body)
        obj = self._addressed(request, decoded)
        if not (decoded.get("metadata") or {}).get("name"):
            raise bad_request(f"the name of the object ({request.path.name} based on URL) was undeterminable: name must be provided")
        self._reads.existing(request)
        if request.ref.is_custom and not obj["metadata"].get("resourceVersion"):
            raise update_without_version(request.ref, request.path.name)
        return 200, self._write(request, obj)

    def patch(self, request: ApiRequest, body: bytes) -> tuple[int, Object]:
        kind = media_type(request.http.headers.get("content-type", ""))
        accepted = (
            (JSON_PATCH, MERGE_PATCH, APPLY_PATCH) if request.ref.is_custom else (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
        )
        if kind not in accepted:
            raise unsupported_media_type(accepted)
        patch = decode_body(body, kind)
        old = self._store.get(request.ref, request.path.namespace, request.path.name)
        if old is None:
            if kind != APPLY_PATCH or request.path.subresource:
                raise not_found(request.ref, request.path.name)
            return 201, self._create(request, self._addressed(request, dict(patch)))
        if request.path.subresource == "scale":
            old = self._store.scale_of(request.ref, old)
        new = _patched(kind, old, patch, is_custom=request.ref.is_custom)
        if not isinstance(new, dict):
            raise bad_request("the patch does not leave an object")
        return 200, self._write(request, self._addressed(request, new))

    def delete(self, request: ApiRequest, body: bytes) -> tuple[int, Object]:
        options = _delete_options(request, body)
        obj = self._delete(request, request.path.name, options)
        metadata = obj["metadata"]
        is_gone = self._store.get(request.ref, request.path.namespace, request.path.name) is None
        if request.ref.group_resource in _ANSWER_WITH_OBJECT or not is_gone:
            return 200, self._reads.one(request, obj)
        details = {"name": metadata["name"], "group": request.ref.group, "kind": request.ref.plural, "uid": metadata["uid"]}
        return 200, _success({key: value for key, value in details.items() if value})

    def delete_collection(self, request: ApiRequest, body: bytes) -> tuple[int, Object]:
        options = _delete_options(request, body)
        deleted = [self._delete(request, obj["metadata"]["name"], options, obj) for obj in self._reads.matching(request)]
        return 200, render_list(request.ref, deleted, {"resourceVersion": str(self._store.resource_version)})

    def bind(self, request: ApiRequest, body: bytes) -> tuple[int, Object]:
        binding = _typed(request, "v1", "Binding", self._decoded(request, body))
        self._store_for(request).bind(request.namespace, request.path.name, binding, request.who.name)
        return 201, _success()

    def evict(self, request: ApiRequest, body: bytes) -> tuple[int, Object]:
        options = _typed(request, "policy/v1", "Eviction", self._decoded(request, body)).get("deleteOptions") or {}
        self._store_for(request, options).evict(request.namespace, request.path.name, options)
        return 201, _success()

    def _decoded(self, request: ApiRequest, body: bytes) -> Object:
        return decode_object(body, request.http.headers.get("content-type", ""))

    def _store_for(self, request: ApiRequest, options: Any = None) -> ObjectStore:
        return self._store.rehearsal() if request.is_dry_run(options) else self._store

    def _create(self, request: ApiRequest, obj: Object) -> Object:
        if self._check is not None:
            self._check(request.who, request, obj, None)
        return self._store_for(request).create(obj, request.who.name)

    def _write(self, request: ApiRequest, obj: Object) -> Object:
        store = self._store_for(request)
        if self._check is not None:
            self._check(request.who, request, obj, self._reads.existing(request))
        if request.path.subresource == "scale":
            return store.scale(request.ref, request.namespace, request.path.name, obj)
        return store.update_status(obj) if request.path.subresource == "status" else store.update(obj, request.who.name)

    def _delete(self, request: ApiRequest, name: str, options: Object, found: Object | None = None) -> Object:
        conditions = options.get("preconditions") or {}
        namespace = found["metadata"].get("namespace") if found else request.path.namespace
        return self._store_for(request, options).delete(
            request.ref,
            namespace,
            name,
            grace_seconds=options.get("gracePeriodSeconds"),
            uid=conditions.get("uid"),
            propagation=options.get("propagationPolicy") or ("Orphan" if options.get("orphanDependents") else "Background"),
            resource_version=conditions.get("resourceVersion"),
        )

    def _addressed(self, request: ApiRequest, obj: Object) -> Object:
        """The body with kind, name and namespace of the path filled in. Raises 400 where the body says something else."""
        ref, path = request.ref, request.path
        given = obj.get("metadata")
        if not isinstance(given or {}, dict):
            _typed(request, ref.api_version, ref.kind, obj)  # refuses it in the words of the kind
        metadata = dict(given or {})
        if path.subresource != "scale":
            _check_kind(ref, obj)
        if path.name and metadata.setdefault("name", path.name) != path.name:
            raise bad_request(f"the name of the object ({metadata['name']}) does not match the name on the URL ({path.name})")
        if ref.namespaced and path.namespace:
            metadata["namespace"] = metadata.get("namespace") or path.namespace
            if metadata["namespace"] != path.namespace:
                raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if path.subresource == "scale":
            return _typed(request, "autoscaling/v1", "Scale", {**obj, "metadata": metadata})
        schema = ref.custom.schema if ref.custom is not None else None
        return _typed(request, ref.api_version, ref.kind, {**obj, "metadata": metadata}, schema)


def _typed(request: ApiRequest, api_version: str, kind: str, obj: Object, schema: Schema | None = None) -> Object:
    """The object with the fields that its kind has; others are refused, told or dropped, as `fieldValidation` asks."""
    read, unknown = typed(api_version, kind, obj, schema)
    if unknown:
        wanted = request.query.get("fieldValidation") or "Warn"
        if wanted == "Strict":
            raise strict_error(api_version, kind, unknown)
        if wanted == "Warn":
            request.warnings.extend(f'unknown field "{path}"' for path in unknown)
    return read


def _check_kind(ref: ResourceKind, obj: Object) -> None:
    kind, version = obj.get("kind") or ref.kind, obj.get("apiVersion") or ref.api_version
    if version != ref.api_version:
        raise bad_request(f"the API version in the data ({version}) does not match the expected API version ({ref.api_version})")
    if kind != ref.kind:
        raise bad_request(f'{kind} in version "{ref.version}" cannot be handled as a {ref.kind}: the path is that of `{ref.plural}`')


def _patched(kind: str, old: Object, patch: Any, *, is_custom: bool) -> Any:
    if kind == JSON_PATCH:
        return apply_json_patch(old, patch)
    if kind == MERGE_PATCH or (kind == APPLY_PATCH and is_custom):
        return apply_merge_patch(old, patch)
    return apply_strategic_patch(old, patch)


def _delete_options(request: ApiRequest, body: bytes) -> Object:
    """`DeleteOptions` of the body, or what the query says of them."""
    options = decode_object(body, request.http.headers.get("content-type", "")) if body.strip() else {}
    options = _typed(request, "v1", "DeleteOptions", options)
    if request.query.get("propagationPolicy"):
        options["propagationPolicy"] = request.query["propagationPolicy"]
    grace = request.number("gracePeriodSeconds")
    if grace is not None:
        options["gracePeriodSeconds"] = grace
    return options


def _success(details: Object | None = None) -> Object:
    body: Object = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        body["details"] = details
    return body


def no_such_verb(request: ApiRequest, verb: str) -> Exception:
    return method_not_allowed(request.ref, verb)
