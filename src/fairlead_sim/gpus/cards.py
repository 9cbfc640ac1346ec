"""The GPU models that the simulated world knows, and their numbers.

Memory sizes and limits are those the drivers report for the real cards; a model not listed here
cannot be simulated.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace


class CardModel(Struct, frozen=True, gc=False):
    """Memory in MiB (`reserved_mib` is the driver's), power in watts, clocks in MHz, links in bytes
    per second at full load.

    `memory_idle_mhz` differs from `memory_mhz` only on cards that lower their memory clock when
    idle. `has_gpm`: the driver measures how busy each part of the chip is (Hopper and later); other
    cards have no `DCGM_FI_PROF_*` (docs/spec/telemetry.md#profiling-fields). `slice_gigabytes`: the
    gigabytes in names of MIG profiles with 1, 2, 4 and 8 slices of memory; none: it cannot be
    divided. `links`: NVLinks.
    """

    name: str
    total_mib: int
    reserved_mib: int
    idle_watts: float
    limit_watts: float
    sm_idle_mhz: int
    sm_mhz: int
    memory_mhz: int
    memory_idle_mhz: int
    pcie_bytes: float
    nvlink_bytes: float = 0.0
    links: int = 0
    slice_gigabytes: tuple[int, ...] = ()
    has_memory_sensor: bool = True
    remaps_rows: bool = True
    has_gpm: bool = False

    @property
    def memory_mib(self) -> int:
        """Memory for containers (docs/spec/gpu-sharing.md#units-and-the-proportional-grant)."""
        return self.total_mib - self.reserved_mib

    @property
    def units(self) -> int:
        """Units of aliyun.com/gpu-mem (GiB) of one card."""
        return self.memory_mib // 1024


_H200_SLICES, _A100_SLICES = (18, 35, 71, 141), (10, 20, 40, 80)
_CARDS = (
    CardModel(
        "NVIDIA H200",
        143771,
        621,
        76.0,
        700.0,
        345,
        1980,
        3201,
        3201,
        12e9,
        180e9,
        18,
        _H200_SLICES,
        has_gpm=True,
    ),
    CardModel(
        "NVIDIA A100-SXM4-80GB",
        81920,
        601,
        58.0,
        400.0,
        210,
        1410,
        1593,
        1593,
        9e9,
        120e9,
        12,
        _A100_SLICES,
    ),
    CardModel("NVIDIA A10", 23028, 297, 21.0, 150.0, 210, 1695, 6251, 405, 6e9),
    CardModel(
        "Tesla V100-SXM2-16GB",
        16384,
        254,
        42.0,
        300.0,
        135,
        1530,
        877,
        877,
        6e9,
        60e9,
        6,
        remaps_rows=False,
    ),
    CardModel(
        "Tesla T4",
        15360,
        281,
        9.5,
        70.0,
        300,
        1590,
        5001,
        405,
        4e9,
        has_memory_sensor=False,
        remaps_rows=False,
    ),
)

CARD_MODELS = {card.name: card for card in _CARDS}


def known_memory_mib(name: str) -> int:
    """Memory for containers of the model called so; that of a
    middling card when it is not known.
    """
    return (known_model(name) or _MIDDLING).memory_mib


def card_model(name: str, memory_mib: int) -> CardModel:
    """The model called `name` with this memory for containers.

    An unknown model has the numbers of an average card.
    """
    known = known_model(name)
    if known is not None and known.memory_mib == memory_mib:
        return known
    return replace(known or _MIDDLING, name=name, total_mib=memory_mib, reserved_mib=0)


def known_model(name: str) -> CardModel | None:
    """By its name, however it is spelled: labels have hyphens where drivers have blanks."""
    spelled = name.replace("-", " ").lower()
    return next((card for card in _CARDS if card.name.replace("-", " ").lower() == spelled), None)


_MIDDLING = CARD_MODELS["NVIDIA A10"]
