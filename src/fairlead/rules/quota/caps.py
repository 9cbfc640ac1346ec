"""Which user may have how much of a leaf: the caps of user groups (docs/spec/quota.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlead.model.people.rows import UserGroup
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


def _rank(group: UserGroup) -> tuple[bool, float, str]:
    """As the people controller gives leaves to groups (docs/spec/people.md#groups-and-leaves)."""
    return group.status.leaf != group.leaf, group.created_at, group.name
