"""NVIDIA's dcgmproftester: its duration, its load, its output (document 002).

It tests one profiling field after another. The words of the tensor cores' test are the document's;
what the others report is not played.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from fairlead.model.devices.gpu_chip import CHIPS, REACHED, Chip
from fairlead.model.devices.gpu_load import (
    DEFAULT_SECONDS,
    FIELD_GROUPS,
    TENSOR,
    TESTED,
    LoadTest,
    WorkDone,
    chosen_tests,
)
from fairlead.wire.gpus.load_report import (
    render_chip,
    render_report,
    render_skipped,
    render_unknown,
)
from fairlead_sim.gpus.cards import CardModel
from fairlead_sim.kubelet.program import Line

PROGRAM = "dcgmproftester"
GPU_LOAD = "gpu-load"
"""The same tests are `fairlead gpu-load`."""
MATRICES_MIB = 3 * 128
"""Memory of the tensor cores' test: three matrices of 8192 x 8192 half-precision numbers."""

_FLAGS = {"-t": "fields", "--fieldId": "fields", "-d": "duration", "--duration": "duration"}


class ProfTest(Struct, frozen=True, gc=False):
    """One call: the fields that it tests, `seconds` each. `is_full`: no load grows slowly.

    `validates`: whether it compares with what DCGM measured.
    """

    fields: tuple[int, ...] = FIELD_GROUPS["all"]
    seconds: float = DEFAULT_SECONDS
    is_full: bool = False
    validates: bool = True

    @property
    def tests(self) -> tuple[LoadTest, ...]:
        return chosen_tests(self.fields, self.seconds, is_full=self.is_full)

    @property
    def run_seconds(self) -> float:
        return max(1.0, self.seconds * len(self.tests))

    @property
    def exit_code(self) -> int:
        return int(not TESTED.issuperset(self.fields))


def parse_prof_test(arguments: Sequence[str]) -> ProfTest:
    """The test that a command line asks for.

    `-t 1004` may be one argument or two; a senseless value counts as not given.

    >>> parse_prof_test(["--no-dcgm-validation", "-t 1004", "-d 120"])
    ProfTest(fields=(1004,), seconds=120.0, is_full=False, validates=False)
    """
    words = re.sub(r"(?<!\S)(-[td])(?=\d)", r"\1 ", " ".join(arguments).replace("=", " ")).split()
    given = {_FLAGS[flag]: value for flag, value in pairwise(words) if flag in _FLAGS}
    fields = FIELD_GROUPS.get(given.get("fields", "all")) or tuple(
        int(each) for each in re.findall(r"1\d{3}", given["fields"])
    )
    duration = given.get("duration", "")
    seconds = float(duration) if re.fullmatch(r"\d+(\.\d+)?", duration) else DEFAULT_SECONDS
    return ProfTest(
        fields or FIELD_GROUPS["all"],
        max(1.0, seconds),
        "--target-max-value" in words,
        "--no-dcgm-validation" not in words,
    )


def tester_lines(
    test: ProfTest, model: CardModel, seconds: float, jitters: Sequence[float]
) -> list[Line]:
    """What it has printed after `seconds` on cards of `model`: the chip, then a line every second
    of the tensor cores' test.

    `jitters` are numbers of [0, 1), taken in turn: no two seconds reach quite the same.
    """
    chip = CHIPS.get(model.name) or CHIPS["NVIDIA A10"]
    lines: list[Line] = [(0.0, line) for line in _beginning(test, chip)]
    at = 0.0
    for field in test.fields:
        if field not in TESTED:
            lines.append((at, render_unknown(field)))
            continue
        if field == TENSOR:
            lines += [
                (at + second, _tensor_line(test, chip, jitters[second % len(jitters)]))
                for second in range(1, int(test.seconds) + 1)
            ]
        at += test.seconds
    if not test.validates:
        lines.append((at, render_skipped("UnwatchFields")))
    return [line for line in lines if line[0] <= seconds]


def _beginning(test: ProfTest, chip: Chip) -> list[str]:
    before, after = (
        ((), ())
        if test.validates
        else ((render_skipped("CreateDcgmGroups"),), (render_skipped("WatchFields"),))
    )
    return [*before, *render_chip(chip), *after]


def _tensor_line(test: ProfTest, chip: Chip, jitter: float) -> str:
    reached = (chip.peak_flops(TENSOR) or 0.0) * REACHED * (0.98 + 0.04 * jitter)
    return render_report(
        TENSOR, WorkDone(1.0, flops=reached), 0.86 + 0.02 * jitter if test.validates else None
    )
