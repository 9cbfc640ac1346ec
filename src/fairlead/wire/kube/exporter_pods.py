"""Pods of GPU exporters: their addresses and named ports, the fields that Fairlead reads."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from fairlead.model.devices.exporter_pod import ExporterPod
from fairlead.wire.kube.objects import WireMeta


class WireNamedPort(Struct, gc=False, rename="camel"):
    name: str | None = None
    container_port: int | None = None


class WireExporterContainer(Struct, gc=False):
    ports: list[WireNamedPort] | None = None


class WireExporterSpec(Struct, gc=False, rename="camel"):
    node_name: str | None = None
    containers: list[WireExporterContainer] | None = None


class WireExporterStatus(Struct, gc=False):
    phase: str | None = None
    pod_ip: str | None = msgspec.field(name="podIP", default=None)


class WireExporterPod(Struct, gc=False):
    metadata: WireMeta
    spec: WireExporterSpec | None = None
    status: WireExporterStatus | None = None


def parse_exporter_pod(wire: WireExporterPod) -> ExporterPod:
    """The pod's row; of several ports with the same name, the first."""
    meta, spec, status = (
        wire.metadata,
        wire.spec or WireExporterSpec(),
        wire.status or WireExporterStatus(),
    )
    ports: dict[str, int] = {}
    for container in spec.containers or ():
        for port in container.ports or ():
            if port.name and port.container_port:
                ports.setdefault(port.name, port.container_port)
    return ExporterPod(
        namespace=meta.namespace or "",
        name=meta.name or "",
        node=spec.node_name or "",
        ip=status.pod_ip or "",
        ports=ports,
        is_running=status.phase == "Running" and meta.deletion_timestamp is None,
    )
