"""The tables of many jobs: `arena list` and `arena top job`.

See docs/spec/arena-cli.md#job-commands; docs/spec/arena-cli-samples.md#list-of-jobs,
docs/spec/arena-cli-samples.md#list-of-jobs-in-all-namespaces,
docs/spec/arena-cli-samples.md#gpus-of-all-jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.cli.frame.text import count, gib, short_duration
from fairlead.cli.jobs.job_cells import allocated, node_ip
from fairlead.model.resources import CPU, MEMORY, Amounts
from fairlead.rules.jobs.status import RUNNING, held_requests, requested_resources
from fairlead.rules.reports.job import JobReport
from fairlead.wire.text.tabwriter import render_rows

_LIST: Final = ("NAME", "STATUS", "TRAINER", "DURATION", "GPU(Requested)", "GPU(Allocated)", "NODE")
_RESOURCES: Final = ("CPU(Requested/Total)", "MEMORY(Requested/Total)")
_TOP: Final = ("NAME", "STATUS", "TRAINER", "AGE", "GPU(Requested)", "GPU(Allocated)", "NODE")


def list_rows(reports: Sequence[JobReport], *, has_namespace: bool) -> list[tuple[str, ...]]:
    """Header and rows."""
    return [_led("NAMESPACE", _LIST, has_namespace)] + [
        _led(report.job.namespace, _cells(report, allocated(report)), has_namespace)
        for report in reports
    ]


def list_table(reports: Sequence[JobReport], *, has_namespace: bool) -> str:
    return render_rows(list_rows(reports, has_namespace=has_namespace))


def top_table(
    reports: Sequence[JobReport], *, has_namespace: bool, has_resources: bool = False
) -> str:
    """The footer counts jobs that run."""
    rows = [_led("NAMESPACE", (*_TOP, *_RESOURCES * has_resources), has_namespace)]
    for report in reports:
        cells = _cells(report, str(report.gpus_allocated)) + (
            _resource_cells(report) if has_resources else ()
        )
        rows.append(_led(report.job.namespace, cells, has_namespace))
    running = [report for report in reports if report.status == RUNNING]
    held, asked = (
        sum(report.gpus_allocated for report in running),
        sum(report.gpus_requested for report in running),
    )
    return render_rows(rows) + (
        f"\nTotal Allocated/Requested GPUs of Training Jobs: {held}/{asked}\n"
    )


def _resource_cells(report: JobReport) -> tuple[str, str]:
    """What its pods on nodes have booked, of what all its roles ask for."""
    booked: Amounts = held_requests(instance.pod for instance in report.instances)
    asked: Amounts = requested_resources(report.job)
    cpus = "/".join(count(round(amounts.get(CPU, 0) / 1000, 1)) for amounts in (booked, asked))
    return cpus, f"{gib(booked.get(MEMORY, 0))}/{gib(asked.get(MEMORY, 0))} GiB"


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
