"""Jobs in the layout of arena 0.4: `list`, `get` and `top job` with `--legacy`.

See docs/spec/arena-cli.md#legacy-tables-of-jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fairlead.cli.frame.text import NOTHING, short_duration
from fairlead.cli.jobs.job_cells import host_ip, node_ip
from fairlead.rules.jobs.status import RUNNING
from fairlead.rules.reports.job import InstanceReport, JobReport
from fairlead.wire.text.tabwriter import align, render_rows
from fairlead.wire.text.terminal_text import join_cells


def legacy_list(reports: Sequence[JobReport], *, has_namespace: bool) -> str:
    rows = [("NAMESPACE", "NAME", "STATUS", "TRAINER", "AGE", "NODE")]
    for report in reports:
        job = report.job
        rows.append(
            (
                job.namespace,
                job.name,
                report.status,
                job.type.upper(),
                short_duration(report.duration),
                node_ip(report),
            )
        )
    return render_rows(row if has_namespace else row[1:] for row in rows)


def legacy_get(report: JobReport) -> str:
    """An instance's STATUS is its phase there."""
    job = report.job
    lines = [
        f"STATUS: {report.status}",
        f"NAMESPACE: {job.namespace}",
        f"PRIORITY: {report.priority or NOTHING}",
        f"TRAINING DURATION: {short_duration(report.duration)}",
        "",
        "NAME\tSTATUS\tTRAINER\tAGE\tINSTANCE\tNODE",
    ]
    for instance in report.instances:
        age = short_duration(instance.age)
        lines.append(
            join_cells(
                (
                    job.name,
                    instance.pod.phase.upper(),
                    job.type.upper(),
                    age,
                    instance.pod.name,
                    host_ip(instance),
                )
            )
        )
    return align("\n".join(lines) + "\n")


def legacy_top(reports: Sequence[JobReport], *, has_namespace: bool) -> str:
    """The footer's numbers end with a blank and a tab; it counts jobs that run."""
    rows = [
        ("NAMESPACE", "NAME", "GPU(Requests)", "GPU(Allocated)", "STATUS", "TRAINER", "AGE", "NODE")
    ]
    for report in reports:
        job, counts = report.job, (str(report.gpus_requested), str(report.gpus_allocated))
        rows.append(
            (
                job.namespace,
                job.name,
                *counts,
                report.status,
                job.type,
                short_duration(report.duration),
                node_ip(report),
            )
        )
    running = [report for report in reports if report.status == RUNNING]
    held, asked = (
        sum(report.gpus_allocated for report in running),
        sum(report.gpus_requested for report in running),
    )
    lines = [join_cells(row if has_namespace else row[1:]) for row in rows]
    lines += [
        "",
        "",
        "Total Allocated GPUs of Training Job:",
        f"{held} \t",
        "",
        "Total Requested GPUs of Training Job:",
        f"{asked} \t",
    ]
    return align("\n".join(lines) + "\n")


def legacy_top_job(instances: Iterable[InstanceReport]) -> str:
    rows = [
        (
            "INSTANCE NAME",
            "GPU(Device Index)",
            "GPU(Duty Cycle)",
            "GPU(Memory MiB)",
            "STATUS",
            "NODE",
        )
    ]
    return render_rows([*rows, *(row for instance in instances for row in _gpu_rows(instance))])


def _gpu_rows(instance: InstanceReport) -> Iterator[tuple[str, str, str, str, str, str]]:
    name, status, node = instance.pod.name, instance.pod.phase.upper(), host_ip(instance)
    if not instance.uses:
        yield name, NOTHING, NOTHING, NOTHING, status, node
    for use in instance.uses:
        duty = NOTHING if use.duty_percent is None else f"{use.duty_percent:.0f}%"
        memory = (
            NOTHING
            if use.used_mib is None or use.total_mib is None
            else f"{use.used_mib:.1f}MiB / {use.total_mib:.1f}MiB "
        )
        yield name, str(use.index), duty, memory, status, node
        name = status = node = ""
