"""The refusals of a Kubernetes API server.

`ApiStatus` is the exception and `render_status` its JSON body. The words are those of the real API
server: people and programs match on them, so a changed letter is a changed interface.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fairlead_sim.schema.resource import ResourceKind


@dataclass(eq=False)
class ApiStatus(Exception):
    """A failure of the API: HTTP `code`, machine `reason`, human `message`, optional `details`."""

    code: int
    reason: str
    message: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.reason} ({self.code}): {self.message}"


def render_status(status: ApiStatus) -> dict[str, Any]:
    """The `Status` object of a failure."""
    body: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": status.message,
    }
    if status.reason:
        body["reason"] = status.reason
    if status.details:
        body["details"] = dict(status.details)
    body["code"] = status.code
    return body


def _details(ref: ResourceKind, name: str = "", **more: Any) -> dict[str, Any]:
    details: dict[str, Any] = {"name": name} if name else {}
    if ref.group:
        details["group"] = ref.group
    return {**details, "kind": ref.plural, **more}


def not_found(ref: ResourceKind, name: str) -> ApiStatus:
    return ApiStatus(
        404, "NotFound", (f'{ref.group_resource} "{name}" not found'), _details(ref, name)
    )


def already_exists(ref: ResourceKind, name: str) -> ApiStatus:
    return ApiStatus(
        409, "AlreadyExists", (f'{ref.group_resource} "{name}" already exists'), _details(ref, name)
    )


def conflict(ref: ResourceKind, name: str, why: str) -> ApiStatus:
    return ApiStatus(
        409,
        "Conflict",
        (f'Operation cannot be fulfilled on {ref.group_resource} "{name}": {why}'),
        _details(ref, name),
    )


def stale_write(ref: ResourceKind, name: str) -> ApiStatus:
    """The 409 of an update whose resourceVersion is no longer the stored one."""
    why = (
        "the object has been modified; please apply your changes to the latest version and try "
        "again"
    )
    return conflict(ref, name, why)


def failed_precondition(
    ref: ResourceKind, name: str, what: str, wanted: str, found: str
) -> ApiStatus:
    return conflict(
        ref,
        name,
        f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}",
    )


def failed_delete_precondition(
    ref: ResourceKind, name: str, what: str, wanted: str, found: str
) -> ApiStatus:
    """As `failed_precondition`, in the words that deletion has for it (and with the kind where
    others name the resource).
    """
    guess = "deleted and then recreated" if what == "UID" else "modified"
    why = (
        f"the {what} in the precondition ({wanted}) does not match the {what} in record "
        f"({found}). The object might have been {guess}"
    )
    message = f'Operation cannot be fulfilled on {ref.group_kind} "{name}": {why}'
    return ApiStatus(
        409,
        "Conflict",
        message,
        {"name": name, **({"group": ref.group} if ref.group else {}), "kind": ref.kind},
    )


def forbidden(ref: ResourceKind, name: str, why: str) -> ApiStatus:
    subject = f'{ref.group_resource} "{name}"' if name else ref.group_resource
    return ApiStatus(403, "Forbidden", f"{subject} is forbidden: {why}", _details(ref, name))


@dataclass(frozen=True, slots=True)
class FieldError:
    """One fault of an object.

    `reason` is the cause's word (`FieldValueInvalid`, `FieldValueRequired`, …).
    """

    field: str
    reason: str
    message: str


def required(field: str, why: str = "") -> FieldError:
    return FieldError(
        field, "FieldValueRequired", f"Required value: {why}" if why else "Required value"
    )


def wrong_value(field: str, value: Any, why: str) -> FieldError:
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {shown(value)}: {why}")


def unsupported(field: str, value: Any, known: Sequence[Any]) -> FieldError:
    detail = ", ".join(shown(item if isinstance(item, str) else shown(item)) for item in known)
    return FieldError(
        field,
        "FieldValueNotSupported",
        f"Unsupported value: {shown(value)}: supported values: {detail}",
    )


def forbidden_field(field: str, why: str) -> FieldError:
    return FieldError(field, "FieldValueForbidden", f"Forbidden: {why}")


def duplicate(field: str, value: Any) -> FieldError:
    return FieldError(field, "FieldValueDuplicate", f"Duplicate value: {shown(value)}")


def not_there(field: str, value: Any) -> FieldError:
    return FieldError(field, "FieldValueNotFound", f"Not found: {shown(value)}")


def too_long(field: str, limit: int) -> FieldError:
    return FieldError(
        field,
        "FieldValueTooLong",
        f"Too long: may not be more than {limit} {'byte' if limit == 1 else 'bytes'}",
    )


def shown(value: Any) -> str:
    """A value as messages show it: JSON, with the keys in order."""
    return msgspec.json.encode(value, order="sorted").decode()


def shown_as_written(value: Any) -> str:
    """As `shown`, with the keys in their order.

    Go prints the fields of a struct in the order of their declaration.
    """
    return msgspec.json.encode(value).decode()


def invalid(ref: ResourceKind, name: str, errors: Sequence[FieldError]) -> ApiStatus:
    """The 422 for an object that breaks its kind's rules.

    Several faults are listed in brackets.
    """
    detail = [f"{error.field}: {error.message}" for error in errors]
    text = detail[0] if len(detail) == 1 else f"[{', '.join(detail)}]"
    causes = [
        {"reason": error.reason, "message": error.message, "field": error.field} for error in errors
    ]
    details = {"name": name, "group": ref.group, "kind": ref.kind, "causes": causes}
    return ApiStatus(
        422,
        "Invalid",
        (f'{ref.group_kind} "{name}" is invalid: {text}'),
        {key: value for key, value in details.items() if value},
    )


def update_without_version(ref: ResourceKind, name: str) -> ApiStatus:
    """The 422 for replacing a custom resource unconditionally; it alone names the resource where
    others name the kind.
    """
    detail = "Invalid value: 0: must be specified for an update"
    causes = [
        {"reason": "FieldValueInvalid", "message": detail, "field": "metadata.resourceVersion"}
    ]
    message = f'{ref.group_resource} "{name}" is invalid: metadata.resourceVersion: {detail}'
    return ApiStatus(
        422,
        "Invalid",
        message,
        {"name": name, "group": ref.group, "kind": ref.plural, "causes": causes},
    )


def bad_request(message: str) -> ApiStatus:
    return ApiStatus(400, "BadRequest", message)


def internal_error(why: str) -> ApiStatus:
    """500: the server could not do what it should."""
    return ApiStatus(
        500, "InternalError", f"Internal error occurred: {why}", {"causes": [{"message": why}]}
    )


def gone(message: str) -> ApiStatus:
    """410: what a watch or a continued list asks for is no longer kept."""
    return ApiStatus(410, "Expired", message)


def too_old(since: int, oldest: int) -> ApiStatus:
    return gone(f"too old resource version: {since} ({oldest})")


def unauthorized() -> ApiStatus:
    return ApiStatus(401, "Unauthorized", "Unauthorized")


def unknown_path() -> ApiStatus:
    return ApiStatus(404, "NotFound", "the server could not find the requested resource")


def method_not_allowed(ref: ResourceKind | None, verb: str) -> ApiStatus:
    message = "the server does not allow this method on the requested resource"
    return ApiStatus(405, "MethodNotAllowed", message, _details(ref) if ref and verb else {})


def unsupported_media_type(accepted: Sequence[str]) -> ApiStatus:
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(accepted)}"
    )
    return ApiStatus(415, "UnsupportedMediaType", message)


def too_large(limit: int) -> ApiStatus:
    return ApiStatus(413, "RequestEntityTooLarge", f"Request entity too large: limit is {limit}")
