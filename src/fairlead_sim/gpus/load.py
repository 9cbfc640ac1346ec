"""How busy a container keeps a GPU at any instant, without ticking.

A load is a shape with a closed-form integral: a ramp, then equal periods of work that end in a dip
(a checkpoint, a validation), with a ripple of harmonics on the work and a slow drift over all.
Counters (energy, bytes) are therefore exact integrals: `level_integral(b) - level_integral(a)` is
what happened between a and b, however often it is read.
"""

from __future__ import annotations

from math import cos, floor, pi, sin
from random import Random

from msgspec import Struct

from fairlead.model.devices.gpu_load import (
    DRAM,
    FP16,
    FP32,
    FP64,
    GRAPHICS,
    NVLINK_RX,
    NVLINK_TX,
    OCCUPANCY,
    PCIE_RX,
    PCIE_TX,
    SM,
    TENSOR,
)

_TURN = 2 * pi
_MOVES_BYTES = frozenset((DRAM, PCIE_TX, PCIE_RX, NVLINK_TX, NVLINK_RX))
_SHARES = {
    GRAPHICS: 1.0,
    SM: 0.93,
    OCCUPANCY: 0.41,
    FP64: 0.0,
    FP32: 0.22,
    FP16: 0.08,
    DRAM: 1.0,
    PCIE_TX: 0.35,
    PCIE_RX: 1.0,
    NVLINK_TX: 1.0,
    NVLINK_RX: 1.0,
}
"""Of a container's level, or of what it moves."""


class Wave(Struct, frozen=True, gc=False):
    amplitude: float
    period: float
    phase: float

    def at(self, s: float) -> float:
        return self.amplitude * sin(_TURN * s / self.period + self.phase)

    def integral(self, s: float) -> float:
        """Integral from 0 to s."""
        return (
            self.amplitude
            * self.period
            / _TURN
            * (cos(self.phase) - cos(_TURN * s / self.period + self.phase))
        )


class Load(Struct, frozen=True, gc=False):
    """One container's demand on its GPU.

    Seconds count from the container's start; levels are ratios 0..1.

    Invariant (kept by `make_load`): low - drift >= 0 and high + ripple + drift <= 1, so no level
    ever needs clamping, which would break the integral. Ripple periods divide `period`.
    """

    warm_up: float
    period: float
    dip: float
    high: float
    low: float
    ripple: tuple[Wave, ...] = ()
    drift: Wave | None = None
    memory_ratio: float = 0.0
    tensor_ratio: float = 0.0
    bandwidth_ratio: float = 0.0
    codec_ratio: float = 0.0

    def level(self, s: float) -> float:
        """Utilization s seconds after the start."""
        if s < self.warm_up:
            return _RAMP_TOP * self.high * max(0.0, s) / self.warm_up
        t = s - self.warm_up
        drift = self.drift.at(t) if self.drift else 0.0
        return self._base(t % self.period) + drift

    def level_integral(self, s: float) -> float:
        """Integral of `level` from 0 to s, in seconds of full load. Never falls."""
        ramp = min(max(0.0, s), self.warm_up)
        total = _RAMP_TOP * self.high * ramp * ramp / (2 * self.warm_up)
        if s <= self.warm_up:
            return total
        t = s - self.warm_up
        periods = floor(t / self.period)
        total += periods * self._period_integral(self.period) + self._period_integral(
            t - periods * self.period
        )
        return total + (self.drift.integral(t) if self.drift else 0.0)

    def part(self, field: int, s: float) -> float:
        """How busy the part of the chip is that a profiling field (1001 to 1012) measures."""
        return self.level(s) * self._share(field)

    def part_integral(self, field: int, s: float) -> float:
        return self.level_integral(s) * self._share(field)

    def _share(self, field: int) -> float:
        if field == TENSOR:
            return self.tensor_ratio
        return _SHARES[field] * (self.bandwidth_ratio if field in _MOVES_BYTES else 1.0)

    def peak_seconds(self, s: float) -> float:
        """Seconds of the first s that were spent at `high`, on which power and thermal caps act."""
        t = s - self.warm_up
        if t <= 0:
            return 0.0
        work = self.period - self.dip
        periods = floor(t / self.period)
        return periods * work + min(t - periods * self.period, work)

    def is_at_peak(self, s: float) -> bool:
        return s >= self.warm_up and (s - self.warm_up) % self.period < self.period - self.dip

    def memory_filled(self, s: float) -> float:
        """Share of its memory that the container has taken after s seconds.

        It grows during the ramp, then stays.
        """
        return min(1.0, max(0.0, s) / self.warm_up)

    def _base(self, u: float) -> float:
        if u >= self.period - self.dip:
            return self.low
        return self.high + sum(wave.at(u) for wave in self.ripple)

    def _period_integral(self, u: float) -> float:
        work = min(u, self.period - self.dip)
        return (
            self.high * work
            + self.low * (u - work)
            + sum(wave.integral(work) for wave in self.ripple)
        )


_RAMP_TOP = 0.4

IDLE = Load(warm_up=30.0, period=600.0, dip=0.0, high=0.0, low=0.0, memory_ratio=0.03)
"""Allocated and doing nothing: a context on the card, no kernels."""

LOADS = ("training", "input-bound", "inference", "notebook", "idle")
"""What a person may ask for. The tests of the load generator are beside them (`prof_load`)."""


class _Shape(Struct, frozen=True, gc=False):
    """Ranges from which one container's load is drawn."""

    warm_up: tuple[float, float]
    period: tuple[float, float]
    dip: tuple[float, float]
    high: tuple[float, float]
    low: float
    wobble: float
    memory: tuple[float, float]
    tensor: float
    bandwidth: float
    codec: float = 0.0


_SHAPES = {
    "training": _Shape(
        (40, 150), (420, 1100), (18, 55), (0.82, 0.94), 0.08, 0.05, (0.62, 0.93), 0.72, 0.55
    ),
    "input-bound": _Shape(
        (60, 180), (40, 90), (16, 40), (0.48, 0.70), 0.06, 0.06, (0.35, 0.60), 0.45, 0.30
    ),
    "inference": _Shape(
        (20, 60), (500, 1500), (140, 420), (0.35, 0.70), 0.12, 0.10, (0.60, 0.90), 0.40, 0.35, 0.12
    ),
    "notebook": _Shape(
        (30, 60), (1200, 2700), (1000, 2300), (0.30, 0.75), 0.0, 0.12, (0.10, 0.45), 0.30, 0.25
    ),
}


def make_load(name: str, random: Random, ceiling: float = 1.0) -> Load:
    """Draw a load of the given name (one of `LOADS`).

    `ceiling` is the largest level: the granted part of a shared card.
    """
    if name == "idle":
        return IDLE
    shape = _SHAPES[name]
    period = random.uniform(*shape.period)
    dip = min(random.uniform(*shape.dip), period - 10.0)
    wobble = shape.wobble * random.uniform(0.6, 1.0) * ceiling
    drift = min(0.5 * wobble, 0.8 * shape.low * ceiling)
    ripple = 0.5 * wobble
    high = min(random.uniform(*shape.high) * ceiling, ceiling - ripple - drift)
    return Load(
        warm_up=random.uniform(*shape.warm_up),
        period=period,
        dip=dip,
        high=high,
        low=shape.low * ceiling,
        ripple=_harmonics(ripple, period, random),
        drift=Wave(drift, random.uniform(1700, 5200), random.uniform(0, _TURN)) if drift else None,
        memory_ratio=random.uniform(*shape.memory),
        tensor_ratio=shape.tensor * random.uniform(0.8, 1.1),
        bandwidth_ratio=shape.bandwidth * random.uniform(0.8, 1.2),
        codec_ratio=shape.codec * random.uniform(0.5, 1.0),
    )


def _harmonics(amplitude: float, period: float, random: Random) -> tuple[Wave, ...]:
    """A slow, a middle and a fast harmonic of the period, together never above `amplitude`."""
    parts = ((0.45, 240.0), (0.30, 47.0), (0.25, 11.0))
    return tuple(
        Wave(share * amplitude, period / max(1, round(period / near)), random.uniform(0, _TURN))
        for share, near in parts
    )
