"""The options of a request (query, body of a deletion), checked against what the verb takes.

Checked before the body is looked at, as the real server does. Unknown parameters are no fault
anywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from fairlead_sim.api.request import APPLY_PATCH, ReceivedRequest, media_type
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import (
    FieldError,
    forbidden_field,
    invalid,
    required,
    too_long,
    unsupported,
    wrong_value,
)

_KINDS: Final = {
    name: ResourceKind("meta.k8s.io", "v1", name, "", "")
    for name in ("CreateOptions", "UpdateOptions", "PatchOptions", "ListOptions")
}
_DELETE: Final = ResourceKind("meta.k8s.io", "v1", "DeleteOptions", "", "")
_LOGS: Final = ResourceKind("", "v1", "PodLogOptions", "", "")
_BY_METHOD: Final = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}
_LONGEST_MANAGER: Final = 128
_POLICIES: Final = ("Foreground", "Background", "Orphan", "nil")


def check_options(request: ReceivedRequest) -> None:
    """Raise 422 for options that the request's verb does not
    take, 400 for numbers that are none.
    """
    method = request.http.method
    if method in _BY_METHOD:
        _refuse(_KINDS[_BY_METHOD[method]], "", list(_write_errors(request)))
    elif method == "GET" and request.path.subresource == "log":
        _refuse(_LOGS, request.path.name, list(_log_errors(request)))
    elif method == "GET" and not request.path.name:
        for name in ("limit", "timeoutSeconds"):
            request.number(name)
        _refuse(_KINDS["ListOptions"], "", list(_list_errors(request)))


def check_delete_options(options: dict[str, Any]) -> None:
    """The same for the `DeleteOptions` of body and query together."""
    errors = [*_dry_run_errors(options.get("dryRun") or [])]
    policy = options.get("propagationPolicy")
    if policy is not None and options.get("orphanDependents") is not None:
        errors.append(
            wrong_value(
                "propagationPolicy",
                policy,
                "orphanDependents and deletionPropagation cannot be both set",
            )
        )
    elif policy is not None and policy not in _POLICIES[:3]:
        errors.append(unsupported("propagationPolicy", policy, _POLICIES))
    _refuse(_DELETE, "", errors)


def _refuse(kind: ResourceKind, name: str, errors: list[FieldError]) -> None:
    if errors:
        raise invalid(kind, name, errors)


def _dry_run_errors(asked: list[str]) -> Iterator[FieldError]:
    if asked and set(asked) != {"All"}:
        yield unsupported("dryRun", asked, ("All",))


def _write_errors(request: ReceivedRequest) -> Iterator[FieldError]:
    query, manager = request.query, request.query.get("fieldManager", "")
    yield from _dry_run_errors(query.getlist("dryRun"))
    if request.http.method == "PATCH":
        is_apply = media_type(request.http.headers.get("content-type", "")) == APPLY_PATCH
        if is_apply and not manager:
            yield required("fieldManager", "is required for apply patch")
        if not is_apply and "force" in query:
            yield forbidden_field("force", "may not be specified for non-apply patch")
    if len(manager.encode()) > _LONGEST_MANAGER:
        yield too_long("fieldManager", _LONGEST_MANAGER)
    at = next((index for index, letter in enumerate(manager) if not letter.isprintable()), None)
    if at is not None:
        yield wrong_value(
            "fieldManager",
            manager,
            f"invalid character U+{ord(manager[at]):04X} (at position {at})",
        )
    validation = query.get("fieldValidation", "")
    if validation not in ("", "Ignore", "Strict", "Warn"):
        yield unsupported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn"))


def _list_errors(request: ReceivedRequest) -> Iterator[FieldError]:
    query, field = request.query, "resourceVersionMatch"
    match, is_watch = query.get(field, ""), request.is_true("watch")
    if "sendInitialEvents" in query:
        if not is_watch:
            yield forbidden_field("sendInitialEvents", "sendInitialEvents is forbidden for list")
        elif match != "NotOlderThan":
            yield forbidden_field(
                field, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            )
        return
    if match and is_watch:
        yield forbidden_field(
            field,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        )
    elif match and not query.get("resourceVersion"):
        yield forbidden_field(
            field, "resourceVersionMatch is forbidden unless resourceVersion is provided"
        )
    elif match not in ("", "Exact", "NotOlderThan"):
        yield unsupported(field, match, ("Exact", "NotOlderThan", ""))


def _log_errors(request: ReceivedRequest) -> Iterator[FieldError]:
    tail, since, limit = (
        request.number(name) for name in ("tailLines", "sinceSeconds", "limitBytes")
    )
    if tail is not None and tail < 0:
        yield wrong_value("tailLines", tail, "must be greater than or equal to 0")
    if limit is not None and limit < 1:
        yield wrong_value("limitBytes", limit, "must be greater than 0")
    if since is not None and request.query.get("sinceTime"):
        yield forbidden_field("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified")
    elif since is not None and since < 1:
        yield wrong_value("sinceSeconds", since, "must be greater than 0")
    if "stream" in request.query:
        yield forbidden_field("stream", "may not be specified")
