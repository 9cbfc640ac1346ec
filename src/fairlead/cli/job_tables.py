"""The tables of many jobs: `arena list` and `arena top job` (arena contract §2.2; samples S10, S11, S13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.cli.job_text import allocated, node_ip, short_duration
from fairlead.rules.job_report import JobReport
from fairlead.rules.job_status import RUNNING
from fairlead.wire.tabwriter import render_rows

_LIST: Final = ("NAME", "STATUS", "TRAINER", "DURATION", "GPU(Requested)", "GPU(Allocated)", "NODE")
_TOP: Final = ("NAME", "STATUS", "TRAINER", "AGE", "GPU(Requested)", "GPU(Allocated)", "NODE")


def list_rows(reports: Sequence[JobReport], *, has_namespace: bool) -> list[tuple[str, ...]]:
    """Header and rows."""
    return [_led("NAMESPACE", _LIST, has_namespace)] + [
        _led(report.job.namespace, _cells(report, allocated(report)), has_namespace) for report in reports
    ]


def list_table(reports: Sequence[JobReport], *, has_namespace: bool) -> str:
    return render_rows(list_rows(reports, has_namespace=has_namespace))


def top_table(reports: Sequence[JobReport], *, has_namespace: bool) -> str:
    """The footer counts jobs that run."""
    rows = [_led("NAMESPACE", _TOP, has_namespace)] + [
        _led(report.job.namespace, _cells(report, str(report.gpus_allocated)), has_namespace) for report in reports
    ]
    running = [report for report in reports if report.status == RUNNING]
    held, asked = sum(report.gpus_allocated for report in running), sum(report.gpus_requested for report in running)
    return render_rows(rows) + f"\nTotal Allocated/Requested GPUs of Training Jobs: {held}/{asked}\n"


def _cells(report: JobReport, held: str) -> tuple[str, ...]:
    job = report.job
    return (
        job.name,
        report.status,
        job.type.upper(),
        short_duration(report.duration),
        str(report.gpus_requested),
        held,
        node_ip(report),
    )


def _led(namespace: str, cells: tuple[str, ...], has_namespace: bool) -> tuple[str, ...]:
    return (namespace, *cells) if has_namespace else cells
