"""`arena top node -s`: shared GPUs as arena 0.4 printed them, in lines or `-d` blocks.

See docs/spec/arena-cli.md#legacy-tables-of-share-nodes, S16, S17.

Totals are what is *allocatable*. The table omits pods on unknown cards, while the blocks count
them. Every cell ends with a tab, so it is padded, the last one too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from fairlead.cli.nodes.inspect_tables import gpu_columns, percent_floor
from fairlead.cli.nodes.node_table import ip_text
from fairlead.model.resources import GPU_COUNT, GPU_MEMORY
from fairlead.rules.nodes.status import SHARE
from fairlead.rules.reports.node import HolderReport, NodeReport
from fairlead.wire.text.tabwriter import align

_TITLE: Final = "Allocated/Total GPU Memory In GPUShare Node:"
_TABLE_DASHES: Final = 20
_BLOCK_DASHES: Final = 10
_MIB: Final = 1 << 20


class _Shares(Struct, frozen=True):
    """A share node in the table's unit: `cards` as (used, total) by index."""

    report: NodeReport
    total: int
    cards: dict[int, tuple[int, int]]
    divisor: int

    @property
    def used(self) -> int:
        return sum(used for used, _ in self.cards.values())

    @property
    def unplaced(self) -> int:
        """Units of pods on unknown cards."""
        return (
            sum(holder.requested for holder in self.report.holders if not holder.units_by_gpu)
            // self.divisor
        )


def legacy_share_table(reports: Sequence[NodeReport]) -> str:
    """A line per node that shares GPUs: what is used of each GPU."""
    unit, nodes = _shares(reports)
    columns = gpu_columns([node.cards for node in nodes])
    header = _line(["NAME", "IPADDRESS", *(f"GPU{index}(Allocated/Total)" for index in columns)])
    rows = [
        _line([node.report.node.name, ip_text(node.report), *_card_cells(node, columns)])
        for node in nodes
    ]
    dashes = "-" * (len((rows or [header])[0].encode()) + _TABLE_DASHES)
    used, total = sum(node.used for node in nodes), sum(node.total for node in nodes)
    return align(f"{header}{''.join(rows)}{dashes}\n{_footer(used, total, unit)}")


def legacy_share_details(reports: Sequence[NodeReport]) -> str:
    """A block per node that shares GPUs, with a line per pod;
    all dashes have the first block's length.
    """
    unit, nodes = _shares(reports)
    pods = [[_pod_line(node, holder) for holder in node.report.holders] for node in nodes]
    dashes = "-" * (sum(len(line.encode()) for line in (pods[0] if pods else [])) + _BLOCK_DASHES)
    blocks = "".join(
        f"{_block(node, lines)}{dashes}\n" for node, lines in zip(nodes, pods, strict=True)
    )
    used, total = (
        sum(node.used + node.unplaced for node in nodes),
        sum(node.total for node in nodes),
    )
    return align(f"{blocks}\n\n{_footer(used, total, unit)}")


def _block(node: _Shares, pods: Sequence[str]) -> str:
    used = node.used + node.unplaced
    return (
        f"\nNAME:\t{node.report.node.name}\nIPADDRESS:\t{ip_text(node.report)}\n\n"
        + _line(["NAME", "NAMESPACE", *(f"GPU{index}(Allocated)" for index in node.cards)])
        + "".join(pods)
        + f"Allocated :\t{used} ({percent_floor(used, node.total)}%)\t\nTotal :\t{node.total} \t\n"
    )


def _pod_line(node: _Shares, holder: HolderReport) -> str:
    cells = [str(holder.units_by_gpu.get(index, 0) // node.divisor) for index in node.cards]
    return _line([holder.pod.name, holder.pod.namespace, *cells])


def _card_cells(node: _Shares, columns: Sequence[int]) -> list[str]:
    return ["{}/{}".format(*node.cards.get(index, (0, 0))) for index in columns]


def _shares(reports: Sequence[NodeReport]) -> tuple[str, list[_Shares]]:
    """The unit of the table (GiB unless all nodes count in MiB)
    and the nodes that share something.
    """
    shared = [
        report
        for report in reports
        if report.mode == SHARE and report.node.allocatable.get(GPU_MEMORY, 0) > 0
    ]
    unit = "MiB" if {report.unit_bytes for report in shared} == {_MIB} else "GiB"
    return unit, [
        _of_node(report, 1024 if unit == "GiB" and report.unit_bytes == _MIB else 1)
        for report in shared
    ]


def _of_node(report: NodeReport, divisor: int) -> _Shares:
    """A card's total is that of the inventory, else an equal part of what is allocatable."""
    node = report.node
    total = node.allocatable[GPU_MEMORY]
    part = total // (node.allocatable.get(GPU_COUNT, 0) or report.gpus or 1)
    has_units = any(slot.units > 0 for slot in node.gpus)
    cards = {
        device.index: (
            device.units_allocated // divisor,
            (int(device.units) if has_units else part) // divisor,
        )
        for device in report.devices
    }
    return _Shares(report, total // divisor, cards, divisor)


def _footer(used: int, total: int, unit: str) -> str:
    return f"{_TITLE}\n{used}/{total} ({unit}) ({percent_floor(used, total)}%)\t\n"


def _line(cells: Sequence[str]) -> str:
    return "".join(f"{cell}\t" for cell in cells) + "\n"
