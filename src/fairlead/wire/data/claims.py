"""PersistentVolumeClaims."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.model.jobs.datasets import Claim
from fairlead.wire import names
from fairlead.wire.kube.objects import WireMeta, epoch
from fairlead.wire.kube.quantity import parse_quantity

FLUID_CLASS: Final = "fluid"
_STORAGE: Final = "storage"
_MADE_BY: Final = ("CreatedBy", "fluid")


class WireClaimResources(Struct, gc=False):
    requests: dict[str, str | int | float] | None = None


class WireClaimSpec(Struct, gc=False, rename="camel"):
    access_modes: list[str] | None = None
    volume_name: str | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    resources: WireClaimResources | None = None


class WireClaimStatus(Struct, gc=False):
    phase: str | None = None
    capacity: dict[str, str | int | float] | None = None


class WireClaim(Struct, gc=False):
    metadata: WireMeta
    spec: WireClaimSpec | None = None
    status: WireClaimStatus | None = None


def parse_claim(wire: WireClaim) -> Claim:
    """Raises ValueError for a size that is no quantity."""
    meta = wire.metadata
    spec, status = wire.spec or WireClaimSpec(), wire.status or WireClaimStatus()
    annotations = meta.annotations or {}
    asked = (spec.resources and spec.resources.requests) or {}
    size = (status.capacity or {}).get(_STORAGE) or asked.get(_STORAGE) or 0
    key, value = _MADE_BY
    return Claim(
        namespace=meta.namespace or "",
        name=meta.name or "",
        access_modes=tuple(spec.access_modes or ()),
        description=annotations.get(names.ANNOTATION_DATA_DESCRIPTION) or "",
        owner=annotations.get(names.ANNOTATION_DATA_OWNER) or "",
        created_at=epoch(meta.creation_timestamp),
        phase=status.phase or "",
        volume=spec.volume_name or "",
        storage_class=spec.storage_class_name or "",
        volume_mode=spec.volume_mode or "Filesystem",
        size=parse_quantity(str(size)),
        is_ending=meta.deletion_timestamp is not None,
        is_fluids=annotations.get(key) == value or spec.storage_class_name == FLUID_CLASS,
        uid=meta.uid or "",
    )


def is_fluids_volume(meta: WireMeta) -> bool:
    """Whether Fluid made this volume for a data set."""
    key, value = _MADE_BY
    return (meta.annotations or {}).get(key) == value
