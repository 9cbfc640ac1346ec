"""The pods and pod templates that the API server refuses, and the changes of a running pod.

The faults that people make, not the whole list: most of a security context and volumes' contents
are taken as they come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from fairlead.wire.kube.quantity import parse_quantity
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.names import (
    environment_name_faults,
    label_faults,
    port_name_faults,
    qualified_name_faults,
    subdomain_faults,
)
from fairlead_sim.schema.status import (
    FieldError,
    duplicate,
    forbidden_field,
    not_there,
    required,
    unsupported,
    wrong_value,
)
from fairlead_sim.validation.field_rules import (
    between,
    each,
    fields,
    labels,
    object_of,
    objects_of,
    one_of,
    requirement,
    selector,
    spelled,
)
from fairlead_sim.validation.handler_rules import handler_errors
from fairlead_sim.validation.pod_settings import dns_errors, user_errors

NameFaults = Callable[[str], tuple[str, ...]]
_LONGEST = 2**31 - 1
_NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
RESTART_POLICIES = ("Always", "OnFailure", "Never")


def pod_errors(field: str, spec: Object) -> list[FieldError]:
    """The faults of a pod's spec."""
    if not spec.get("containers"):
        return [required(f"{field}.containers")]
    return [
        *_SPEC(field, spec),
        *dns_errors(field, spec),
        *_PLACE(field, spec),
        *_container_errors(field, spec),
        *_whole_pod_errors(f"{field}.resources", object_of(spec, "resources")),
        *_volume_errors(field, spec),
    ]


def new_pod_errors(field: str, spec: Object) -> list[FieldError]:
    """Faults that only a pod being made can have."""
    errors = (
        [forbidden_field(f"{field}.ephemeralContainers", "cannot be set on create")]
        if spec.get("ephemeralContainers")
        else []
    )
    if spec.get("schedulingGates") and spec.get("nodeName"):
        errors.append(
            forbidden_field(
                f"{field}.nodeName", "cannot be set until all schedulingGates have been cleared"
            )
        )
    return errors


# --- containers -----------------------------------------------------------------------------------


def _container_errors(field: str, spec: Object) -> list[FieldError]:
    errors, names = [], set()
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(objects_of(spec, kind)):
            here, name = f"{field}.{kind}[{index}]", container.get("name")
            errors += _CONTAINER(here, container)
            if name and str(name) in names:
                errors.append(duplicate(f"{here}.name", name))
            names.add(str(name))
            errors += handler_errors(
                here,
                container,
                spec.get("terminationGracePeriodSeconds"),
                is_init=kind == "initContainers",
            )
    return errors


def _whole_container(field: str, container: Object) -> list[FieldError]:
    image = str(container.get("image") or "")
    errors = (
        [wrong_value(f"{field}.image", image, "must not have leading or trailing whitespace")]
        if image != image.strip()
        else []
    )
    errors += _resource_errors(f"{field}.resources", object_of(container, "resources"))
    return errors + user_errors(f"{field}.securityContext", container.get("securityContext"))


def _environment(field: str, variable: Object) -> list[FieldError]:
    if variable.get("value") and variable.get("valueFrom"):
        return [
            wrong_value(f"{field}.valueFrom", "", "may not be specified when `value` is not empty")
        ]
    return []


_PORT = fields(
    {
        "containerPort": between(1, 65535),
        "hostPort": between(1, 65535),
        "protocol": one_of("SCTP", "TCP", "UDP"),
        "name": spelled(port_name_faults),
    },
    needs=("containerPort",),
)
_CONTAINER = fields(
    {
        "name": spelled(label_faults),
        "imagePullPolicy": one_of("Always", "IfNotPresent", "Never"),
        "terminationMessagePolicy": one_of("File", "FallbackToLogsOnError"),
        "restartPolicy": one_of("Always", "Never", "OnFailure"),
        "ports": each(_PORT, unique="name"),
        "env": each(
            fields({"name": spelled(environment_name_faults)}, needs=("name",), also=_environment)
        ),
        "volumeMounts": each(fields({}, needs=("name", "mountPath")), unique="mountPath"),
    },
    needs=("name", "image"),
    also=_whole_container,
)


# --- resources ------------------------------------------------------------------------------------

_STANDARD = ("cpu", "memory", "ephemeral-storage")
_OF_WHOLE_POD = ("cpu", "hugepages-", "memory")
"""What a pod as a whole may ask, in the API server's own spelling."""


def _whole_pod_errors(field: str, resources: Object) -> list[FieldError]:
    """A pod as a whole asks for no extended resources, and has no claims."""
    errors = (
        [forbidden_field(f"{field}.claims", "claims may not be set for Resources at pod-level")]
        if resources.get("claims")
        else []
    )
    for side in ("limits", "requests"):
        for name in sorted(object_of(resources, side)):
            if (
                name not in ("cpu", "memory")
                and not name.startswith("hugepages-")
                and not _whole_pod_name_faults(name)
            ):
                errors.append(unsupported(f"{field}.{side}[{name}]", name, _OF_WHOLE_POD))
    return errors + _resource_errors(field, resources, _whole_pod_name_faults)


@lru_cache(maxsize=256)
def _whole_pod_name_faults(name: str) -> tuple[str, ...]:
    faults = qualified_name_faults(name)
    return tuple(
        faults
        if "/" in name or faults or name in _STANDARD
        else ["must be a standard resource type or fully qualified"]
    )


@lru_cache(maxsize=256)
def _resource_name_faults(name: str) -> tuple[str, ...]:
    faults = qualified_name_faults(name)
    if "/" not in name:
        faults += [] if faults else ["must be a standard resource type or fully qualified"]
        faults.append("must be a standard resource for containers")
    return tuple(faults)


def _resource_errors(
    field: str, resources: Object, faults: NameFaults = _resource_name_faults
) -> list[FieldError]:
    """Faults of amounts.

    Amounts below zero, fractions of counted things (GPUs), and counted things whose request is not
    their limit.
    """
    limits, requests = object_of(resources, "limits"), object_of(resources, "requests")
    errors = [
        error
        for side, amounts in (("limits", limits), ("requests", requests))
        for error in _amount_errors(f"{field}.{side}", amounts, faults)
    ]
    for name in sorted(requests if not errors else ()):
        if _is_counted(name) and name not in limits:
            errors.append(
                required(f"{field}.limits", "Limit must be set for non overcommitable resources")
            )
        elif _is_counted(name) and requests[name] != limits[name]:
            errors.append(
                wrong_value(
                    f"{field}.requests",
                    requests[name],
                    f"must be equal to {name} limit of {limits[name]}",
                )
            )
        elif name in limits and _thousandths(requests[name]) > _thousandths(limits[name]):
            errors.append(
                wrong_value(
                    f"{field}.requests",
                    requests[name],
                    f"must be less than or equal to {name} limit of {limits[name]}",
                )
            )
    return errors


def _amount_errors(field: str, amounts: Object, faults: NameFaults) -> list[FieldError]:
    errors = []
    for name in sorted(amounts):
        here, thousandths = f"{field}[{name}]", _thousandths(amounts[name])
        if name not in _STANDARD and not name.startswith("hugepages-"):
            errors += [wrong_value(here, name, why) for why in faults(name)]
        if thousandths < 0:
            errors.append(wrong_value(here, amounts[name], "must be greater than or equal to 0"))
        elif _is_counted(name) and thousandths % 1000:
            errors.append(wrong_value(here, amounts[name], "must be an integer"))
    return errors


def _thousandths(amount: Any) -> int:
    """What cannot be read counts as 0: over HTTP it never comes this far, and a world made in tests
    has to live with it.
    """
    return _parsed(str(amount))


@lru_cache(maxsize=4096)
def _parsed(text: str) -> int:
    try:
        return parse_quantity(text, 3)
    except ValueError:
        return 0


def _is_counted(name: str) -> bool:
    """Extended resources: whole numbers of a resource with a domain."""
    return "/" in name and not name.startswith("kubernetes.io/")


# --- volumes --------------------------------------------------------------------------------------


def _volume_errors(field: str, spec: Object) -> list[FieldError]:
    volumes = objects_of(spec, "volumes")
    names = {str(volume.get("name")) for volume in volumes}
    errors = _VOLUMES(f"{field}.volumes", volumes)
    for kind in ("containers", "initContainers"):
        for index, container in enumerate(objects_of(spec, kind)):
            for use in ("volumeMounts", "volumeDevices"):
                for number, mount in enumerate(objects_of(container, use)):
                    if mount.get("name") and str(mount["name"]) not in names:
                        errors.append(
                            not_there(
                                f"{field}.{kind}[{index}].{use}[{number}].name", mount["name"]
                            )
                        )
    return errors


def _one_source(field: str, volume: Object) -> list[FieldError]:
    sources = [key for key, value in volume.items() if key != "name" and value is not None]
    return [
        forbidden_field(f"{field}.{key}", "may not specify more than 1 volume type")
        for key in sources[1:]
    ]


_VOLUMES = each(
    fields(
        {"name": spelled(label_faults), "persistentVolumeClaim": fields({}, needs=("claimName",))},
        needs=("name",),
        also=_one_source,
    ),
    unique="name",
)


# --- where it may run -----------------------------------------------------------------------------


def _toleration(field: str, toleration: Object) -> list[FieldError]:
    key, operator, value = (toleration.get(name) or "" for name in ("key", "operator", "value"))
    here = f"{field}.operator"
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        return [
            wrong_value(
                f"{field}.effect",
                toleration.get("effect") or "",
                "effect must be 'NoExecute' when `tolerationSeconds` is set",
            )
        ]
    if not key and operator != "Exists":
        return [
            wrong_value(
                here,
                operator,
                (
                    'operator must be Exists when `key` is empty, which means "match all '
                    "values and all "
                    'keys"'
                ),
            )
        ]
    if operator not in ("", "Equal", "Exists"):
        return [unsupported(here, operator, ("Equal", "Exists"))]
    return (
        [wrong_value(here, value, "value must be empty when `operator` is 'Exists'")]
        if operator == "Exists" and value
        else []
    )


_EFFECTS = one_of("NoSchedule", "PreferNoSchedule", "NoExecute")
_NODE_TERM = fields(
    {
        "matchExpressions": each(requirement(_NODE_OPERATORS)),
        "matchFields": each(requirement(_NODE_OPERATORS)),
    }
)
_POD_TERM = fields(
    {"labelSelector": selector, "topologyKey": spelled(qualified_name_faults)},
    needs=("topologyKey",),
)


def _has_terms(field: str, wish: Object) -> list[FieldError]:
    terms = wish.get("nodeSelectorTerms")
    return (
        []
        if terms
        else [required(f"{field}.nodeSelectorTerms", "must have at least one node selector term")]
    )


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_POD_AFFINITY = fields(
    {
        _REQUIRED: each(_POD_TERM),
        _PREFERRED: each(fields({"weight": between(1, 100), "podAffinityTerm": _POD_TERM})),
    }
)
_NODE_AFFINITY = fields(
    {
        _REQUIRED: fields({"nodeSelectorTerms": each(_NODE_TERM)}, also=_has_terms),
        _PREFERRED: each(fields({"weight": between(1, 100), "preference": _NODE_TERM})),
    }
)


def _skew(field: str, value: Any) -> list[FieldError]:
    return (
        []
        if not isinstance(value, int) or value > 0
        else [wrong_value(field, value, "must be greater than zero")]
    )


def _whole_spec(field: str, spec: Object) -> list[FieldError]:
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        why = "ShareProcessNamespace and HostPID cannot both be enabled"
        return [wrong_value(f"{field}.securityContext.shareProcessNamespace", True, why)]
    return []


_SPEC = fields(
    {
        "restartPolicy": one_of(*RESTART_POLICIES),
        "dnsPolicy": one_of("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
        "preemptionPolicy": one_of("PreemptLowerPriority", "Never"),
        "activeDeadlineSeconds": between(1, _LONGEST),
        "nodeSelector": labels,
        "securityContext": user_errors,
    }
)
_PLACE = fields(
    {
        "nodeName": spelled(subdomain_faults),
        "hostname": spelled(label_faults),
        "subdomain": spelled(label_faults),
        "os": lambda field, value: one_of("linux", "windows")(
            field, object_of({"os": value}, "os").get("name", "")
        ),
        "schedulingGates": lambda field, gates: _gate_errors(field, gates),
        "tolerations": each(
            fields({"effect": _EFFECTS, "key": spelled(qualified_name_faults)}, also=_toleration)
        ),
        "affinity": fields(
            {
                "nodeAffinity": _NODE_AFFINITY,
                "podAffinity": _POD_AFFINITY,
                "podAntiAffinity": _POD_AFFINITY,
            }
        ),
        "topologySpreadConstraints": each(
            fields(
                {
                    "maxSkew": _skew,
                    "whenUnsatisfiable": one_of("DoNotSchedule", "ScheduleAnyway"),
                    "labelSelector": selector,
                },
                needs=("topologyKey",),
            )
        ),
    },
    also=_whole_spec,
)


def _gate_errors(field: str, gates: Any) -> list[FieldError]:
    errors, seen = [], set()
    for index, gate in enumerate(objects_of({"gates": gates}, "gates")):
        name = str(gate.get("name") or "")
        errors += [
            wrong_value(f"{field}[{index}]", name, why) for why in qualified_name_faults(name)
        ]
        if name in seen:
            errors.append(duplicate(f"{field}[{index}]", name))
        seen.add(name)
    return errors


# --- changes of a pod -----------------------------------------------------------------------------

_CONTAINER_LISTS = ("containers", "initContainers")
_POD_RULE = (
    "pod updates may not change fields other than "
    "`spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_MUTABLE = {"activeDeadlineSeconds", "tolerations", "schedulingGates"}
_MUTABLE_WHILE_GATED = {"nodeSelector", "affinity"}


def pod_change_errors(before: Object, after: Object) -> list[FieldError]:
    """What may not change in the spec of a pod that exists: nearly everything."""
    return list(_pod_change_errors(before, after))


def _pod_change_errors(before: Object, after: Object) -> Iterator[FieldError]:
    for key in _CONTAINER_LISTS:
        if len(before.get(key) or ()) != len(after.get(key) or ()):
            yield forbidden_field(f"spec.{key}", "pod updates may not add or remove containers")
            return
    gates = [gate.get("name") for gate in before.get("schedulingGates") or ()]
    for index, gate in enumerate(after.get("schedulingGates") or ()):
        if gate.get("name") not in gates:
            why = f"only deletion is allowed, but found new scheduling gate '{gate.get('name')}'"
            yield forbidden_field(f"spec.schedulingGates[{index}].name", why)
            return
    yield from _deadline_change(
        before.get("activeDeadlineSeconds"), after.get("activeDeadlineSeconds")
    )
    kept = after.get("tolerations") or ()
    if any(toleration not in kept for toleration in before.get("tolerations") or ()):
        yield forbidden_field(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        )
        return
    free = _MUTABLE | (_MUTABLE_WHILE_GATED if gates else set())
    if _frozen_part(before, free) != _frozen_part(after, free):
        yield forbidden_field("spec", _POD_RULE)


def _deadline_change(before: int | None, after: int | None) -> Iterator[FieldError]:
    """A deadline may only come nearer."""
    field = "spec.activeDeadlineSeconds"
    if before is not None and after is None:
        yield wrong_value(field, None, "must not update from a positive integer to nil value")
    elif before is not None and after is not None and after > before:
        yield wrong_value(field, after, "must be less than or equal to previous value")


def _frozen_part(spec: Object, free: set[str]) -> Object:
    part = {key: value for key, value in spec.items() if key not in free}
    for key in _CONTAINER_LISTS:
        if key in part:
            part[key] = [{**container, "image": None} for container in part[key]]
    return part
