"""`fairlead quota validate FILE` lists the faults of a quota tree before it is applied."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from fairlead.cli.frame.context import Context
from fairlead.cli.quota.tree_file import read_tree
from fairlead.errors import OutsideError
from fairlead.wire.text.tabwriter import render_rows

if TYPE_CHECKING:
    from fairlead.model.quota.tree import QuotaTree, Violation
    from fairlead.model.snapshot import ClusterSnapshot

NAME = "quota validate"
HELP = """Check the quota tree in FILE and print every fault, each in one sentence with node,
resource and numbers.

If a cluster or a snapshot is available, the tree is also checked against its tree, namespaces and
running pods; the last line names it. A max or a min below the current usage is a warning that names
the pods. The exit status is 1 if the tree has an error; warnings do not change it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="an ElasticQuotaTree in YAML or JSON (`-`: stdin)"
    )


def run(args: argparse.Namespace, context: Context) -> int:
    tree = read_tree(args.file, context.machine)
    cluster = _cluster(context)
    found = _violations(tree, cluster, context.now())
    context.stdout.write(
        render_rows(
            [("ERROR" if each.is_error else "WARNING", each.code, each.message) for each in found]
        )
    )
    errors = sum(1 for each in found if each.is_error)
    against = (
        f"checked against {context.world.reader().describe()}"
        if cluster
        else "not checked against a cluster: running pods are unknown"
    )
    context.stdout.write(f"{_summary(tree, errors, len(found) - errors)}; {against}\n")
    return 1 if errors else 0


def _cluster(context: Context) -> ClusterSnapshot | None:
    """None if none is available: the embedded cluster has no relevant namespaces.

    A cluster that does not respond causes a warning.
    """
    if not context.options.snapshot and context.world.objects() is None:
        return None
    try:
        snapshot = context.world.reader().read_all()
    except OutsideError as error:
        context.messages.warn(f"not checked against the cluster: {error.what}")
        return None
    pods = snapshot.sources.get("pods")
    if pods is not None and pods.is_unread:
        context.messages.warn(
            "pods cannot be read, so it is unknown which namespaces have running pods"
        )
    return snapshot


def _violations(
    tree: QuotaTree, cluster: ClusterSnapshot | None, now: float
) -> tuple[Violation, ...]:
    from msgspec.structs import replace

    from fairlead.model.resources import sum_of
    from fairlead.rules.quota.managed import own_namespaces
    from fairlead.rules.quota.sight import quota_state
    from fairlead.rules.quota.validate import validate

    if cluster is None:
        return validate(tree, tree)
    capacity = (
        sum_of(node.allocatable for node in cluster.nodes) if cluster.was_read("nodes") else None
    )
    state = None
    if tree.sound_root is not None and cluster.was_read("pods"):
        state = quota_state(
            replace(cluster, quota_tree=tree, quota=tree.sound_root), cluster.taken_at or now
        )
    return validate(
        tree,
        cluster.quota_tree,
        cluster.namespace_names,
        cluster.pods,
        capacity=capacity,
        state=state,
        own=own_namespaces(cluster.namespaces),
    )


def _summary(tree: QuotaTree, errors: int, warnings: int) -> str:
    counts = [
        f"{count} {word}{'s' if count > 1 else ''}"
        for count, word in ((errors, "error"), (warnings, "warning"))
        if count
    ]
    if errors:
        return " and ".join(counts)
    nodes = list(tree.root.walk()) if tree.root else []
    leaves = sum(1 for node in nodes if node.is_leaf)
    return f"valid: {len(nodes)} nodes, {leaves} of them leaves{f', {counts[0]}' if counts else ''}"
