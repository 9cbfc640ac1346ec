"""The Services that every cluster has from the start, and the addresses that it gives outside.

No packet ever goes anywhere: a Service is an object with addresses, as `kubectl get svc` prints
them.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

from fairlead_sim.objects.chance import digest
from fairlead_sim.objects.resources import SERVICES
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.scenario.scenario import NetworkService
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.time.timers import Timers

Object = dict[str, Any]

API_SERVICE: Object = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {
        "name": "kubernetes",
        "namespace": "default",
        "labels": {"component": "apiserver", "provider": "kubernetes"},
    },
    "spec": {
        "clusterIP": "10.96.0.1",
        "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": 6443}],
    },
}
"""The API server's own Service, which every cluster has, and which comes back when it is deleted.
"""
API_SERVICE_SECONDS = 10.0
BALANCER_SECONDS = 3.0


def render_network_service(service: NetworkService) -> Object:
    spec: Object = {
        "type": service.type,
        "ports": [_port(text, len(service.ports)) for text in service.ports],
    }
    if service.cluster_ip:
        spec["clusterIP"] = service.cluster_ip
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": service.name,
            "namespace": service.namespace,
            "labels": {"app": service.name},
        },
        "spec": spec,
    }


def split_port(text: str) -> tuple[int, int | None, str]:
    """Port, node port and protocol of `9090:30090/TCP`. Raises ValueError for anything else.

    >>> split_port("9090:30090/TCP"), split_port("53/UDP")
    ((9090, 30090, 'TCP'), (53, None, 'UDP'))
    """
    ports, slash, protocol = text.partition("/")
    port, colon, node_port = ports.partition(":")
    numbers = [
        int(part) if part.isascii() and part.isdigit() else 0
        for part in (port, *([node_port] if colon else []))
    ]
    if (
        not slash
        or protocol not in ("TCP", "UDP", "SCTP")
        or not all(1 <= number <= 65535 for number in numbers)
    ):
        raise ValueError(f"`{text}` is not a port such as `80/TCP` or `80:30080/TCP`")
    return numbers[0], numbers[1] if colon else None, protocol


def _port(text: str, count: int) -> Object:
    port, node_port, protocol = split_port(text)
    found: Object = {"port": port, "protocol": protocol}
    if node_port is not None:
        found["nodePort"] = node_port
    return found if count == 1 else {"name": f"{protocol.lower()}-{port}", **found}


def keep_api_service(cluster: StoredCluster, timers: Timers) -> None:
    """From now on."""

    def make() -> None:
        with suppress(ApiStatus):  # another writer was faster
            cluster.create(API_SERVICE)

    def on_service(event: LoggedChange) -> None:
        if event.type == DELETED and _is_api_service(event.object):
            timers.after(API_SERVICE_SECONDS, make)

    cluster.subscribe(SERVICES, on_service)
    if not any(map(_is_api_service, cluster.scan(SERVICES, "default"))):
        make()


def _is_api_service(service: Object) -> bool:
    return all(
        service["metadata"][key] == API_SERVICE["metadata"][key] for key in ("name", "namespace")
    )


class LoadBalancers:
    """The cloud's part of a cluster: gives a Service its load balancer's address after a moment."""

    def __init__(self, cluster: StoredCluster, timers: Timers, seed: int) -> None:
        self._cluster = cluster
        self._timers = timers
        self._seed = seed
        cluster.subscribe(SERVICES, self._on_service)

    def _on_service(self, event: LoggedChange) -> None:
        metadata = event.object["metadata"]
        if (
            event.type != DELETED
            and event.object["spec"].get("type") == "LoadBalancer"
            and not _addresses(event.object)
        ):
            self._timers.after(
                BALANCER_SECONDS, partial(self._balance, metadata["namespace"], metadata["name"])
            )

    def _balance(self, namespace: str, name: str) -> None:
        one, two, three = digest(self._seed, "balancer", namespace, name)[:3]
        address = {"ip": f"39.{96 + one % 8}.{two}.{1 + three % 254}", "ipMode": "VIP"}
        self._cluster.mutate(SERVICES, namespace, name, partial(_with_address, address=address))


def _addresses(service: Object) -> list[Object]:
    return ((service.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []


def _with_address(service: Object, address: Object) -> Object | None:
    """None for a Service that has one, or wants none any more."""
    if _addresses(service) or service["spec"].get("type") != "LoadBalancer":
        return None
    return {
        **service,
        "status": {**(service.get("status") or {}), "loadBalancer": {"ingress": [address]}},
    }
