"""The blocks of `arena top node -d`: one per node.

See docs/spec/arena-cli.md#details-of-nodes, docs/spec/arena-cli-samples.md#details-of-top-node.

The irregular blanks are part of the specification. Share nodes end with two empty lines, one
description line ends with a blank, the dashes under a topology node's INDEX are four, and summaries
are aligned for some modes and not for others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.cli.frame.text import count, gib
from fairlead.cli.nodes.node_devices import device_block, held_indexes, key_lines
from fairlead.cli.nodes.node_table import ip_text
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.pod import Pod
from fairlead.model.resources import GPU_CORE
from fairlead.rules.nodes.status import EXCLUSIVE, SHARE, TOPOLOGY, role_text
from fairlead.rules.pods.status import pod_status
from fairlead.rules.reports.node import (
    NORMAL,
    RESOURCE_OF_MODE,
    DeviceReport,
    HolderReport,
    NodeReport,
    node_condition,
)
from fairlead.wire.text.tabwriter import render_rows

TYPE_OF_MODE: Final = {
    NORMAL: "Normal",
    EXCLUSIVE: "GPUExclusive",
    TOPOLOGY: "GPUTopology",
    SHARE: "GPUShare",
}
_WORD_OF_MODE: Final = {EXCLUSIVE: "exclusive", TOPOLOGY: "topology", SHARE: "sharing"}
_INDENT: Final = "  "


def node_details(reports: Sequence[NodeReport]) -> str:
    return "".join(_block(report) for report in reports)


def description(report: NodeReport) -> str:
    """What pods may ask for here.

    The blank at the end of line 2 of a share node without gpu-core is the reference's.
    """
    if report.mode == NORMAL:
        return "  This node has none gpu devices\n"
    word = _WORD_OF_MODE[report.mode]
    request = "  {}.Pods can request resource '{}' to use gpu {} feature on this node{}\n"
    lines = f"  1.This node is enabled gpu {word} mode.\n"
    is_plain_share = report.mode == SHARE and not report.core
    lines += request.format(2, RESOURCE_OF_MODE[report.mode], word, " " if is_plain_share else "")
    if report.mode == SHARE and report.core:
        lines += request.format(3, GPU_CORE, word, "")
    return lines


def _block(report: NodeReport) -> str:
    head = [
        ("Name:", report.node.name),
        ("Status:", node_condition(report.node)),
        ("Role:", role_text(report.node)),
        ("Type:", TYPE_OF_MODE[report.mode]),
        ("Address:", ip_text(report)),
    ]
    text = "\n" + key_lines(head) + "Description:\n" + description(report)
    if report.mode == NORMAL:
        return text + "\n"
    return text + _instances(report) + _devices(report) + ("\n\n" if report.mode == SHARE else "\n")


def _instances(report: NodeReport) -> str:
    if not report.holders:
        return ""
    if report.mode == SHARE:
        header, rows = _share_instances(report)
    elif report.mode == TOPOLOGY:
        header = ["NAMESPACE", "NAME", "GPU(Requested)", "GPU(Allocated)"]
        rows = [
            [*_pod_cells(each), count(each.requested), _comma(each.whole)]
            for each in report.holders
        ]
    else:
        header, rows = _exclusive_instances(report)
    return "Instances:\n" + indented_table(header, rows)


def _exclusive_instances(report: NodeReport) -> tuple[list[str], list[list[str]]]:
    header = ["NAMESPACE", "NAME", "STATUS", "GPU(Requested)"]
    rows = [
        [*_pod_cells(each), pod_status(each.pod), count(each.requested)] for each in report.holders
    ]
    if not report.readings:
        return header, rows
    cells = [_gpus_of(each.pod, report.readings) for each in report.holders]
    return [*header, "GPU(Allocated)"], [
        [*row, cell] for row, cell in zip(rows, cells, strict=True)
    ]


def _share_instances(report: NodeReport) -> tuple[list[str], list[list[str]]]:
    header = ["NAMESPACE", "NAME", "GPU_MEM(Requested)", "GPU_MEM(Allocated)"]
    rows = []
    for each in report.holders:
        granted = ",".join(
            f"gpu{index}({gib(units * report.unit_bytes)}GiB)"
            for index, units in each.units_by_gpu.items()
        )
        row = [
            *_pod_cells(each),
            f"{gib(each.requested * report.unit_bytes)} GiB",
            granted or "N/A",
        ]
        if report.core:
            cores = ",".join(
                f"gpu{index}({percent})" for index, percent in each.core_by_gpu.items()
            )
            row += [str(each.core_percent), cores or "N/A"]
        rows.append(row)
    return header + (["GPU_CORE(Requested)", "GPU_CORE(Allocated)"] if report.core else []), rows


def _devices(report: NodeReport) -> str:
    if report.readings:
        return device_block(report)
    if report.mode == SHARE:
        return _share_devices(report) + _plain_summary(report)
    if report.mode == TOPOLOGY:
        return _topology_devices(report) + _plain_summary(report)
    return "GPU Summary:\n" + key_lines(_summary_lines(report), indent=_INDENT)


def _share_devices(report: NodeReport) -> str:
    header = ["INDEX", "MEMORY(Total)", "MEMORY(Allocated)"] + (
        ["CORE(Total)", "CORE(Allocated)"] if report.core else []
    )
    return "GPUs:\n" + indented_table(
        header, [_share_device_row(device, report) for device in report.devices]
    )


def _share_device_row(device: DeviceReport, report: NodeReport) -> list[str]:
    share = 100 * device.units_allocated / device.units if device.units else 0
    row = [
        str(device.index),
        f"{_short_gib(device.units * report.unit_bytes)} GiB",
        f"{_short_gib(device.units_allocated * report.unit_bytes)} GiB({share:.1f}%)",
    ]
    if report.core:
        core_share = 100 * device.core_allocated / device.core if device.core else 0
        row += [str(device.core), f"{device.core_allocated}({core_share:.1f}%)"]
    return row


def _topology_devices(report: NodeReport) -> str:
    topology = report.topology
    if topology is None:
        return ""
    names = [f"GPU{index}" for index in topology.health_by_index]
    text = _matrix("LinkTypeMatrix", topology.links) + _matrix(
        "BandwidthMatrix", [[f"{value:.2f}" for value in row] for row in topology.bandwidths]
    )
    using = {index for each in report.holders for index in each.whole}
    rows = [
        [name, "using" if index in using else "idle", "true" if health == "Healthy" else "false"]
        for name, (index, health) in zip(names, topology.health_by_index.items(), strict=True)
    ]
    return (
        text
        + "GPUs:\n"
        + indented_table(["INDEX", "STATUS", "HEALTHY"], rows, dashes=["----", "------", "-------"])
    )


def _matrix(title: str, rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    header = ["", *(f"GPU{index}" for index in range(len(rows[0])))]
    body = [[f"GPU{index}", *row] for index, row in enumerate(rows)]
    return f"{title}:\n" + _indented([header, *body])


def _plain_summary(report: NodeReport) -> str:
    return "GPU Summary:\n" + "".join(f"  {key} {value}\n" for key, value in _summary_lines(report))


def _summary_lines(report: NodeReport) -> list[tuple[str, str]]:
    lines = [
        ("Total GPUs:", count(report.gpus)),
        ("Allocated GPUs:", count(report.gpus_allocated_shown)),
        ("Unhealthy GPUs:", count(report.gpus_unhealthy)),
    ]
    if report.mode == SHARE:
        lines.append(("Total GPU Memory:", f"{gib(report.memory_bytes)} GiB"))
        lines.append(("Allocated GPU Memory:", f"{gib(report.memory_allocated_bytes)} GiB"))
        if report.core:
            lines += [
                ("Total GPU Core:", str(report.core)),
                ("Allocated GPU Core:", str(report.core_allocated)),
            ]
    return lines


def indented_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], dashes: Sequence[str] = ()
) -> str:
    """A table indented by two columns, with dashes of the length of each heading below it."""
    return _indented([header, dashes or ["-" * len(cell) for cell in header], *rows])


def _indented(rows: Sequence[Sequence[str]]) -> str:
    return render_rows([[_INDENT + row[0], *row[1:]] for row in rows])


def _pod_cells(holder: HolderReport) -> list[str]:
    return [holder.pod.namespace, holder.pod.name]


def _gpus_of(pod: Pod, readings: Sequence[GpuReading]) -> str:
    return ",".join(f"gpu{index}" for index in held_indexes(pod, readings)) or "N/A"


def _comma(indexes: Sequence[int]) -> str:
    return ",".join(str(index) for index in indexes) or "N/A"


def _short_gib(amount: float) -> str:
    """At most one decimal: `15`, `14.7`.

    >>> _short_gib(15 << 30), _short_gib(15079 << 20), _short_gib(0)
    ('15', '14.7', '0')
    """
    return gib(amount).removesuffix(".0")
