"""`LoadBackend` with an array library: keeps cards busy, with one thread per card.

This module decides which work moves which field; the module of a library starts the work.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from typing import Final

from fairlead.edge.cuda.array_library import ArrayLibrary, Launch
from fairlead.errors import FairleadError, OutsideError
from fairlead.model.devices.gpu_chip import LoadCard
from fairlead.model.devices.gpu_load import (
    DRAM,
    FP16,
    FP32,
    FP64,
    GRAPHICS,
    PCIE_RX,
    PCIE_TX,
    RISING,
    SM,
    TENSOR,
    LoadTest,
    WorkDone,
)

_BITS: Final = {FP64: 64, FP32: 32, FP16: 16}
_TENSOR_SIZE, _SIZE = 8192, 4096
_COPY_BYTES: Final = 100_000_000
_PERIOD_SECONDS: Final = 0.1
_LEAST_SECONDS: Final = 0.001
_LARGEST_BLOCK: Final = 1024
_WARP: Final = 32
_HOPPER: Final = 9
_OVERHEAD, _OVERHEAD_BEFORE = 1.08, 1.123
"""Factors by which PCIe's protocol increases the bytes of a copy."""


class CudaBackend:
    """`uses_matrices`: also for FP64, FP32 and FP16, where the library has other work for them."""

    def __init__(
        self,
        library: ArrayLibrary,
        *,
        uses_matrices: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._library = library
        self._uses_matrices = uses_matrices
        self._clock, self._sleep = clock, sleep
        self._cards = tuple(library.cards())
        self._workers = {
            card.index: ThreadPoolExecutor(1, f"gpu-{card.index}") for card in self._cards
        }
        self._ready: dict[int, tuple[int, Launch]] = {}
        self._is_over = threading.Event()

    def cards(self) -> Sequence[LoadCard]:
        return self._cards

    def work(
        self, cards: Sequence[LoadCard], test: LoadTest, ratio: float, seconds: float
    ) -> Sequence[WorkDone]:
        busy = [
            self._workers[card.index].submit(self._one, card, test, ratio, seconds)
            for card in cards
        ]
        return [each.result() for each in busy]

    def end(self) -> None:
        """Waits for work that the cards have started."""
        self._is_over.set()
        for worker in self._workers.values():
            worker.shutdown(cancel_futures=True)

    def _one(self, card: LoadCard, test: LoadTest, ratio: float, seconds: float) -> WorkDone:
        try:
            if test.field in RISING:
                return self._wait_on(card, test.field, ratio, seconds)
            return self._repeat(card, test.field, seconds)
        except FairleadError:
            raise
        except Exception as error:
            what = (
                f"GPU {card.index} does not do the test of {test.field} with {self._library.name}"
            )
            raise OutsideError(
                "cuda",
                f"{what}: {str(error).splitlines()[0] if str(error) else type(error).__name__}",
            ) from error

    def _repeat(self, card: LoadCard, field: int, seconds: float) -> WorkDone:
        """Starts work in batches until the time is over.

        The last batch may take a little longer.
        """
        launch = self._launch(card, field)
        began, done = self._clock(), 0.0
        while True:
            for _ in range(launch.batch):
                launch.run()
            self._library.wait(card.index)
            done += launch.amount * launch.batch
            took = self._clock() - began
            if took >= seconds or self._is_over.is_set():
                return _repeated(card, field, took, done)

    def _launch(self, card: LoadCard, field: int) -> Launch:
        """The work of a test, made once; its memory is released when the next test begins."""
        known = self._ready.get(card.index)
        if known is not None and known[0] == field:
            return known[1]
        self._ready.pop(card.index, None)
        launch = self._new_launch(card.index, field)
        if launch is None:
            raise OutsideError(
                "cuda",
                (
                    f"the test of {field} cannot be done on GPU "
                    f"{card.index} with {self._library.name}"
                ),
            )
        self._ready[card.index] = field, launch
        return launch

    def _new_launch(self, card: int, field: int) -> Launch | None:
        if field == TENSOR:
            return self._library.matrices(card, 16, _TENSOR_SIZE)
        if field in _BITS:
            sums = None if self._uses_matrices else self._library.arithmetic(card, _BITS[field])
            return sums or self._library.matrices(card, _BITS[field], _SIZE)
        return self._library.copies(card, field, _COPY_BYTES)

    def _wait_on(self, card: LoadCard, field: int, ratio: float, seconds: float) -> WorkDone:
        """Kernels that only wait: a part of each period, on some SMs, or with some threads."""
        began, made = self._clock(), 0.0
        while (
            left := seconds - (self._clock() - began)
        ) > _LEAST_SECONDS and not self._is_over.is_set():
            period = min(_PERIOD_SECONDS, left)
            made = self._one_period(card, field, ratio, period)
        return WorkDone(max(self._clock() - began, 1e-9), generated=made)

    def _one_period(self, card: LoadCard, field: int, ratio: float, period: float) -> float:
        """The part of the period that was busy."""
        processors = card.chip.processors
        seconds, blocks, threads, made = period, processors, 1, ratio
        if field == GRAPHICS:
            seconds, blocks = period * ratio, 1
        elif field == SM:
            blocks = round(ratio * processors)
            made = blocks / processors
        else:
            wanted = max(_WARP, round(ratio * card.chip.threads / _WARP) * _WARP)
            stacked = ceil(wanted / _LARGEST_BLOCK)
            threads = max(_WARP, wanted // stacked // _WARP * _WARP)
            blocks = processors * stacked
            made = threads * stacked / card.chip.threads
        if seconds <= 0 or blocks <= 0:
            self._sleep(period)
            return 0.0
        ends = self._clock() + period
        if not self._library.spin(card.index, seconds, blocks, threads):
            raise OutsideError(
                "cuda",
                (
                    f"the test of {field} needs cupy: {self._library.name} starts no kernels of a "
                    "chosen shape"
                ),
            )
        self._library.wait(card.index)
        if (rest := ends - self._clock()) > 0:
            self._sleep(rest)
        return made


def _repeated(card: LoadCard, field: int, seconds: float, done: float) -> WorkDone:
    seconds = max(seconds, 1e-9)
    if field == TENSOR or field in _BITS:
        return WorkDone(seconds, flops=done)
    if field == DRAM:
        bandwidth = card.chip.memory_bandwidth
        return WorkDone(
            seconds, generated=done / seconds / bandwidth if bandwidth else None, moved_bytes=done
        )
    overhead = (
        (_OVERHEAD if card.chip.capability[0] >= _HOPPER else _OVERHEAD_BEFORE)
        if field in (PCIE_TX, PCIE_RX)
        else 1.0
    )
    return WorkDone(seconds, generated=done / seconds * overhead, moved_bytes=done)
