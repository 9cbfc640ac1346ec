"""The region: the file that the memory guard's processes in one container share.

Specification: docs/spec/gpu-sharing.md#limits-file-and-region.

Its layout is that of native/guard/region.h, in the byte order of the machine. A process of the
container can write anything into it, so no number in it is trusted as an index or a size. Readers
take no lock: the words of one card may belong to different moments. The words behind the slots, the
guard's account of compute time, are 0 in a new file and are not read here.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from fairlead.model.devices.kubelet import Region, RegionCard, RegionSlot
from fairlead.model.refusal import Refusal

MAGIC: Final = 0x5247464C
VERSION: Final = 1
CARDS: Final = 32
SLOTS: Final = 1024
BYTES: Final = 290816
"""Whole pages of 4 KiB."""
_HEAD: Final = Struct("=IIQI44x")
"""Magic, version, generation, and the lock."""
_CARD: Final = Struct("=4Q")
_SLOT: Final = Struct(f"={3 + CARDS}Q")
_FIRST_SLOT: Final = _HEAD.size + CARDS * _CARD.size
_SLOT_WORDS: Final = _SLOT.size // 8


def render_region(region: Region) -> bytes:
    """The file, with the lock free. Cards and slots that `region` does not have are empty.

    >>> len(render_region(Region(1)))
    290816
    """
    data = bytearray(BYTES)
    _HEAD.pack_into(data, 0, MAGIC, VERSION, region.generation, 0)
    for number, card in enumerate(region.cards):
        words = (card.used, card.peak, card.denied, card.unknown_allocators)
        _CARD.pack_into(data, _HEAD.size + number * _CARD.size, *words)
    for slot in region.slots:
        place = _FIRST_SLOT + slot.number * _SLOT.size
        _SLOT.pack_into(data, place, slot.identity, slot.start, slot.pid_namespace, *slot.held)
    return bytes(data)


def parse_region(data: bytes) -> Region | Refusal:
    """The region, with all 32 cards. A Refusal: it is too short, or of another layout or version.

    >>> parse_region(b"")
    Refusal(reason='the region file has 0 bytes, a region has 290816')
    """
    if len(data) < BYTES:
        return Refusal(f"the region file has {len(data)} bytes, a region has {BYTES}")
    magic, version, generation, _ = _HEAD.unpack_from(data)
    if magic != MAGIC:
        return Refusal(f"the region file begins with {magic:#010x}, not with {MAGIC:#010x}")
    if version != VERSION:
        return Refusal(
            f"the region file has version {version}, this Fairlead reads version {VERSION}"
        )
    cards = _CARD.iter_unpack(data[_HEAD.size : _FIRST_SLOT])
    return Region(generation, tuple(RegionCard(*words) for words in cards), _taken(data))


def _taken(data: bytes) -> tuple[RegionSlot, ...]:
    words = memoryview(data)[_FIRST_SLOT : _FIRST_SLOT + SLOTS * _SLOT.size].cast("Q")
    taken = [number for number, each in enumerate(words[::_SLOT_WORDS].tolist()) if each]
    found: list[RegionSlot] = []
    for number in taken:
        identity, start, inode, *held = _SLOT.unpack_from(data, _FIRST_SLOT + number * _SLOT.size)
        found.append(RegionSlot(number, identity, start, inode, tuple(held)))
    return tuple(found)
