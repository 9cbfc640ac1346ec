"""Which ConfigMaps, Secrets, claims, budgets, classes, nodes and events are refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fairlead.wire.kube.quantity import parse_quantity
from fairlead_sim.objects import resources as served
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.names import config_key_faults, qualified_name_faults
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import (
    FieldError,
    forbidden_field,
    required,
    shown,
    too_long,
    unsupported,
    wrong_value,
)
from fairlead_sim.validation.field_rules import (
    bounded_share,
    each,
    fields,
    frozen,
    one_of,
    selector,
    spelled,
)

_MOST_DATA_BYTES = 1024 * 1024
_HIGHEST_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = ("system-cluster-critical", "system-node-critical")


def core_errors(ref: ResourceKind, obj: Object) -> list[FieldError]:
    """The faults of an object of one of these kinds; none for other kinds."""
    rule = _RULES.get(ref)
    return rule(obj) if rule else []


def core_change_errors(ref: ResourceKind, old: Object, new: Object) -> list[FieldError]:
    """What of such an object may not change once it is there."""
    rule = _CHANGE_RULES.get(ref)
    return rule(old, new) if rule else []


# --- ConfigMaps and Secrets -----------------------------------------------------------------------


def _config_map(obj: Object) -> list[FieldError]:
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    errors = [
        wrong_value(f"data[{key}]", key, why) for key in data for why in config_key_faults(key)
    ]
    errors += [
        wrong_value(f"data[{key}]", key, "duplicate of key present in binaryData")
        for key in data
        if key in binary
    ]
    errors += [
        wrong_value(f"binaryData[{key}]", key, why)
        for key in binary
        for why in config_key_faults(key)
    ]
    return errors + _size_errors("[]", [*data.values(), *binary.values()])


def _size_errors(field: str, values: list[str]) -> list[FieldError]:
    is_over = (
        sum(len(value) for value in values) * 4 > _MOST_DATA_BYTES
        and sum(len(value.encode()) for value in values) > _MOST_DATA_BYTES
    )
    return [too_long(field, _MOST_DATA_BYTES)] if is_over else []


def _frozen_data(old: Object, new: Object) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    changed = [key for key in ("data", "binaryData") if old.get(key) != new.get(key)]
    if not new.get("immutable"):
        changed.insert(0, "immutable")
    return [forbidden_field(key, "field is immutable when `immutable` is set") for key in changed]


_SECRET_KEYS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_ACCOUNT_NAME = "kubernetes.io/service-account.name"


def _secret(obj: Object) -> list[FieldError]:
    data = obj.get("data") or {}
    errors = [
        wrong_value(f"data[{key}]", key, why) for key in data for why in config_key_faults(key)
    ]
    errors += [
        required(f"data[{key}]")
        for key in _SECRET_KEYS.get(obj.get("type", ""), ())
        if key not in data
    ]
    annotations = obj["metadata"].get("annotations") or {}
    if obj.get("type") == "kubernetes.io/service-account-token" and not annotations.get(
        _ACCOUNT_NAME
    ):
        errors.append(required(f"metadata.annotations[{_ACCOUNT_NAME}]"))
    return errors + _size_errors("data", list(data.values()))


def _secret_change(old: Object, new: Object) -> list[FieldError]:
    errors = [frozen("type", new.get("type"))] if old.get("type") != new.get("type") else []
    return errors + _frozen_data(old, new)


# --- claims, budgets, classes ---------------------------------------------------------------------

_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _claim(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    modes = spec.get("accessModes") or ()
    errors = [] if modes else [required("spec.accessModes", "at least 1 access mode is required")]
    errors += [
        unsupported("spec.accessModes", mode, _ACCESS_MODES)
        for mode in modes
        if mode not in _ACCESS_MODES
    ]
    size = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if size is None:
        errors.append(required("spec.resources[storage]"))
    elif parse_quantity(str(size)) <= 0:
        errors.append(wrong_value("spec.resources[storage]", size, "must be greater than zero"))
    return errors


def _claim_change(old: Object, new: Object) -> list[FieldError]:
    """Of a claim that is bound the size may grow; a volume is given once."""
    is_bound = (new.get("status") or {}).get("phase") == "Bound"
    has_volume = bool((old.get("spec") or {}).get("volumeName"))
    free = {
        **({"resources": None} if is_bound else {}),
        **({} if has_volume else {"volumeName": None}),
    }
    before, after = ({**(obj.get("spec") or {}), **free} for obj in (old, new))
    why = (
        "spec is immutable after creation except resources.requests and volumeAttributesClassName "
        "for bound claims"
    )
    return [forbidden_field("spec", why)] if before != after else []


_BUDGET = fields(
    {
        "minAvailable": bounded_share,
        "maxUnavailable": bounded_share,
        "unhealthyPodEvictionPolicy": one_of("AlwaysAllow", "IfHealthyBudget"),
        "selector": selector,
    }
)


def _budget(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        return [
            FieldError(
                "spec",
                "FieldValueInvalid",
                "Invalid value: minAvailable and maxUnavailable cannot be both set",
            )
        ]
    return _BUDGET("spec", spec)


def _priority_class(obj: Object) -> list[FieldError]:
    name, value = obj["metadata"]["name"], obj.get("value") or 0
    if name in _SYSTEM_CLASSES:
        return []
    if name.startswith("system-"):
        why = "priority class names with 'system-' prefix are reserved for system use only."
        return [
            forbidden_field(
                "metadata.name", f"{why} error: {name} is not a known system priority class"
            )
        ]
    if value > _HIGHEST_PRIORITY:
        return [
            forbidden_field(
                "value",
                f"maximum allowed value of a user defined priority is {_HIGHEST_PRIORITY}",
            )
        ]
    return one_of("PreemptLowerPriority", "Never")(
        "preemptionPolicy", obj.get("preemptionPolicy", "Never")
    )


# --- nodes and events -----------------------------------------------------------------------------

_TAINT = fields(
    {
        "key": spelled(qualified_name_faults),
        "effect": one_of("NoSchedule", "PreferNoSchedule", "NoExecute"),
    },
    needs=("key",),
)


def _node(obj: Object) -> list[FieldError]:
    taints = (obj.get("spec") or {}).get("taints") or ()
    errors = each(_TAINT)("metadata.taints", taints)
    for index, taint in enumerate(taints):
        if (taint.get("key"), taint.get("effect")) in [
            (held.get("key"), held.get("effect")) for held in taints[:index]
        ]:
            detail = {
                "Key": taint.get("key"),
                "Value": taint.get("value", ""),
                "Effect": taint.get("effect"),
                "TimeAdded": None,
            }
            why = f"Duplicate value: {shown(detail)}: taints must be unique by key and effect pair"
            errors.append(FieldError(f"metadata.taints[{index}]", "FieldValueDuplicate", why))
    return errors


def _event(obj: Object) -> list[FieldError]:
    namespace = (obj.get("involvedObject") or {}).get("namespace") or ""
    if namespace == obj["metadata"].get("namespace") or (
        not namespace and obj["metadata"].get("namespace") == "default"
    ):
        return []
    return [wrong_value("involvedObject.namespace", namespace, "does not match event.namespace")]


_RULES: Mapping[ResourceKind, Callable[[Object], list[FieldError]]] = {
    served.CONFIG_MAPS: _config_map,
    served.SECRETS: _secret,
    served.PERSISTENT_VOLUME_CLAIMS: _claim,
    served.POD_DISRUPTION_BUDGETS: _budget,
    served.PRIORITY_CLASSES: _priority_class,
    served.NODES: _node,
    served.EVENTS: _event,
}
_CHANGE_RULES: Mapping[ResourceKind, Callable[[Object, Object], list[FieldError]]] = {
    served.CONFIG_MAPS: _frozen_data,
    served.SECRETS: _secret_change,
    served.PERSISTENT_VOLUME_CLAIMS: _claim_change,
}
