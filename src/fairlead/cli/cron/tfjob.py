"""`arena cron tfjob`: a TFJob on a schedule.

It has the flags of `submit tfjob` and those of a schedule; `submit` does the work.
"""

from __future__ import annotations

import argparse
from typing import Final

from msgspec.structs import replace

from fairlead.cli.frame import values
from fairlead.cli.frame.context import Context, Machine
from fairlead.cli.frame.flags import read_flags, text, truth
from fairlead.cli.frame.values import invalid
from fairlead.cli.submit.spec import add_job_flags
from fairlead.cli.submit.submit import SubmitMessages, SubmitVerb, submit
from fairlead.cli.submit.tfjob import FLAGS, tf_spec
from fairlead.kinds.parts.job_spec import JobSpec

NAME = "cron tfjob"
HELP = """Create a TFJob at each time of --schedule, with the name of the cron and the time.

A schedule has five fields, as in cron (`*/30 * * * *`), or is a word such as @daily, or an
interval: `@every 1h30m`. A prefix `TZ=Asia/Shanghai ` names a time zone. A schedule that the
controller would not accept, or that never occurs, is refused."""

_WORDS: Final = SubmitMessages(
    "The cron tfjob {name} has been submitted successfully",
    "You can run `arena cron get {name}` to check the cron status",
    "the cron {name} is already exist, please delete it first. use 'arena cron delete {name}'",
    "`arena cron delete {name} -n {namespace}` removes it",
)


def _schedule(flag: str, text: str) -> str:
    """As the controller of Crons reads it: with the parser of Kubernetes' CronJobs."""
    from fairlead.wire.text.cron_schedule import parse_schedule

    schedule = text.strip()
    try:
        is_never = parse_schedule(schedule).next_after(0.0) is None
    except ValueError as error:
        hint = (
            "minute, hour, day of month, month, day of week: `0 22 * * *`; or `@daily`, or "
            "`@every 1h30m`"
        )
        raise invalid(f"--schedule is invalid: `{text}`: {error}", hint) from None
    if is_never:
        raise invalid(
            f"--schedule is invalid: `{text}` never occurs",
            "no date matches it, as with 31 February",
        )
    return schedule


def _deadline(flag: str, text: str) -> float | None:
    from fairlead.wire.kube.time import parse_time

    if not text:
        return None
    try:
        return parse_time(text)
    except (ValueError, OverflowError):
        raise invalid(
            f"--deadline is invalid: `{text}` is not a time",
            "write it as `2026-10-01T13:00:00Z`",
        ) from None


_OPTIONS: Final = (
    text(
        "--schedule",
        "schedule",
        _schedule,
        metavar="CRON",
        help="when, e.g. `0 22 * * *` (required)",
    ),
    text(
        "--concurrency-policy",
        "concurrency",
        values.one_of("Allow", "Forbid", "Replace"),
        default="Allow",
        metavar="POLICY",
        help="while one still runs: Allow, Forbid or Replace",
    ),
    truth("--suspend", "is_suspended", help="create no jobs until it is resumed"),
    text(
        "--deadline",
        "deadline",
        _deadline,
        metavar="TIME",
        help="create no jobs after this time, e.g. `2026-10-01T13:00:00Z`",
    ),
    text(
        "--history-limit",
        "history_limit",
        values.count,
        default="10",
        metavar="N",
        help="number of ended jobs to keep",
    ),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_job_flags(parser, (*FLAGS, *_OPTIONS))


def run(args: argparse.Namespace, context: Context) -> int:
    return submit(args, context, what(), words=_WORDS)


def what() -> SubmitVerb:
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import cron

    return SubmitVerb(Submission(cron), cron_spec)


def cron_spec(args: argparse.Namespace, namespace: str, machine: Machine) -> JobSpec:
    from fairlead.kinds.training.cron import CronOptions

    if not args.schedule:
        raise invalid(
            "--schedule must be set ", "`--schedule '0 22 * * *'` is every evening at ten"
        )
    if args.tensorboard:
        raise invalid("--tensorboard is invalid: a cron has none", "each run is a new job")
    options = CronOptions(**read_flags(args, _OPTIONS))
    return replace(tf_spec(args, namespace, machine), options=options)
