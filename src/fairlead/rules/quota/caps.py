"""Which user may have how much of a leaf: the caps of user groups (docs/spec/quota.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from fairlead.model.people.rows import UserGroup
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.resources import Amounts


def caps_of(groups: Iterable[UserGroup]) -> dict[str, Mapping[str, Amounts]]:
    """By leaf and user. Of two groups that name one leaf only the caps of that count which has it.

    >>> groups = UserGroup("late", leaf="a", caps={"bob": {"cpu": 9}}, created_at=2.0), UserGroup(
    ...     "team", leaf="a", caps={"bob": {"cpu": 1}}, created_at=1.0
    ... )
    >>> caps_of(groups)
    {'a': {'bob': {'cpu': 1}}}
    """
    found: dict[str, Mapping[str, Amounts]] = {}
    for group in sorted(groups, key=_rank):
        if group.leaf and not group.faults:
            found.setdefault(group.leaf, group.caps)
    return {leaf: caps for leaf, caps in found.items() if caps}


def with_user_caps_of(tree: QuotaTree, present: QuotaTree | None) -> QuotaTree:
    """A tree of a file with the caps that the cluster's tree has."""
    if tree.root is None or present is None or present.root is None:
        return tree
    caps = {leaf.name: leaf.user_caps for leaf in present.root.leaves() if leaf.user_caps}
    return replace(tree, root=tree.root.with_user_caps(caps)) if caps else tree


def _rank(group: UserGroup) -> tuple[bool, float, str]:
    """As the people controller gives leaves to groups (docs/spec/people.md#groups-and-leaves)."""
    return group.status.leaf != group.leaf, group.created_at, group.name
