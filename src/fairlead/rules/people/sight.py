"""The cluster at one look of the people controller, and what each user should have there."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.people.rows import LeafUse, User, UserBinding, UserGroup, UserServiceAccount
from fairlead.model.quota.tree import QuotaTree
from fairlead.rules.people.feed import PeopleFeed, WorkCount
from fairlead.rules.people.leaves import GroupLeaf, group_leaves
from fairlead.rules.people.wanted import NOTHING_WANTED, BindingKey, UserWants, user_wants


class PeopleSight(Struct, frozen=True):
    """`held`: by user, the bindings that carry the user's label. `work`: by user, what blocks the
    deletion of the user. `used`: by user, what the user has admitted in each leaf.
    """

    users: Mapping[str, User]
    groups: Mapping[str, UserGroup]
    leaves: Mapping[str, GroupLeaf]
    service_accounts: Mapping[str, UserServiceAccount]
    bindings: Mapping[BindingKey, UserBinding]
    held: Mapping[str, Mapping[BindingKey, UserBinding]]
    wants: Mapping[str, UserWants]
    work: Mapping[str, Mapping[WorkCount, int]]
    used: Mapping[str, tuple[LeafUse, ...]] = {}

    def is_taken(self, user: User) -> bool:
        """Whether a foreign ServiceAccount has the user's name, so that the user gets none."""
        there = self.service_accounts.get(user.name)
        return there is not None and there.user != user.name

    def blockers(self, user: User) -> Mapping[WorkCount, int]:
        """Why a user that is being deleted has to wait; empty = the user need not."""
        return {} if user.is_forced else self.work.get(user.name, {})


def people_sight(feed: PeopleFeed, own: Collection[str]) -> PeopleSight:
    """`own`: Fairlead's namespaces, in which no user gets rights because of a leaf."""
    users, groups, namespaces = feed.users(), feed.groups(), feed.namespaces()
    bindings, work = feed.bindings(), feed.work()
    held: dict[str, dict[BindingKey, UserBinding]] = {}
    for key, each in bindings.items():
        if each.user:
            held.setdefault(each.user, {})[key] = each
    leaves = group_leaves(groups.values(), feed.tree(), own)
    bare = PeopleSight(
        users, groups, leaves, feed.service_accounts(), bindings, held, wants={}, work=work
    )
    wants = {
        name: user_wants(user, groups, leaves, namespaces)
        for name, user in users.items()
        if not _ends_now(bare, user) and not bare.is_taken(user)
    }
    return replace(bare, wants=wants, used=_used(feed.tree()))


def _used(tree: QuotaTree | None) -> dict[str, tuple[LeafUse, ...]]:
    """By user, in the order of the leaves' names."""
    found: dict[str, tuple[LeafUse, ...]] = {}
    for each in sorted(tree.user_use, key=lambda use: use.leaf) if tree is not None else ():
        found[each.user] = (*found.get(each.user, ()), LeafUse(each.leaf, each.used))
    return found


def wants_of(sight: PeopleSight, user: str) -> UserWants:
    """What a user should have; nothing for one that does not exist."""
    return sight.wants.get(user, NOTHING_WANTED)


def _ends_now(sight: PeopleSight, user: User) -> bool:
    return user.is_ending and not (user.is_held and sight.blockers(user))
