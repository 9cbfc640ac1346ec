"""What another quota tree does to users and groups: leaves that groups follow, and bindings."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct

from fairlead.model.people.rows import User, UserGroup
from fairlead.model.quota.tree import QuotaTree
from fairlead.rules.people.leaves import group_leaves
from fairlead.rules.people.wanted import BindingKey, user_wants


class PeopleEffects(Struct, frozen=True):
    """`renamed`: groups whose leaf has another name, with that name. `added`, `removed`: bindings,
    sorted.
    """

    renamed: Mapping[str, str]
    added: tuple[BindingKey, ...]
    removed: tuple[BindingKey, ...]


def tree_effects(
    users: Mapping[str, User],
    groups: Mapping[str, UserGroup],
    namespaces: Collection[str],
    old: QuotaTree | None,
    new: QuotaTree,
    own: Collection[str] = (),
) -> PeopleEffects:
    """What the people controller does once `new` is in the place of `old`. `namespaces`: those that
    exist; `own`: Fairlead's.
    """
    before, after = (group_leaves(groups.values(), tree, own) for tree in (old, new))
    has = {
        key
        for user in users.values()
        for key in user_wants(user, groups, before, namespaces).bindings
    }
    wants = {
        key
        for user in users.values()
        for key in user_wants(user, groups, after, namespaces).bindings
    }
    renamed = {
        name: leaf.renamed_to
        for name, leaf in sorted(after.items())
        if leaf.renamed_to and not before[name].renamed_to
    }
    return PeopleEffects(renamed, tuple(sorted(wants - has)), tuple(sorted(has - wants)))
