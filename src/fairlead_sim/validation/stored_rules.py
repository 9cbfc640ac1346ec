"""What the API server fills in and refuses about the kinds that are only stored.

Most of it stands in `objects/stored_kinds.toml`. What the real server checks beyond that (host
names, addresses, expressions) is not checked here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from fairlead_sim.objects.stored_kinds import STORED
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import FieldError, required, unsupported, wrong_value

_ADMISSION = "admissionregistration.k8s.io"


def stored_defaults(ref: ResourceKind, obj: Object) -> Object:
    """The object with what its kind fills in; the same object when nothing was missing."""
    kind = STORED.get(ref)
    if kind is None:
        return obj
    for path, value in kind.defaults.items():
        obj = _filled(obj, path.split("."), value)
    more = _MORE_DEFAULTS.get(ref.group_resource)
    return more(obj) if more else obj


def first_status(ref: ResourceKind) -> Object:
    return msgspec.json.decode(STORED[ref].status, type=dict[str, Any]) if ref in STORED else {}


def stored_errors(ref: ResourceKind, obj: Object) -> list[FieldError]:
    """The faults of an object of a stored kind, in the words of the real server."""
    kind = STORED.get(ref)
    if kind is None:
        return []
    missing = (
        (place, why)
        for path, why in kind.required.items()
        for place, value in _values(obj, path.split("."))
        if _is_missing(value)
    )
    errors = [required(place, why) for place, why in missing]
    for path, known in kind.values.items():
        errors += [
            unsupported(place, value, known)
            for place, value in _values(obj, path.split("."))
            if value and value not in known
        ]
    check = _MORE_CHECKS.get(ref.group_resource)
    return [*errors, *check(obj)] if check else errors


def _is_missing(value: Any) -> bool:
    """Empty is missing, except for objects, which may be empty on purpose."""
    return value is None or (value in ("", [], 0) and value is not False)


# --- paths ----------------------------------------------------------------------------------------


def _filled(obj: Any, steps: list[str], value: Any) -> Any:
    """`obj` with `value` at the path wherever its parent is there and the field is not."""
    if not isinstance(obj, dict):
        return obj
    step, *rest = steps
    key = step.removesuffix("[]")
    if not rest and key not in obj:
        return {**obj, key: value}
    if not rest or key not in obj:
        return obj
    old = obj[key]
    new = (
        [_filled(item, rest, value) for item in old]
        if step != key and isinstance(old, list)
        else _filled(old, rest, value)
    )
    return {**obj, key: new} if new != old else obj


def _values(obj: Any, steps: list[str], place: str = "") -> Iterator[tuple[str, Any]]:
    """What stands at the path, with where it stands; None where an object on the way lacks it."""
    step, *rest = steps
    key = step.removesuffix("[]")
    value = obj.get(key) if isinstance(obj, dict) else None
    here = f"{place}.{key}" if place else key
    if step == key:
        yield from _values(value, rest, here) if rest else [(here, value)]
        return
    for index, item in enumerate(value if isinstance(value, list) else ()):
        yield from _values(item, rest, f"{here}[{index}]") if rest else [(f"{here}[{index}]", item)]


# --- what no table contains -----------------------------------------------------------------------


def _network_policy(obj: Object) -> Object:
    spec = obj.get("spec") or {}
    if spec.get("policyTypes"):
        return obj
    return {
        **obj,
        "spec": {**spec, "policyTypes": ["Ingress", "Egress"] if "egress" in spec else ["Ingress"]},
    }


def _limit_range(obj: Object) -> Object:
    spec = obj.get("spec") or {}
    return (
        {**obj, "spec": {**spec, "limits": [_limit(limit) for limit in spec["limits"]]}}
        if spec.get("limits")
        else obj
    )


def _limit(limit: Object) -> Object:
    """Of containers, the most is the default limit, and that or the least the default request."""
    if limit.get("type") != "Container":
        return limit
    default = {**(limit.get("max") or {}), **(limit.get("default") or {})}
    request = {**default, **(limit.get("min") or {}), **(limit.get("defaultRequest") or {})}
    return {
        **limit,
        **({"default": default} if default else {}),
        **({"defaultRequest": request} if request else {}),
    }


def _replication_controller(obj: Object) -> Object:
    """Labels and selector are those of the template, unless they are given."""
    spec = obj.get("spec") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not labels:
        return obj
    metadata = obj["metadata"]
    return {
        **obj,
        "metadata": {**metadata, "labels": metadata.get("labels") or labels},
        "spec": {"selector": labels, **spec},
    }


def _autoscaler_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    highest, lowest, target = (
        spec.get("maxReplicas") or 0,
        spec.get("minReplicas", 1),
        spec.get("scaleTargetRef") or {},
    )
    errors = (
        [wrong_value("spec.minReplicas", lowest, "must be greater than or equal to 1")]
        if lowest < 1
        else []
    )
    if highest < lowest:
        errors.append(
            wrong_value(
                "spec.maxReplicas", highest, "must be greater than or equal to `minReplicas`"
            )
        )
    if target.get("apiVersion", "") in ("", "v1") and target.get("kind") != "ReplicationController":
        errors.append(
            wrong_value(
                "spec.scaleTargetRef.apiVersion",
                target.get("apiVersion", ""),
                "apiVersion must specify API group",
            )
        )
    return errors


def _ingress_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    if not spec.get("rules") and not spec.get("defaultBackend"):
        return [wrong_value("spec", None, "either `defaultBackend` or `rules` must be specified")]
    errors = []
    for place, path in _values(obj, ["spec", "rules[]", "http", "paths[]"]):
        if path.get("pathType") in ("Exact", "Prefix") and not str(
            path.get("path") or ""
        ).startswith("/"):
            errors.append(
                wrong_value(f"{place}.path", path.get("path") or "", "must be an absolute path")
            )
        if not path.get("backend"):
            errors.append(
                wrong_value(f"{place}.backend", "", "resource or service backend is required")
            )
    return errors


def _policy_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    if spec.get("validations") or spec.get("auditAnnotations"):
        return []
    why = "validations or auditAnnotations must contain at least one item"
    return [required(f"spec.{field}", why) for field in ("validations", "auditAnnotations")]


def _webhook_errors(obj: Object) -> list[FieldError]:
    rule = "should be a domain with at least three segments separated by dots"
    names = _values(obj, ["webhooks[]", "name"])
    return [
        wrong_value(place, name or "", rule)
        for place, name in names
        if str(name or "").count(".") < 2
    ]


_MORE_DEFAULTS = {
    "networkpolicies.networking.k8s.io": _network_policy,
    "limitranges": _limit_range,
    "replicationcontrollers": _replication_controller,
}
_MORE_CHECKS = {
    "horizontalpodautoscalers.autoscaling": _autoscaler_errors,
    "ingresses.networking.k8s.io": _ingress_errors,
    f"validatingadmissionpolicies.{_ADMISSION}": _policy_errors,
    f"validatingwebhookconfigurations.{_ADMISSION}": _webhook_errors,
    f"mutatingwebhookconfigurations.{_ADMISSION}": _webhook_errors,
}
