"""Which objects does the API server refuse, and with what words?

Names, namespaces, labels and owners of every kind, and of pods and pod templates the containers: the faults that people make.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from fairlead.sim import rbac_objects
from fairlead.sim import resources as served
from fairlead.sim.custom_validation import definition_errors
from fairlead.sim.pod_counts import count_errors
from fairlead.sim.watch_log import Object
from fairlead.wire.kube_resource import ResourceKind
from fairlead.wire.kube_status import FieldError, invalid, required
from fairlead.wire.quantity import parse_quantity

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_NAME_PART = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_is_label = re.compile(_LABEL).fullmatch
_is_subdomain = re.compile(_SUBDOMAIN).fullmatch
_is_name_part = re.compile(_NAME_PART).fullmatch
_is_label_value = re.compile(_LABEL_VALUE).fullmatch

_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric "
    "character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_LABEL_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_NAME_PART_RULE = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def check(ref: ResourceKind, new: Object, old: Object | None = None) -> None:
    """Raise 422 with every fault found. What an update leaves as it was is not looked at again: most updates are of a status."""
    errors: list[FieldError] = []
    if old is None or new["metadata"].get("labels") != old["metadata"].get("labels"):
        errors += _metadata_errors(ref, new["metadata"])
    if old is None or ref.is_custom or new.get("spec") != old.get("spec"):
        errors += _spec_errors(ref, new)
        errors += _change_errors(ref, old, new) if old is not None else []
    if ref.group == rbac_objects.GROUP:
        errors += rbac_objects.rbac_errors(ref, new, old)
    if ref is served.CUSTOM_RESOURCE_DEFINITIONS and (old is None or new.get("spec") != old.get("spec")):
        errors += definition_errors(new, old)
    if old is None or new.get("spec") != old.get("spec"):
        errors += count_errors(ref, new.get("spec"))
    if errors:
        raise invalid(ref, new["metadata"].get("name", ""), errors)


def _wrong(field: str, value: Any, why: str) -> FieldError:
    shown = f'"{value}"' if isinstance(value, str) else str(value)
    return FieldError(field, "FieldValueInvalid", f"Invalid value: {shown}: {why}")


def _metadata_errors(ref: ResourceKind, metadata: Object) -> list[FieldError]:
    name = metadata.get("name")
    if not name:
        return [required("metadata.name", "name or generateName is required")]
    return [*_name_errors(ref, str(name)), *_label_errors("metadata.labels", metadata.get("labels") or {})]


def _name_errors(ref: ResourceKind, name: str) -> list[FieldError]:
    if ref.group == "rbac.authorization.k8s.io":  # path segments, so that `system:node` is a name
        return [_wrong("metadata.name", name, f"may not contain '{mark}'") for mark in ("/", "%") if mark in name]
    if ref in (served.NAMESPACES, served.SERVICES):
        rule, limit, fits = _LABEL_RULE, 63, _is_label(name)
    else:
        rule, limit, fits = _SUBDOMAIN_RULE, 253, _is_subdomain(name)
    errors = [] if fits else [_wrong("metadata.name", name, rule)]
    if len(name) > limit:
        errors.append(_wrong("metadata.name", name, f"must be no more than {limit} characters"))
    return errors


def _label_errors(field: str, labels: Object) -> list[FieldError]:
    errors = []
    for key, value in labels.items():
        prefix, _, part = key.rpartition("/")
        if not part or len(part) > 63 or not _is_name_part(part):
            errors.append(_wrong(field, key, _NAME_PART_RULE if part else f"name part must be non-empty; {_NAME_PART_RULE}"))
        elif prefix and not _is_subdomain(prefix):
            errors.append(_wrong(field, key, f"prefix part {_SUBDOMAIN_RULE}"))
        if not isinstance(value, str) or len(value) > 63:
            errors.append(_wrong(field, value, "must be no more than 63 bytes"))
        elif not _is_label_value(value):
            errors.append(_wrong(field, value, _LABEL_VALUE_RULE))
    return errors


def _spec_errors(ref: ResourceKind, obj: Object) -> list[FieldError]:
    if ref is served.PODS:
        return _pod_errors("spec", obj.get("spec") or {})
    if ref in _OWN_CUSTOM_KINDS:  # what the controllers here read; of other kinds their schemas speak
        return [error for field in ("spec", "status") for error in _object_errors(field, obj.get(field, {}))]
    if ref not in _TEMPLATED:
        return []
    spec = obj.get("spec") or {}
    template = spec.get("template") or {}
    errors = _pod_errors("spec.template.spec", template.get("spec") or {})
    if ref is not served.JOBS:
        errors += _selector_errors(spec, template)
    elif (template.get("spec") or {}).get("restartPolicy", "Always") == "Always":
        why = 'Required value: valid values: "OnFailure", "Never"'
        errors.append(FieldError("spec.template.spec.restartPolicy", "FieldValueRequired", why))
    return errors


_OWN_CUSTOM_KINDS = frozenset(ref for ref in served.RESOURCES if ref.is_custom)
_TEMPLATED = (served.DEPLOYMENTS, served.REPLICA_SETS, served.STATEFUL_SETS, served.DAEMON_SETS, served.JOBS)


def _object_errors(field: str, value: Any) -> list[FieldError]:
    """All that the schemas of the custom kinds here have in common."""
    if isinstance(value, dict):
        return []
    found = "null" if value is None else "boolean" if isinstance(value, bool) else _JSON_TYPES.get(type(value), "string")
    return [FieldError(field, "FieldValueTypeInvalid", f'Invalid value: "{found}": {field} in body must be of type object: "{found}"')]


_JSON_TYPES = {int: "integer", float: "number", list: "array"}


def _selector_errors(spec: Object, template: Object) -> list[FieldError]:
    wanted = (spec.get("selector") or {}).get("matchLabels")
    if not wanted and not (spec.get("selector") or {}).get("matchExpressions"):
        return [required("spec.selector")]
    labels = (template.get("metadata") or {}).get("labels") or {}
    if any(labels.get(key) != value for key, value in (wanted or {}).items()):
        why = "`selector` does not match template `labels`"
        return [FieldError("spec.template.metadata.labels", "FieldValueInvalid", f"Invalid value: {_go_map(labels)}: {why}")]
    return []


def _go_map(labels: Object) -> str:
    inside = ", ".join(f'"{key}":"{value}"' for key, value in sorted(labels.items()))
    return f"{{{inside}}}" if labels else "null"


def _pod_errors(field: str, spec: Object) -> list[FieldError]:
    containers = spec.get("containers")
    if not containers:
        return [required(f"{field}.containers")]
    errors = []
    policy = spec.get("restartPolicy", "Always")
    if policy not in _RESTART_POLICIES:
        supported = ", ".join(f'"{known}"' for known in _RESTART_POLICIES)
        told = f'Unsupported value: "{policy}": supported values: {supported}'
        errors.append(FieldError(f"{field}.restartPolicy", "FieldValueNotSupported", told))
    seen: set[str] = set()
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            errors += _container_errors(f"{field}.{kind}[{index}]", container, seen)
    return errors


_RESTART_POLICIES = ("Always", "OnFailure", "Never")


def _container_errors(field: str, container: Object, seen: set[str]) -> list[FieldError]:
    name = container.get("name")
    errors = []
    if not name:
        errors.append(required(f"{field}.name"))
    elif not _is_label(name) or len(name) > 63:
        errors.append(_wrong(f"{field}.name", name, _LABEL_RULE))
    elif name in seen:
        errors.append(FieldError(f"{field}.name", "FieldValueDuplicate", f'Duplicate value: "{name}"'))
    seen.add(str(name))
    if not container.get("image"):
        errors.append(required(f"{field}.image"))
    return [*errors, *_resource_errors(f"{field}.resources", container.get("resources") or {})]


def _resource_errors(field: str, resources: Object) -> list[FieldError]:
    """Amounts below zero, fractions of counted things (GPUs), and counted things whose request is not their limit."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    errors = [
        error for side, amounts in (("limits", limits), ("requests", requests)) for error in _amount_errors(f"{field}.{side}", amounts)
    ]
    for name in sorted(requests if not errors else ()):
        if _is_counted(name) and name not in limits:
            errors.append(required(f"{field}.limits", "Limit must be set for non overcommitable resources"))
        elif _is_counted(name) and requests[name] != limits[name]:
            errors.append(_wrong(f"{field}.requests", requests[name], f"must be equal to {name} limit of {limits[name]}"))
        elif name in limits and _thousandths(requests[name]) > _thousandths(limits[name]):
            errors.append(_wrong(f"{field}.requests", requests[name], f"must be less than or equal to {name} limit of {limits[name]}"))
    return errors


def _amount_errors(field: str, amounts: Object) -> list[FieldError]:
    errors = []
    for name in sorted(amounts):
        thousandths = _thousandths(amounts[name])
        if thousandths < 0:
            errors.append(_wrong(f"{field}[{name}]", amounts[name], "must be greater than or equal to 0"))
        elif _is_counted(name) and thousandths % 1000:
            errors.append(_wrong(f"{field}[{name}]", amounts[name], "must be an integer"))
    return errors


def _thousandths(amount: Any) -> int:
    """What cannot be read counts as 0: over HTTP it never comes this far, and a world made in tests has to live with it."""
    return _parsed(str(amount))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> int:
    try:
        return parse_quantity(text, 3)
    except ValueError:
        return 0


def _is_counted(name: str) -> bool:
    """Extended resources: whole things of somebody's domain."""
    return "/" in name and not name.startswith("kubernetes.io/")


def _change_errors(ref: ResourceKind, old: Object, new: Object) -> list[FieldError]:
    before, after = old.get("spec") or {}, new.get("spec") or {}
    if ref is served.PODS and before != after:
        return _pod_change_errors(before, after)
    if ref in _TEMPLATED and before.get("selector") != after.get("selector"):
        return [_wrong("spec.selector", after.get("selector"), "field is immutable")]
    if ref is served.JOBS and before.get("template") != after.get("template") and not before.get("suspend"):
        return [_wrong("spec.template", "…", "field is immutable")]
    return []


# What may change in a running pod's spec, as the real server lists it.
_POD_MUTABLE = {
    "activeDeadlineSeconds",
    "terminationGracePeriodSeconds",
    "tolerations",
    "schedulingGates",
    "nodeName",
    "nodeSelector",
    "affinity",
}
_POD_RULE = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def _pod_change_errors(before: Object, after: Object) -> list[FieldError]:
    if _frozen_part(before) == _frozen_part(after):
        return []
    return [FieldError("spec", "FieldValueForbidden", f"Forbidden: {_POD_RULE}")]


def _frozen_part(spec: Object) -> Object:
    frozen = {key: value for key, value in spec.items() if key not in _POD_MUTABLE}
    for key in ("containers", "initContainers"):
        if key in frozen:
            frozen[key] = [{**container, "image": None} for container in frozen[key]]
    return frozen
