"""CUDA attributes of the chips of GPU models, and their peak rates according to NVIDIA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.devices.gpu_load import FP16, FP32, FP64, TENSOR


class Chip(Struct, frozen=True, gc=False):
    """A chip.

    `shared_memory` in bytes per SM, `capability` major and minor, `memory_khz` as CUDA reports it.

    `tflops`: peak rates of FP64, FP32 and FP16 arithmetic, and of the tensor cores for
    half-precision matrices; None = unknown.
    """

    threads: int
    processors: int
    shared_memory: int
    capability: tuple[int, int]
    bus_bits: int
    memory_khz: int
    tflops: tuple[float, float, float, float] | None = None

    @property
    def memory_bandwidth(self) -> int:
        """Bytes per second: two transfers per clock.

        >>> CHIPS["Tesla T4"].memory_bandwidth
        320064000000
        """
        return 2 * self.memory_khz * 1000 * self.bus_bits // 8

    def peak_flops(self, field: int) -> float | None:
        """Peak FLOPS of the unit that this profiling field measures; None without arithmetic."""
        order = {FP64: 0, FP32: 1, FP16: 2, TENSOR: 3}
        return (
            None if self.tflops is None or field not in order else self.tflops[order[field]] * 1e12
        )


class LoadCard(Struct, frozen=True, gc=False):
    """A card that a load generator may use, numbered as `-i` does. `uuid` "" = unknown."""

    index: int
    uuid: str
    model: str
    chip: Chip


CHIPS: Final[Mapping[str, Chip]] = {
    "NVIDIA H200": Chip(2048, 132, 233472, (9, 0), 6144, 3_201_000, (34.0, 67.0, 134.0, 989.0)),
    "NVIDIA A100-SXM4-80GB": Chip(
        2048, 108, 167936, (8, 0), 5120, 1_593_000, (9.7, 19.5, 78.0, 312.0)
    ),
    "NVIDIA A10": Chip(1536, 72, 102400, (8, 6), 384, 6_251_000, (0.976, 31.2, 31.2, 125.0)),
    "Tesla V100-SXM2-16GB": Chip(2048, 80, 98304, (7, 0), 4096, 877_000, (7.8, 15.7, 31.4, 125.0)),
    "Tesla T4": Chip(1024, 40, 65536, (7, 5), 256, 5_001_000, (0.254, 8.1, 16.2, 65.0)),
}
REACHED: Final = 0.43
"""The part of its tensor cores' peak that a card reaches: 27.9 of a T4's 65 TFLOPS (document 002).
"""
