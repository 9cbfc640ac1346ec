"""`fairlead gpu-load` in place of dcgmproftester: its flags, its lines, its exit statuses.

See docs/spec/telemetry.md#load-generator, document 002.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.messages import Messages
from fairlead.cli.frame.parser import global_options, make_parser, split_verb
from fairlead.cli.servers import gpu_load
from fairlead.errors import OutsideError, UserError
from fairlead.model.devices.gpu_chip import CHIPS, LoadCard
from fairlead.model.devices.gpu_load import LoadTest, WorkDone

DOCUMENT_002 = Path(__file__).parents[3] / "examples" / "dcgmproftester.yaml"
SAMPLE = """\
Skipping CreateDcgmGroups() since DCGM validation is disabled
CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: 1024
CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: 40
CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: 65536
CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: 7
CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: 5
CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: 256
CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: 5001000
Max Memory bandwidth: 320064000000 bytes (320.06 GiB)
CudaInit completed successfully.

Skipping WatchFields() since DCGM validation is disabled
TensorEngineActive: generated ???, dcgm 0.000 (27605.2 gflops)
"""
"""The output in document 002, up to its first report."""


class PlayedCards:
    """Cards whose work takes no time; they record the requests."""

    def __init__(self, count: int = 1, lag: float = 1.0) -> None:
        self.asked: list[tuple[int, float, float]] = []
        self.groups: list[tuple[int, ...]] = []
        self.ended = 0
        self._cards = [
            LoadCard(index, f"GPU-{index}", "Tesla T4", CHIPS["Tesla T4"]) for index in range(count)
        ]
        self._lag = lag

    def cards(self) -> Sequence[LoadCard]:
        return self._cards

    def work(
        self, cards: Sequence[LoadCard], test: LoadTest, ratio: float, seconds: float
    ) -> Sequence[WorkDone]:
        self.asked.append((test.field, round(ratio, 3), round(seconds * self._lag, 3)))
        self.groups.append(tuple(card.index for card in cards))
        done = seconds * self._lag
        if test.field == 1004:
            return [WorkDone(done, flops=27_605.2e9 * done) for _ in cards]
        return [WorkDone(done, generated=ratio) for _ in cards]

    def end(self) -> None:
        self.ended += 1


def no_page(url: str) -> str:
    raise OutsideError("exporter", f"no page at {url}")


def outcome(
    arguments: Sequence[str],
    cards: PlayedCards | None = None,
    page: Callable[[str], str] = no_page,
    program: str = "fairlead",
) -> tuple[int, list[str], str]:
    """Exit status, lines on stdout, stderr."""
    words = ["gpu-load", *arguments] if program == "fairlead" else list(arguments)
    verb, rest = split_verb(words, program)
    assert verb is not None and verb.name == "gpu-load"
    args = make_parser(gpu_load, program).parse(rest)
    out, err, played = io.StringIO(), io.StringIO(), cards or PlayedCards()
    machine: Any = SimpleNamespace(
        load_backend=lambda name, sim_gpus, uses_matrices: played, page=page
    )
    world: Any = None
    context = Context(
        program,
        global_options(args),
        Messages(program, err),
        world,
        out,
        {},
        lambda: 0.0,
        lambda _: None,
        machine,
    )
    status = gpu_load.run(args, context)
    return status, out.getvalue().splitlines(), err.getvalue()


def test_document_002s_pod_runs_with_its_arguments_as_they_stand() -> None:
    arguments = yaml.safe_load(DOCUMENT_002.read_text())["spec"]["containers"][0]["args"]
    assert arguments == ["--no-dcgm-validation", "-t 1004", "-d 120"]
    cards = PlayedCards()
    status, lines, _ = outcome(arguments, cards)
    assert status == 0 and lines[:13] == SAMPLE.splitlines()
    assert cards.asked == [(1004, 0.87, 1.0)] * 120, "a report a second for two minutes"
    assert len([line for line in lines if "gflops" in line]) == 120
    assert cards.ended == 1


@pytest.mark.parametrize("program", ["dcgmproftester11", "dcgmproftester12", "dcgmproftester13"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["-t 1004", "-d 3"],
        ["-t", "1004", "-d", "3"],
        ["-t1004", "-d3"],
        ["--fieldId=1004", "--duration", "3"],
    ],
)
def test_by_nvidias_name_it_is_the_same_program(program: str, arguments: list[str]) -> None:
    cards = PlayedCards()
    status, _, _ = outcome(["--no-dcgm-validation", *arguments], cards, program=program)
    assert status == 0 and cards.asked == [(1004, 0.87, 1.0)] * 3


def test_a_load_that_grows_is_whole_at_the_end_of_its_test() -> None:
    cards = PlayedCards()
    outcome(["--no-dcgm-validation", "-t 1001", "-d 4"], cards)
    assert [ratio for _, ratio, _ in cards.asked] == [0.25, 0.5, 0.75, 1.0]


def test_with_target_max_value_it_is_whole_from_the_start() -> None:
    cards = PlayedCards()
    outcome(["--no-dcgm-validation", "-t 1001,1002,1003", "-d 2", "--target-max-value"], cards)
    assert cards.asked == [(field, 1.0, 1.0) for field in (1001, 1002, 1003) for _ in range(2)]


@pytest.mark.parametrize(
    ("named", "fields"),
    [
        ([], range(1001, 1011)),
        (["-t", "all"], range(1001, 1011)),
        (["-t nonvlink"], range(1001, 1011)),
        (["-t nvlink"], (1011, 1012)),
    ],
)
def test_groups_of_fields(named: list[str], fields: Sequence[int]) -> None:
    cards = PlayedCards()
    outcome(["--no-dcgm-validation", *named, "-d", "1"], cards)
    assert [field for field, _, _ in cards.asked] == list(fields)


def test_a_test_that_does_not_exist_is_reported_and_the_others_run() -> None:
    cards = PlayedCards()
    status, lines, _ = outcome(["--no-dcgm-validation", "-t 1999,1004", "-d 1"], cards)
    assert status == 1 and "A test for fieldId 1999 has not been implemented yet." in lines
    assert [field for field, _, _ in cards.asked] == [1004]


def test_work_that_takes_longer_than_its_report_makes_fewer_reports() -> None:
    cards = PlayedCards(lag=2.0)
    outcome(["--no-dcgm-validation", "-t 1004", "-d 10"], cards)
    assert len(cards.asked) == 5


def test_cards_are_chosen_and_named_in_their_reports() -> None:
    cards = PlayedCards(4)
    _, lines, _ = outcome(
        ["--no-dcgm-validation", "-t 1004", "-d 1", "-i 0,2", "--max-processes", "1"], cards
    )
    assert cards.groups == [(0,), (2,)]
    assert [line.partition(" ")[0] for line in lines if line.startswith("Worker")] == [
        "Worker",
        "Worker",
    ]
    with pytest.raises(UserError, match=r"\bGPU 7\b"):
        outcome(["-i 7"], PlayedCards(2))


def test_modes() -> None:
    cards = PlayedCards()
    status, lines, _ = outcome(
        ["-t 1004", "-d 3", "--mode", "nogenerateload,noreport,novalidate"], cards
    )
    assert status == 0 and cards.asked == [] and not [line for line in lines if "gflops" in line]
    with pytest.raises(UserError, match="--mode `quick`"):
        outcome(["--mode", "quick"])


@pytest.mark.parametrize(
    "words",
    [
        ["-d", "0.5"],
        ["-r", "11"],
        ["-d", "nan"],
        ["-t", "tensor"],
        ["-t", ""],
        ["-i", "-1"],
        ["-d", "ten"],
    ],
)
def test_values_that_make_no_sense_are_refused(words: list[str]) -> None:
    with pytest.raises(UserError):
        outcome(words)


def page_of(value: float) -> str:
    labels = 'gpu="0",UUID="GPU-0",modelName="Tesla T4"'
    other = 'gpu="1",UUID="GPU-1",modelName="Tesla T4"'
    name = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
    return f"# TYPE {name} gauge\n{name}{{{other}}} 0.000000\n{name}{{{labels}}} {value:.6f}\n"


def test_validation_reads_the_exporters_page() -> None:
    asked: list[str] = []

    def page(url: str) -> str:
        asked.append(url)
        return page_of(0.87)

    status, lines, _ = outcome(
        ["-t 1004", "-d 20", "--exporter", "http://gpu-1:9400/metrics"], page=page
    )
    assert status == 0 and set(asked) == {"http://gpu-1:9400/metrics"}
    assert "TensorEngineActive: generated ???, dcgm 0.870 (27605.2 gflops)" in lines
    assert lines[-2:] == ["GPU 0, TestField 1004 test PASSED.", "All Tests Passed."]
    assert not [line for line in lines if line.startswith("Skipping")]


@pytest.mark.parametrize(
    ("flags", "value", "passes"),
    [
        ([], 0.3, False),
        (["-m", "0.8"], 0.87, True),
        (["-m", "0.8", "--percent-tolerance", "5"], 0.87, False),
        (["-m", "0.8", "-a", "0.05"], 0.87, False),
        (["-m", "0.8", "-a", "0.1"], 0.87, True),
        (["--min-value", "0.9"], 0.87, False),
        (["--max-value", "0.9"], 0.87, True),
    ],
)
def test_what_was_measured_has_to_be_near(flags: list[str], value: float, passes: bool) -> None:
    status, lines, _ = outcome(["-t 1004", "-d 20", *flags], page=lambda _: page_of(value))
    assert (status == 0) is passes
    assert ("All Tests Passed." in lines) is passes


def test_fast_ends_with_the_first_good_value() -> None:
    cards = PlayedCards()
    status, _, _ = outcome(
        ["-t 1004", "-d 100", "--mode", "fast"], cards, page=lambda _: page_of(0.87)
    )
    assert status == 0 and len(cards.asked) == 10, "an exporter is given ten seconds"


def test_without_a_page_the_test_fails_and_prints_the_reason_once() -> None:
    status, lines, reported = outcome(["-t 1004", "-d 20"])
    assert (
        status == 1
        and (
            "GPU 0, TestField 1004 test FAILED: the exporter has no "
            "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE "
            "of this card."
        )
        in lines
    )
    assert reported.count("no page at") == 1


def test_flags_that_change_nothing_are_reported() -> None:
    _, _, reported = outcome(
        ["--no-dcgm-validation", "-t 1004", "-d 1", "--sync-count", "3", "--dvs"]
    )
    assert "--sync-count has no effect" in reported and "--dvs has no effect" in reported
