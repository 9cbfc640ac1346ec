"""Cells that tables of jobs share: addresses, allocated GPUs, GPU values; `N/A` if unknown."""

from __future__ import annotations

from typing import Final

from fairlead.cli.frame.text import NOTHING
from fairlead.rules.reports.job import GpuUse, InstanceReport, JobReport

NOT_ALLOCATED: Final = frozenset(("SUCCEEDED", "FAILED", "QUEUING", "SUSPENDED"))
"""Statuses whose jobs `list` shows no allocated GPUs for."""


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
    return (
        NOTHING
        if use.used_mib is None or use.total_mib is None
        else f"{use.used_mib:.1f}/{use.total_mib:.1f}(MiB)"
    )
