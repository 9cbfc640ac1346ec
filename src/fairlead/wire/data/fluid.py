"""Fluid's objects, `data.fluid.io/v1alpha1`: data sets and the runtimes that cache them.

Fluid writes all amounts of a status as text (`512.00MiB`, `93.5%`, `[Calculating]`); a text that is
no amount is not reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from fairlead.model.actions import Manifest
from fairlead.model.jobs.acceleration import Acceleration
from fairlead.model.jobs.datasets import (
    CacheState,
    DataCondition,
    DataMount,
    DataRuntime,
    DataSet,
    RuntimePart,
    SecretOption,
)
from fairlead.model.resources import MEMORY
from fairlead.wire.kube.objects import WireMeta, epoch
from fairlead.wire.kube.quantity import render_amount
from fairlead.wire.names import FLUID_DATASETS, FLUID_GROUP
from fairlead.wire.text.secret_names import is_secret_name
from fairlead.wire.text.secret_words import HIDDEN, without_secrets

VERSION: Final = "v1alpha1"
DATASET: Final = (FLUID_GROUP, VERSION, FLUID_DATASETS, "Dataset")
RUNTIMES: Final = tuple(
    (FLUID_GROUP, VERSION, f"{kind.lower()}s", kind)
    for kind in (
        "AlluxioRuntime",
        "JindoRuntime",
        "JuiceFSRuntime",
        "ThinRuntime",
        "GooseFSRuntime",
        "EFCRuntime",
        "VineyardRuntime",
    )
)
"""Group, version, plural and kind of each."""
ALLUXIO: Final = RUNTIMES[0]
FLUID_NAMESPACE: Final = "fluid-system"
CONTROLLER: Final = "alluxioruntime-controller"
"""The Deployment that serves Alluxio's runtimes; with 0 replicas Fluid starts it when needed."""
CSI_DRIVER: Final = "fuse.csi.fluid.io"
ACCELERATES: Final = "fairlead.io/accelerates"
"""The annotation of a data set that Fairlead made, and of its runtime: the name of the claim."""
_STORES: Final = {
    "MEM": {"path": "/dev/shm", "high": "0.95", "low": "0.7"},
    "SSD": {"path": "/var/lib/docker/alluxio", "high": "0.99", "low": "0.8"},
}
_PLACEMENT: Final = "Shared"
"""Data sets of one namespace share nodes. Fluid's default gives each data set nodes of its own."""
_HOST_LABEL: Final = "kubernetes.io/hostname"
_BYTES: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGTPE]i?)?B", re.ASCII)
_UNITS: Final = {unit: 1024 ** (place + 1) for place, unit in enumerate("KMGTPE")}
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*%", re.ASCII)


class WireSecretKey(Struct, gc=False):
    name: str | None = None
    key: str | None = None


class WireSecretSource(Struct, gc=False, rename="camel"):
    secret_key_ref: WireSecretKey | None = None


class WireSecretOption(Struct, gc=False, rename="camel"):
    name: str | None = None
    value_from: WireSecretSource | None = None


class WireMount(Struct, gc=False, rename="camel"):
    mount_point: str | None = None
    name: str | None = None
    path: str | None = None
    read_only: bool | None = None
    options: dict[str, str | None] | None = None
    encrypt_options: list[WireSecretOption] | None = None


class WireDatasetSpec(Struct, gc=False, rename="camel"):
    mounts: list[WireMount] | None = None
    shared_options: dict[str, str | None] | None = None
    shared_encrypt_options: list[WireSecretOption] | None = None


class WireDataCondition(Struct, gc=False, rename="camel"):
    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_update_time: datetime | None = None


class WireRuntimeName(Struct, gc=False):
    type: str | None = None


class WireDatasetStatus(Struct, gc=False, rename="camel"):
    phase: str | None = None
    ufs_total: str | None = None
    file_num: str | None = None
    cache_states: dict[str, str | None] | None = None
    conditions: list[WireDataCondition] | None = None
    runtimes: list[WireRuntimeName] | None = None
    dataset_ref: list[str] | None = None
    operation_ref: dict[str, str | None] | None = None


class WireDataMeta(WireMeta, gc=False, rename="camel"):
    finalizers: list[str] | None = None


class WireDataset(Struct, gc=False):
    metadata: WireDataMeta
    spec: WireDatasetSpec | None = None
    status: WireDatasetStatus | None = None


class WireRuntimeSpec(Struct, gc=False):
    replicas: int | None = None


class WireCacheStatus(Struct, gc=False, rename="camel"):
    worker_number_ready: int | None = None
    desired_worker_number_scheduled: int | None = None
    master_phase: str | None = None
    master_reason: str | None = None
    worker_phase: str | None = None
    worker_reason: str | None = None
    fuse_phase: str | None = None
    fuse_reason: str | None = None


class WireRuntime(Struct, gc=False):
    metadata: WireMeta
    kind: str | None = None
    spec: WireRuntimeSpec | None = None
    status: WireCacheStatus | None = None


def parse_dataset(wire: WireDataset) -> DataSet:
    """A field that Fluid has not written yet is not reported."""
    meta, status = wire.metadata, wire.status or WireDatasetStatus()
    spec, states = wire.spec or WireDatasetSpec(), status.cache_states or {}
    files = status.file_num or ""
    return DataSet(
        namespace=meta.namespace or "",
        name=meta.name or "",
        mounts=tuple(map(_mount, spec.mounts or ())),
        phase=status.phase or "",
        created_at=epoch(meta.creation_timestamp),
        is_ending=meta.deletion_timestamp is not None,
        size=parse_bytes(status.ufs_total or ""),
        files=int(files) if files.isascii() and files.isdigit() else None,
        cache=CacheState(
            parse_bytes(states.get("cached") or ""),
            parse_bytes(states.get("cacheCapacity") or ""),
            parse_percent(states.get("cachedPercentage") or ""),
            parse_percent(states.get("cacheHitRatio") or ""),
            parse_percent(states.get("localHitRatio") or ""),
            parse_percent(states.get("remoteHitRatio") or ""),
        ),
        runtimes=tuple(each.type or "" for each in status.runtimes or ()),
        message=_trouble(status.conditions or ()),
        accelerates=(meta.annotations or {}).get(ACCELERATES) or "",
        uid=meta.uid or "",
        conditions=tuple(map(_condition, status.conditions or ())),
        finalizers=tuple(meta.finalizers or ()),
        ending_since=epoch(meta.deletion_timestamp),
        shared_options=_options(spec.shared_options),
        shared_secrets=_secret_options(spec.shared_encrypt_options),
        references=tuple(status.dataset_ref or ()),
        operations=tuple(
            f"{kind} {name}"
            for kind, names in (status.operation_ref or {}).items()
            for name in (names or "").split(",")
            if name
        ),
    )


def _mount(wire: WireMount) -> DataMount:
    return DataMount(
        _shown_point(wire.mount_point or ""),
        wire.name or "",
        wire.path or "",
        wire.read_only is True,
        _options(wire.options),
        _secret_options(wire.encrypt_options),
    )


def _shown_point(point: str) -> str:
    """Without user, password and query, which may sign a request.

    >>> _shown_point("https://u:p@h/x?Signature=s"), _shown_point("pvc://raw/a")
    ('https://<redacted>@h/x?<redacted>', 'pvc://raw/a')
    """
    if point.startswith("pvc://") or not ("@" in point or "?" in point):
        return point
    place, mark, _ = point.partition("?")
    return without_secrets(place) + (f"?{HIDDEN}" if mark else "")


def _options(wire: dict[str, str | None] | None) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, HIDDEN if value and is_secret_name(name) else without_secrets(value or ""))
        for name, value in (wire or {}).items()
    )


def _secret_options(wire: list[WireSecretOption] | None) -> tuple[SecretOption, ...]:
    found = []
    for each in wire or ():
        ref = (each.value_from and each.value_from.secret_key_ref) or WireSecretKey()
        found.append(SecretOption(each.name or "", ref.name or "", ref.key or ""))
    return tuple(found)


def _condition(wire: WireDataCondition) -> DataCondition:
    return DataCondition(
        wire.type or "",
        wire.status or "",
        wire.reason or "",
        wire.message or "",
        epoch(wire.last_update_time),
    )


def parse_runtime(kind: str, wire: WireRuntime) -> DataRuntime:
    """`kind`: a list names the kind only once."""
    meta, status = wire.metadata, wire.status or WireCacheStatus()
    wanted = status.desired_worker_number_scheduled
    if wanted is None:
        wanted = (wire.spec and wire.spec.replicas) or 0
    return DataRuntime(
        kind,
        meta.namespace or "",
        meta.name or "",
        wanted,
        status.worker_number_ready or 0,
        meta.uid or "",
        (wire.spec and wire.spec.replicas) or 0,
        (
            RuntimePart("master", status.master_phase or "", status.master_reason or ""),
            RuntimePart("worker", status.worker_phase or "", status.worker_reason or ""),
            RuntimePart("fuse", status.fuse_phase or "", status.fuse_reason or ""),
        ),
        meta.deletion_timestamp is not None,
    )


def plural_of(kind: str) -> str:
    """
    >>> plural_of("AlluxioRuntime")
    'alluxioruntimes'
    """
    return f"{kind.lower()}s"


def render_acceleration(chosen: Acceleration) -> list[Manifest]:
    """The data set, and the runtime that caches it, in the order in which they are made."""
    meta: Manifest = {
        "name": chosen.name,
        "namespace": chosen.namespace,
        "labels": {"app.kubernetes.io/managed-by": "fairlead"},
    }
    if chosen.claim:
        meta["annotations"] = {ACCELERATES: chosen.claim}
    version = f"{FLUID_GROUP}/{VERSION}"
    mounts = [_rendered_mount(chosen)]
    place, selector = {}, {}
    if chosen.node:
        terms = [{"key": _HOST_LABEL, "operator": "In", "values": [chosen.node]}]
        required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
        place = {"nodeAffinity": {"required": required}}
        selector = {"master": {"nodeSelector": {_HOST_LABEL: chosen.node}}}
    level = {
        "mediumtype": chosen.medium,
        "quota": render_amount(MEMORY, chosen.quota),
        **_STORES[chosen.medium],
    }
    return [
        {
            "apiVersion": version,
            "kind": DATASET[3],
            "metadata": meta,
            "spec": {"mounts": mounts, "placement": _PLACEMENT, **place},
        },
        {
            "apiVersion": version,
            "kind": ALLUXIO[3],
            "metadata": meta,
            "spec": {
                "replicas": chosen.workers,
                "data": {"replicas": 1},
                "tieredstore": {"levels": [level]},
                **selector,
            },
        },
    ]


def _rendered_mount(chosen: Acceleration) -> Manifest:
    """At `/`, where files keep their places. A source with keys is at `/NAME`: of one at `/` Fluid
    1.0.8 makes options properties of all of Alluxio's processes, kept in a ConfigMap. There the
    values of the keys are only as safe as a setting of Fluid's controller.
    """
    source = chosen.source
    if source is None:
        point = "/".join(("pvc:/", chosen.claim, *filter(None, chosen.folder.split("/"))))
        return {"mountPoint": point, "name": chosen.claim, "path": "/", "readOnly": True}
    mount: Manifest = {"mountPoint": source.uri, "name": chosen.name, "readOnly": True}
    if not source.secrets:
        mount["path"] = "/"
    if source.options:
        mount["options"] = dict(source.options)
    if source.secrets:
        mount["encryptOptions"] = [
            {
                "name": each.option,
                "valueFrom": {"secretKeyRef": {"name": each.secret, "key": each.key}},
            }
            for each in source.secrets
        ]
    return mount


def parse_bytes(text: str) -> int | None:
    """Fluid's own spelling of bytes, always of 1024; None for anything else.

    >>> parse_bytes("512.00MiB"), parse_bytes("1.50GB"), parse_bytes("0.00B")
    (536870912, 1610612736, 0)
    >>> parse_bytes("[Calculating]")
    """
    found = _BYTES.fullmatch(text.strip())
    if found is None:
        return None
    unit = (found[2] or "")[:1]
    return round(float(found[1]) * (_UNITS[unit] if unit else 1))


def parse_percent(text: str) -> float | None:
    """
    >>> parse_percent("93.5%"), parse_percent("")
    (93.5, None)
    """
    found = _PERCENT.fullmatch(text.strip())
    return None if found is None else float(found[1])


def _trouble(conditions: Iterable[WireDataCondition]) -> str:
    """The message of the newest condition, if it is of a fault; else ""."""
    dated = [each for each in conditions if each.last_update_time is not None]
    if not dated:
        return ""
    newest = max(dated, key=lambda each: epoch(each.last_update_time) or 0.0)
    is_good = (newest.status == "True") is (newest.type != "NotReady")
    return "" if is_good else newest.message or newest.reason or ""
