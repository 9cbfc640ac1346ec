"""The address and the ports on the nodes that a Service gets, keeps and gives back.

The real server's order: what an update leaves out is what the Service had, then families, address
and ports are given, then what the new type has no use for is dropped. What is taken is read from
the Services that are there, so that nothing has to be given back: a deleted Service is not among
them any more, and those of a restored world are.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable
from typing import Any

from fairlead_sim.objects.resources import SERVICES
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.status import ApiStatus, FieldError, internal_error, invalid, wrong_value
from fairlead_sim.validation.service import (
    address_errors,
    chooses_node_ports,
    has_address,
    is_headless,
    is_reachable_from_outside,
    needs_health_port,
    service_type,
)

SERVICE_NETWORK = ipaddress.IPv4Network("10.96.0.0/12")
NODE_PORTS = range(30000, 32768)
_KEPT_ADDRESSES = 256  # at the beginning of either range, those that are given only on request
_KEPT_PORTS = 86

Services = Callable[[], Iterable[Object]]


class _Pool:
    """The free values; `number`: where the search begins."""

    def __init__(self, services: Services, number: int) -> None:
        self._services = services
        self._number = number
        self._addresses: set[str] | None = None
        self._ports: set[int] | None = None

    def any_address(self) -> str:
        taken, span = self._taken_addresses(), SERVICE_NETWORK.num_addresses - 2
        for place in _places(self._number, _KEPT_ADDRESSES, span):
            address = str(SERVICE_NETWORK[place])
            if place and address not in taken:
                taken.add(address)
                return address
        raise internal_error("failed to allocate a serviceIP: range is full")

    def take_address(self, address: str) -> str:
        """Why this one cannot be had; "" when it is taken now."""
        parsed = ipaddress.ip_address(address)
        if parsed not in SERVICE_NETWORK:
            return "the provided network does not match the current range"
        if parsed in (SERVICE_NETWORK[0], SERVICE_NETWORK[-1]):
            return (
                f"the provided IP ({address}) is not in the valid range. The range of valid IPs "
                f"is {SERVICE_NETWORK}"
            )
        if address in self._taken_addresses():
            return "provided IP is already allocated"
        self._taken_addresses().add(address)
        return ""

    def any_port(self) -> int:
        taken = self._taken_ports()
        for place in _places(self._number * 13, _KEPT_PORTS, len(NODE_PORTS)):
            if NODE_PORTS[place] not in taken:
                taken.add(NODE_PORTS[place])
                return NODE_PORTS[place]
        raise internal_error("failed to allocate a nodePort: range is full")

    def take_port(self, port: int) -> str:
        """As `take_address`."""
        if port not in NODE_PORTS:
            return (
                "provided port is not in the valid range. The range of valid ports is "
                f"{NODE_PORTS[0]}-{NODE_PORTS[-1]}"
            )
        if port in self._taken_ports():
            return "provided port is already allocated"
        self._taken_ports().add(port)
        return ""

    def _taken_addresses(self) -> set[str]:
        if self._addresses is None:
            self._addresses = {
                address for service in self._services() for address in _addresses(service)
            }
        return self._addresses

    def _taken_ports(self) -> set[int]:
        if self._ports is None:
            specs = [service.get("spec") or {} for service in self._services()]
            self._ports = {
                port
                for spec in specs
                for port in (*node_ports(spec), spec.get("healthCheckNodePort") or 0)
            }
        return self._ports


def _places(number: int, kept: int, end: int) -> Iterable[int]:
    """All places of a range, from one in its free part on, and those that are kept last.

    >>> list(_places(5, 2, 6))
    [5, 2, 3, 4, 0, 1]
    """
    span = end - kept
    yield from (kept + (number - kept + step) % span for step in range(span))
    yield from range(kept)


def _addresses(service: Object) -> list[str]:
    spec = service.get("spec") or {}
    return spec.get("clusterIPs") or [spec.get("clusterIP") or "None"]


def node_ports(spec: Object) -> list[int]:
    return [port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")]


def allocated(new: Object, old: Object | None, services: Services, number: int) -> Object:
    """The Service with defaults and all that the server allocates.

    Raises 422 for what cannot be had.

    `services` are all that are there, `old` among them. Equal `number`s begin to search at the same
    place.
    """
    spec, before, name = (
        _own_copy(new["spec"]),
        None if old is None else old.get("spec") or {},
        new["metadata"]["name"],
    )
    pool = _Pool(services, number)
    if before is not None:
        _keep_what_was_given(spec, before)
    _even_addresses(spec, before)
    _give_families(name, spec, before)
    _give_address(name, spec, before, pool)
    _give_node_ports(name, spec, before, pool)
    _give_health_port(spec, before, pool)
    if before is None:
        return {**new, "spec": spec}
    _drop_what_has_no_use(spec, before)
    held = new.get("status")
    return {**new, "spec": spec, **({"status": _status_of(spec, held)} if held else {})}


def _own_copy(spec: Object) -> Object:
    ports = spec.get("ports")
    return {**spec, **({"ports": [dict(port) for port in ports]} if ports else {})}


def _status_of(spec: Object, status: Object) -> Object:
    """The addresses outside go at once with the type that has them."""
    return (
        status
        if service_type(spec) == "LoadBalancer" or not status.get("loadBalancer")
        else {**status, "loadBalancer": {}}
    )


# --- what was given before ------------------------------------------------------------------------


def _keep_what_was_given(spec: Object, before: Object) -> None:
    if has_address(before) and has_address(spec):
        for key in ("clusterIP", "clusterIPs"):
            if not spec.get(key) and before.get(key):
                spec[key] = before[key]
    if chooses_node_ports(before) and chooses_node_ports(spec):
        still_named = set(node_ports(before)) & set(node_ports(spec))
        by_name = {
            port.get("name", ""): port.get("nodePort", 0) for port in before.get("ports") or ()
        }
        for port in spec.get("ports") or ():
            was = by_name.get(port.get("name", ""), 0)
            if not port.get("nodePort") and was and was not in still_named:
                port["nodePort"] = was
    if needs_health_port(before) and needs_health_port(spec) and before.get("healthCheckNodePort"):
        spec.setdefault("healthCheckNodePort", before["healthCheckNodePort"])


def _even_addresses(spec: Object, before: Object | None) -> None:
    """Make `clusterIPs` follow `clusterIP` where only the latter was changed.

    People write `clusterIP`; `clusterIPs` is what counts.
    """
    one, many = spec.get("clusterIP"), spec.get("clusterIPs")
    if before is None:
        if one and not many:
            spec["clusterIPs"] = [one]
        return
    if before.get("clusterIPs") and not many and one == before.get("clusterIP"):
        spec["clusterIPs"] = before["clusterIPs"]
    elif one != before.get("clusterIP") and (many or []) == (before.get("clusterIPs") or []):
        if one:
            spec["clusterIPs"] = [one]
        else:
            spec.pop("clusterIPs", None)


# --- families -------------------------------------------------------------------------------------


def _give_families(name: str, spec: Object, before: Object | None) -> None:
    """The cluster has one family, IPv4: a Service has it whatever it would prefer."""
    if not has_address(spec):
        return
    if spec.get("ipFamilyPolicy") is None:
        selects_no_pods = is_headless(spec) and not spec.get("selector")
        spec["ipFamilyPolicy"] = (before or {}).get("ipFamilyPolicy") or (
            "RequireDualStack" if selects_no_pods else "SingleStack"
        )
    _refuse(name, address_errors(spec))
    families = list(spec.get("ipFamilies") or ())
    addresses = () if is_headless(spec) else spec.get("clusterIPs") or ()
    for address in addresses[len(families) :]:
        if ":" in address:
            raise _refused(
                name,
                "spec.clusterIPs[0]",
                spec["clusterIPs"],
                "IPv6 is not configured on this cluster",
            )
        families.append("IPv4")
    policy = spec["ipFamilyPolicy"]
    if is_headless(spec) and not spec.get("selector"):
        families = families or ["IPv4"]
        if len(families) < 2 and policy != "SingleStack":
            families.append("IPv6" if families == ["IPv4"] else "IPv4")
        spec["ipFamilies"] = families
        return
    why = "this cluster is not configured for dual-stack services"
    errors = (
        [wrong_value("spec.ipFamilyPolicy", policy, why)] if policy == "RequireDualStack" else []
    )
    others = [(index, family) for index, family in enumerate(families) if family != "IPv4"]
    errors += [
        wrong_value(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in others
    ]
    _refuse(name, errors)
    spec["ipFamilies"] = families or ["IPv4"]


# --- address and ports ----------------------------------------------------------------------------


def _give_address(name: str, spec: Object, before: Object | None, pool: _Pool) -> None:
    """A Service has one address for all its life, except while it is an ExternalName."""
    if not has_address(spec) or is_headless(spec) or (before is not None and has_address(before)):
        return
    if spec.get("clusterIPs"):
        wanted = spec["clusterIPs"][0]
        if why := pool.take_address(wanted):
            raise _refused(
                name,
                "spec.clusterIPs",
                spec["clusterIPs"],
                f"failed to allocate IP {wanted}: {why}",
            )
    else:
        spec["clusterIP"] = pool.any_address()
        spec["clusterIPs"] = [spec["clusterIP"]]


def _give_node_ports(name: str, spec: Object, before: Object | None, pool: _Pool) -> None:
    if service_type(spec) not in ("NodePort", "LoadBalancer"):
        return
    if before is None:
        _give_first_node_ports(name, spec, pool)
    else:
        _give_other_node_ports(name, spec, before, pool)


def _give_first_node_ports(name: str, spec: Object, pool: _Pool) -> None:
    """Ports of one number and several protocols share theirs."""
    ports, by_port = spec.get("ports") or (), dict[int, int]()
    for index, port in enumerate(ports):
        if not port.get("nodePort") and not chooses_node_ports(spec):
            continue
        shared = by_port.get(port.get("port"))
        if shared is None:
            asked = next(
                (
                    each["nodePort"]
                    for each in ports
                    if each.get("port") == port.get("port") and each.get("nodePort")
                ),
                0,
            )
            if asked:
                _take_port(name, index, asked, pool)
            port["nodePort"] = by_port[port.get("port")] = asked or pool.any_port()
        elif not port.get("nodePort"):
            port["nodePort"] = shared
        elif port["nodePort"] != shared:
            _take_port(name, index, port["nodePort"], pool)


def _give_other_node_ports(name: str, spec: Object, before: Object, pool: _Pool) -> None:
    taken, seen = set(node_ports(before)), set[tuple[str, int]]()
    for index, port in enumerate(spec.get("ports") or ()):
        if not port.get("nodePort"):
            if not chooses_node_ports(spec):
                continue
            port["nodePort"] = pool.any_port()
        elif port["nodePort"] not in taken:
            _take_port(name, index, port["nodePort"], pool)
            taken.add(port["nodePort"])
        mark = (port["protocol"], port["nodePort"])
        if mark in seen:
            raise ApiStatus(500, "", f"duplicate nodePort: {{{mark[0]} {mark[1]}}}")
        seen.add(mark)


def _take_port(name: str, index: int, port: int, pool: _Pool) -> None:
    if why := pool.take_port(port):
        raise _refused(name, f"spec.ports[{index}].nodePort", port, why)


def _give_health_port(spec: Object, before: Object | None, pool: _Pool) -> None:
    if not needs_health_port(spec) or (before is not None and needs_health_port(before)):
        return
    wanted = spec.get("healthCheckNodePort")
    if not wanted:
        spec["healthCheckNodePort"] = pool.any_port()
    elif why := pool.take_port(wanted):
        raise internal_error(f"failed to allocate requested HealthCheck NodePort {wanted}: {why}")


def _refuse(name: str, errors: list[FieldError]) -> None:
    if errors:
        raise invalid(SERVICES, name, errors)


def _refused(name: str, field: str, value: Any, why: str) -> ApiStatus:
    return invalid(SERVICES, name, [wrong_value(field, value, why)])


# --- what another type has no use for -------------------------------------------------------------


def _drop_what_has_no_use(spec: Object, before: Object) -> None:
    """Drops what was given or filled in and was not changed together with the type; anything else
    is refused by validation.
    """
    if has_address(before) and not has_address(spec):
        if all(spec.get(key) == before.get(key) for key in ("clusterIP", "clusterIPs")):
            _drop(spec, "clusterIP", "clusterIPs")
        for key in ("ipFamilies", "ipFamilyPolicy"):
            _drop_unchanged(spec, before, key)
    types = ("NodePort", "LoadBalancer")
    if (
        service_type(before) in types
        and service_type(spec) not in types
        and set(node_ports(spec)) <= set(node_ports(before))
    ):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if needs_health_port(before) and not needs_health_port(spec):
        _drop_unchanged(spec, before, "healthCheckNodePort")
    if service_type(before) == "LoadBalancer" != service_type(spec):
        _drop_unchanged(spec, before, "allocateLoadBalancerNodePorts")
        _drop_unchanged(spec, before, "loadBalancerClass")
    if is_reachable_from_outside(before) and not is_reachable_from_outside(spec):
        _drop_unchanged(spec, before, "externalTrafficPolicy")


def _drop_unchanged(spec: Object, before: Object, key: str) -> None:
    if spec.get(key) == before.get(key):
        _drop(spec, key)


def _drop(spec: Object, *keys: str) -> None:
    for key in keys:
        spec.pop(key, None)
