"""`arena top node` shows how the GPUs of the nodes are used.

See docs/spec/arena-cli.md#top-node, docs/spec/arena-cli.md#nodes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from fairlead.cli.frame.arena_config import is_legacy_layout
from fairlead.cli.frame.context import ClusterReader, Context
from fairlead.cli.frame.flags import BooleanFlag
from fairlead.cli.frame.messages import Messages
from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.model.resources import Amounts
    from fairlead.model.snapshot import ClusterSnapshot
    from fairlead.rules.reports.node import NodeReport

NAME = "top node"
HELP = "Show the GPU usage of nodes: a table, or with -d everything about each node."

_MODE_WORDS: Final = {
    "none": ("n", "none", "normal"),
    "exclusive": ("e", "exclusive", "gpuexclusive"),
    "topology": ("t", "topology", "gputopology"),
    "share": ("s", "share", "gpushare"),
}
_SORTS: Final = ("name", "gpus", "allocated", "free", "unhealthy", "cpu", "memory")
"""Names go up; all others are amounts, the largest first. cpu and memory: what pods ask for."""
_OUTPUTS: Final = ("", "wide", "json", "yaml")
_REFRESH_SECONDS: Final = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "nodes", nargs="*", metavar="NODE", help="only these nodes (all when none is named)"
    )
    parser.add_argument(
        "--details",
        "-d",
        action=BooleanFlag,
        help="everything about each node: pods, devices, topology",
    )
    parser.add_argument(
        "--gpu-mode",
        "-m",
        metavar="MODE",
        default="",
        help="only n(one), e(xclusive), t(opology) or s(hare) nodes",
    )
    parser.add_argument(
        "--metric",
        action=BooleanFlag,
        help="with -d, -o: memory in use and duty cycle, from Prometheus",
    )
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="wide, json or yaml")
    parser.add_argument("--refresh", "-r", action=BooleanFlag, help="repeat every 2 s until Ctrl-C")
    parser.add_argument(
        "--resources",
        action=BooleanFlag,
        help="in tables: cpu and memory that pods request, of the node's allocatable amounts",
    )
    parser.add_argument(
        "--sort-by",
        metavar="FIELD",
        default="",
        help=f"{', '.join(_SORTS)} (default: kind of node, then name)",
    )
    parser.add_argument(
        "--gpushare", "-s", action=BooleanFlag, help="the layout of arena 0.4 for shared GPUs"
    )
    parser.add_argument("--legacy", action=BooleanFlag, help="the layout of arena 0.4")


def run(args: argparse.Namespace, context: Context) -> int:
    mode = _checked(args)
    is_legacy = args.legacy or is_legacy_layout(context.env, context.machine, context.messages)
    reader = context.world.reader()
    while True:
        context.stdout.write(_output(args, mode, reader, context.messages, is_legacy=is_legacy))
        if not args.refresh:
            return 0
        context.stdout.flush()
        context.sleep(_REFRESH_SECONDS)
        context.stdout.write(_separator(context.now()))


def _checked(args: argparse.Namespace) -> str:
    """The GPU mode asked for (empty = all). Raises UserError before anything is read."""
    if args.output not in _OUTPUTS:
        raise UserError(
            "unknown output format,only support:[wide|json|yaml]", "without `-o` it is a table"
        )
    if args.sort_by and args.sort_by not in _SORTS:
        raise UserError(
            f"nodes cannot be sorted by `{args.sort_by}`",
            f"`--sort-by` takes {', '.join(_SORTS)}",
        )
    if args.resources and (args.details or args.gpushare):
        raise UserError("`--resources` applies to the table of nodes", "leave out `-d` and `-s`")
    if args.refresh and args.details and len(args.nodes) != 1:
        raise UserError(
            "must specify only one node name when '-r' is enabled",
            "`arena top node` lists the names",
        )
    if not args.gpu_mode:
        return ""
    for mode, words in _MODE_WORDS.items():
        if args.gpu_mode.lower() in words:
            return mode
    raise UserError(
        "unknown node type,only supports:[n(none)|e(exclusive)|t(topology)|s(share)]",
        "without `-m` every node is shown",
    )


def _output(
    args: argparse.Namespace,
    mode: str,
    reader: ClusterReader,
    messages: Messages,
    *,
    is_legacy: bool,
) -> str:
    from fairlead.rules.nodes.requests import requested_by_node
    from fairlead.rules.reports.node import report_nodes

    snapshot = reader.read_nodes(tuple(dict.fromkeys(args.nodes)), with_readings=args.metric)
    reports = [report for report in report_nodes(snapshot) if mode in ("", report.mode)]
    _warn(args, snapshot, messages)
    if not reports:
        raise UserError(
            "failed to display nodes's informations: not found nodes", _whom_else(args, mode)
        )
    is_legacy = (is_legacy or args.gpushare) and args.output not in ("json", "yaml")
    requested = (
        requested_by_node(snapshot) if args.resources or args.sort_by in ("cpu", "memory") else {}
    )
    reports = _sorted(reports, args.sort_by or ("name" if is_legacy else ""), requested)
    shown = requested if args.resources else None
    if is_legacy:
        _warn_of_both(reports, messages)
        return _legacy(args, reports, shown)
    return _rendered(args, reports, shown)


def _sorted(
    reports: list[NodeReport], field: str, requested: Mapping[str, Amounts]
) -> list[NodeReport]:
    """Equal ones, and all where no field is asked for, keep
    their order: kind of node, then name.
    """
    from fairlead.rules.reports.node import natural_key

    if field == "name":
        return sorted(reports, key=lambda report: natural_key(report.node.name))
    amounts: dict[str, Callable[[NodeReport], float]] = {
        "gpus": lambda report: report.gpus,
        "allocated": lambda report: report.gpus_allocated,
        "free": lambda report: report.gpus - report.gpus_unhealthy - report.gpus_allocated,
        "unhealthy": lambda report: report.gpus_unhealthy,
        "cpu": lambda report: requested[report.node.name]["cpu"],
        "memory": lambda report: requested[report.node.name]["memory"],
    }
    return sorted(reports, key=amounts[field], reverse=True) if field else reports


def _legacy(
    args: argparse.Namespace, reports: Sequence[NodeReport], requested: Mapping[str, Amounts] | None
) -> str:
    if args.gpushare:
        from fairlead.cli.nodes.legacy_shares import legacy_share_details, legacy_share_table

        return (legacy_share_details if args.details else legacy_share_table)(reports)
    from fairlead.cli.nodes.legacy_nodes import legacy_details, legacy_table

    return legacy_details(reports) if args.details else legacy_table(reports, requested)


def _warn_of_both(reports: Sequence[NodeReport], messages: Messages) -> None:
    """Arena 0.4 stops at such a node."""
    from fairlead.model.resources import GPU_MEMORY, NVIDIA_GPU, nvidia_gpus

    for report in reports:
        if nvidia_gpus(report.node.capacity) > 0 and report.node.capacity.get(GPU_MEMORY, 0) > 0:
            messages.warn(
                f"node {report.node.name} has both {NVIDIA_GPU} and {GPU_MEMORY}; "
                "it counts as a node that shares GPUs"
            )


def _whom_else(args: argparse.Namespace, mode: str) -> str:
    if args.nodes:
        return "`arena top node` lists the names"
    return (
        "without `-m` every node is shown"
        if mode
        else "the cluster has no node: check that it is the right cluster"
    )


def _warn(args: argparse.Namespace, snapshot: ClusterSnapshot, messages: Messages) -> None:
    """Warns once of what the output lacks: absent nodes, missing metrics, unreadable topologies."""
    from fairlead.model.snapshot import GPU_TELEMETRY, GPU_TOPOLOGIES

    known = snapshot.node_by_name
    absent = [name for name in args.nodes if name not in known]
    if known:
        for name in absent:
            messages.warn(f"node {name} is not found")
    if args.metric and not snapshot.gpus:
        source = snapshot.sources.get(GPU_TELEMETRY)
        messages.warn(f"GPU metrics unavailable: {(source and source.message) or 'no samples'}")
    topologies = snapshot.sources.get(GPU_TOPOLOGIES)
    if topologies and not topologies.is_ok:
        messages.warn(f"skipped configmaps: {topologies.message}")


def _rendered(
    args: argparse.Namespace, reports: Sequence[NodeReport], requested: Mapping[str, Amounts] | None
) -> str:
    if args.output in ("json", "yaml"):
        from fairlead.cli.frame.documents import render_document
        from fairlead.cli.nodes.node_document import node_document

        return render_document(args.output, node_document(reports))
    if args.details:
        from fairlead.cli.nodes.node_details import node_details

        return node_details(reports)
    from fairlead.cli.nodes.node_table import node_table

    return node_table(reports, has_footer=not args.nodes, requested=requested)


def _separator(now: float) -> str:
    import time

    return (
        f"{'-' * 25}\n\n{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now))}\n\n{'-' * 37}\n"
    )
