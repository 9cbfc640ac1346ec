"""`LoadBackend` for simulated cards: sets the values that they (and the tests' NVML) show."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from fairlead.edge.files.simulated_loads import OwnLoadFile
from fairlead.model.devices.gpu_chip import REACHED, LoadCard
from fairlead.model.devices.gpu_load import (
    DRAM,
    NVLINK_RX,
    NVLINK_TX,
    PCIE_RX,
    PCIE_TX,
    LoadTest,
    SimulatedLoad,
    WorkDone,
    shown,
)

_GRACE_SECONDS: Final = 3.0
"""Seconds that a load stays valid after its slice, because the next slice comes a little late."""
_COPIES: Final = frozenset((PCIE_TX, PCIE_RX, NVLINK_TX, NVLINK_RX))


class SimulatedBackend:
    """`LoadBackend` without a card: it writes the values to show, and waits.

    `node`: of its cards; "" = of any node.
    """

    def __init__(
        self,
        folder: Path,
        cards: Sequence[LoadCard],
        node: str = "",
        *,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._file = OwnLoadFile(folder)
        self._cards = tuple(cards)
        self._node = node
        self._now, self._sleep = now, sleep

    def cards(self) -> Sequence[LoadCard]:
        return self._cards

    def work(
        self, cards: Sequence[LoadCard], test: LoadTest, ratio: float, seconds: float
    ) -> Sequence[WorkDone]:
        gpus = tuple(card.uuid or str(card.index) for card in cards)
        self._file.write(
            SimulatedLoad(
                0,
                "",
                self._now() + seconds + _GRACE_SECONDS,
                shown(test.field, ratio),
                gpus,
                self._node,
            )
        )
        self._sleep(seconds)
        return [_done(card, test, ratio, seconds) for card in cards]

    def end(self) -> None:
        self._file.end()


def _done(card: LoadCard, test: LoadTest, ratio: float, seconds: float) -> WorkDone:
    peak = card.chip.peak_flops(test.field)
    if peak is not None:
        return WorkDone(seconds, flops=peak * REACHED * seconds)
    if test.field == DRAM:
        return WorkDone(
            seconds, generated=ratio, moved_bytes=card.chip.memory_bandwidth * ratio * seconds
        )
    return WorkDone(seconds, generated=None if test.field in _COPIES else ratio)
