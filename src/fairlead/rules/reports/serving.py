"""Reports about a serving job: pods that are up, its address, the GPUs that it holds.

Specification: docs/spec/arena-cli.md#serving-jobs.

A pod counts GPUs only while it runs, and a pod that shares a card counts its granted part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.jobs.serving import FoundServings, Service, ServicePort, Serving
from fairlead.model.moment import Moment
from fairlead.model.pod import Pod, PodPhase
from fairlead.model.resources import CPU, GPU_CORE, Amounts, counted
from fairlead.rules.pods.devices import memory_units, whole_gpus
from fairlead.rules.pods.status import pod_status
from fairlead.rules.reports.node import natural_key

_PORT_TITLES: Final = {
    "grpc-serving": "GRPC",
    "http-serving": "RESTFUL",
    "restful-serving": "RESTFUL",
}
"""Titles of ports that answer requests to a model; a port for metrics is not among them.

The last is the name of the second in arena before 0.9.
"""
_NO_ADDRESS: Final = ("", "None")


class ServingInstance(Struct, frozen=True, gc=False):
    """One pod. `gpus` is a fraction on a shared card."""

    pod: Pod
    status: str
    age: float
    ready: int
    total: int
    restarts: int
    gpus: float


class ServingReport(Struct, frozen=True, gc=False):
    """`address` is "" if it has none.

    `cpus` in cores; it and the other requests are those of all desired pods of the job.
    """

    serving: Serving
    age: float
    desired: int
    available: int
    address: str
    endpoints: tuple[ServicePort, ...]
    instances: tuple[ServingInstance, ...]
    gpus: float
    cpus: float
    whole_gpus: int
    memory_units: int
    core_percent: int


def report_servings(found: FoundServings) -> list[ServingReport]:
    return [report_serving(each, found.share_units, found.taken_at) for each in found.servings]


def report_serving(
    serving: Serving, share_units: Mapping[str, float], now: Moment
) -> ServingReport:
    """The report at `now`. `share_units`: by node, units of gpu-mem of one of its cards."""
    instances = [_instance(pod, share_units.get(pod.node, 0.0), now) for pod in serving.pods]
    limits = [(worker.replicas, worker.limits) for worker in serving.workers]
    return ServingReport(
        serving=serving,
        age=now - (serving.workload.created_at or now),
        desired=sum(worker.replicas for worker in serving.workers),
        available=sum(worker.available for worker in serving.workers),
        address=serving.workload.url or _address(serving.services),
        endpoints=(ServicePort("", 80),) if serving.workload.url else _endpoints(serving.services),
        instances=tuple(sorted(instances, key=lambda instance: natural_key(instance.pod.name))),
        gpus=_tenths(sum(instance.gpus for instance in instances)),
        cpus=sum(replicas * amounts.get(CPU, 0) for replicas, amounts in limits) / 1000,
        whole_gpus=sum(replicas * whole_gpus(amounts) for replicas, amounts in limits),
        memory_units=sum(replicas * memory_units(amounts) for replicas, amounts in limits),
        core_percent=sum(replicas * counted(amounts, GPU_CORE) for replicas, amounts in limits),
    )


def instance_gpus(limits: Amounts, card_units: float) -> float:
    """Whole GPUs, or the memory as a part of a card with `card_units`; 0 for an unknown card.

    >>> instance_gpus({"nvidia.com/gpu": 2}, 0), instance_gpus({"aliyun.com/gpu-mem": 5}, 15)
    (2.0, 0.3)
    >>> instance_gpus({"aliyun.com/gpu-mem": 5}, 0)
    0.0
    """
    units = memory_units(limits)
    if not units:
        return float(whole_gpus(limits))
    return _tenths(units / card_units) if card_units else 0.0


def port_words(port: ServicePort) -> str:
    """The ports of a model, as reached from nodes if they have a node port.

    >>> port_words(ServicePort("RESTFUL", 8080)), port_words(ServicePort("GRPC", 8500, 31000))
    ('RESTFUL:8080', 'GRPC:31000->8500')
    """
    return f"{port.name}:{f'{port.node_port}->' if port.node_port else ''}{port.port}"


def _instance(pod: Pod, card_units: float, now: Moment) -> ServingInstance:
    return ServingInstance(
        pod=pod,
        status=pod_status(pod),
        age=now - (pod.created_at or now),
        ready=sum(status.ready for status in pod.statuses),
        total=len(pod.containers),
        restarts=sum(status.restarts for status in pod.statuses),
        gpus=instance_gpus(pod.limits, card_units)
        if pod.phase == PodPhase.RUNNING and pod.node
        else 0.0,
    )


def _address(services: tuple[Service, ...]) -> str:
    """A load balancer's address, else that of the first Service with a model's port."""
    asked = [service for service in services if _endpoints((service,))]
    addresses = [service.balancer for service in asked if service.balancer]
    addresses += [service.cluster_ip for service in asked if service.cluster_ip not in _NO_ADDRESS]
    return next(iter(addresses), "")


def _endpoints(services: tuple[Service, ...]) -> tuple[ServicePort, ...]:
    """The ports that answer requests to a model, with their titles as names."""
    return tuple(
        ServicePort(_PORT_TITLES[port.name], port.port, port.node_port)
        for service in services
        for port in service.ports
        if port.name in _PORT_TITLES
    )


def _tenths(amount: float) -> float:
    return int(10 * amount + 0.5) / 10
