"""Devices that a DRA driver publishes: which card has which name.

The objects are ResourceSlices of `resource.k8s.io`.

NVIDIA's driver publishes the UUID of each device in an attribute; a device without one is ignored.
In `v1beta1` the attributes are one level deeper (`basic`).
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
    """A part of the cards of one pool.

    A driver that publishes its pool again gives the parts a higher generation; parts of earlier
    generations may remain for a while.
    """

    driver: str
    pool: str
    generation: int
    cards: tuple[ClaimableCard, ...]


def newest_cards(parts: Iterable[PublishedCards]) -> dict[tuple[str, str, str], ClaimableCard]:
    """The cards of each pool's highest generation, by (driver, pool, device)."""
    newest: dict[tuple[str, str], int] = {}
    parts = list(parts)
    for part in parts:
        pool = (part.driver, part.pool)
        newest[pool] = max(part.generation, newest.get(pool, part.generation))
    current = (part for part in parts if part.generation == newest[part.driver, part.pool])
    return {(card.driver, card.pool, card.device): card for part in current for card in part.cards}


def parse_slice(wire: WireSlice) -> PublishedCards:
    """The devices that have a UUID."""
    spec = wire.spec
    found = []
    for device in spec.devices or ():
        attributes: Mapping[str, Any] = (
            device.attributes or (device.basic or {}).get("attributes") or {}
        )
        uuid = _text(attributes, "uuid")
        if uuid:
            found.append(
                ClaimableCard(
                    spec.driver, spec.pool.name, device.name, uuid, _text(attributes, "profile")
                )
            )
    return PublishedCards(spec.driver, spec.pool.name, spec.pool.generation, tuple(found))


def _text(attributes: Mapping[str, Any], name: str) -> str:
    """The text of an attribute.

    Its name may have the driver's domain as a prefix (`gpu.nvidia.com/uuid`).

    >>> _text({"gpu.nvidia.com/uuid": {"string": "GPU-a"}}, "uuid")
    'GPU-a'
    >>> _text({"uuid": {"int": 5}}, "uuid")
    ''
    """
    for key, value in attributes.items():
        if (
            key.rpartition("/")[2] == name
            and isinstance(value, dict)
            and isinstance(value.get("string"), str)
        ):
            return str(value["string"])
    return ""
