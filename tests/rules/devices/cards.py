"""Cards for the tests of the node agent's rules: a T4 of document 003 and an H200, with UUIDs of
real length.
"""

from __future__ import annotations

from msgspec import structs

from fairlead.model.devices.gpu import CardMode, GpuSlot

SHARED = CardMode.SHARED
T4_MIB, T4_UNITS = 15079, 14


def uuid(index: int) -> str:
    return f"GPU-{index:08x}-1111-2222-3333-444444444444"


def t4(index: int = 0, **more: object) -> GpuSlot:
    """A T4 whose minor number differs from its index, as the contract permits
    (docs/spec/gpu-sharing.md#node-labels-annotations-and-inventory).
    """
    made = GpuSlot(index, uuid(index), index + 4, "Tesla T4", T4_MIB, T4_UNITS, mode=SHARED)
    return structs.replace(made, **more)
