"""Which bindings a change of users and groups makes and removes, before it is written."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from fairlead.model.people.record import PeopleRecord
from fairlead.rules.people.leaves import group_leaves
from fairlead.rules.people.wanted import BindingKey, UserWants, user_wants


class BindingChange(Struct, frozen=True, order=True):
    """`namespace`: "" = a ClusterRoleBinding."""

    namespace: str
    name: str
    is_made: bool


def binding_changes(
    before: PeopleRecord,
    after: PeopleRecord,
    namespaces: Collection[str] | None,
    own: Collection[str],
) -> tuple[BindingChange, ...]:
    """What the people controller makes and removes if the users and groups become `after`.

    `namespaces`: those that exist, None = not known, so every one of a leaf counts. `own`:
    Fairlead's namespaces, which no leaf brings.
    """
    was, now = _wanted(before, namespaces, own), _wanted(after, namespaces, own)
    gone = [BindingChange(*key, is_made=False) for key in was - now]
    made = [BindingChange(*key, is_made=True) for key in now - was]
    return (*sorted(gone), *sorted(made))


def _wanted(
    record: PeopleRecord, namespaces: Collection[str] | None, own: Collection[str]
) -> set[BindingKey]:
    return {key for wants in _wants(record, namespaces, own) for key in wants.bindings}


def _wants(
    record: PeopleRecord, namespaces: Collection[str] | None, own: Collection[str]
) -> Iterator[UserWants]:
    leaves = group_leaves(record.groups.values(), record.tree, own)
    there = namespaces
    if there is None:
        there = {space for leaf in leaves.values() for space in leaf.namespaces}
    there = {*there, *own}
    for user in record.users.values():
        if not user.is_ending:
            yield user_wants(user, record.groups, leaves, there)
