"""Objects read over HTTP: one, a list in pages, as `Table`, as metadata only.

A list that is continued is kept as it was at its first page (objects never change, so that costs
one reference each). A limited number is kept; the continuation of an older list gets 410, as from
the real server.
"""

from __future__ import annotations

import base64
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any

import msgspec

from fairlead.ports import Clock
from fairlead_sim.api.request import ReceivedRequest, wanted_form
from fairlead_sim.api.versions import Versions
from fairlead_sim.objects.watch_log import Object, Objects
from fairlead_sim.schema.go_number import OutOfRange, parse_whole
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import ApiStatus, bad_request, gone, not_found
from fairlead_sim.tables.table import partial_metadata, render_table

OBJECT_FORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_KEPT_LISTS = 64
_TOO_OLD = (
    "The provided continue parameter is too old to display a consistent list result. You can "
    "start a new list without the continue "
    "parameter, or use the continue token in this response to retrieve the remainder of the "
    "results. Continuing with the provided token "
    "results in an inconsistent list - objects that were created, modified, or deleted "
    "between the time the first chunk was returned and "
    "now may show up in the list."
)


class Reads:
    """`get` and `list` over a store."""

    def __init__(self, store: Versions, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lists: OrderedDict[int, tuple[Objects, int, Hashable]] = OrderedDict()
        self._next_list = 1

    def get(self, request: ReceivedRequest) -> Object:
        """The object of the path, in the form that the client wants."""
        return self.one(request, self.existing(request))

    def existing(self, request: ReceivedRequest) -> Object:
        """The stored object of the path. Raises 404."""
        obj = self._store.get(request.ref, request.path.namespace, request.path.name)
        if obj is None:
            raise not_found(request.ref, request.path.name)
        return obj

    def one(self, request: ReceivedRequest, obj: Object) -> Object:
        """A single object as the answer to any request."""
        form = wanted_form(request.http.headers.get("accept", ""), OBJECT_FORMS)
        if form == "Table":
            return self.table(
                request, [obj], {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            )
        return partial_metadata(obj) if form else obj

    def list(self, request: ReceivedRequest) -> Object:
        """A whole list, or a page of it when `limit` or `continue` is given."""
        _check_list_version(request, self._store.resource_version)
        form = wanted_form(request.http.headers.get("accept", ""), OBJECT_FORMS)
        objects, metadata = self._page(request)
        if form == "Table":
            return self.table(request, objects, metadata)
        if form:
            items = [partial_metadata(obj) for obj in objects]
            return {
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": items,
            }
        return render_list(request.ref, objects, metadata)

    def table(
        self,
        request: ReceivedRequest,
        objects: Sequence[Object],
        metadata: Object,
        *,
        with_headers: bool = True,
    ) -> Object:
        include = request.query.get("includeObject", "Metadata")
        return render_table(
            request.ref,
            objects,
            self._clock.now(),
            metadata=metadata,
            include=include,
            with_headers=with_headers,
        )

    def matching(self, request: ReceivedRequest) -> Objects:
        """All objects that the selectors of the request choose."""
        objects = self._store.list(request.ref, request.path.namespace)
        chooses = request.chooses()
        return objects if chooses is None else [obj for obj in objects if chooses(obj)]

    def _page(self, request: ReceivedRequest) -> tuple[Objects, Object]:
        limit, token = request.number("limit") or 0, request.query.get("continue", "")
        if token:
            number, start = _read_token(token)
            if number not in self._lists:
                raise gone(_TOO_OLD)
            objects, version, kept_for = self._lists[number]
            # only an identity that may begin a list may continue it
            if kept_for != _list_key(request):
                raise bad_request("continue key is not valid: it is that of another list")
        else:
            number, start = 0, 0
            objects, version = self.matching(request), self._store.resource_version
        metadata: Object = {"resourceVersion": str(version)}
        end = start + limit if limit > 0 else len(objects)
        if end < len(objects):
            metadata["continue"] = _render_token(
                number or self._keep(objects, version, _list_key(request)), end
            )
            if not request.query.get("labelSelector") and not request.query.get("fieldSelector"):
                metadata["remainingItemCount"] = len(objects) - end
        return objects[start:end] if start or end < len(objects) else objects, metadata

    def _keep(self, objects: Objects, version: int, kept_for: Hashable) -> int:
        number, self._next_list = self._next_list, self._next_list + 1
        self._lists[number] = (objects, version, kept_for)
        if len(self._lists) > _KEPT_LISTS:
            self._lists.popitem(last=False)
        return number


def render_list(ref: ResourceKind, objects: Sequence[Object], metadata: Object) -> Object:
    """`PodList` and so on; items of the built-in kinds do not repeat their kind."""
    items = list(objects) if ref.is_custom else [_bare(obj) for obj in objects]
    return {
        "kind": ref.list_kind,
        "apiVersion": ref.api_version,
        "metadata": metadata,
        "items": items,
    }


def _bare(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


def _check_list_version(request: ReceivedRequest, current: int) -> None:
    version = request_version(request)
    if version is not None and version > current:
        raise too_new(version, current)


def request_version(request: ReceivedRequest) -> int | None:
    """`resourceVersion` of the query; None when not given."""
    text = request.query.get("resourceVersion", "")
    if not text:
        return None
    try:
        if text[0] in "+-":  # no sign: it is read as an unsigned number
            raise ValueError
        return parse_whole(text)
    except ValueError as error:
        why = "value out of range" if isinstance(error, OutOfRange) else "invalid syntax"
        detail = (
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": {why}'
        )
        raise (
            ApiStatus(500, "", detail)
            if request.is_true("watch")
            else bad_request(f"invalid resource version: {detail}")
        ) from None


def too_new(version: int, current: int) -> ApiStatus:
    details: dict[str, Any] = {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }
    return ApiStatus(
        504, "Timeout", f"Too large resource version: {version}, current: {current}", details
    )


def _list_key(request: ReceivedRequest) -> Hashable:
    """Which list a request is for: the same in all of its pages."""
    return (
        request.ref,
        request.path.namespace,
        request.query.get("labelSelector", ""),
        request.query.get("fieldSelector", ""),
    )


def _render_token(number: int, start: int) -> str:
    return (
        base64.urlsafe_b64encode(msgspec.json.encode({"list": number, "start": start}))
        .decode()
        .rstrip("=")
    )


def _read_token(token: str) -> tuple[int, int]:
    try:
        decoded = msgspec.json.decode(
            base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=dict[str, int]
        )
        return decoded["list"], decoded["start"]
    except (ValueError, KeyError, msgspec.DecodeError) as error:
        raise bad_request(f"invalid continue token: continue key is not valid: {error}") from error
