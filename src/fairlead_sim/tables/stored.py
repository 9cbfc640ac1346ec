"""What does `kubectl get` show of the kinds that the simulated cluster stores and does nothing with?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead_sim.schema.cells import (
    NAME,
    NONE,
    Layout,
    Object,
    age,
    columns,
    containers_and_images,
    labels_cell,
    number,
    part,
    selector_cell,
    text,
)

_UNSET = "<unset>"
_UNKNOWN = "<unknown>"


def _name(obj: Object) -> str:
    return str(obj["metadata"]["name"])


def _most(shown: Sequence[str], limit: int = 3) -> str:
    """The first few, and how many more there are."""
    if not shown:
        return _UNSET
    more = f" + {len(shown) - limit} more..." if len(shown) > limit else ""
    return ",".join(shown[:limit]) + more


# --- autoscaling -------------------------------------------------------------------------------------------------------------------


def _autoscaler(obj: Object, now: float) -> list[Any]:
    target = part(obj, "spec", "scaleTargetRef") or {}
    return [
        _name(obj),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        _metrics(obj),
        text(obj, "spec", "minReplicas", default=_UNSET),
        number(obj, "spec", "maxReplicas"),
        number(obj, "status", "currentReplicas"),
        age(obj, now),
    ]


def _metrics(obj: Object) -> str:
    current = part(obj, "status", "currentMetrics") or ()
    shown = [
        _metric(metric, current[index] if index < len(current) else {}) for index, metric in enumerate(part(obj, "spec", "metrics") or ())
    ]
    return (", ".join(shown[:2]) + (f" + {len(shown) - 2} more..." if len(shown) > 2 else "")) or NONE


def _metric(metric: Object, reached: Object) -> str:
    kind = str(metric.get("type", ""))
    key = kind[:1].lower() + kind[1:]
    source, current = metric.get(key) or {}, part(reached, key, "current") or {}
    target = source.get("target") or {}
    if kind in ("Resource", "ContainerResource"):
        if target.get("averageValue"):
            return f"{source.get('name')}: {current.get('averageValue', _UNKNOWN)}/{target['averageValue']}"
        wanted, found = target.get("averageUtilization"), current.get("averageUtilization")
        return f"{source.get('name')}: {_UNKNOWN if found is None else f'{found}%'}/{'<auto>' if wanted is None else f'{wanted}%'}"
    if target.get("averageValue"):
        average = "" if kind == "Pods" else " (avg)"
        return f"{current.get('averageValue', _UNKNOWN)}/{target['averageValue']}{average}"
    return f"{current.get('value', _UNKNOWN)}/{target.get('value')}" if key in metric else "<unknown type>"


# --- networking --------------------------------------------------------------------------------------------------------------------


def _ingress(obj: Object, now: float) -> list[Any]:
    rules = part(obj, "spec", "rules") or ()
    hosts = [str(rule["host"]) for rule in rules if rule.get("host")]
    addresses = sorted({entry.get("ip") or entry.get("hostname", "") for entry in part(obj, "status", "loadBalancer", "ingress") or ()})
    ports = "80, 443" if part(obj, "spec", "tls") else "80"
    return [
        _name(obj),
        text(obj, "spec", "ingressClassName", default=NONE),
        (_most(hosts) if hosts else "*"),
        ",".join(addresses),
        ports,
        age(obj, now),
    ]


def _ingress_class(obj: Object, now: float) -> list[Any]:
    is_default = part(obj, "metadata", "annotations", "ingressclass.kubernetes.io/is-default-class") == "true"
    parameters, shown = part(obj, "spec", "parameters"), NONE
    if parameters:
        group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
        shown = f"{parameters.get('kind', '')}{group}/{parameters.get('name', '')}"
    return [_name(obj) + (" (default)" if is_default else ""), text(obj, "spec", "controller"), shown, age(obj, now)]


def _network_policy(obj: Object, now: float) -> list[Any]:
    return [_name(obj), selector_cell(part(obj, "spec", "podSelector")), age(obj, now)]


def _endpoint_slice(obj: Object, now: float) -> list[Any]:
    ports = [str(port.get("port") or port.get("name") or "*") for port in obj.get("ports") or ()]
    addresses = [str(address) for endpoint in obj.get("endpoints") or () for address in endpoint.get("addresses") or ()]
    return [_name(obj), text(obj, "addressType"), _most(ports), _most(addresses), age(obj, now)]


# --- storage and nodes -------------------------------------------------------------------------------------------------------------


def _csi_driver(obj: Object, now: float) -> list[Any]:
    spec = obj.get("spec") or {}
    requests = spec.get("tokenRequests")
    audiences = _UNSET if requests is None else ",".join(str(request.get("audience", "")) for request in requests)
    modes = ",".join(spec.get("volumeLifecycleModes") or ()) or NONE
    attach, others = spec.get("attachRequired", True), [bool(spec.get(key)) for key in ("podInfoOnMount", "storageCapacity")]
    return [_name(obj), attach, *others, audiences, bool(spec.get("requiresRepublish")), modes, age(obj, now)]


def _csi_node(obj: Object, now: float) -> list[Any]:
    return [_name(obj), len(part(obj, "spec", "drivers") or ()), age(obj, now)]


def _volume_attachment(obj: Object, now: float) -> list[Any]:
    volume = text(obj, "spec", "source", "persistentVolumeName")
    attached = bool(part(obj, "status", "attached"))
    return [_name(obj), text(obj, "spec", "attacher"), volume, text(obj, "spec", "nodeName"), attached, age(obj, now)]


def _volume_attributes_class(obj: Object, now: float) -> list[Any]:
    return [_name(obj), text(obj, "driverName"), age(obj, now)]


def _runtime_class(obj: Object, now: float) -> list[Any]:
    return [_name(obj), text(obj, "handler"), age(obj, now)]


# --- admission ---------------------------------------------------------------------------------------------------------------------


def _webhooks(obj: Object, now: float) -> list[Any]:
    return [_name(obj), len(obj.get("webhooks") or ()), age(obj, now)]


def _policy(obj: Object, now: float) -> list[Any]:
    spec, kind = obj.get("spec") or {}, part(obj, "spec", "paramKind")
    rules = len(spec.get("validations") or spec.get("mutations") or ())
    return [_name(obj), rules, f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else _UNSET, age(obj, now)]


def _policy_binding(obj: Object, now: float) -> list[Any]:
    parameters, shown = part(obj, "spec", "paramRef") or {}, _UNSET
    if parameters.get("name"):
        shown = f"{parameters.get('namespace') or '*'}/{parameters['name']}"
    return [_name(obj), text(obj, "spec", "policyName"), shown, age(obj, now)]


# --- core --------------------------------------------------------------------------------------------------------------------------


def _resource_quota(obj: Object, now: float) -> list[Any]:
    hard, used = part(obj, "status", "hard") or {}, part(obj, "status", "used") or {}
    limits = [name for name in sorted(hard) if name.startswith("limits.")]
    requests = [name for name in sorted(hard) if name not in limits]
    shown = [", ".join(f"{name}: {used.get(name, 0)}/{hard[name]}" for name in names) for names in (requests, limits)]
    return [_name(obj), *shown, age(obj, now)]


def _created_at(obj: Object, now: float) -> list[Any]:
    return [_name(obj), part(obj, "metadata", "creationTimestamp")]


def _pod_template(obj: Object, now: float) -> list[Any]:
    template = obj.get("template") or {}
    return [_name(obj), *containers_and_images(template.get("spec")), labels_cell(part(template, "metadata", "labels"))]


def _replication_controller(obj: Object, now: float) -> list[Any]:
    counts = [number(obj, *path) for path in (("spec", "replicas"), ("status", "replicas"), ("status", "readyReplicas"))]
    containers = containers_and_images(part(obj, "spec", "template", "spec"))
    return [_name(obj), *counts, age(obj, now), *containers, labels_cell(part(obj, "spec", "selector"))]


_ADMISSION = "admissionregistration.k8s.io"
_WEBHOOKS = Layout(columns(NAME, "Webhooks:integer", "Age"), _webhooks)
_BINDINGS = Layout(columns(NAME, "PolicyName", "ParamRef", "Age"), _policy_binding)

LAYOUTS: Mapping[str, Layout] = {
    "horizontalpodautoscalers.autoscaling": Layout(
        columns(NAME, "Reference", "Targets", "MinPods", "MaxPods", "Replicas", "Age"), _autoscaler
    ),
    "ingresses.networking.k8s.io": Layout(columns(NAME, "Class", "Hosts", "Address", "Ports", "Age"), _ingress),
    "ingressclasses.networking.k8s.io": Layout(columns(NAME, "Controller", "Parameters", "Age"), _ingress_class),
    "networkpolicies.networking.k8s.io": Layout(columns(NAME, "Pod-Selector", "Age"), _network_policy),
    "endpointslices.discovery.k8s.io": Layout(columns(NAME, "AddressType", "Ports", "Endpoints", "Age"), _endpoint_slice),
    "csidrivers.storage.k8s.io": Layout(
        columns(
            NAME,
            *("AttachRequired:boolean", "PodInfoOnMount:boolean", "StorageCapacity:boolean", "TokenRequests"),
            *("RequiresRepublish:boolean", "Modes", "Age"),
        ),
        _csi_driver,
    ),
    "csinodes.storage.k8s.io": Layout(columns(NAME, "Drivers:integer", "Age"), _csi_node),
    "volumeattachments.storage.k8s.io": Layout(columns(NAME, "Attacher:name", "PV", "Node", "Attached:boolean", "Age"), _volume_attachment),
    "volumeattributesclasses.storage.k8s.io": Layout(columns(NAME, "DriverName", "Age"), _volume_attributes_class),
    "runtimeclasses.node.k8s.io": Layout(columns(NAME, "Handler", "Age"), _runtime_class),
    f"validatingwebhookconfigurations.{_ADMISSION}": _WEBHOOKS,
    f"mutatingwebhookconfigurations.{_ADMISSION}": _WEBHOOKS,
    f"validatingadmissionpolicies.{_ADMISSION}": Layout(columns(NAME, "Validations:integer", "ParamKind", "Age"), _policy),
    f"mutatingadmissionpolicies.{_ADMISSION}": Layout(columns(NAME, "Mutations:integer", "ParamKind", "Age"), _policy),
    f"validatingadmissionpolicybindings.{_ADMISSION}": _BINDINGS,
    f"mutatingadmissionpolicybindings.{_ADMISSION}": _BINDINGS,
    "resourcequotas": Layout(columns(NAME, "Request", "Limit", "Age"), _resource_quota),
    "limitranges": Layout(columns(NAME, "Created At:date"), _created_at),
    "podtemplates": Layout(columns(NAME, "Containers", "Images", "Pod Labels"), _pod_template),
    "replicationcontrollers": Layout(
        columns(NAME, "Desired:integer", "Current:integer", "Ready:integer", "Age", wide=("Containers", "Images", "Selector")),
        _replication_controller,
    ),
}
