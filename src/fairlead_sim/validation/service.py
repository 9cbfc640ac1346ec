"""Which Services, and changes of them, are refused; the faults in the API server's order."""

from __future__ import annotations

from typing import Any

from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.names import label_faults, qualified_name_faults, subdomain_faults
from fairlead_sim.schema.status import (
    FieldError,
    duplicate,
    forbidden_field,
    required,
    unsupported,
    wrong_value,
)
from fairlead_sim.validation.field_rules import (
    between,
    each,
    fields,
    labels,
    one_of,
    port_or_name,
    spelled,
)
from fairlead_sim.validation.pod_settings import is_address

# --- what a Service is ----------------------------------------------------------------------------


def service_type(spec: Object) -> str:
    """The type, `ClusterIP` also if it is not filled in.

    A world may be given Services of other clusters as they are.
    """
    return str(spec.get("type") or "ClusterIP")


def has_address(spec: Object) -> bool:
    """Whether it has an address within the cluster; that of a headless Service is `None`."""
    return service_type(spec) != "ExternalName"


def is_headless(spec: Object) -> bool:
    return (spec.get("clusterIPs") or [spec.get("clusterIP")]) == ["None"]


def is_reachable_from_outside(spec: Object) -> bool:
    return service_type(spec) in ("NodePort", "LoadBalancer") or bool(
        service_type(spec) == "ClusterIP" and spec.get("externalIPs")
    )


def chooses_node_ports(spec: Object) -> bool:
    """Whether a port without one gets a port on the nodes."""
    is_wanted = spec.get("allocateLoadBalancerNodePorts") is not False
    return service_type(spec) == "NodePort" or (service_type(spec) == "LoadBalancer" and is_wanted)


def needs_health_port(spec: Object) -> bool:
    return bool(
        service_type(spec) == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"
    )


# --- changes --------------------------------------------------------------------------------------


def service_errors(new: Object, old: Object | None) -> list[FieldError]:
    """All faults of a Service besides those of its metadata;
    `old` is what it was before an update.
    """
    spec = new.get("spec") or {}
    return (
        _change_errors((old.get("spec") or {}), spec) + _errors(spec)
        if old is not None
        else _errors(spec)
    )


def _change_errors(before: Object, after: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    if (
        has_address(before)
        and has_address(after)
        and not (is_headless(before) and is_headless(after))
    ):
        errors += _frozen_list(before, after, "clusterIPs")
        if is_headless(before) == is_headless(after):
            errors += _frozen_list(before, after, "ipFamilies")
    is_balanced = service_type(before) == service_type(after) == "LoadBalancer"
    if is_balanced and before.get("loadBalancerClass") != after.get("loadBalancerClass"):
        errors.append(
            wrong_value(
                "spec.loadBalancerClass",
                after.get("loadBalancerClass"),
                "may not change once set",
            )
        )
    errors += _class_errors(after)
    if (
        needs_health_port(before)
        and needs_health_port(after)
        and before.get("healthCheckNodePort") != after.get("healthCheckNodePort")
    ):
        errors.append(forbidden_field("spec.healthCheckNodePort", "field is immutable"))
    return errors


def _frozen_list(before: Object, after: Object, key: str) -> list[FieldError]:
    """The first of its entries stays; a second one may come and go."""
    was, now = before.get(key) or [], after.get(key) or []
    if was and not now:
        one = "clusterIP" if key == "clusterIPs" else "ipFamily"
        return [wrong_value(f"spec.{key}[0]", None, f"primary {one} can not be unset")]
    changed = [
        index for index, pair in enumerate(zip(was, now, strict=False)) if pair[0] != pair[1]
    ]
    return [
        wrong_value(f"spec.{key}[{index}]", now, "may not change once set") for index in changed
    ]


# --- the whole spec -------------------------------------------------------------------------------

_NUMBER = between(1, 65535)
_OTHERS = "may only be used when `type` is 'LoadBalancer'"

_PORT = fields(
    {
        "port": _NUMBER,
        "protocol": one_of("SCTP", "TCP", "UDP"),
        "targetPort": port_or_name,
        "name": spelled(label_faults),
    }
)
_PORTS = each(_PORT, unique="name")
_SELECTOR = fields({"selector": labels})
_AFFINITY = one_of("ClientIP", "None")
_TYPE = one_of("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_POLICY = one_of("Cluster", "Local")
_DISTRIBUTION = one_of("PreferClose", "PreferSameZone", "PreferSameNode")


def _errors(spec: Object) -> list[FieldError]:
    return [
        *_type_errors(spec),
        *_port_errors(spec),
        *_SELECTOR("spec", spec),
        *_session_errors(spec),
        *(address_errors(spec) if has_address(spec) else ()),
        *_TYPE("spec.type", service_type(spec)),
        *_node_port_errors(spec),
        *_twice_errors(spec),
        *_balancer_errors(spec),
        *_traffic_errors(spec),
    ]


def _type_errors(spec: Object) -> list[FieldError]:
    kind = service_type(spec)
    errors = (
        []
        if spec.get("ports") or is_headless(spec) or kind == "ExternalName"
        else [required("spec.ports")]
    )
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        errors.append(
            wrong_value(
                "spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services"
            )
        )
    if kind != "ExternalName":
        return errors
    held = [key for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy") if spec.get(key)]
    errors += [
        forbidden_field(f"spec.{key}", "may not be set for ExternalName services") for key in held
    ]
    name = str(spec.get("externalName") or "").removesuffix(".")
    if not name:
        return [*errors, required("spec.externalName")]
    return errors + [wrong_value("spec.externalName", name, why) for why in subdomain_faults(name)]


def _port_errors(spec: Object) -> list[FieldError]:
    ports, errors = spec.get("ports") or (), []
    if len(ports) > 1:
        errors += [
            required(f"spec.ports[{index}].name")
            for index, port in enumerate(ports)
            if not port.get("name")
        ]
    return errors + _PORTS("spec.ports", ports)


def _session_errors(spec: Object) -> list[FieldError]:
    errors = _AFFINITY("spec.sessionAffinity", spec.get("sessionAffinity", "None"))
    seconds = ((spec.get("sessionAffinityConfig") or {}).get("clientIP") or {}).get(
        "timeoutSeconds"
    )
    if (
        spec.get("sessionAffinity") == "ClientIP"
        and seconds is not None
        and not 1 <= seconds <= 86400
    ):
        why = "must be greater than 0 and less than 86400"
        errors.append(
            wrong_value("spec.sessionAffinityConfig.clientIP.timeoutSeconds", seconds, why)
        )
    return errors


def _node_port_errors(spec: Object) -> list[FieldError]:
    held = [index for index, port in enumerate(spec.get("ports") or ()) if port.get("nodePort")]
    why = "may not be used when `type` is 'ClusterIP'"
    return (
        [forbidden_field(f"spec.ports[{index}].nodePort", why) for index in held]
        if service_type(spec) == "ClusterIP"
        else []
    )


def _twice_errors(spec: Object) -> list[FieldError]:
    """One protocol has a port, on the Service or on the nodes, once."""
    ports = spec.get("ports") or ()
    errors = [
        duplicate(f"spec.ports[{index}].nodePort", port["nodePort"])
        for index, port in enumerate(ports)
        if port.get("nodePort") and any(_same(port, held, "nodePort") for held in ports[:index])
    ]
    for index, port in enumerate(ports):
        if any(_same(port, held, "port") for held in ports[:index]):
            written = {
                "AppProtocol": None,
                "Name": "",
                "NodePort": 0,
                "Port": port.get("port"),
                "TargetPort": 0,
            }
            errors.append(
                duplicate(f"spec.ports[{index}]", written | {"Protocol": port.get("protocol")})
            )
    return errors


def _same(one: Object, other: Object, key: str) -> bool:
    return (one.get(key), one.get("protocol")) == (other.get(key), other.get("protocol"))


def _balancer_errors(spec: Object) -> list[FieldError]:
    errors = []
    if service_type(spec) != "LoadBalancer":
        if spec.get("loadBalancerSourceRanges"):
            errors.append(forbidden_field("spec.LoadBalancerSourceRanges", _OTHERS))
        if spec.get("allocateLoadBalancerNodePorts") is not None:
            errors.append(forbidden_field("spec.allocateLoadBalancerNodePorts", _OTHERS))
    return errors + _class_errors(spec)


def _class_errors(spec: Object) -> list[FieldError]:
    held = spec.get("loadBalancerClass")
    if held is None:
        return []
    if service_type(spec) != "LoadBalancer":
        return [forbidden_field("spec.loadBalancerClass", _OTHERS)]
    return [wrong_value("spec.loadBalancerClass", held, why) for why in qualified_name_faults(held)]


def _traffic_errors(spec: Object) -> list[FieldError]:
    outside, errors = spec.get("externalTrafficPolicy"), list[FieldError]()
    if outside and not is_reachable_from_outside(spec):
        errors.append(
            wrong_value(
                "spec.externalTrafficPolicy",
                outside,
                "may only be set for externally-accessible services",
            )
        )
    elif outside:
        errors += _POLICY("spec.externalTrafficPolicy", outside)
    health = spec.get("healthCheckNodePort")
    if health and not needs_health_port(spec):
        why = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        errors.append(wrong_value("spec.healthCheckNodePort", health, why))
    if spec.get("internalTrafficPolicy"):
        errors += _POLICY("spec.internalTrafficPolicy", spec["internalTrafficPolicy"])
    if spec.get("trafficDistribution") is not None:
        errors += _DISTRIBUTION("spec.trafficDistribution", spec["trafficDistribution"])
    return errors


# --- addresses ------------------------------------------------------------------------------------

_FAMILIES = ("IPv4", "IPv6")
_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")


def address_errors(spec: Object) -> list[FieldError]:
    """Faults of the addresses within the cluster, their families, and their agreement."""
    errors, addresses, one = (
        list[FieldError](),
        spec.get("clusterIPs") or [],
        spec.get("clusterIP") or "",
    )
    if one and not addresses:
        errors.append(required("spec.clusterIPs"))
    elif one and addresses[0] != one:
        errors.append(
            wrong_value("spec.clusterIPs", addresses, "first value must match `clusterIP`")
        )
    elif addresses and not one:
        errors.append(
            wrong_value(
                "spec.clusterIPs", addresses, "must be empty when `clusterIP` is not specified"
            )
        )
    families = spec.get("ipFamilies") or ()
    for index, family in enumerate(families):
        if family not in _FAMILIES:
            errors.append(unsupported(f"spec.ipFamilies[{index}]", family, _FAMILIES))
    policy = spec.get("ipFamilyPolicy")
    if policy is not None and policy not in _POLICIES:
        errors.append(unsupported("spec.ipFamilyPolicy", policy, _POLICIES))
    return errors + _list_errors(addresses, families)


def _list_errors(addresses: Any, families: Any) -> list[FieldError]:
    field = "spec.clusterIPs"
    if len(addresses) > 1 and addresses[0] == "None":
        return [wrong_value(field, addresses, "'None' must be the first and only value")]
    faulty = [
        (index, address)
        for index, address in enumerate(addresses)
        if address != "None" and not is_address(address)
    ]
    if faulty:
        why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        return [wrong_value(f"{field}[{index}]", address, why) for index, address in faulty]
    if len(addresses) > 1:
        return [wrong_value(field, addresses, "may specify no more than one IP for each IP family")]
    kinds = ["IPv6" if ":" in address else "IPv4" for address in addresses if address != "None"]
    why = "expected an {} value as indicated by `ipFamilies[0]`"
    return [
        wrong_value(f"{field}[0]", addresses[0], why.format(families[0]))
        for kind in kinds
        if families and kind != families[0]
    ]
