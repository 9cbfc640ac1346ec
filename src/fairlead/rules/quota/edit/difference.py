"""What an edit of the quota tree changes: nodes, their cells, and the namespaces under quota."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from fairlead.model.quota.edit import CellChange, NodeChange, TreeDifference
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.resources import UNLIMITED, amount_text


def tree_difference(
    old: QuotaNode | None,
    new: QuotaNode,
    formerly: Mapping[str, str],
    namespaces: Collection[str] | None,
) -> TreeDifference:
    """`formerly`: by the name of a node the name that it had. `namespaces`: those that exist; None
    = not known.
    """
    before = {node.name: node for node in old.walk()} if old is not None else {}
    after = {node.name: node for node in new.walk()}
    was, now = _governed(old), _governed(new)
    return TreeDifference(
        nodes=tuple(_changes(before, after, formerly)),
        raised=tuple(
            leaf.name
            for leaf in new.leaves()
            if _has_more(leaf, before.get(formerly.get(leaf.name, leaf.name)))
        ),
        governed=tuple(sorted(now - was)),
        released=tuple(sorted(was - now)),
        unknown=() if namespaces is None else tuple(sorted(now.difference(namespaces))),
    )


def _changes(
    before: Mapping[str, QuotaNode], after: Mapping[str, QuotaNode], formerly: Mapping[str, str]
) -> Iterator[NodeChange]:
    """In the order of the new tree; removed nodes last."""
    kept: set[str] = set()
    for name, node in after.items():
        was = before.get(formerly.get(name, ""))
        if was is None:
            yield NodeChange(name, "added", _cells(None, node))
            continue
        kept.add(was.name)
        if cells := _cells(was, node):
            yield NodeChange(name, "changed", cells)
    for name, node in before.items():
        if name not in kept:
            yield NodeChange(name, "removed", _cells(node, None))


def _cells(was: QuotaNode | None, now: QuotaNode | None) -> tuple[CellChange, ...]:
    first, second = _texts(was), _texts(now)
    keys = dict.fromkeys((*first, *second))
    return tuple(
        CellChange(key, first.get(key, ""), second.get(key, ""))
        for key in keys
        if first.get(key, "") != second.get(key, "")
    )


def _texts(node: QuotaNode | None) -> dict[str, str]:
    if node is None:
        return {}
    texts = {"name": node.name, "namespaces": ", ".join(node.namespaces)}
    for bound, amounts, unlimited in (
        ("min", node.min, node.unlimited_min),
        ("max", node.max, node.unlimited),
    ):
        texts |= {
            f"{bound}.{each}": amount_text(each, amount)
            for each, amount in amounts.items()
            if amount or bound == "max"
        }
        if bound == "min" or not node.parent:
            texts |= {f"{bound}.{each}": str(UNLIMITED) for each in unlimited}
    return texts | {f"attributes.{key}": value for key, value in node.attributes.items()}


def _has_more(leaf: QuotaNode, was: QuotaNode | None) -> bool:
    least = was.min if was is not None else {}
    return any(amount > least.get(resource, 0) for resource, amount in leaf.min.items())


def _governed(root: QuotaNode | None) -> set[str]:
    leaves = root.leaves() if root is not None else ()
    return {namespace for leaf in leaves for namespace in leaf.namespaces}
