"""`fairlead gpu-load` makes GPUs busy in a known way.

It has the flags and prints the lines of dcgmproftester.

docs/spec/telemetry.md#load-generator.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.context import Context, LoadBackend
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.errors import OutsideError, UserError

if TYPE_CHECKING:
    from fairlead.model.devices.gpu_chip import LoadCard
    from fairlead.model.devices.gpu_load import LoadTest, WorkDone
    from fairlead.rules.devices.load_check import LoadReport, Tolerance

NAME = "gpu-load"
READS_A_CLUSTER = False
HELP = """Generate a defined GPU load, to check metrics, boards and autoscalers. A test has the id
of the DCGM field that it raises: 1001 graphics engine, 1002 SMs, 1003 occupancy, 1004 tensor cores,
1005 memory, 1006 to 1008 FP64, FP32, FP16, 1009 and 1010 PCIe, 1011 and 1012 NVLink. It accepts the
flags of dcgmproftester, each with its value as one argument or two.

The backend `sim` needs no GPU: simulated GPUs show the load ($FAIRLEAD_GPU_LOAD_DIR)."""
_MODES: Final = ("generateload", "report", "validate", "fast")
_UNREAD: Final = ("config_file", "sync_count", "reset", "dvs", "log_file", "log_level")
_ADDRESS: Final = "http://127.0.0.1:9400/metrics"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    def number(*spellings: str, low: float, high: float, default: float | None, help: str) -> None:
        parser.add_argument(
            *spellings, metavar="N", type=_number(low, high), default=default, help=help
        )

    parser.add_argument(
        "--fieldId",
        "-t",
        metavar="IDS",
        default="all",
        help="ids by comma, all, nvlink or nonvlink (default all)",
    )
    number(
        "--duration",
        "-d",
        low=1,
        high=10_000_000,
        default=30.0,
        help="seconds of each test (default 30)",
    )
    parser.add_argument(
        "--gpuIds",
        "-i",
        metavar="IDS",
        default="all",
        help="indices of the GPUs by comma, or all (default all)",
    )
    number(
        "--report",
        "-r",
        low=0.01,
        high=10,
        default=1.0,
        help="seconds between two reports, at most 10 (default 1)",
    )
    parser.add_argument(
        "--no-dcgm-validation",
        action=BooleanFlag,
        help="do not compare with the values of an exporter",
    )
    parser.add_argument(
        "--target-max-value",
        action=BooleanFlag,
        help="full load from the start, instead of a slow increase",
    )
    parser.add_argument(
        "--cublas",
        action=BooleanFlag,
        help="use matrix products for 1006 to 1008 instead of sums",
    )
    parser.add_argument(
        "--mode",
        metavar="MODES",
        default="",
        help="[no]generateload,[no]report,[no]validate,[no]fast",
    )
    number(
        "--percent-tolerance",
        low=0,
        high=99.999,
        default=None,
        help="how far off a measured value may be, in percent (default 10)",
    )
    number(
        "--absolute-tolerance", "-a", low=0, high=1e18, default=None, help="the same as an amount"
    )
    number("--match-value", "-m", low=0, high=1e18, default=None, help="expected value")
    number(
        "--wait-to-check",
        "-w",
        low=0,
        high=99.999,
        default=0.0,
        help="percent of a test before values are compared (default 0)",
    )
    number("--min-value", low=0, high=1e18, default=None, help="least expected value")
    number("--max-value", low=0, high=1e18, default=None, help="greatest expected value")
    number(
        "--max-processes",
        low=0,
        high=255,
        default=0.0,
        help="number of GPUs at once (default 0: all)",
    )
    parser.add_argument("--config-file", "-c", metavar="FILE", help="accepted without effect")
    parser.add_argument("--sync-count", metavar="N", help="accepted without effect")
    parser.add_argument("--reset", action=BooleanFlag, help="accepted without effect")
    parser.add_argument("--dvs", action=BooleanFlag, help="accepted without effect")
    parser.add_argument("--log-file", metavar="FILE", help="accepted without effect")
    parser.add_argument("--log-level", metavar="LEVEL", help="accepted without effect")
    parser.add_argument("--version", action=BooleanFlag, help="print the version")
    parser.add_argument(
        "--backend",
        metavar="NAME",
        choices=("auto", "cuda", "sim"),
        help="auto, cuda or sim (default auto)",
    )
    parser.add_argument(
        "--sim-gpus",
        metavar="GPUS",
        default="1xTesla-T4",
        help="GPUs of `--backend sim` (default 1xTesla-T4)",
    )
    parser.add_argument(
        "--exporter", metavar="URL", help=f"exporter page to compare with (default {_ADDRESS})"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    if args.version:
        from fairlead import __version__

        context.stdout.write(
            f"{context.program if context.program != 'fairlead' else NAME} {__version__}\n"
        )
        return 0
    for name in _UNREAD:
        if getattr(args, name):
            context.messages.warn(f"--{name.replace('_', '-')} has no effect")
    fields, modes = _fields(args.fieldId), _modes(args.mode)
    name = args.backend or context.env.get("FAIRLEAD_GPU_LOAD_BACKEND") or "auto"
    backend = context.machine.load_backend(name, args.sim_gpus.strip(), uses_matrices=args.cublas)
    try:
        return _Tester(args, context, backend, modes).run(fields)
    finally:
        backend.end()


class _Tester:
    """One call: tests one after another, on groups of cards."""

    def __init__(
        self,
        args: argparse.Namespace,
        context: Context,
        backend: LoadBackend,
        modes: dict[str, bool],
    ) -> None:
        self._context = context
        self._backend = backend
        self._is_full: bool = args.target_max_value
        self._seconds: float = args.duration
        self._every: float = min(args.report, args.duration)
        self._validates = modes["validate"] and not args.no_dcgm_validation
        self._modes = modes
        self._url = (args.exporter or context.env.get("FAIRLEAD_GPU_EXPORTER") or _ADDRESS).strip()
        self._skipped_seconds: float = args.duration * args.wait_to_check / 100
        self._tolerance = _tolerance(args)
        cards = _chosen(backend.cards(), args.gpuIds)
        size = int(args.max_processes) or len(cards)
        self._groups = [cards[at : at + size] for at in range(0, len(cards), size)]
        self._is_alone = len(cards) == 1

    def run(self, fields: Sequence[int]) -> int:
        from fairlead.model.devices.gpu_load import TESTED, LoadTest
        from fairlead.wire.gpus.load_report import render_chip, render_skipped, render_unknown

        if not self._validates:
            self._say(render_skipped("CreateDcgmGroups"))
        for card in (card for group in self._groups for card in group):
            self._say(*render_chip(card.chip))
        if not self._validates:
            self._say(render_skipped("WatchFields"))
        is_good = True
        for field in fields:
            if field not in TESTED:
                self._say(render_unknown(field))
                is_good = False
                continue
            for group in self._groups:
                is_good = (
                    self._test(group, LoadTest(field, self._seconds, self._is_full)) and is_good
                )
        if not self._validates:
            self._say(render_skipped("UnwatchFields"))
        elif is_good:
            self._say("All Tests Passed.")
        return 0 if is_good else 1

    def _test(self, cards: Sequence[LoadCard], test: LoadTest) -> bool:
        from fairlead.rules.devices.load_check import LoadReport, check

        compared: list[list[LoadReport]] = [[] for _ in cards]
        for at, done, measured in self._work(cards, test):
            for number, card in enumerate(cards):
                compared[number].append(LoadReport(at, done[number].generated, measured[number]))
                self._report(card, test.field, done[number], measured[number])
            if self._modes["fast"] and self._validates and self._are_good(test.field, compared):
                break
        if not self._validates:
            return True
        results = [
            check(test.field, each, self._tolerance, self._skipped_seconds) for each in compared
        ]
        for card, result in zip(cards, results, strict=True):
            verdict = "PASSED." if result.is_good else f"FAILED: {result.reason}."
            self._say(f"GPU {card.index}, TestField {test.field} test {verdict}")
        return all(result.is_good for result in results)

    def _are_good(self, field: int, compared: list[list[LoadReport]]) -> bool:
        from fairlead.rules.devices.load_check import check

        return all(
            check(field, each, self._tolerance, self._skipped_seconds).is_good for each in compared
        )

    def _work(
        self, cards: Sequence[LoadCard], test: LoadTest
    ) -> Iterator[tuple[float, Sequence[WorkDone], list[float | None]]]:
        """After each report: seconds since the test's start,
        what each card did, what was measured of it.
        """
        from fairlead.model.devices.gpu_load import WorkDone

        at = 0.0
        while at < test.seconds - 1e-6:
            seconds = min(self._every, test.seconds - at)
            if self._modes["generateload"]:
                done = self._backend.work(cards, test, test.ratio(at + seconds), seconds)
                at += max(seconds, *(each.seconds for each in done))
            else:
                self._context.sleep(seconds)
                done = [WorkDone(seconds) for _ in cards]
                at += seconds
            yield at, done, self._measured(cards, test.field)

    def _measured(self, cards: Sequence[LoadCard], field: int) -> list[float | None]:
        """A page that cannot be read causes one warning, and no values."""
        if not self._validates:
            return [None for _ in cards]
        from fairlead.rules.devices.load_check import measured_value
        from fairlead.wire.metrics.prom_text import parse_page

        try:
            samples = parse_page(self._context.machine.page(self._url), ("DCGM_FI_PROF_",)).samples
        except OutsideError as error:
            self._context.messages.warn(error.what)
            return [None for _ in cards]
        return [measured_value(samples, card, field) for card in cards]

    def _report(self, card: LoadCard, field: int, done: WorkDone, measured: float | None) -> None:
        from fairlead.wire.gpus.load_report import render_report

        if self._modes["report"]:
            self._say(
                ("" if self._is_alone else f"Worker 0:{card.index}[{field}]: ")
                + render_report(field, done, measured)
            )

    def _say(self, *lines: str) -> None:
        self._context.stdout.write("".join(f"{line}\n" for line in lines))
        self._context.stdout.flush()


def _fields(text: str) -> tuple[int, ...]:
    from fairlead.model.devices.gpu_load import FIELD_GROUPS

    word = text.strip()
    if word in FIELD_GROUPS:
        return FIELD_GROUPS[word]
    return _numbers(
        word, "--fieldId", "`-t 1004`, `-t 1001,1004`, or one of all, nvlink and nonvlink"
    )


def _numbers(text: str, flag: str, example: str) -> tuple[int, ...]:
    words = [word.strip() for word in text.split(",")]
    if not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        raise UserError(f"{flag} is `{text}`, not ids by comma", f"write {example}")
    return tuple(dict.fromkeys(int(word) for word in words))


def _modes(text: str) -> dict[str, bool]:
    """Validation is on by default."""
    modes = {"generateload": True, "report": True, "validate": True, "fast": False}
    for word in filter(None, (word.strip() for word in text.split(","))):
        name = word.removeprefix("no")
        if name not in _MODES:
            raise UserError(
                f"--mode `{word}` is not known",
                "it is [no]generateload, [no]report, [no]validate or [no]fast, by comma",
            )
        modes[name] = name == word
    return modes


def _tolerance(args: argparse.Namespace) -> Tolerance:
    from fairlead.rules.devices.load_check import Tolerance

    if (
        args.min_value is not None
        and args.max_value is not None
        and args.min_value > args.max_value
    ):
        raise UserError(
            f"--min-value {args.min_value:g} is more than --max-value {args.max_value:g}",
            "name the smaller one first",
        )
    is_absolute = args.absolute_tolerance is not None and args.percent_tolerance is None
    amount = (
        args.absolute_tolerance
        if is_absolute
        else (10.0 if args.percent_tolerance is None else args.percent_tolerance) / 100
    )
    tolerance = Tolerance(amount, is_absolute, args.min_value, args.max_value)
    if args.match_value is not None and args.min_value is None and args.max_value is None:
        low, high = tolerance.around(args.match_value, args.match_value)
        return Tolerance(amount, is_absolute, low, high)
    return tolerance


def _chosen(cards: Sequence[LoadCard], text: str) -> list[LoadCard]:
    if text.strip() == "all":
        return list(cards)
    wanted = _numbers(text.strip(), "--gpuIds", "`-i 0,1`, or all")
    known = {card.index: card for card in cards}
    if unknown := [each for each in wanted if each not in known]:
        raise UserError(
            f"there is no GPU {unknown[0]}",
            f"this process may use {', '.join(map(str, known))}",
        )
    return [known[each] for each in wanted]


def _number(low: float, high: float) -> Callable[[str], float]:
    """A number as an argparse type; `-d 120` as one argument leaves a blank before it."""

    def parse(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not low <= number <= high:
            raise argparse.ArgumentTypeError(
                f"`{text.strip()}` is not a number from {low:g} to {high:g}"
            )
        return number

    return parse
