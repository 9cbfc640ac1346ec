"""Deployments, Services and InferenceServices of serving jobs: the fields that Fairlead reads."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from fairlead.model.jobs.serving import Service, ServicePort, ServingWorkload
from fairlead.model.pod import needed_by
from fairlead.model.resources import NOTHING
from fairlead.wire.jobs.kubeflow import WireTemplate
from fairlead.wire.kube.objects import (
    WireMeta,
    epoch,
    kept_annotations,
    parse_containers,
    parse_labels,
)


class WireDeploymentSpec(Struct, gc=False):
    replicas: int | None = None
    template: WireTemplate | None = None


class WireDeploymentStatus(Struct, gc=False, rename="camel"):
    available_replicas: int | None = None


class WireDeployment(Struct, gc=False):
    metadata: WireMeta
    spec: WireDeploymentSpec | None = None
    status: WireDeploymentStatus | None = None


class WireInferenceStatus(Struct, gc=False):
    url: str | None = None


class WireInferenceService(Struct, gc=False):
    metadata: WireMeta
    status: WireInferenceStatus | None = None


class WirePort(Struct, gc=False, rename="camel"):
    name: str | None = None
    port: int | None = None
    node_port: int | None = None


class WireServiceSpec(Struct, gc=False, rename={"cluster_ip": "clusterIP"}):
    cluster_ip: str | None = None
    ports: list[WirePort] | None = None


class WireIngress(Struct, gc=False):
    ip: str | None = None
    hostname: str | None = None


class WireBalancer(Struct, gc=False):
    ingress: list[WireIngress] | None = None


class WireServiceStatus(Struct, gc=False, rename="camel"):
    load_balancer: WireBalancer | None = None


class WireService(Struct, gc=False):
    metadata: WireMeta
    spec: WireServiceSpec | None = None
    status: WireServiceStatus | None = None


def parse_deployment(wire: WireDeployment) -> ServingWorkload:
    """The workload; `replicas` is 1 if the object has none, the API server's default."""
    spec = wire.spec or WireDeploymentSpec()
    pod = spec.template.spec if spec.template else None
    limits = NOTHING
    if pod is not None:
        containers, inits = parse_containers(pod.containers), parse_containers(pod.init_containers)
        limits = needed_by(containers, inits, lambda container: container.limits)
    workload = _workload("Deployment", wire.metadata)
    workload = msgspec.structs.replace(
        workload, replicas=1 if spec.replicas is None else spec.replicas, limits=limits
    )
    return msgspec.structs.replace(
        workload, available=(wire.status and wire.status.available_replicas) or 0
    )


def parse_inference_service(wire: WireInferenceService) -> ServingWorkload:
    """The workload without replicas and limits, which the Deployments of its operator have."""
    workload = _workload("InferenceService", wire.metadata)
    return msgspec.structs.replace(
        workload, replicas=0, url=(wire.status and wire.status.url) or ""
    )


def parse_service(wire: WireService) -> Service:
    """The Service; its external address is the first of its load balancer."""
    meta, spec = wire.metadata, wire.spec or WireServiceSpec()
    balancer = (wire.status and wire.status.load_balancer) or WireBalancer()
    ingress = (balancer.ingress or [WireIngress()])[0]
    return Service(
        namespace=meta.namespace or "",
        name=meta.name or "",
        uid=meta.uid or "",
        labels=parse_labels(meta.labels),
        cluster_ip=spec.cluster_ip or "",
        balancer=ingress.ip or ingress.hostname or "",
        ports=tuple(
            ServicePort(each.name or "", each.port or 0, each.node_port or 0)
            for each in spec.ports or ()
        ),
    )


def _workload(kind: str, meta: WireMeta) -> ServingWorkload:
    return ServingWorkload(
        kind=kind,
        namespace=meta.namespace or "",
        name=meta.name or "",
        uid=meta.uid or "",
        labels=parse_labels(meta.labels),
        annotations=kept_annotations(meta.annotations),
        created_at=epoch(meta.creation_timestamp),
    )
