"""`arena prune --since 10h` deletes finished jobs that are old enough.

See docs/spec/arena-cli.md#prune.

Only what SUCCEEDED or FAILED is pruned; a job that waits, runs or is suspended stays, however old
it is.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.flags import BooleanFlag, add_all_namespaces, report_deprecations
from fairlead.cli.jobs.job_search import check_sources, kinds_of, report_of
from fairlead.errors import FairleadError, UserError

if TYPE_CHECKING:
    from fairlead.rules.reports.job import JobReport

NAME = "prune"
HELP = "Delete the finished training jobs that were submitted longer ago than --since."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--since",
        "-s",
        metavar="SPAN",
        default="",
        help="how long ago, e.g. 90m, 10h or 7d (required)",
    )
    add_all_namespaces(parser)
    parser.add_argument(
        "--dry-run", action=BooleanFlag, help="print what would be deleted, and delete nothing"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    report_deprecations(args, context.messages)
    since = _seconds(args.since)
    kinds, namespace = kinds_of(""), "" if args.all_namespaces else context.world.namespace()
    jobs = context.world.jobs()
    found = jobs.read_jobs(kinds, namespace)
    check_sources(found, kinds, "", namespace, context.messages)
    old = _old(report_of(found), found.taken_at - since)
    by_type = {kind.TYPE: kind for kind in kinds}
    status = 0
    for report in old:
        context.stdout.write(_line(report, found.taken_at))
        context.stdout.flush()
        try:
            args.dry_run or jobs.delete(by_type[report.job.type], report.job)
        except FairleadError as error:
            context.messages.error(
                f"failed to delete {report.job.type} {report.job.name}: {error.what}", error.hint
            )
            status = 1
    if not old:
        context.stdout.write("No job need to be deleted\n")
    elif args.dry_run:
        context.messages.info("nothing was deleted: --dry-run")
    return status


def _seconds(text: str) -> float:
    from fairlead.wire.text.time_span import parse_span

    if not text:
        raise UserError(
            'required flag(s) "since" not set',
            "`--since 10h` deletes what was submitted ten hours ago or earlier",
        )
    try:
        return parse_span(text)
    except ValueError as error:
        raise UserError(
            f"invalid value for --since: {error}", "give `90m`, `10h` or `7d`"
        ) from error


def _old(reports: Sequence[JobReport], before: float) -> list[JobReport]:
    """What is over and was created by then, oldest first."""
    from fairlead.rules.jobs.status import FAILED, SUCCEEDED
    from fairlead.rules.reports.job import newest_first

    over = [report for report in newest_first(reports) if report.status in (SUCCEEDED, FAILED)]
    return [report for report in reversed(over) if (report.job.created_at or 0.0) <= before]


def _line(report: JobReport, now: float) -> str:
    from fairlead.cli.frame.text import short_duration

    return (
        f"Delete {report.job.type} {report.job.name} with Age "
        f"{short_duration(now - (report.job.created_at or now))} \n"
    )
