"""Patches in requests: what they make of an object, and the errors of those that do not apply.

The real server's answers differ by dialect: what a merge or JSON patch spoils is 422, what an apply
spoils is 500.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fairlead.wire.kube.fields import message_of
from fairlead_sim.api.request import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    ReceivedRequest,
    decode_patch,
    media_type,
)
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.ownership.comparison import type_faults
from fairlead_sim.ownership.field_types import FieldType
from fairlead_sim.schema.crd_schema import null_errors
from fairlead_sim.schema.go_json import go_value
from fairlead_sim.schema.patch import apply_json_patch, apply_merge_patch, apply_strategic_patch
from fairlead_sim.schema.schema import UnexpectedKind
from fairlead_sim.schema.status import (
    ApiStatus,
    bad_request,
    conflict,
    invalid,
    shown,
    unsupported_media_type,
    wrong_value,
)

_CUSTOM: Final = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
_BUILT_IN: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
SCALE: Final = ("autoscaling/v1", "Scale")
_MOST_OPERATIONS: Final = 10_000


class Patch:
    """The patch in a request's body.

    Raises 415 for other dialects, 400 and 413 for what is no patch.
    """

    def __init__(self, request: ReceivedRequest, body: bytes) -> None:
        self._request = request
        self.dialect = media_type(request.http.headers.get("content-type", ""))
        if request.ref.is_custom and self.dialect not in _CUSTOM:
            raise unsupported_media_type(_CUSTOM)
        if self.dialect not in _BUILT_IN:
            raise ApiStatus(415, "UnsupportedMediaType", "415: Unsupported Media Type")
        self.content = decode_patch(body, self.dialect)
        if (
            self.dialect == JSON_PATCH
            and isinstance(self.content, list)
            and len(self.content) > _MOST_OPERATIONS
        ):
            why = (
                f"The allowed maximum operations in a JSON patch is {_MOST_OPERATIONS}, got "
                f"{len(self.content)}"
            )
            raise ApiStatus(413, "RequestEntityTooLarge", f"Request entity too large: {why}")

    @property
    def is_apply(self) -> bool:
        return self.dialect == APPLY_PATCH

    def applied(self, old: Object, read: Callable[[Object], Object]) -> Object:
        """The object after the patch, as `read` accepts it."""
        new = self._applied(old)
        metadata = new.get("metadata")
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise self._nameless()
        self._check_uid(metadata, old)
        return self._checked(new, read)

    def wish(self, kind: FieldType) -> Object:
        """What an apply wishes for, as it was sent.

        Raises 400 for another kind or no name, 500 for what the fields of `kind` do not allow.
        """
        wish = self._applied_object()
        faults = type_faults(kind, wish)
        if faults:
            lines = "".join(f"\n  {fault}" for fault in faults)
            raise self._refused(wish, faults[0] if len(faults) == 1 else f"errors:{lines}")
        return wish

    def accepted(self, new: Object, old: Object | None, read: Callable[[Object], Object]) -> Object:
        """The object that an apply made (of `old`, if there was one), as `read` accepts it."""
        metadata = new["metadata"]
        if old is not None:
            self._check_uid(metadata, old)
        elif metadata.get("uid"):
            why = (
                f"uid mismatch: the provided object specified uid {metadata['uid']}, and no "
                "existing object was found"
            )
            raise conflict(self._request.ref, self._request.path.name, why)
        else:
            rest = {key: value for key, value in metadata.items() if key != "resourceVersion"}
            new = {**new, "metadata": rest}
        custom = self._request.ref.custom
        errors = null_errors(custom.schema, new) if custom is not None else []
        if errors:
            raise invalid(self._request.ref, self._request.path.name, errors)
        return self._checked(new, read)

    def _check_uid(self, metadata: Object, old: Object) -> None:
        if metadata.get("uid") != old["metadata"]["uid"]:
            error = wrong_value("metadata.uid", metadata.get("uid"), "field is immutable")
            raise invalid(self._request.ref, self._request.path.name, [error])

    def _applied(self, old: Object) -> Object:
        message = message_of(old["apiVersion"], old["kind"])
        if self.dialect == JSON_PATCH:
            return self._object(apply_json_patch(old, self.content))
        if self.dialect == MERGE_PATCH:
            return self._object(apply_merge_patch(old, self.content))
        return self._object(apply_strategic_patch(old, self.content, message))

    def _object(self, new: Any) -> Object:
        if not isinstance(new, dict):
            raise self._nameless()
        return new

    def _applied_object(self) -> Object:
        wish, ref = self.content, self._request.ref
        found = wish.get("apiVersion") or "", wish.get("kind") or ""
        wanted = SCALE if self._request.path.subresource == "scale" else (ref.api_version, ref.kind)
        if found != wanted:
            group, _, version = found[0].rpartition("/")
            raise bad_request(f"invalid object type: {group}/{version}, Kind={found[1]}")
        metadata = wish.get("metadata") or {}
        if not isinstance(metadata, dict) or not metadata.get("name"):
            raise self._nameless()
        if "managedFields" in metadata:
            raise bad_request("metadata.managedFields must be nil")
        return {**wish, "metadata": metadata}

    def _nameless(self) -> ApiStatus:
        return bad_request(
            f"the name of the object ({self._request.path.name} based on URL) was undeterminable: "
            "name must be provided"
        )

    def _checked(self, new: Object, read: Callable[[Object], Object]) -> Object:
        try:
            return read(new)
        except UnexpectedKind as error:
            raise self._refused(new, error.why) from error

    def _refused(self, new: Object, why: str) -> ApiStatus:
        if self.is_apply:
            ref, metadata = self._request.ref, new["metadata"]
            place = f"{self.content['metadata'].get('namespace', '')}/{metadata['name']}"
            kind = f"{ref.group}/{ref.version}, Kind={ref.kind}"
            return ApiStatus(
                500, "", f"failed to create typed patch object ({place}; {kind}): {why}"
            )
        spoilt = go_value(self.content) if self.dialect == STRATEGIC_PATCH else shown(new)
        detail = f"Invalid value: {shown(spoilt)}: {why}"
        return ApiStatus(
            422,
            "Invalid",
            f' "" is invalid: patch: {detail}',
            {"causes": [{"reason": "FieldValueInvalid", "message": detail, "field": "patch"}]},
        )
