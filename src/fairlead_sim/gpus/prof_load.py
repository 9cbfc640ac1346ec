"""What tests of the load generator do to a simulated card: exactly what each declares.

It has the methods of any `Load`, with exact integrals: every value is a straight line over a test,
so its mean is its value in the middle.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from fairlead.model.devices.gpu_load import GRAPHICS, LoadTest, shown
from fairlead_sim.gpus.load import Load

_MEMORY_RATIO = 0.03


class ProfLoad(Struct, frozen=True, gc=False):
    """Seconds count from the start of the first test; after the last nothing is busy.

    `ceiling` is the part of the card that the container was given.
    """

    tests: tuple[LoadTest, ...]
    ceiling: float = 1.0
    memory_ratio: float = _MEMORY_RATIO
    codec_ratio: float = 0.0

    @property
    def high(self) -> float:
        """The hardest that it works the card."""
        return (
            max(
                (
                    shown(test.field, test.ratio(test.seconds)).get(GRAPHICS, 0.0)
                    for test in self.tests
                ),
                default=0.0,
            )
            * self.ceiling
        )

    def level(self, s: float) -> float:
        return self.part(GRAPHICS, s)

    def level_integral(self, s: float) -> float:
        return self.part_integral(GRAPHICS, s)

    def part(self, field: int, s: float) -> float:
        """How busy the part is that this profiling field measures."""
        for test, begun in self._begun(s):
            if s < begun + test.seconds:
                return shown(test.field, test.ratio(s - begun)).get(field, 0.0) * self.ceiling
        return 0.0

    def part_integral(self, field: int, s: float) -> float:
        total = 0.0
        for test, begun in self._begun(s):
            lasted = min(s - begun, test.seconds)
            total += shown(test.field, test.ratio(lasted / 2)).get(field, 0.0) * lasted
        return total * self.ceiling

    def peak_seconds(self, s: float) -> float:
        """None: a test that is steady at its power limit gives no information about throttling."""
        return 0.0

    def is_at_peak(self, s: float) -> bool:
        return False

    def memory_filled(self, s: float) -> float:
        return 1.0

    def _begun(self, s: float) -> Iterator[tuple[LoadTest, float]]:
        """Tests that have begun after `s` seconds, and when."""
        at = 0.0
        for test in self.tests:
            if s < at:
                return
            yield test, at
            at += test.seconds


class SteadyLoad(Struct, frozen=True, gc=False):
    """A load that a card shows on request until the request ends: profiling field -> ratio."""

    parts: Mapping[int, float]
    memory_ratio: float = 0.0
    codec_ratio: float = 0.0

    @property
    def high(self) -> float:
        return self.parts.get(GRAPHICS, 0.0)

    def level(self, s: float) -> float:
        return self.high

    def level_integral(self, s: float) -> float:
        return self.high * s

    def part(self, field: int, s: float) -> float:
        return self.parts.get(field, 0.0)

    def part_integral(self, field: int, s: float) -> float:
        return self.part(field, s) * s

    def peak_seconds(self, s: float) -> float:
        return 0.0

    def is_at_peak(self, s: float) -> bool:
        return False

    def memory_filled(self, s: float) -> float:
        return 1.0


AnyLoad = Load | ProfLoad | SteadyLoad
