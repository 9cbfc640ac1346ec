"""Which leaf of the quota tree each user group has, and which namespaces it brings its users.

A leaf belongs to one group. If two name it nevertheless, the one that had it keeps it, else the
older one has it. While the stored tree is invalid, every group keeps the namespaces that its status
records, so that a mistake in the tree withdraws no rights.

Specification: docs/spec/people.md#groups-and-leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct

from fairlead.model.people.rows import ReadyReason, UserGroup
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.rules.quota.managed import PROTECTED
from fairlead.rules.quota.validate import validate

_NO_NODES: Final[Mapping[str, QuotaNode]] = {}


class GroupLeaf(Struct, frozen=True):
    """What a group has. `renamed_to`: its leaf has this name now. `reason` and `message`: why it
    has no leaf, or `Bound`.
    """

    leaf: str = ""
    namespaces: tuple[str, ...] = ()
    renamed_to: str = ""
    reason: ReadyReason = ReadyReason.BOUND
    message: str = ""


def group_leaves(
    groups: Iterable[UserGroup], tree: QuotaTree | None, own: Collection[str] = ()
) -> dict[str, GroupLeaf]:
    """By the object name of the group. `own`: Fairlead's namespaces, which no leaf brings."""
    if tree is not None and _is_stopped(tree):
        return {each.name: _kept(each) for each in groups}
    nodes = _NO_NODES if tree is None or tree.root is None else _by_name(tree.root)
    ordered = sorted(groups, key=_rank)
    holders: dict[str, UserGroup] = {}
    for group in ordered:
        if not group.faults:
            holders.setdefault(group.leaf, group)
    found: dict[str, GroupLeaf] = {}
    for group in ordered:
        holder = holders.get(group.leaf, group)
        if group.faults:
            found[group.name] = GroupLeaf(
                reason=ReadyReason.INVALID, message="; ".join(group.faults)
            )
        elif holder is not group:
            found[group.name] = GroupLeaf(
                reason=ReadyReason.LEAF_ALREADY_BOUND,
                message=f"the leaf {group.leaf} belongs to the group {holder.name}",
            )
        else:
            found[group.name] = _of_tree(group, tree, nodes, holders, {*PROTECTED, *own})
    return found


def _of_tree(
    group: UserGroup,
    tree: QuotaTree | None,
    nodes: Mapping[str, QuotaNode],
    holders: Mapping[str, UserGroup],
    hidden: Collection[str],
) -> GroupLeaf:
    if tree is None:
        return GroupLeaf(reason=ReadyReason.NO_TREE, message="the cluster has no quota tree")
    node = nodes.get(group.leaf)
    if node is None:
        renamed = _renamed(group, nodes, holders)
        if renamed is None:
            return GroupLeaf(
                reason=ReadyReason.NO_SUCH_LEAF,
                message=f"the quota tree has no node {group.leaf}",
            )
        return GroupLeaf(
            renamed.name,
            _brought(renamed, hidden),
            renamed.name,
            ReadyReason.PENDING,
            f"its leaf {group.leaf} is called {renamed.name} now",
        )
    if not node.is_leaf:
        return GroupLeaf(
            reason=ReadyReason.NOT_A_LEAF,
            message=f"the node {group.leaf} has children; only a leaf can have a group",
        )
    return GroupLeaf(node.name, _brought(node, hidden))


def _renamed(
    group: UserGroup, nodes: Mapping[str, QuotaNode], holders: Mapping[str, UserGroup]
) -> QuotaNode | None:
    """The leaf that has exactly the namespaces of the group's former leaf, and no group."""
    before = group.status
    if before.leaf != group.leaf or not before.namespaces:
        return None
    same = [
        node
        for node in nodes.values()
        if node.is_leaf
        and set(node.namespaces) == set(before.namespaces)
        and node.name not in holders
    ]
    return same[0] if len(same) == 1 else None


def _kept(group: UserGroup) -> GroupLeaf:
    """While the tree is invalid. A group that had no leaf yet waits for a valid tree."""
    before = group.status
    if group.faults or before.leaf != group.leaf:
        why = "; ".join(group.faults) or "the quota tree is invalid, so its leaves are not read"
        return GroupLeaf(
            reason=ReadyReason.INVALID if group.faults else ReadyReason.PENDING, message=why
        )
    return GroupLeaf(before.leaf, before.namespaces)


def _rank(group: UserGroup) -> tuple[bool, float, str]:
    """The group that has its leaf already comes before others, then the older one."""
    return group.status.leaf != group.leaf, group.created_at, group.name


def _is_stopped(tree: QuotaTree) -> bool:
    return tree.root is None or any(each.stops for each in validate(tree, tree))


def _by_name(root: QuotaNode) -> dict[str, QuotaNode]:
    return {node.name: node for node in root.walk()}


def _brought(leaf: QuotaNode, hidden: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted({each for each in leaf.namespaces if each not in hidden}))
