"""The tests of the load generator, and what each does to a card, as ratios of its peak.

Specification: docs/spec/telemetry.md#load-generator.

A test has the id of the profiling field that it moves. The load of the first three tests rises from
nothing to the peak; the others have the highest load from the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

GRAPHICS, SM, OCCUPANCY, TENSOR, DRAM = 1001, 1002, 1003, 1004, 1005
FP64, FP32, FP16 = 1006, 1007, 1008
PCIE_TX, PCIE_RX, NVLINK_TX, NVLINK_RX = 1009, 1010, 1011, 1012

NVLINK_FIELDS: Final = (NVLINK_TX, NVLINK_RX)
WITHOUT_NVLINK: Final = tuple(range(GRAPHICS, NVLINK_TX))
FIELD_GROUPS: Final[Mapping[str, tuple[int, ...]]] = {
    "all": WITHOUT_NVLINK,
    "nonvlink": WITHOUT_NVLINK,
    "nvlink": NVLINK_FIELDS,
}
TESTED: Final = frozenset((*WITHOUT_NVLINK, *NVLINK_FIELDS))
RISING: Final = frozenset((GRAPHICS, SM, OCCUPANCY))
"""Tests whose load rises during the test; with `--target-max-value` it is full from the start."""
DEFAULT_SECONDS: Final = 30.0

_AT_WORK: Final = 0.98
"""Graphics engine activity during the test of the tensor cores, from document 002."""
_REACHED: Final[Mapping[int, float]] = {
    TENSOR: 0.87,
    DRAM: 0.93,
    FP64: 0.95,
    FP32: 0.95,
    FP16: 0.95,
    PCIE_TX: 0.93,
    PCIE_RX: 0.93,
}
_REACHED_BY_LINKS: Final = 0.93
_ONE_THREAD: Final = 1 / 64
"""The part of an SM's warps that is used by blocks with one thread."""


class LoadTest(Struct, frozen=True, gc=False):
    """The test of one field, `seconds` long. `is_full`: full load from the start."""

    field: int
    seconds: float = DEFAULT_SECONDS
    is_full: bool = False

    def ratio(self, s: float) -> float:
        """The wanted load of the tested unit `s` seconds after the start: 0..1.

        >>> LoadTest(1001, 120.0).ratio(30.0), LoadTest(1001, 120.0, True).ratio(30.0)
        (0.25, 1.0)
        """
        if self.field in RISING:
            return 1.0 if self.is_full else min(1.0, max(0.0, s) / self.seconds)
        return _REACHED.get(self.field, _REACHED_BY_LINKS)


def shown(field: int, ratio: float) -> Mapping[int, float]:
    """The values of a card's fields while this test keeps the tested unit busy at `ratio`.

    Absent fields are 0.

    Every value is linear in `ratio`.

    >>> shown(1004, 0.87)[1001], shown(1004, 0.87)[1004], shown(1009, 0.93).get(1001, 0.0)
    (0.98, 0.87, 0.0)
    """
    match field:
        case 1001:
            return {GRAPHICS: ratio, SM: ratio, OCCUPANCY: ratio * _ONE_THREAD}
        case 1002:
            return {GRAPHICS: _AT_WORK, SM: ratio, OCCUPANCY: ratio * _ONE_THREAD}
        case 1003:
            return {GRAPHICS: _AT_WORK, SM: _AT_WORK, OCCUPANCY: ratio}
        case 1004:
            return {GRAPHICS: _AT_WORK, SM: 0.96, OCCUPANCY: 0.12, TENSOR: ratio, DRAM: 0.35}
        case 1005:
            return {GRAPHICS: _AT_WORK, SM: 0.96, OCCUPANCY: 0.85, DRAM: ratio}
        case 1006 | 1007 | 1008:
            return {GRAPHICS: _AT_WORK, SM: _AT_WORK, OCCUPANCY: 0.50, DRAM: 0.02, field: ratio}
        case _:
            return {field: ratio, DRAM: 0.02}


def chosen_tests(fields: Sequence[int], seconds: float, *, is_full: bool) -> tuple[LoadTest, ...]:
    """The tests of these fields that exist, in their order, each with this duration."""
    return tuple(LoadTest(field, seconds, is_full) for field in fields if field in TESTED)


class WorkDone(Struct, frozen=True, gc=False):
    """What one card did in `seconds`. None: unknown, or not this kind of work.

    `generated`: the expected value of the tested field (a ratio, or bytes per second).
    """

    seconds: float
    generated: float | None = None
    flops: float | None = None
    moved_bytes: float | None = None


class SimulatedLoad(Struct, frozen=True, gc=False):
    """The values that simulated cards show while a load generator without a card runs.

    `gpus`: uuids or indices of cards of `node`; empty = all. `node`: "" = any. `parts`: profiling
    field -> ratio. It is valid until `until` (epoch seconds), and while the process `pid` lives in
    its `pid_namespace`.
    """

    pid: int
    pid_namespace: str
    until: float
    parts: Mapping[int, float]
    gpus: tuple[str, ...] = ()
    node: str = ""

    def is_for(self, node: str, index: int, uuid: str) -> bool:
        return self.node in ("", node) and (
            not self.gpus or uuid in self.gpus or str(index) in self.gpus
        )
