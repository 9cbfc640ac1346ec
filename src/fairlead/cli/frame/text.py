"""How do the job verbs spell lengths of time, moments and GPU values? As arena does, in the person's own time zone."""

from __future__ import annotations

import time
from typing import Final

from fairlead.rules.reports.job import GpuUse, InstanceReport, JobReport

NOTHING: Final = "N/A"
NOT_ALLOCATED: Final = frozenset(("SUCCEEDED", "FAILED", "QUEUING", "SUSPENDED"))
"""Statuses whose jobs `list` shows no allocated GPUs for."""


def short_duration(seconds: float) -> str:
    """One unit. One second in the future is now, more is `<invalid>`.

    >>> [short_duration(each) for each in (-2, -1, 59.9, 60, 3599, 86399, 86400 * 364, 86400 * 730)]
    ['<invalid>', '0s', '59s', '1m', '59m', '23h', '364d', '2y']
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    for size, unit in ((365 * 86400, "y"), (86400, "d"), (3600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{max(0, whole)}s"


def local_time(at: float | None) -> str:
    """`2006-01-02 15:04:05`; "" for None."""
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def node_ip(report: JobReport) -> str:
    return report.node_ip or NOTHING


def host_ip(instance: InstanceReport) -> str:
    return instance.pod.host_ip or NOTHING


def allocated(report: JobReport) -> str:
    return NOTHING if report.status in NOT_ALLOCATED else str(report.gpus_allocated)


def duty_text(use: GpuUse) -> str:
    """
    >>> duty_text(GpuUse(0, 98.0, 15641.0, 16276.0)), memory_text(GpuUse(0, 98.0, 15641.0, 16276.0))
    ('98.0%', '15641.0/16276.0(MiB)')
    """
    return NOTHING if use.duty_percent is None else f"{use.duty_percent:.1f}%"


def memory_text(use: GpuUse) -> str:
    return NOTHING if use.used_mib is None or use.total_mib is None else f"{use.used_mib:.1f}/{use.total_mib:.1f}(MiB)"
