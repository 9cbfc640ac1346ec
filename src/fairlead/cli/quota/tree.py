"""`fairlead quota tree`: what every quota node is guaranteed, uses, borrows and may use at most."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from fairlead.cli.frame.context import Context
from fairlead.cli.frame.documents import check_output, printed_document
from fairlead.errors import OutsideError
from fairlead.model.resources import PODS
from fairlead.wire.text.tabwriter import render_rows

if TYPE_CHECKING:
    from fairlead.model.quota.tree import QuotaNode, QuotaTree
    from fairlead.model.quota.use import QuotaUse
    from fairlead.model.snapshot import ClusterSnapshot
    from fairlead.rules.quota.usage import ScarceResource

NAME = "quota tree"
_OVER_MAX: Final = "!"
"""Mark of usage above a node's max."""
HELP = """Show the quota tree: per node and resource the guarantee (MIN), the usage, the usage above
MIN that is borrowed, the limit (MAX), and the number of waiting pods. N/A is unlimited. `!` marks
usage above MAX: no pods are admitted there until it is gone. If the cluster has less than the sum
of all mins, MIN is the part that counts, and a line gives the reason. The command reads a cluster
or a snapshot, and needs no quota controller.

Without the right to list the pods of all namespaces it prints what the quota controller last wrote
into the status of the tree."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--output", "-o", metavar="FORMAT", default="", help="json or yaml")


def run(args: argparse.Namespace, context: Context) -> int:
    from fairlead.cli.quota.cluster_state import hides_pods, read_cluster, tree_of

    check_output(args.output)
    snapshot = read_cluster(context)
    tree = tree_of(snapshot)
    reported = _reported(tree, context) if hides_pods(snapshot) else ()
    uses = reported or _counted_uses(snapshot, context)
    if args.output in ("json", "yaml"):
        document = _document(tree, uses, is_reported=bool(reported))
        context.stdout.write(printed_document(args.output, document))
    else:
        context.stdout.write(_table(tree, uses))
        context.stdout.write("" if reported else "".join(_limits(tree, snapshot, uses)))
        context.stdout.write("".join(_over_max(uses)))
    return 0


def _counted_uses(snapshot: ClusterSnapshot, context: Context) -> tuple[QuotaUse, ...]:
    """Of all pods. What else could not be read is warned of."""
    from fairlead.rules.quota.usage import quota_usage

    unread = {
        source: f"{source.name} cannot be read: {source.message or source.state}"
        for source in snapshot.sources.values()
        if source.is_unread
    }
    pods = snapshot.sources.get(PODS)
    if pods in unread:
        raise OutsideError("kubernetes", unread[pods], pods.hint)
    for what in unread.values():
        context.messages.warn(what)
    return quota_usage(snapshot)


def _reported(tree: QuotaTree, context: Context) -> tuple[QuotaUse, ...]:
    """What the nodes use as the quota controller wrote it, of the nodes that its status has; () =
    it has none.
    """
    from fairlead.cli.quota.cluster_state import note_reported
    from fairlead.model.quota.use import QuotaUse
    from fairlead.wire.quota.tree_status import parse_node_uses

    assert tree.root is not None
    uses = {use.name: use for use in parse_node_uses(tree.status)}
    missing = [node.name for node in tree.root.walk() if node.name not in uses]
    if uses:
        note_reported(tree, tuple(uses.values()), context)
    if uses and missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        context.messages.warn(f"the tree's status has no numbers of {missing[0]}{more}")
    return tuple(QuotaUse(node, uses[node.name]) for node in tree.root.walk() if node.name in uses)


def _table(tree: QuotaTree, uses: tuple[QuotaUse, ...]) -> str:
    from fairlead.rules.quota.managed import managed_resources

    assert tree.root is not None
    resources, depth = managed_resources(tree.root), {"": -1}
    for node in tree.root.walk():
        depth[node.name] = depth[node.parent] + 1
    rows = [("NAME", "RESOURCE", "MIN", "USED", "BORROWED", "MAX", "WAITING", "NAMESPACES")]
    for use in uses:
        node = use.node
        name, waiting = f"{'  ' * depth[node.name]}{node.short_name}", str(use.own.waiting_pods)
        namespaces = ",".join(node.namespaces) or "-"
        rows += [
            (name, resource, *_numbers(use, resource), waiting, namespaces)
            for resource in resources
        ]
    return render_rows(rows)


def _limits(tree: QuotaTree, snapshot: ClusterSnapshot, uses: Sequence[QuotaUse]) -> Iterator[str]:
    """Of what the cluster has less than the tree gives or guarantees."""
    from fairlead.rules.quota.usage import node_limits, scarce_resources

    for resource, there in node_limits(snapshot).items():
        yield _limit(tree, resource, there)
    for resource, scarce in scarce_resources(snapshot).items():
        yield from _counted(uses, resource, scarce)


def _limit(tree: QuotaTree, resource: str, there: int) -> str:
    from fairlead.model.resources import amount_text

    assert tree.root is not None
    most = amount_text(resource, tree.root.max[resource])
    return (
        f"{tree.root.name} gives {amount_text(resource, there)} {resource} at most, not {most}: "
        "the cluster's nodes have no more.\n"
    )


def _counted(uses: Sequence[QuotaUse], resource: str, scarce: ScarceResource) -> Iterator[str]:
    """Of each leaf what its min counts as, and why."""
    from fairlead.model.resources import amount_text

    for use in uses:
        if use.node.is_leaf and resource in use.own.counted_min:
            amounts = (
                scarce.configured,
                scarce.available,
                use.node.min.get(resource, 0),
                use.min_of(resource),
            )
            configured, there, written, counts = (
                amount_text(resource, amount) for amount in amounts
            )
            yield (
                f"{use.node.name}: {resource} configured {configured}, available {there}, so "
                f"{written} counts as {counts}.\n"
            )


def _over_max(uses: Sequence[QuotaUse]) -> Iterator[str]:
    from fairlead.model.resources import amount_text

    for use in uses:
        for resource, over in sorted(use.own.over_max.items()):
            used, most = (
                amount_text(resource, use.own.used[resource]),
                amount_text(resource, use.node.max[resource]),
            )
            sentence = (
                f"uses {used} {resource}, {amount_text(resource, over)} more than its max {most}"
            )
            yield (
                f"{_OVER_MAX} {use.node.name} {sentence}: no pods are admitted there until it "
                "uses less.\n"
            )


def _numbers(use: QuotaUse, resource: str) -> tuple[str, str, str, str]:
    from fairlead.model.resources import amount_text

    node = use.node
    used, borrowed = (
        amount_text(resource, use.own.used.get(resource, 0)),
        amount_text(resource, use.own.borrowed.get(resource, 0)),
    )
    used += _OVER_MAX if resource in use.own.over_max else ""
    least = "N/A" if resource in node.unlimited_min else amount_text(resource, use.min_of(resource))
    most = amount_text(resource, node.max[resource]) if resource in node.max else "N/A"
    return least, used, borrowed, most


def _document(tree: QuotaTree, uses: tuple[QuotaUse, ...], *, is_reported: bool) -> dict[str, Any]:
    from fairlead.wire.quota.plan_json import render_node_use

    nodes = [
        {**render_node_use(use.own), "parent": use.node.parent, **_bounds(use.node)} for use in uses
    ]
    return {
        "name": tree.name,
        "namespace": tree.namespace,
        "isReported": is_reported,
        "nodes": nodes,
    }


def _bounds(node: QuotaNode) -> dict[str, Any]:
    """As they were written, unlimited amounts as that word."""
    from fairlead.model.resources import amount_text

    return {
        "min": {
            **{key: amount_text(key, value) for key, value in node.min.items()},
            **dict.fromkeys(node.unlimited_min, "unlimited"),
        },
        "max": {
            **{key: amount_text(key, value) for key, value in node.max.items()},
            **dict.fromkeys(node.unlimited, "unlimited"),
        },
    }
