"""The `GPUs:` block of `arena top node -d --metric`: the same five columns and summary for every
GPU mode (docs/spec/arena-cli-samples.md#details-of-a-share-node-with-metrics).

A device without a holder shows used memory and duty cycle 0, whatever its sensors report; without a
reading (a lost GPU), the values are unknown and not 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from fairlead.cli.frame.text import count, gib
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.rules.nodes.status import SHARE, TOPOLOGY
from fairlead.rules.reports.node import NodeReport
from fairlead.wire.text.tabwriter import render_rows

_MIB = 1 << 20


class DeviceUse(Struct, frozen=True, gc=False):
    """One device with its newest reading, in bytes and percent;
    None = unknown, in a table `N/A`.
    """

    reading: GpuReading
    total_bytes: float | None
    allocated_bytes: float | None
    used_bytes: float | None
    duty_percent: float | None


def device_uses(report: NodeReport) -> list[DeviceUse]:
    """The node's devices that reported, by index."""
    return [
        _use_of_share(report, reading) if report.mode == SHARE else _use_of_whole(report, reading)
        for reading in report.readings
    ]


def _use_of_share(report: NodeReport, reading: GpuReading) -> DeviceUse:
    device = next((each for each in report.devices if each.index == reading.index), None)
    if device is None:
        return _use(reading, _total_bytes(report.node, reading), 0.0)
    return _use(
        reading, device.units * report.unit_bytes, device.units_allocated * report.unit_bytes
    )


def _use_of_whole(report: NodeReport, reading: GpuReading) -> DeviceUse:
    total = _total_bytes(report.node, reading)
    grouped = {index for holder in report.holders for index in holder.whole}
    holding = {(holder.pod.namespace, holder.pod.name) for holder in report.holders}
    is_held = (
        reading.index in grouped
        if report.mode == TOPOLOGY and grouped
        else _is_held(reading, holding)
    )
    return _use(reading, total, total if is_held else 0.0)


def _total_bytes(node: Node, reading: GpuReading) -> float | None:
    """The device's value;
    for a lost device that of its slot in the inventory, or of the node's label.
    """
    slot = next((slot.memory_mib for slot in node.gpus if slot.index == reading.index), None)
    return _scaled(reading.memory_total_mib or slot or node.card_memory_mib, _MIB)


def _use(reading: GpuReading, total: float | None, allocated: float | None) -> DeviceUse:
    """With nothing allocated, what is known of used memory and duty cycle is 0; what is allocated
    but unknown (None) is in use, too.
    """
    is_free = allocated == 0
    used = _scaled(reading.memory_used_mib, 0 if is_free else _MIB)
    return DeviceUse(
        reading, total, allocated, used, _scaled(reading.utilization_ratio, 0 if is_free else 100)
    )


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def _is_held(reading: GpuReading, holding: set[tuple[str, str]]) -> bool:
    """Whether a pod that asks for GPUs sits on the card.

    A scraped label may name the exporter's own pod, which holds nothing.
    """
    return any((holder.namespace, holder.pod) in holding for holder in reading.holders)


def device_block(report: NodeReport) -> str:
    uses = device_uses(report)
    header = ["INDEX", "MEMORY(Total)", "MEMORY(Allocated)", "MEMORY(Used)", "DUTY_CYCLE"]
    rows = []
    for use in uses:
        amounts = [
            _gib_text(amount) for amount in (use.total_bytes, use.allocated_bytes, use.used_bytes)
        ]
        rows.append(
            [
                str(use.reading.index),
                *amounts,
                "N/A" if use.duty_percent is None else f"{use.duty_percent:.1f}%",
            ]
        )
    table = render_rows(
        [[f"  {row[0]}", *row[1:]] for row in [header, ["-" * len(cell) for cell in header], *rows]]
    )
    summary = [
        ("Total GPUs:", count(report.gpus)),
        ("Allocated GPUs:", count(report.gpus_allocated_shown)),
        ("Unhealthy GPUs:", count(report.gpus_unhealthy)),
        ("Total GPU Memory:", _gib_text(_sum(use.total_bytes for use in uses))),
        ("Allocated GPU Memory:", _gib_text(_sum(use.allocated_bytes for use in uses))),
        ("Used GPU Memory:", _gib_text(_sum(use.used_bytes for use in uses))),
    ]
    return "GPUs:\n" + table + "GPU Summary:\n" + key_lines(summary, indent="  ")


def _gib_text(amount: float | None) -> str:
    return "N/A" if amount is None else f"{gib(amount)} GiB"


def _sum(amounts: Iterable[float | None]) -> float | None:
    """Of what is known; None when nothing is."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if known else None


def key_lines(lines: Iterable[tuple[str, str]], indent: str = "") -> str:
    """`Key:` and value with the values aligned one blank after
    the longest key (tables keep two).
    """
    return render_rows(((indent + key, value) for key, value in lines), padding=1)


def held_indexes(pod: Pod, readings: Sequence[GpuReading]) -> list[int]:
    """The devices whose exporter saw the pod, by namespace *and* name."""
    return [
        reading.index
        for reading in readings
        if any(
            (holder.namespace, holder.pod) == (pod.namespace, pod.name)
            for holder in reading.holders
        )
    ]
