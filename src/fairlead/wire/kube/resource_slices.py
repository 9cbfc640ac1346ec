"""Devices that a DRA driver publishes (`resource.k8s.io` ResourceSlice): which card a device's name means.

NVIDIA's driver names each by its UUID in an attribute; a device without one is nobody's card. `v1beta1` has
attributes one level deeper (`basic`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from fairlead.model.devices.kubelet import ClaimableCard


class WireSliceMeta(Struct, gc=False):
    name: str = ""


class WireSlicePool(Struct, gc=False):
    name: str = ""
    generation: int = 0


class WireSliceDevice(Struct, gc=False):
    name: str = ""
    attributes: dict[str, dict[str, Any]] | None = None
    basic: dict[str, Any] | None = None


class WireSliceSpec(Struct, gc=False):
    driver: str = ""
    pool: WireSlicePool = msgspec.field(default_factory=WireSlicePool)
    devices: list[WireSliceDevice] | None = None


class WireSlice(Struct, gc=False):
    metadata: WireSliceMeta
    spec: WireSliceSpec


class PublishedCards(Struct, frozen=True):
    """A part of what one pool has. A driver that publishes a pool anew gives the parts a higher generation;
    those of the one before may be there for a while.
    """

    driver: str
    pool: str
    generation: int
    cards: tuple[ClaimableCard, ...]


def newest_cards(parts: Iterable[PublishedCards]) -> dict[tuple[str, str, str], ClaimableCard]:
    """Of each pool's highest generation, by (driver, pool, device)."""
    newest: dict[tuple[str, str], int] = {}
    parts = list(parts)
    for part in parts:
        pool = (part.driver, part.pool)
        newest[pool] = max(part.generation, newest.get(pool, part.generation))
    current = (part for part in parts if part.generation == newest[part.driver, part.pool])
    return {(card.driver, card.pool, card.device): card for part in current for card in part.cards}


def parse_slice(wire: WireSlice) -> PublishedCards:
    """The devices that tell a UUID."""
    spec = wire.spec
    found = []
    for device in spec.devices or ():
        told: Mapping[str, Any] = device.attributes or (device.basic or {}).get("attributes") or {}
        uuid = _text(told, "uuid")
        if uuid:
            found.append(ClaimableCard(spec.driver, spec.pool.name, device.name, uuid, _text(told, "profile")))
    return PublishedCards(spec.driver, spec.pool.name, spec.pool.generation, tuple(found))


def _text(attributes: Mapping[str, Any], name: str) -> str:
    """An attribute's text; its name may bear the driver's domain (`gpu.nvidia.com/uuid`).

    >>> _text({"gpu.nvidia.com/uuid": {"string": "GPU-a"}}, "uuid"), _text({"uuid": {"int": 5}}, "uuid")
    ('GPU-a', '')
    """
    for key, value in attributes.items():
        if key.rpartition("/")[2] == name and isinstance(value, dict) and isinstance(value.get("string"), str):
            return str(value["string"])
    return ""
