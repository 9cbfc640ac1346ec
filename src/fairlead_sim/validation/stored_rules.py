"""What does the API server fill in and refuse about the kinds that are only stored (`stored_kinds`)?

Tables: a path is the fields down to the one in question, `[]` stands for every item of a list. What the real server checks beyond them
(host names, addresses, expressions) is not checked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fairlead_sim.objects.stored_kinds import STORED_KINDS
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.status import FieldError, required, unsupported, wrong_value

_STORED = frozenset(STORED_KINDS)
_ADMISSION = "admissionregistration.k8s.io"
_CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}
_MATCH: tuple[tuple[str, Any], ...] = (
    ("spec.failurePolicy", "Fail"),
    ("spec.matchConstraints.matchPolicy", "Equivalent"),
    ("spec.matchConstraints.namespaceSelector", {}),
    ("spec.matchConstraints.objectSelector", {}),
    ("spec.matchConstraints.resourceRules[].scope", "*"),
)
_WEBHOOKS: tuple[tuple[str, Any], ...] = (
    ("webhooks[].failurePolicy", "Fail"),
    ("webhooks[].matchPolicy", "Equivalent"),
    ("webhooks[].namespaceSelector", {}),
    ("webhooks[].objectSelector", {}),
    ("webhooks[].rules[].scope", "*"),
    ("webhooks[].timeoutSeconds", 10),
)

_DEFAULTS: Mapping[str, tuple[tuple[str, Any], ...]] = {
    "horizontalpodautoscalers.autoscaling": (("spec.minReplicas", 1), ("spec.metrics", [_CPU])),
    "ingressclasses.networking.k8s.io": (("spec.parameters.scope", "Cluster"),),
    "endpointslices.discovery.k8s.io": (("endpoints[].conditions", {}), ("ports[].name", ""), ("ports[].protocol", "TCP")),
    "csidrivers.storage.k8s.io": (
        ("spec.attachRequired", True),
        ("spec.fsGroupPolicy", "ReadWriteOnceWithFSType"),
        ("spec.podInfoOnMount", False),
        ("spec.requiresRepublish", False),
        ("spec.seLinuxMount", False),
        ("spec.storageCapacity", False),
        ("spec.volumeLifecycleModes", ["Persistent"]),
    ),
    "replicationcontrollers": (("spec.replicas", 1),),
    f"validatingwebhookconfigurations.{_ADMISSION}": _WEBHOOKS,
    f"mutatingwebhookconfigurations.{_ADMISSION}": (*_WEBHOOKS, ("webhooks[].reinvocationPolicy", "Never")),
    f"validatingadmissionpolicies.{_ADMISSION}": _MATCH,
    f"mutatingadmissionpolicies.{_ADMISSION}": _MATCH,
}

_FIRST_STATUS: Mapping[str, Object] = {
    "horizontalpodautoscalers.autoscaling": {"currentMetrics": None, "desiredReplicas": 0},
    "ingresses.networking.k8s.io": {"loadBalancer": {}},
    "replicationcontrollers": {"replicas": 0},
    "volumeattachments.storage.k8s.io": {"attached": False},
}

_ONE_ITEM = "validations or auditAnnotations must contain at least one item"
_REQUIRED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "podtemplates": (("template.spec.containers", ""),),
    "replicationcontrollers": (("spec.selector", ""), ("spec.template", "")),
    "horizontalpodautoscalers.autoscaling": (
        ("spec.maxReplicas", "must be set and greater than 0"),
        ("spec.scaleTargetRef.kind", ""),
        ("spec.scaleTargetRef.name", ""),
    ),
    "ingresses.networking.k8s.io": (("spec.rules[].http.paths[].pathType", "pathType must be specified"),),
    "ingressclasses.networking.k8s.io": (("spec.controller", ""),),
    "endpointslices.discovery.k8s.io": (("addressType", ""),),
    "runtimeclasses.node.k8s.io": (("handler", ""),),
    "volumeattachments.storage.k8s.io": (
        ("spec.attacher", ""),
        ("spec.source", "must specify exactly one of inlineVolumeSpec and persistentVolumeName"),
    ),
    "volumeattributesclasses.storage.k8s.io": (("driverName", ""), ("parameters", "must contain at least one key/value pair")),
    f"validatingadmissionpolicies.{_ADMISSION}": (("spec.matchConstraints", ""),),
    f"mutatingadmissionpolicies.{_ADMISSION}": (
        ("spec.matchConstraints", ""),
        ("spec.mutations", "mutations must contain at least one item"),
        ("spec.reinvocationPolicy", ""),
    ),
    f"validatingadmissionpolicybindings.{_ADMISSION}": (
        ("spec.policyName", ""),
        ("spec.validationActions", "at least one validation action is required"),
    ),
    f"mutatingadmissionpolicybindings.{_ADMISSION}": (("spec.policyName", ""),),
    **{
        f"{kind}webhookconfigurations.{_ADMISSION}": (
            ("webhooks[].sideEffects", "must specify one of None, NoneOnDryRun"),
            ("webhooks[].clientConfig", "exactly one of url or service is required"),
            ("webhooks[].admissionReviewVersions", "must specify one of v1, v1beta1"),
        )
        for kind in ("validating", "mutating")
    },
}

_KNOWN_VALUES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "endpointslices.discovery.k8s.io": ("addressType", ("FQDN", "IPv4", "IPv6")),
    "networkpolicies.networking.k8s.io": ("spec.policyTypes[]", ("Ingress", "Egress")),
    "ingresses.networking.k8s.io": ("spec.rules[].http.paths[].pathType", ("Exact", "ImplementationSpecific", "Prefix")),
}


def stored_defaults(ref: ResourceKind, obj: Object) -> Object:
    """The object with what its kind fills in; the same object when nothing was missing."""
    if ref not in _STORED:
        return obj
    for path, value in _DEFAULTS.get(ref.group_resource, ()):
        obj = _filled(obj, path.split("."), value)
    more = _MORE_DEFAULTS.get(ref.group_resource)
    return more(obj) if more else obj


def first_status(ref: ResourceKind) -> Object:
    return _FIRST_STATUS.get(ref.group_resource, {})


def stored_errors(ref: ResourceKind, obj: Object) -> list[FieldError]:
    """The faults of an object of a stored kind, in the words of the real server."""
    if ref not in _STORED:
        return []
    kind = ref.group_resource
    errors = [
        required(place, why)
        for path, why in _REQUIRED.get(kind, ())
        for place, value in _values(obj, path.split("."))
        if _is_missing(value)
    ]
    path, known = _KNOWN_VALUES.get(kind, ("", ()))
    if path:
        errors += [unsupported(place, value, known) for place, value in _values(obj, path.split(".")) if value and value not in known]
    check = _MORE_CHECKS.get(kind)
    return [*errors, *check(obj)] if check else errors


def _is_missing(value: Any) -> bool:
    """Empty is missing, but for objects that say nothing and mean it."""
    return value is None or (value in ("", [], 0) and value is not False)


# --- paths -------------------------------------------------------------------------------------------------------------------------


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
    new = [_filled(item, rest, value) for item in old] if step != key and isinstance(old, list) else _filled(old, rest, value)
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


# --- what no table says ------------------------------------------------------------------------------------------------------------


def _network_policy(obj: Object) -> Object:
    spec = obj.get("spec") or {}
    if spec.get("policyTypes"):
        return obj
    return {**obj, "spec": {**spec, "policyTypes": ["Ingress", "Egress"] if "egress" in spec else ["Ingress"]}}


def _limit_range(obj: Object) -> Object:
    spec = obj.get("spec") or {}
    return {**obj, "spec": {**spec, "limits": [_limit(limit) for limit in spec["limits"]]}} if spec.get("limits") else obj


def _limit(limit: Object) -> Object:
    """Of containers, the most is the default limit, and that or the least the default request."""
    if limit.get("type") != "Container":
        return limit
    default = {**(limit.get("max") or {}), **(limit.get("default") or {})}
    request = {**default, **(limit.get("min") or {}), **(limit.get("defaultRequest") or {})}
    return {**limit, **({"default": default} if default else {}), **({"defaultRequest": request} if request else {})}


def _replication_controller(obj: Object) -> Object:
    """Labels and selector are those of the template, where nothing else is said."""
    spec = obj.get("spec") or {}
    labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels")
    if not labels:
        return obj
    metadata = obj["metadata"]
    return {**obj, "metadata": {**metadata, "labels": metadata.get("labels") or labels}, "spec": {"selector": labels, **spec}}


def _autoscaler_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    highest, lowest, target = spec.get("maxReplicas") or 0, spec.get("minReplicas", 1), spec.get("scaleTargetRef") or {}
    errors = [wrong_value("spec.minReplicas", lowest, "must be greater than or equal to 1")] if lowest < 1 else []
    if highest < lowest:
        errors.append(wrong_value("spec.maxReplicas", highest, "must be greater than or equal to `minReplicas`"))
    if target.get("apiVersion", "") in ("", "v1") and target.get("kind") != "ReplicationController":
        errors.append(wrong_value("spec.scaleTargetRef.apiVersion", target.get("apiVersion", ""), "apiVersion must specify API group"))
    return errors


def _ingress_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    if not spec.get("rules") and not spec.get("defaultBackend"):
        return [wrong_value("spec", None, "either `defaultBackend` or `rules` must be specified")]
    errors = []
    for place, path in _values(obj, ["spec", "rules[]", "http", "paths[]"]):
        if path.get("pathType") in ("Exact", "Prefix") and not str(path.get("path") or "").startswith("/"):
            errors.append(wrong_value(f"{place}.path", path.get("path") or "", "must be an absolute path"))
        if not path.get("backend"):
            errors.append(wrong_value(f"{place}.backend", "", "resource or service backend is required"))
    return errors


def _policy_errors(obj: Object) -> list[FieldError]:
    spec = obj.get("spec") or {}
    if spec.get("validations") or spec.get("auditAnnotations"):
        return []
    return [required(f"spec.{field}", _ONE_ITEM) for field in ("validations", "auditAnnotations")]


def _webhook_errors(obj: Object) -> list[FieldError]:
    rule = "should be a domain with at least three segments separated by dots"
    names = _values(obj, ["webhooks[]", "name"])
    return [wrong_value(place, name or "", rule) for place, name in names if str(name or "").count(".") < 2]


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
