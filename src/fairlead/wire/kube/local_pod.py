"""The pods of one node for its GPU exporter: uid, labels, GPU shares, runtime's container ids."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.model.devices.series_names import LocalPod
from fairlead.wire.gpus.allocation import may_grant, parse_grants
from fairlead.wire.kube.objects import WireContainer, parse_containers

_STATIC: Final = "kubernetes.io/config.hash"
"""An annotation of a mirror pod: the uid that the kubelet uses for the static pod."""


class WirePodMeta(Struct, gc=False, rename="camel"):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str | None] | None = None
    annotations: dict[str, str | None] | None = None


class WireRuntimeStatus(Struct, gc=False):
    name: str | None = None
    containerID: str | None = None


class WireRuntimeStatuses(Struct, gc=False, rename="camel"):
    container_statuses: list[WireRuntimeStatus] | None = None
    init_container_statuses: list[WireRuntimeStatus] | None = None
    ephemeral_container_statuses: list[WireRuntimeStatus] | None = None


class WireLocalSpec(Struct, gc=False):
    containers: list[WireContainer] | None = None


class WireLocalPod(Struct, gc=False):
    metadata: WirePodMeta
    spec: WireLocalSpec | None = None
    status: WireRuntimeStatuses | None = None


def parse_local_pod(wire: WireLocalPod) -> LocalPod:
    """The pod; its container names by id, without the prefix `containerd://` of the runtime."""
    meta, status = wire.metadata, wire.status or WireRuntimeStatuses()
    lists = (
        status.container_statuses,
        status.init_container_statuses,
        status.ephemeral_container_statuses,
    )
    reported = [each for statuses in lists for each in statuses or ()]
    ids = {(each.containerID or "").rpartition("//")[2]: each.name or "" for each in reported}
    uid, annotations = (
        meta.uid or "",
        {name: text or "" for name, text in (meta.annotations or {}).items()},
    )
    containers = (
        parse_containers(wire.spec.containers if wire.spec else None)
        if may_grant(annotations)
        else ()
    )
    return LocalPod(
        namespace=meta.namespace or "",
        name=meta.name or "",
        uid=uid,
        kubelet_uid=annotations.get(_STATIC) or uid,
        labels={name: value or "" for name, value in (meta.labels or {}).items()},
        containers={number: name for number, name in ids.items() if number},
        grants=parse_grants(annotations, containers),
    )
