"""The tables of `arena top node`: one per GPU mode, and the mixed one.

See docs/spec/arena-cli.md#tables-of-nodes; S1 to S4.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fairlead.cli.frame.text import count, gib
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.node import Node
from fairlead.model.occupancy import rounded_gpus
from fairlead.model.resources import CPU, GPU_CORE, GPU_MEMORY, MEMORY, Amounts
from fairlead.rules.nodes.status import SHARE, node_ip, role_text
from fairlead.rules.reports.node import NORMAL, RESOURCE_OF_MODE, NodeReport, node_condition
from fairlead.wire.text.tabwriter import render_rows

_DASHES: Final = 99
_SHARE_DASHES: Final = 107
_REQUEST_COLUMNS: Final = ("CPU(Requested/Total)", "MEMORY(Requested/Total)")
Requested = Mapping[str, Amounts] | None
"""What the pods of each node ask for, by node name; None = not to be shown."""


def node_table(
    reports: Sequence[NodeReport], *, has_footer: bool, requested: Requested = None
) -> str:
    """The table for these nodes (at least one).

    `has_footer` is about the mixed table; a mode's own table keeps its footer.
    """
    modes = {report.mode for report in reports}
    if modes == {SHARE}:
        return _share_table(reports, requested)
    if len(modes) == 1:
        return _own_table(reports, requested)
    return _mixed_table(reports, requested, has_footer=has_footer)


def with_requests(
    rows: Sequence[list[str]], reports: Sequence[NodeReport], requested: Requested
) -> list[list[str]]:
    """The rows, the header first, with what the pods of each node ask for, if it is `requested`."""
    if requested is None:
        return list(rows)
    head, *lines = rows
    cells = [_request_cells(report.node, requested[report.node.name]) for report in reports]
    return [
        [*head, *_REQUEST_COLUMNS],
        *([*line, *more] for line, more in zip(lines, cells, strict=True)),
    ]


def _request_cells(node: Node, asked: Amounts) -> list[str]:
    """Of what the node gives to pods (allocatable): beyond that nothing more is placed there."""
    cpu, memory = node.allocatable.get(CPU, 0), node.allocatable.get(MEMORY, 0)
    return [f"{_cores(asked[CPU])}/{_cores(cpu)}", f"{gib(asked[MEMORY])}/{gib(memory)} GiB"]


def _cores(millicores: int) -> str:
    return count(round(millicores / 1000, 1))


def _mixed_table(reports: Sequence[NodeReport], requested: Requested, *, has_footer: bool) -> str:
    has_modes = len({report.mode for report in reports} - {NORMAL}) > 1
    has_unhealthy = any(report.gpus_unhealthy for report in reports)
    header = ["NAME", "IPADDRESS", "ROLE", "STATUS", "GPU(Total)", "GPU(Allocated)"]
    rows = [header + ["GPU(Mode)"] * has_modes + ["UNHEALTHY"] * has_unhealthy]
    for report in reports:
        cells = [*_who(report), count(report.gpus), count(report.gpus_allocated_shown)]
        rows.append(
            cells + [report.mode] * has_modes + [count(report.gpus_unhealthy)] * has_unhealthy
        )
    table = render_rows(with_requests(rows, reports, requested))
    if not has_footer:
        return table
    return table + _dashes(_DASHES) + _gpu_footer(reports, "GPUs In Cluster:")


def _own_table(reports: Sequence[NodeReport], requested: Requested) -> str:
    """Exclusive, topology or normal nodes alone; normal ones have nothing to sum up."""
    mode = reports[0].mode
    has_unhealthy = any(report.gpus_unhealthy for report in reports)
    rows = [
        ["NAME", "IPADDRESS", "ROLE", "STATUS", "GPU(Total)", "GPU(Allocated)"]
        + ["UNHEALTHY"] * has_unhealthy
    ]
    for report in reports:
        cells = [*_who(report), count(report.gpus), count(report.gpus_allocated_shown)]
        rows.append(cells + [count(report.gpus_unhealthy)] * has_unhealthy)
    table = render_rows(with_requests(rows, reports, requested))
    if mode == NORMAL:
        return table
    return table + _dashes(_DASHES) + _gpu_footer(reports, _own_title(mode))


def _share_table(reports: Sequence[NodeReport], requested: Requested) -> str:
    has_unhealthy = any(report.gpus_unhealthy for report in reports)
    header = [
        "NAME",
        "IPADDRESS",
        "ROLE",
        "STATUS",
        "GPUs(Allocated/Total)",
        "GPU_MEMORY(Allocated/Total)",
        "GPU_CORE(Allocated/Total)",
    ]
    rows = [header + ["UNHEALTHY"] * has_unhealthy]
    for report in reports:
        cells = [
            *_who(report),
            f"{count(report.gpus_allocated_shown)}/{count(report.gpus)}",
            f"{gib(report.memory_allocated_bytes)}/{gib(report.memory_bytes)} GiB",
            f"{report.core_allocated}/{report.core}" if report.core else "__",
        ]
        rows.append(cells + [count(report.gpus_unhealthy)] * has_unhealthy)
    return (
        render_rows(with_requests(rows, reports, requested))
        + _dashes(_SHARE_DASHES)
        + _share_footer(reports)
    )


def _share_footer(reports: Sequence[NodeReport]) -> str:
    title = _own_title(SHARE)
    total = sum(report.memory_bytes for report in reports)
    allocated = sum(report.memory_allocated_bytes for report in reports)
    lines = [
        _allocated_lines(reports, title),
        f"Allocated/Total GPU Memory of nodes which own resource {GPU_MEMORY} In Cluster:\n",
        f"{gib(allocated)}/{gib(total)} GiB({percent(allocated, total)})\n",
    ]
    core = sum(report.core for report in reports)
    if core:
        used = sum(report.core_allocated for report in reports)
        lines.append(
            f"Allocated/Total GPU Core of nodes which own resource {GPU_CORE} In Cluster:\n"
        )
        lines.append(f"{used}/{core} ({percent(used, core)})\n")
    return "".join(lines) + _unhealthy_lines(reports, title)


def _gpu_footer(reports: Sequence[NodeReport], title: str) -> str:
    return _allocated_lines(reports, title) + _unhealthy_lines(reports, title)


def _allocated_lines(reports: Sequence[NodeReport], title: str) -> str:
    total = sum(report.gpus for report in reports)
    allocated = rounded_gpus(sum(report.gpus_allocated for report in reports))
    return (
        f"Allocated/Total {title}\n{count(allocated)}/{count(total)} "
        f"({percent(allocated, total)})\n"
    )


def _unhealthy_lines(reports: Sequence[NodeReport], title: str) -> str:
    total = sum(report.gpus for report in reports)
    unhealthy = sum(report.gpus_unhealthy for report in reports)
    return (
        (
            f"Unhealthy/Total {title}\n{count(unhealthy)}/{count(total)} "
            f"({percent(unhealthy, total)})\n"
        )
        if unhealthy
        else ""
    )


def _own_title(mode: GpuMode) -> str:
    return f"GPUs of nodes which own resource {RESOURCE_OF_MODE[mode]} In Cluster:"


def _who(report: NodeReport) -> list[str]:
    return [report.node.name, ip_text(report), role_text(report.node), node_condition(report.node)]


def ip_text(report: NodeReport) -> str:
    return node_ip(report.node) or "N/A"


def percent(part: float, total: float) -> str:
    """
    >>> percent(2.8, 8), percent(1, 0)
    ('35.0%', '0.0%')
    """
    return f"{100 * part / total if total else 0:.1f}%"


def _dashes(number: int) -> str:
    return "-" * number + "\n"
