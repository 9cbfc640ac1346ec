"""`arena cron tfjob`: the flags of `submit tfjob` and those of a schedule; `submit` does the work."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from fairlead.cli.context import Context
from fairlead.cli.submit import Words, submit
from fairlead.cli.submit_flags import add_common_flags, add_tf_flags, text_flag, truth_flag

if TYPE_CHECKING:
    from fairlead.kinds.job_spec import JobSpec

NAME = "cron tfjob"
HELP = """Make a TFJob again and again: each time of --schedule a new one, called after the cron and the time.

A schedule has five fields, as cron has them (`*/30 * * * *`), or is a word like @daily."""

_WORDS: Final = Words(
    "The cron tfjob {name} has been submitted successfully",
    "You can run `arena cron get {name}` to check the cron status",
    "the cron {name} is already exist, please delete it first. use 'arena cron delete {name}'",
)
_CONCURRENCY: Final = ("Allow", "Forbid", "Replace")
_SCHEDULE: Final = re.compile(r"(?:TZ=\S+ +|CRON_TZ=\S+ +)?(?:@[a-z]+(?: +[0-9a-z.]+)?|[-0-9A-Za-z*/,?#]+(?: +[-0-9A-Za-z*/,?#]+){4,5})")
"""Five fields, or six for controllers that count seconds; which values a field may have, the controller says."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_common_flags(parser)
    add_tf_flags(parser)
    text_flag(parser, "--schedule", metavar="CRON", help="when, e.g. `0 22 * * *` (required)")
    text_flag(parser, "--concurrency-policy", default="Allow", metavar="POLICY", help="while one still runs: Allow, Forbid or Replace")
    truth_flag(parser, "--suspend", help="make no jobs until it is resumed")
    text_flag(parser, "--deadline", metavar="TIME", help="make no jobs after this time, e.g. `2026-10-01T13:00:00Z`")
    text_flag(parser, "--history-limit", default="10", metavar="N", help="how many ended jobs are remembered")


def run(args: argparse.Namespace, context: Context) -> int:
    return submit(args, context, "cron", cron_spec, words=_WORDS)


def cron_spec(args: argparse.Namespace, namespace: str, config: Mapping[str, str]) -> JobSpec:
    from msgspec.structs import replace

    from fairlead.cli import submit_values as values
    from fairlead.cli.submit_spec import tf_spec
    from fairlead.kinds.kind_options import CronOptions

    if not args.schedule:
        raise values.invalid("--schedule must be set ", "`--schedule '0 22 * * *'` is every evening at ten")
    if not _SCHEDULE.fullmatch(args.schedule.strip()):
        raise values.invalid(f"--schedule is invalid: `{args.schedule}`", "minute, hour, day of month, month, day of week: `0 22 * * *`")
    if args.tensorboard:
        raise values.invalid("--tensorboard is invalid: a cron has none", "its jobs are new ones each time")
    return replace(
        tf_spec(args, namespace, config),
        options=CronOptions(
            schedule=args.schedule.strip(),
            concurrency=values.word("concurrency-policy", args.concurrency_policy, _CONCURRENCY),
            is_suspended=args.suspend,
            deadline=_deadline(args.deadline),
            history_limit=values.count("history-limit", args.history_limit),
        ),
    )


def _deadline(text: str) -> float | None:
    from fairlead.cli.submit_values import invalid
    from fairlead.wire.kube_time import parse_time

    if not text:
        return None
    try:
        return parse_time(text)
    except (ValueError, OverflowError):
        raise invalid(f"--deadline is invalid: `{text}` is no time", "write it as `2026-10-01T13:00:00Z`") from None
