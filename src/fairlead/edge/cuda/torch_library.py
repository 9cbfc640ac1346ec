"""`ArrayLibrary` with torch: matrices, copies, and a waiting kernel of one thread."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from fairlead.edge.cuda.array_library import Launch
from fairlead.model.devices.gpu_chip import CHIPS, Chip, LoadCard
from fairlead.model.devices.gpu_load import DRAM, NVLINK_TX, PCIE_RX, PCIE_TX

_GEMMS_PER_CHECK, _COPIES_PER_CHECK = 100, 20
_CYCLES_PER_SECOND = 1_500_000_000
"""Clock rate assumed for `_sleep`, which counts cycles; the clock changes, so duty cycles are
inexact by a few percent.
"""


class TorchLibrary:
    name = "torch"

    def __init__(self) -> None:
        self._torch: Any = import_module("torch")
        self._cards = self._found()

    def cards(self) -> Sequence[LoadCard]:
        return self._cards

    def matrices(self, card: int, bits: int, size: int) -> Launch:
        torch = self._torch
        left, right, out = (
            torch.ones((size, size), dtype=getattr(torch, f"float{bits}"), device=f"cuda:{card}")
            for _ in range(3)
        )
        return Launch(
            lambda: torch.matmul(left, right, out=out),
            2.0 * size**3,
            _GEMMS_PER_CHECK if bits == 16 else 4,
        )

    def arithmetic(self, card: int, bits: int) -> Launch | None:
        return None

    def copies(self, card: int, field: int, size: int) -> Launch | None:
        torch = self._torch
        here = torch.zeros(size, dtype=torch.uint8, device=f"cuda:{card}")
        if field in (PCIE_TX, PCIE_RX):
            there = torch.zeros(size, dtype=torch.uint8, pin_memory=True)
        elif field == DRAM:
            there = torch.zeros_like(here)
        else:
            others = (each.index for each in self._cards if each.index != card)
            other = next(
                (each for each in others if torch.cuda.can_device_access_peer(card, each)), None
            )
            if other is None:
                return None
            there = torch.zeros(size, dtype=torch.uint8, device=f"cuda:{other}")
        to, source = (there, here) if field in (PCIE_TX, NVLINK_TX, DRAM) else (here, there)
        return Launch(
            lambda: to.copy_(source, non_blocking=True),
            size * (2.0 if field == DRAM else 1.0),
            _COPIES_PER_CHECK,
        )

    def spin(self, card: int, seconds: float, blocks: int, threads: int) -> bool:
        if (blocks, threads) != (1, 1):
            return False
        with self._torch.cuda.device(card):
            self._torch.cuda._sleep(int(seconds * _CYCLES_PER_SECOND))
        return True

    def wait(self, card: int) -> None:
        self._torch.cuda.synchronize(card)

    def _found(self) -> tuple[LoadCard, ...]:
        cuda = self._torch.cuda
        return tuple(
            _card(index, cuda.get_device_properties(index))
            for index in range(cuda.device_count() if cuda.is_available() else 0)
        )


def _card(index: int, properties: Any) -> LoadCard:
    """Values of the chip that torch does not have are those of the known model, else 0."""
    known = CHIPS.get(properties.name)
    uuid = getattr(properties, "uuid", None)
    chip = Chip(
        getattr(properties, "max_threads_per_multi_processor", known.threads if known else 0),
        properties.multi_processor_count,
        getattr(
            properties, "shared_memory_per_multiprocessor", known.shared_memory if known else 0
        ),
        (properties.major, properties.minor),
        getattr(properties, "memory_bus_width", known.bus_bits if known else 0),
        getattr(properties, "memory_clock_rate", known.memory_khz if known else 0),
    )
    return LoadCard(index, f"GPU-{uuid}" if uuid else "", properties.name, chip)
