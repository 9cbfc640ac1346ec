"""The `GPUs:` block of `arena top node -d --metric`: the same five columns and summary for every GPU mode (sample S6).

What a newcomer gets wrong: a device that nobody was given shows used memory and duty cycle 0, whatever its sensors say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from fairlead.cli.node_table import count, gib
from fairlead.model.gpu import GpuReading
from fairlead.model.pod import Pod
from fairlead.rules.node_report import NodeReport
from fairlead.rules.node_status import SHARE, TOPOLOGY
from fairlead.wire.tabwriter import render_rows

_MIB = 1 << 20


class DeviceUse(Struct, frozen=True, gc=False):
    """One device with its newest reading, in bytes and percent."""

    reading: GpuReading
    total_bytes: float
    allocated_bytes: float
    used_bytes: float
    duty_percent: float


def device_uses(report: NodeReport) -> list[DeviceUse]:
    """The node's devices that reported, by index."""
    granted = {device.index: device for device in report.devices}
    grouped = {index for holder in report.holders for index in holder.whole}
    holding = {(holder.pod.namespace, holder.pod.name) for holder in report.holders}
    uses = []
    for reading in report.readings:
        total = (reading.memory_total_mib or 0.0) * _MIB
        device = granted.get(reading.index)
        if report.mode == SHARE:
            total = device.units * report.unit_bytes if device else total
            allocated = device.units_allocated * report.unit_bytes if device else 0.0
        else:
            is_held = reading.index in grouped if report.mode == TOPOLOGY and grouped else _is_held(reading, holding)
            allocated = total if is_held else 0.0
        used = (reading.memory_used_mib or 0.0) * _MIB if allocated else 0.0
        duty = (reading.utilization_ratio or 0.0) * 100 if allocated else 0.0
        uses.append(DeviceUse(reading, total, allocated, used, duty))
    return uses


def _is_held(reading: GpuReading, holding: set[tuple[str, str]]) -> bool:
    """Whether a pod that asks for GPUs sits on the card. A scraped label may name the exporter's own pod, which holds nothing."""
    return any((holder.namespace, holder.pod) in holding for holder in reading.holders)


def device_block(report: NodeReport) -> str:
    uses = device_uses(report)
    header = ["INDEX", "MEMORY(Total)", "MEMORY(Allocated)", "MEMORY(Used)", "DUTY_CYCLE"]
    rows = []
    for use in uses:
        amounts = [f"{gib(amount)} GiB" for amount in (use.total_bytes, use.allocated_bytes, use.used_bytes)]
        rows.append([str(use.reading.index), *amounts, f"{use.duty_percent:.1f}%"])
    table = render_rows([[f"  {row[0]}", *row[1:]] for row in [header, ["-" * len(cell) for cell in header], *rows]])
    summary = [
        ("Total GPUs:", count(report.gpus)),
        ("Allocated GPUs:", count(report.gpus_allocated)),
        ("Unhealthy GPUs:", count(report.gpus_unhealthy)),
        ("Total GPU Memory:", f"{gib(sum(use.total_bytes for use in uses))} GiB"),
        ("Allocated GPU Memory:", f"{gib(sum(use.allocated_bytes for use in uses))} GiB"),
        ("Used GPU Memory:", f"{gib(sum(use.used_bytes for use in uses))} GiB"),
    ]
    return "GPUs:\n" + table + "GPU Summary:\n" + key_lines(summary, indent="  ")


def key_lines(lines: Iterable[tuple[str, str]], indent: str = "") -> str:
    """`Key:` and value with the values aligned one blank after the longest key (tables keep two)."""
    return render_rows(((indent + key, value) for key, value in lines), padding=1)


def held_indexes(pod: Pod, readings: Sequence[GpuReading]) -> list[int]:
    """The devices whose exporter saw the pod, by namespace *and* name."""
    return [
        reading.index
        for reading in readings
        if any((holder.namespace, holder.pod) == (pod.namespace, pod.name) for holder in reading.holders)
    ]
