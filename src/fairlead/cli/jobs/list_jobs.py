"""`arena list` lists training jobs and how they fare.

See docs/spec/arena-cli.md#list, docs/spec/arena-cli.md#partial-results;
docs/spec/arena-cli-samples.md#list-of-jobs,
docs/spec/arena-cli-samples.md#list-of-jobs-in-all-namespaces.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.documents import check_output
from fairlead.cli.frame.flags import BooleanFlag, add_all_namespaces, tell_deprecations
from fairlead.cli.frame.object_names import warn_if_absent
from fairlead.cli.jobs.job_search import (
    add_type,
    check_sources,
    is_legacy,
    kinds_of,
    report_of,
    warn_of_readings,
)
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.rules.reports.job import JobReport

NAME = "list"
HELP = """List the training jobs of a namespace, newest first.

A kind of job that may not be read is skipped with a warning; --strict makes that an error."""

_SORTS: Final[dict[str, Callable[[Any], Any]]] = {
    "age": lambda report: -(report.job.created_at or 0.0),
    "name": lambda report: report.job.name,
    "namespace": lambda report: report.job.namespace,
    "status": lambda report: report.status,
    "trainer": lambda report: report.job.type,
    "duration": lambda report: report.duration,
    "gpus": lambda report: -report.gpus_requested,
}
_WATCH_SECONDS: Final = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_type(parser)
    add_all_namespaces(parser)
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="wide, json or yaml")
    parser.add_argument(
        "--status",
        metavar="STATUS",
        default="",
        help="only jobs in this status; several with commas",
    )
    parser.add_argument(
        "--sort-by",
        metavar="FIELD",
        default="age",
        help=f"{', '.join(_SORTS)} (default age: newest first)",
    )
    parser.add_argument(
        "--watch",
        "-w",
        action=BooleanFlag,
        help="afterwards print each job that changes, until Ctrl-C",
    )
    parser.add_argument(
        "--strict", action=BooleanFlag, help="end with 1 when a kind of job could not be read"
    )
    parser.add_argument("--legacy", action=BooleanFlag, help="the layout of arena 0.4")


def run(args: argparse.Namespace, context: Context) -> int:
    tell_deprecations(args, context.messages)
    check_output(args.output)
    if args.sort_by not in _SORTS:
        raise UserError(
            f"jobs cannot be sorted by `{args.sort_by}`",
            f"`--sort-by` takes {', '.join(_SORTS)}",
        )
    if args.watch and args.output in ("json", "yaml"):
        raise UserError("a document cannot be watched", "leave out `-o`, or `-w`")
    kinds_of(args.type)
    listing = _Listing(args, context)
    reports = listing.read()
    context.stdout.write(listing.text(reports))
    if args.watch:
        _watch(listing, reports, context)
    return 1 if listing.has_skipped and (args.strict or args.type) else 0


class _Listing:
    """What this command line asks for, read as often as it is watched."""

    def __init__(self, args: argparse.Namespace, context: Context) -> None:
        self._args = args
        self._context = context
        self._kinds = kinds_of(args.type)
        self._namespace = "" if args.all_namespaces else context.world.namespace()
        self._jobs = context.world.jobs()
        self._is_document = args.output in ("json", "yaml")
        self._is_legacy = is_legacy(args, context)
        self.has_skipped = False

    def read(self) -> list[JobReport]:
        from fairlead.rules.reports.job import newest_first

        found = self._jobs.read_jobs(self._kinds, self._namespace, with_readings=self._is_document)
        self.has_skipped = check_sources(
            found, self._kinds, self._args.type, self._namespace, self._context.messages
        )
        if not found.jobs:
            warn_if_absent(self._context, self._namespace)
        reports = self._in_status(report_of(found))
        if self._is_document:
            warn_of_readings(found, reports, self._context.messages)
        return sorted(newest_first(reports), key=_SORTS[self._args.sort_by])

    def _in_status(self, reports: list[JobReport]) -> list[JobReport]:
        """Those in the statuses that are asked for.

        Operators have their own words, so a status that no job has causes a warning, not an error.
        """
        wanted = {word.strip().upper() for word in self._args.status.split(",") if word.strip()}
        there = {report.status for report in reports}
        if there and wanted and not wanted & there:
            self._context.messages.warn(
                f"no job is {' or '.join(sorted(wanted))}; those here are "
                f"{', '.join(sorted(there))}"
            )
        return [report for report in reports if not wanted or report.status in wanted]

    def text(self, reports: Sequence[JobReport]) -> str:
        if self._is_document:
            from fairlead.cli.frame.documents import render_document
            from fairlead.cli.jobs.job_document import job_document

            return render_document(self._args.output, [job_document(report) for report in reports])
        if self._is_legacy:
            from fairlead.cli.jobs.legacy_jobs import legacy_list

            return legacy_list(reports, has_namespace=self._args.all_namespaces)
        from fairlead.cli.jobs.job_tables import list_table

        return list_table(reports, has_namespace=self._args.all_namespaces)


def _watch(listing: _Listing, reports: Sequence[JobReport], context: Context) -> None:
    """Rows of jobs that are new or differ in more than their duration. Ends with Ctrl-C."""
    shown = {report.job.uid: _state(report) for report in reports}
    while True:
        context.stdout.flush()
        context.sleep(_WATCH_SECONDS)
        reports = listing.read()
        changed = [report for report in reports if shown.get(report.job.uid) != _state(report)]
        shown = {report.job.uid: _state(report) for report in reports}
        if changed:
            context.stdout.write(listing.text(changed).partition("\n")[2])


def _state(report: JobReport) -> tuple[object, ...]:
    return (report.status, report.gpus_requested, report.gpus_allocated, report.node_ip)
