"""Preheats: DataLoads of Fluid, and the Deployments that serve Fluid's kinds."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.model.actions import Manifest
from fairlead.model.jobs.data_details import DataLoad, Preheat
from fairlead.model.jobs.datasets import DATA_LOAD_KIND, FLUID_API, ControllerState, DataSet
from fairlead.wire.data.fluid import VERSION, WireDataCondition
from fairlead.wire.kube.objects import WireMeta, epoch
from fairlead.wire.names import ANNOTATION_OPERATION, FLUID_GROUP

_NATIVE: Final = ("pvc://", "local://")
"""Sources that Alluxio mounts as its own files; new ones are found by a reading of the metadata."""
DATA_LOAD: Final = (FLUID_GROUP, VERSION, f"{DATA_LOAD_KIND.lower()}s", DATA_LOAD_KIND)


class WireLoadTarget(Struct, gc=False):
    name: str | None = None


class WireLoadPath(Struct, gc=False):
    path: str | None = None


class WireLoadSpec(Struct, gc=False):
    dataset: WireLoadTarget | None = None
    target: list[WireLoadPath] | None = None
    schedule: str | None = None


class WireLoadStatus(Struct, gc=False):
    phase: str | None = None
    duration: str | None = None
    conditions: list[WireDataCondition] | None = None


class WireLoad(Struct, gc=False):
    metadata: WireMeta
    spec: WireLoadSpec | None = None
    status: WireLoadStatus | None = None


class WireReplicas(Struct, gc=False):
    replicas: int | None = None


class WireReadyReplicas(Struct, gc=False, rename="camel"):
    ready_replicas: int | None = None


class WireController(Struct, gc=False):
    metadata: WireMeta
    spec: WireReplicas | None = None
    status: WireReadyReplicas | None = None


def parse_data_load(wire: WireLoad) -> DataLoad:
    meta, spec = wire.metadata, wire.spec or WireLoadSpec()
    status = wire.status or WireLoadStatus()
    faults = [
        each.message or each.reason or ""
        for each in status.conditions or ()
        if each.type == "Failed" and each.status == "True"
    ]
    return DataLoad(
        namespace=meta.namespace or "",
        name=meta.name or "",
        data_set=(spec.dataset and spec.dataset.name) or "",
        phase=status.phase or "",
        paths=tuple(each.path or "" for each in spec.target or ()),
        schedule=spec.schedule or "",
        created_at=epoch(meta.creation_timestamp),
        duration=status.duration or "",
        message=faults[-1] if faults else "",
        operation=(meta.annotations or {}).get(ANNOTATION_OPERATION) or "",
    )


def parse_controller(wire: WireController) -> ControllerState:
    """A Deployment without `spec.replicas` has one."""
    wanted = None if wire.spec is None else wire.spec.replicas
    ready = None if wire.status is None else wire.status.ready_replicas
    return ControllerState(wire.metadata.name or "", 1 if wanted is None else wanted, ready or 0)


def render_preheat(chosen: Preheat, data_set: DataSet, name: str) -> Manifest:
    """The DataLoad of this name. It stays when it has ended: Fluid keeps its result in it."""
    spec = {
        "dataset": {"name": chosen.data_set, "namespace": chosen.namespace},
        "loadMetadata": any(each.point.startswith(_NATIVE) for each in data_set.mounts),
        "target": [{"path": each, "replicas": chosen.replicas} for each in chosen.paths],
    }
    if chosen.schedule:
        spec |= {"policy": "Cron", "schedule": chosen.schedule}
    return {
        "apiVersion": FLUID_API,
        "kind": DATA_LOAD_KIND,
        "metadata": {
            "name": name,
            "namespace": chosen.namespace,
            "labels": {"app.kubernetes.io/managed-by": "fairlead"},
        },
        "spec": spec,
    }
