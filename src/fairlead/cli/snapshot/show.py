"""`fairlead snapshot show FILE`: what a snapshot file holds, in a dozen lines."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.model.source import SourceState
from fairlead.wire.text.tabwriter import render_rows

if TYPE_CHECKING:
    from fairlead.wire.files.snapshot_file import SavedSnapshot

NAME = "snapshot show"
HELP = (
    "Show the contents of a snapshot file: its origin and time, the number of objects, and what "
    "could not be read."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a file that `fairlead snapshot save` wrote")


def run(args: argparse.Namespace, context: Context) -> int:
    context.stdout.write(render_rows(_rows(context.machine.snapshot(args.file))))
    return 0


def _rows(saved: SavedSnapshot) -> list[tuple[str, str]]:
    from fairlead.rules.pods.status import pod_status
    from fairlead.rules.reports.node import MODES, report_nodes

    snapshot = saved.snapshot
    reports = report_nodes(snapshot)
    modes = Counter(report.mode for report in reports)
    rows = [
        ("Cluster:", saved.cluster),
        ("Saved:", f"{_time(saved.saved_at)} by Fairlead {saved.saved_by}"),
        (
            "Nodes:",
            _counted(len(snapshot.nodes), {mode: modes[mode] for mode in MODES if modes[mode]}),
        ),
        ("GPUs:", f"{sum(report.gpus for report in reports)}, {len(snapshot.gpus)} with readings"),
        ("Pods:", _counted(len(snapshot.pods), Counter(pod_status(pod) for pod in snapshot.pods))),
        ("Jobs:", _counted(len(snapshot.jobs), Counter(job.type for job in snapshot.jobs))),
        ("Quota:", f"{len(list(snapshot.quota.walk()))} quota nodes" if snapshot.quota else "none"),
        ("Events:", str(len(snapshot.events))),
    ]
    for source in sorted(snapshot.sources.values(), key=lambda source: source.name):
        if source.state not in (SourceState.OK, SourceState.OFF):
            rows.append(
                (
                    f"{source.name}:",
                    f"{source.state}: {source.message}" if source.message else source.state,
                )
            )
    return rows


def _counted(total: int, parts: dict[str, int]) -> str:
    """`12 (6 exclusive, 4 none, 2 share)`; only the total if there are no parts."""
    counts = ", ".join(
        f"{number} {word}"
        for word, number in sorted(parts.items(), key=lambda part: (-part[1], part[0]))
    )
    return f"{total} ({counts})" if counts else str(total)


def _time(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))
