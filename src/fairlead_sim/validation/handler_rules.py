"""The probes and lifecycle hooks of a container that the API server refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.names import header_name_faults
from fairlead_sim.schema.status import FieldError, forbidden_field, required, wrong_value
from fairlead_sim.validation.field_rules import (
    at_least,
    between,
    each,
    fields,
    object_of,
    one_of,
    port_or_name,
    spelled,
)

_PORT = between(1, 65535)
_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_SECONDS = fields(dict.fromkeys(_NUMBERS, at_least(0)))
_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_INIT_ONLY = "may not be set for init containers without restartPolicy=Always"


def handler_errors(
    field: str, container: Object, grace_seconds: Any, *, is_init: bool
) -> list[FieldError]:
    """The faults of a container's hooks and probes; an init
    container that ends has none of them.
    """
    if is_init and container.get("restartPolicy") != "Always":
        return [
            forbidden_field(f"{field}.{key}", _INIT_ONLY)
            for key in ("lifecycle", *_PROBES)
            if container.get(key) is not None
        ]
    errors, hooks = [], object_of(container, "lifecycle")
    for key in ("postStart", "preStop"):
        if hooks.get(key) is not None:
            errors += _one_handler(f"{field}.lifecycle.{key}", hooks[key], grace_seconds)
    for key in _PROBES:
        if container.get(key) is not None:
            errors += _probe(f"{field}.{key}", container[key], grace_seconds)
    return errors


def _probe(field: str, probe: Any, grace_seconds: Any) -> list[FieldError]:
    if not isinstance(probe, dict):
        return []
    errors = _one_handler(field, probe, grace_seconds) + _SECONDS(field, probe)
    own_grace, here = (
        probe.get("terminationGracePeriodSeconds"),
        f"{field}.terminationGracePeriodSeconds",
    )
    if isinstance(own_grace, int) and own_grace <= 0:
        errors.append(wrong_value(here, own_grace, "must be greater than 0"))
    if field.endswith("readinessProbe"):
        return (
            errors
            if own_grace is None
            else [*errors, wrong_value(here, own_grace, "must not be set for readinessProbes")]
        )
    successes = probe.get("successThreshold", 1)
    return (
        errors
        if successes in (0, 1)
        else [*errors, wrong_value(f"{field}.successThreshold", successes, "must be 1")]
    )


def _one_handler(field: str, held: Any, grace_seconds: Any) -> list[FieldError]:
    if not isinstance(held, dict):
        return []
    given = [key for key in (*_HANDLERS, "sleep") if held.get(key) is not None]
    if not given:
        return [required(field, "must specify a handler type")]
    first, here = given[0], f"{field}.{given[0]}"
    errors = (
        _sleep(here, held[first], grace_seconds)
        if first == "sleep"
        else _HANDLERS[first](here, held[first])
    )
    return errors + [
        forbidden_field(f"{field}.{key}", "may not specify more than 1 handler type")
        for key in given[1:]
    ]


def _exec(field: str, action: Any) -> list[FieldError]:
    return (
        [] if object_of({"exec": action}, "exec").get("command") else [required(f"{field}.command")]
    )


def _asked(rule: Callable[[str, Any], list[FieldError]]) -> Callable[[str, Any], list[FieldError]]:
    """A port that is not given is port 0."""
    return lambda field, action: rule(
        field, {"port": 0, **action} if isinstance(action, dict) else action
    )


_HANDLERS: dict[str, Callable[[str, Any], list[FieldError]]] = {
    "exec": _exec,
    "httpGet": _asked(
        fields(
            {
                "port": port_or_name,
                "scheme": one_of("HTTP", "HTTPS"),
                "httpHeaders": lambda field, headers: _headers(field, headers),
            }
        )
    ),
    "tcpSocket": _asked(fields({"port": port_or_name})),
    "grpc": _asked(fields({"port": _PORT})),
}


def _headers(field: str, headers: Any) -> list[FieldError]:
    """Faults are reported for the list, not for its items."""
    found = each(fields({"name": spelled(header_name_faults)}))(field, headers)
    return [FieldError(field, error.reason, error.message) for error in found]


def _sleep(field: str, action: Any, grace_seconds: Any) -> list[FieldError]:
    seconds = object_of({"sleep": action}, "sleep").get("seconds", 0)
    if (
        not isinstance(seconds, int)
        or not isinstance(grace_seconds, int)
        or 0 <= seconds <= grace_seconds
    ):
        return []
    return [
        wrong_value(
            field,
            seconds,
            f"must be non-negative and less than terminationGracePeriodSeconds ({grace_seconds})",
        )
    ]
