"""The effects of other bounds in the quota tree, computed by the plan itself, without any write.

The changed tree is parsed as a written one is, so bad quantities have the same faults.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from fairlead.console.pages.envelope import Sentence, counted
from fairlead.console.pages.quota import TreeFault
from fairlead.console.pages.quota_tree import BoundsChange, LeafEffect, MovedPod
from fairlead.errors import UserError
from fairlead.model.quota.plan import QuotaAdmission, QuotaEviction
from fairlead.model.quota.state import QuotaState
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.model.resources import UNLIMITED, Amounts, amount_text
from fairlead.rules.quota.what_if import SettledQuota, running_by_leaf
from fairlead.wire.quota.elastic_quota import WireQuotaTree, WireTreeMeta, parse_quota_tree

SHOWN_MAX: Final = 500


def changed_tree(tree: QuotaTree, changes: Iterable[BoundsChange]) -> QuotaTree:
    """The tree as it would be read with these bounds.

    Raises UserError for a node that it does not have.
    """
    if tree.root is None:
        raise UserError(
            "this cluster has no quota tree to change", "apply an ElasticQuotaTree first"
        )
    spec = _spec(tree.root)
    by_name = {node["name"]: node for node in _nodes(spec)}
    for change in changes:
        if (node := by_name.get(change.node)) is None:
            raise UserError(
                f"the quota tree has no node `{change.node[:100]}`",
                "reload the page: the tree may have changed",
            )
        for bound, text in (("min", change.min), ("max", change.max)):
            if text is not None:
                node[bound].pop(change.resource, None)
            if text:
                node[bound][change.resource] = text
    parsed = parse_quota_tree(WireQuotaTree(WireTreeMeta(), spec={"root": spec}))
    return replace(tree, root=parsed.root, faults=parsed.faults)


def effects_sentence(admitted: int, evicted: int) -> Sentence:
    values = {"admitted": admitted, "evicted": evicted}
    if not admitted and not evicted:
        return Sentence("what-if-nothing", {}, "No pods would be admitted or evicted.")
    return Sentence(
        "what-if",
        dict(values),
        f"{counted(admitted, 'pod')} would be admitted, {counted(evicted, 'pod')} evicted.",
    )


def refused_sentence(faults: Sequence[TreeFault]) -> Sentence:
    errors = [fault for fault in faults if fault.level == "error"]
    return Sentence(
        "what-if-refused",
        {"faults": len(errors)},
        f"This tree would be refused: {counted(len(errors), 'fault')}.",
    )


def admitted_pods(admitted: Iterable[QuotaAdmission]) -> list[MovedPod]:
    return [
        MovedPod(each.pod.namespace, each.pod.name, each.leaf, each.is_guaranteed, "", "")
        for each in admitted
    ][:SHOWN_MAX]


def evicted_pods(evicted: Iterable[QuotaEviction]) -> list[MovedPod]:
    return [
        MovedPod(
            each.pod.namespace, each.pod.name, each.leaf, False, str(each.method), each.for_unit
        )
        for each in evicted
    ][:SHOWN_MAX]


def settled_leaves(before: QuotaState, settled: SettledQuota) -> list[LeafEffect]:
    """Leaves that end otherwise than they are."""
    running, runs = running_by_leaf(before), running_by_leaf(settled.state)
    waited, waits = _waiting_by_leaf(before), _waiting_by_leaf(settled.state)
    rows = [
        LeafEffect(
            leaf.name,
            leaf.path,
            running[leaf.name],
            runs[leaf.name],
            waited[leaf.name],
            waits[leaf.name],
        )
        for leaf in before.tree.leaves()
    ]
    return [
        row
        for row in rows
        if (row.running_before, row.waiting_before) != (row.running_after, row.waiting_after)
    ]


def _waiting_by_leaf(state: QuotaState) -> Counter[str]:
    leaf_of = {name: leaf.name for leaf in state.tree.leaves() for name in leaf.namespaces}
    return Counter(
        leaf_of[pod.namespace]
        for pod in state.pods
        if not pod.is_admitted and pod.namespace in leaf_of
    )


def _spec(node: QuotaNode) -> dict[str, Any]:
    """The node as it is written."""
    return {
        "name": node.name,
        "min": _bounds(node.min, node.unlimited_min),
        "max": _bounds(node.max, node.unlimited),
        "namespaces": list(node.namespaces),
        "attributes": dict(node.attributes),
        "children": [_spec(child) for child in node.children],
    }


def _bounds(amounts: Amounts, unlimited: Iterable[str]) -> dict[str, str]:
    return {
        resource: amount_text(resource, amount) for resource, amount in amounts.items()
    } | dict.fromkeys(unlimited, str(UNLIMITED))


def _nodes(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield spec
    for child in spec["children"]:
        yield from _nodes(child)
