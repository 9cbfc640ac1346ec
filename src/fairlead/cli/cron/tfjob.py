"""`arena cron tfjob`: the flags of `submit tfjob` and those of a schedule; `submit` does the work."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, cast

from fairlead.cli.frame.context import Context
from fairlead.cli.submit.flags import add_common_flags, add_tf_flags, text_flag, truth_flag
from fairlead.cli.submit.submit import Words, submit

if TYPE_CHECKING:
    from fairlead.kinds.parts.job_spec import JobSpec
    from fairlead.kinds.parts.kind import JobKind

NAME = "cron tfjob"
HELP = """Make a TFJob again and again: each time of --schedule a new one, called after the cron and the time.

A schedule has five fields, as cron has them (`*/30 * * * *`), or is a word like @daily, or a pace: `@every 1h30m`. `TZ=Asia/Shanghai `
before it names a time zone. What its controller would not take, or what never comes, is refused."""

_WORDS: Final = Words(
    "The cron tfjob {name} has been submitted successfully",
    "You can run `arena cron get {name}` to check the cron status",
    "the cron {name} is already exist, please delete it first. use 'arena cron delete {name}'",
    "`arena cron delete {name} -n {namespace}` removes it",
)
_CONCURRENCY: Final = ("Allow", "Forbid", "Replace")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common_flags(parser)
    add_tf_flags(parser)
    text_flag(parser, "--schedule", metavar="CRON", help="when, e.g. `0 22 * * *` (required)")
    text_flag(parser, "--concurrency-policy", default="Allow", metavar="POLICY", help="while one still runs: Allow, Forbid or Replace")
    truth_flag(parser, "--suspend", help="make no jobs until it is resumed")
    text_flag(parser, "--deadline", metavar="TIME", help="make no jobs after this time, e.g. `2026-10-01T13:00:00Z`")
    text_flag(parser, "--history-limit", default="10", metavar="N", help="how many ended jobs are remembered")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.kinds.submission import Submission
    from fairlead.kinds.training import cron

    return submit(args, context, Submission(cast("JobKind", cron)), cron_spec, words=_WORDS)  # in no list of jobs


def cron_spec(args: argparse.Namespace, namespace: str, config: Mapping[str, str]) -> JobSpec:
    from msgspec.structs import replace

    from fairlead.cli.submit import values
    from fairlead.cli.submit.spec import tf_spec
    from fairlead.kinds.training.cron import CronOptions

    if not args.schedule:
        raise values.invalid("--schedule must be set ", "`--schedule '0 22 * * *'` is every evening at ten")
    schedule = _schedule(args.schedule)
    if args.tensorboard:
        raise values.invalid("--tensorboard is invalid: a cron has none", "its jobs are new ones each time")
    return replace(
        tf_spec(args, namespace, config),
        options=CronOptions(
            schedule=schedule,
            concurrency=values.word("concurrency-policy", args.concurrency_policy, _CONCURRENCY),
            is_suspended=args.suspend,
            deadline=_deadline(args.deadline),
            history_limit=values.count("history-limit", args.history_limit),
        ),
    )


def _schedule(text: str) -> str:
    """As the controller of Crons reads it: with the parser of Kubernetes' CronJobs."""
    from fairlead.cli.submit.values import invalid
    from fairlead.wire.text.cron_schedule import parse_schedule

    schedule = text.strip()
    try:
        is_never = parse_schedule(schedule).next_after(0.0) is None
    except ValueError as error:
        hint = "minute, hour, day of month, month, day of week: `0 22 * * *`; or `@daily`, or `@every 1h30m`"
        raise invalid(f"--schedule is invalid: `{text}`: {error}", hint) from None
    if is_never:
        raise invalid(f"--schedule is invalid: `{text}` never comes", "no minute of the years to come fits it, as 31 February")
    return schedule


def _deadline(text: str) -> float | None:
    from fairlead.cli.submit.values import invalid
    from fairlead.wire.kube.time import parse_time

    if not text:
        return None
    try:
        return parse_time(text)
    except (ValueError, OverflowError):
        raise invalid(f"--deadline is invalid: `{text}` is no time", "write it as `2026-10-01T13:00:00Z`") from None
