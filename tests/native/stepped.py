"""The guard's account in C, stepped from Python: see native/steps/steps.c."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Final

from fairlead.rules.devices.guard.steps import FREE, At, Moment, Step

TOOLS: Final = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from build_native import Built, build_region  # noqa: E402

WHAT: Final = {"": 0, "die": 1, "reserve": 2, "fail": 3, "free": 4, "fork": 5}


class SteppedAccount:
    """The library, with the regions and processes that it simulates."""

    def __init__(self, built: Built) -> None:
        self._library = ctypes.CDLL(str(build_region(built)))

    def start(self, first: Moment) -> None:
        """Begin with this moment as state 0."""
        self._count = len(first.stands)
        self._words = (ctypes.c_uint64 * (3 + 3 * self._count))()
        absent = sum(stand.at is At.ABSENT for stand in first.stands)
        self._library.steps_start(ctypes.c_uint64(first.limit), self._count, absent)

    def next(self, state: int, step: Step) -> tuple[int, ...]:
        """Owner, used, denied; slot, truth and place of each process after a step from a state.

        The result is the next state; it stays until another step from this one, or an earlier one.
        """
        what = WHAT[step.begin]
        code = self._library.steps_next(
            state, step.process, what, step.size, self._count, self._words
        )
        assert code == 0, f"more than {state} steps one after the other"
        return tuple(self._words)

    def trace(self, limit: int, processes: int, numbers: list[int]) -> list[int]:
        """Whole operations, four numbers each; four words after each."""
        count = len(numbers) // 4
        words = (ctypes.c_uint64 * len(numbers))()
        self._library.steps_start(ctypes.c_uint64(limit), processes, 0)
        self._library.steps_trace(
            (ctypes.c_uint64 * len(numbers))(*numbers), ctypes.c_uint64(count), words
        )
        return list(words)

    def is_region(self, content: bytes) -> bool:
        return bool(self._library.steps_is_region(content, ctypes.c_size_t(len(content))))

    def filled(self, seed: int) -> bytes:
        """A region whose words are written through the members of the C struct."""
        region = ctypes.create_string_buffer(self.layout()[4])
        self._library.steps_fill(region, ctypes.c_uint64(seed))
        return region.raw

    def layout(self) -> list[int]:
        words = (ctypes.c_uint64 * 11)()
        self._library.steps_layout(words)
        return list(words)

    def limits(self, text: bytes) -> tuple[list[tuple[int, int, int]], bool] | None:
        """Bytes, percent and context of each GPU, and whether the guard only shows; None where the
        text is refused.
        """
        words = (ctypes.c_uint64 * 97)()
        count = self._library.steps_limits(text, ctypes.c_size_t(len(text)), words)
        if count < 0:
            return None
        rows = [(words[at], words[at + 1], words[at + 2]) for at in range(0, 3 * count, 3)]
        return rows, bool(words[96])


def words_of(moment: Moment) -> tuple[int, ...]:
    """The same words of a moment of the model."""
    each = zip(moment.slots, moment.stands, strict=True)
    words = (number for slot, stand in each for number in (slot, stand.truth, int(stand.at)))
    return (moment.owner - FREE, moment.used, moment.denied, *words)
