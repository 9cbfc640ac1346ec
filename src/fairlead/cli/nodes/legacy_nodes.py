"""`arena top node` as arena 0.4 printed it: a table, or with `-d` a block per node.

See docs/spec/arena-cli.md#legacy-tables-of-nodes,
docs/spec/arena-cli-samples.md#legacy-table-of-nodes.

arena 0.4 counts a shared GPU as allocated as soon as any of its memory is; and percentages are cut
off, not rounded. Where the text shows a tab, the reference pads, so lines end with blanks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fairlead.cli.frame.text import count
from fairlead.cli.nodes.inspect_tables import percent_floor
from fairlead.cli.nodes.node_table import Requested, ip_text, with_requests
from fairlead.rules.nodes.status import SHARE, is_ready, role_text
from fairlead.rules.reports.node import HolderReport, NodeReport
from fairlead.wire.text.tabwriter import align, render_rows

_DASHES: Final = 89
_DASHES_BY_COLUMNS: Final = {
    (False, False): 89,
    (False, True): 96,
    (True, False): 99,
    (True, True): 107,
}
"""By whether the table has the columns GPU(Unhealthy) and GPU(Shareable)."""


def legacy_table(reports: Sequence[NodeReport], requested: Requested = None) -> str:
    """One line per node."""
    has_unhealthy, has_shared = (
        _has_unhealthy(reports),
        any(report.mode == SHARE for report in reports),
    )
    header = ["NAME", "IPADDRESS", "ROLE", "STATUS", "GPU(Total)", "GPU(Allocated)"]
    rows = [header + ["GPU(Unhealthy)"] * has_unhealthy + ["GPU(Shareable)"] * has_shared]
    for report in reports:
        status = "ready" if is_ready(report.node) else "notReady"
        cells = [
            report.node.name,
            ip_text(report),
            role_text(report.node),
            status,
            count(report.gpus),
            count(_allocated(report)),
        ]
        shareable = "Yes" if report.mode == SHARE else "No"
        rows.append(
            cells + [count(report.gpus_unhealthy)] * has_unhealthy + [shareable] * has_shared
        )
    dashes = "-" * _DASHES_BY_COLUMNS[has_unhealthy, has_shared] + "\n"
    return (
        render_rows(with_requests(rows, reports, requested))
        + dashes
        + "".join(align(f"{title}\n{value}\t\n") for title, value in _sums(reports))
    )


def legacy_details(reports: Sequence[NodeReport]) -> str:
    """One block per node: its pods with GPUs, then sums."""
    has_unhealthy = _has_unhealthy(reports)
    blocks = "".join(_block(report, has_unhealthy=has_unhealthy) for report in reports)
    sums = [(title, value) for title, value in _sums(reports) if "(Active)" not in title]
    return align(f"\n{blocks}\n\n" + "".join(f"{title}\t{value}\t\n" for title, value in sums))


def _block(report: NodeReport, *, has_unhealthy: bool) -> str:
    name, allocated = report.node.name, _allocated(report)
    lines = [
        "",
        f"NAME:\t{name}",
        f"IPADDRESS:\t{ip_text(report)}",
        f"ROLE:\t{role_text(report.node)}",
    ]
    if report.holders:
        lines += [
            "",
            "NAMESPACE\tNAME\tGPU REQUESTS\t ",
            *(_pod_line(report, holder) for holder in report.holders),
            "",
        ]
    if not report.gpus:
        lines.append("")
    lines.append(f"Total GPUs In Node {name}:\t{count(report.gpus)} \t")
    lines.append(
        f"Allocated GPUs In Node {name}:\t{count(allocated)} "
        f"({percent_floor(int(allocated), report.gpus)}%)\t"
    )
    if report.mode == SHARE:
        lines.append("If Node is Shareable :\tYes ")
    if has_unhealthy:
        unhealthy = report.gpus_unhealthy
        lines.append(
            f"Unhealthy GPUs In Node {name}:\t{count(unhealthy)} "
            f"({percent_floor(unhealthy, report.gpus)}%)\t"
        )
    return "\n".join([*lines, "-" * _DASHES, ""])


def _pod_line(report: NodeReport, holder: HolderReport) -> str:
    """A sharing pod's request is the part of GPU 0 that its units would be."""
    request = count(holder.requested)
    if report.mode == SHARE:
        first = report.devices[0].units if report.devices else 0
        request = f"{holder.requested / first if first else 0:.2f}"
    return f"{holder.pod.namespace}\t{holder.pod.name}\t{request}\t"


def _sums(reports: Sequence[NodeReport]) -> list[tuple[str, str]]:
    """Titles and values of the cluster's lines."""
    total, allocated = (
        sum(report.gpus for report in reports),
        int(sum(_allocated(report) for report in reports)),
    )
    active = sum(report.gpus for report in reports if is_ready(report.node))
    unhealthy = sum(report.gpus_unhealthy for report in reports)
    lines = [("Allocated/Total GPUs In Cluster:", _part(allocated, total))]
    if active != total:
        lines.append(("Allocated/Total GPUs(Active) In Cluster:", _part(allocated, active)))
    if unhealthy:
        lines.append(("Unhealthy/Total GPUs In Cluster:", _part(unhealthy, total)))
    return lines


def _part(part: int, total: int) -> str:
    return f"{part}/{total} ({percent_floor(part, total)}%)"


def _allocated(report: NodeReport) -> float:
    """GPUs given away; of a share node those with any memory in use."""
    if report.mode == SHARE:
        return sum(device.units_allocated > 0 for device in report.devices)
    return report.gpus_allocated


def _has_unhealthy(reports: Sequence[NodeReport]) -> bool:
    return any(report.gpus_unhealthy for report in reports)
