"""NVIDIA's dcgmproftester: how long it runs, how hard it works its cards, what it prints (document 002).

It tests one profiling field after another. The words of the tensor cores' test are the document's; what the
others report is not played.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from msgspec import Struct

from fairlead.model.devices.gpu_load import DEFAULT_SECONDS, FIELD_GROUPS, TENSOR, TESTED, LoadTest, chosen_tests
from fairlead_sim.gpus.cards import CardModel
from fairlead_sim.kubelet.program import Line

PROGRAM = "dcgmproftester"
OURS = "gpu-load"
"""The same tests are `fairlead gpu-load`."""
MATRICES_MIB = 3 * 128
"""What the tensor cores' test takes on the card: three matrices of 8192 x 8192 half-precision numbers."""

_FLAGS = {"-t": "fields", "--fieldId": "fields", "-d": "duration", "--duration": "duration"}
_REACHED = 0.43
"""What of the peak of its tensor cores a card reaches: 27.9 of a T4's 65 TFLOPS (document 002)."""


class Chip(Struct, frozen=True, gc=False):
    """What CUDA says of a model's chip, and the peak of its tensor cores for half-precision matrices as
    NVIDIA states it."""

    threads: int
    processors: int
    shared_memory: int
    capability: tuple[int, int]
    bus_bits: int
    tensor_tflops: float


_CHIPS = {
    "NVIDIA H200": Chip(2048, 132, 233472, (9, 0), 6144, 989.0),
    "NVIDIA A100-SXM4-80GB": Chip(2048, 108, 167936, (8, 0), 5120, 312.0),
    "NVIDIA A10": Chip(1536, 72, 102400, (8, 6), 384, 125.0),
    "Tesla V100-SXM2-16GB": Chip(2048, 80, 98304, (7, 0), 4096, 125.0),
    "Tesla T4": Chip(1024, 40, 65536, (7, 5), 256, 65.0),
}


class ProfTest(Struct, frozen=True, gc=False):
    """One call: the fields it tests, so many seconds each. `is_full`: no load grows slowly.

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
    """As its command line is read: `-t 1004` may be one argument or two; what makes no sense counts as not
    given.

    >>> parse_prof_test(["--no-dcgm-validation", "-t 1004", "-d 120"])
    ProfTest(fields=(1004,), seconds=120.0, is_full=False, validates=False)
    """
    words = re.sub(r"(?<!\S)(-[td])(?=\d)", r"\1 ", " ".join(arguments).replace("=", " ")).split()
    given = {_FLAGS[flag]: value for flag, value in pairwise(words) if flag in _FLAGS}
    fields = FIELD_GROUPS.get(given.get("fields", "all")) or tuple(int(each) for each in re.findall(r"1\d{3}", given["fields"]))
    duration = given.get("duration", "")
    seconds = float(duration) if re.fullmatch(r"\d+(\.\d+)?", duration) else DEFAULT_SECONDS
    return ProfTest(fields or FIELD_GROUPS["all"], max(1.0, seconds), "--target-max-value" in words, "--no-dcgm-validation" not in words)


def tester_lines(test: ProfTest, model: CardModel, seconds: float, jitters: Sequence[float]) -> list[Line]:
    """What it has printed after `seconds` on cards of `model`: the chip, then a line every second of the
    tensor cores' test.

    `jitters` are numbers of [0, 1), taken in turn: no two seconds reach quite the same.
    """
    chip = _CHIPS.get(model.name) or _CHIPS["NVIDIA A10"]
    told: list[Line] = [(0.0, line) for line in _beginning(test, chip, model)]
    at = 0.0
    for field in test.fields:
        if field not in TESTED:
            told.append((at, f"A test for fieldId {field} has not been implemented yet."))
            continue
        if field == TENSOR:
            told += [(at + second, _tensor_line(test, chip, jitters[second % len(jitters)])) for second in range(1, int(test.seconds) + 1)]
        at += test.seconds
    if not test.validates:
        told.append((at, "Skipping UnwatchFields() since DCGM validation is disabled"))
    return [line for line in told if line[0] <= seconds]


def _beginning(test: ProfTest, chip: Chip, model: CardModel) -> list[str]:
    attributes = {
        "MAX_THREADS_PER_MULTIPROCESSOR": chip.threads,
        "MULTIPROCESSOR_COUNT": chip.processors,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": chip.shared_memory,
        "COMPUTE_CAPABILITY_MAJOR": chip.capability[0],
        "COMPUTE_CAPABILITY_MINOR": chip.capability[1],
        "GLOBAL_MEMORY_BUS_WIDTH": chip.bus_bits,
        "MEMORY_CLOCK_RATE": model.memory_mhz * 1000,
    }
    bandwidth = 2 * model.memory_mhz * 1_000_000 * chip.bus_bits // 8
    skipped = [] if test.validates else ["Skipping {}() since DCGM validation is disabled"]
    return [
        *(line.format("CreateDcgmGroups") for line in skipped),
        *(f"CU_DEVICE_ATTRIBUTE_{name}: {value}" for name, value in attributes.items()),
        f"Max Memory bandwidth: {bandwidth} bytes ({bandwidth / 1e9:.2f} GiB)",
        "CudaInit completed successfully.",
        "",
        *(line.format("WatchFields") for line in skipped),
    ]


def _tensor_line(test: ProfTest, chip: Chip, jitter: float) -> str:
    reached = f"({1000 * chip.tensor_tflops * _REACHED * (0.98 + 0.04 * jitter):.1f} gflops)"
    measured = 0.86 + 0.02 * jitter if test.validates else 0.0
    return f"TensorEngineActive: generated ???, dcgm {measured:.3f} {reached}"
