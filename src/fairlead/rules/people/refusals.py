"""What an administrator may not do with users and groups, and why
(docs/spec/people.md#refusals).

Each function returns None if it may be done. Commands and the admission webhook ask right before
the write; the people controller and the schemas hold what must hold nevertheless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final

from msgspec.structs import replace

from fairlead.model.access import account_name
from fairlead.model.people.record import PeopleRecord
from fairlead.model.people.rows import User, UserGroup, UserWork
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.refusal import Refusal
from fairlead.rules.people.ids import group_id
from fairlead.rules.people.statuses import blocked_sentence

_LEAVES_SHOWN: Final = 8
_NO_TREE: Final = "apply an ElasticQuotaTree first (docs/concepts/quota.md)"


def user_refusal(user: User, record: PeopleRecord) -> Refusal | None:
    """Whether the user may be written as it is: a new one, or instead of the present one."""
    before = record.users.get(user.name)
    kept = before.groups if before is not None else ()
    unknown = [each for each in user.groups if each not in record.groups and each not in kept]
    if unknown:
        return Refusal(
            f"there is no group {', '.join(unknown)}", "`fairlead group list` shows the names"
        )
    if not user.is_admin and not user.groups:
        return Refusal(
            f"the researcher {user.name} needs a group, which brings a namespace",
            "name another group of the user, or disable or delete the user",
        )
    if before is None:
        return None
    if (user.is_disabled or not user.is_admin) and _is_last_admin(user.name, record):
        return _last_admin(user)
    left = [each for each in before.groups if each not in user.groups]
    return _leaving(user, left, record)


def user_deletion_refusal(user: User, record: PeopleRecord, *, is_forced: bool) -> Refusal | None:
    """`is_forced`: although the user has unfinished work."""
    if not user.is_deletable:
        return Refusal(
            f"{user.name} has `deletable: false`",
            f"`kubectl edit user {user.name} -n {user.namespace}` changes that",
        )
    if record.me == account_name(user.namespace, user.name):
        return Refusal(
            f"{user.name} is the user of this command", "let another administrator delete the user"
        )
    if _is_last_admin(user.name, record):
        return _last_admin(user)
    unfinished = record.unfinished(user.name)
    if unfinished and not is_forced:
        return Refusal(
            _blocked(user.name, unfinished),
            "wait until they end, or use --force: they go on without the user",
        )
    return None


def group_refusal(group: UserGroup, record: PeopleRecord) -> Refusal | None:
    """Whether this new group may be created."""
    if record.tree is None or record.tree.root is None:
        return Refusal("the cluster has no quota tree, so there is no leaf for a group", _NO_TREE)
    node = next((each for each in record.tree.root.walk() if each.name == group.leaf), None)
    if node is None:
        return Refusal(
            f"the quota tree has no node {group.leaf}", _leaves_hint(record.tree.root, group.leaf)
        )
    if not node.is_leaf:
        return Refusal(
            f"the node {group.leaf} has children; only a leaf can have a group",
            _leaves_hint(node, group.leaf),
        )
    taken = next((each for each in record.groups.values() if each.leaf == group.leaf), None)
    if taken is not None:
        return Refusal(
            f"the leaf {group.leaf} belongs to the group {taken.name}",
            "put the users into that group, or name another leaf",
        )
    return None


def group_change_refusal(after: UserGroup, record: PeopleRecord) -> Refusal | None:
    """Whether the group may be written as it is, instead of the present one."""
    before = record.groups.get(after.name)
    if before is not None and after.leaf not in (before.leaf, before.status.renamed_to):
        return Refusal(
            f"the group {after.name} keeps its leaf {before.leaf}; make another group for "
            f"{after.leaf}"
        )
    made = group_id(after.group_name)
    if isinstance(made, Refusal):
        return made
    other = next(
        (
            each.name
            for each in record.groups.values()
            if each.name != after.name and made in (each.name, each.group_name.lower())
        ),
        None,
    )
    if other is not None:
        return Refusal(
            f"the group {other} is called `{after.group_name}` already", "choose another name"
        )
    return None


def group_deletion_refusal(group: UserGroup, record: PeopleRecord) -> Refusal | None:
    members = sorted(each.name for each in record.users.values() if group.name in each.groups)
    if members:
        return Refusal(
            f"these users list the group {group.name}: {', '.join(members)}",
            f"`fairlead group update {group.name} --remove-user ID` takes a user out of it",
        )
    return None


def refuse_user_write(
    before: User | None, after: User | None, record: PeopleRecord
) -> Refusal | None:
    """Whether a client may turn `before` into `after`; None = absent. `record` has no pods and
    jobs: unfinished work delays a deletion by the finalizer.

    An object with the annotation `fairlead.io/force-delete` may always be deleted.
    """
    if after is None:
        if before is None or before.is_forced:
            return None
        return user_deletion_refusal(before, record, is_forced=True)
    known = {**record.users, before.name: before} if before is not None else record.users
    return user_refusal(after, replace(record, users=known))


def refuse_group_write(
    before: UserGroup | None, after: UserGroup | None, record: PeopleRecord
) -> Refusal | None:
    """As `refuse_user_write`."""
    if after is None:
        return group_deletion_refusal(before, record) if before is not None else None
    if before is None:
        return group_refusal(after, record) or group_change_refusal(after, record)
    return group_change_refusal(
        after, replace(record, groups={**record.groups, before.name: before})
    )


def _leaving(user: User, groups: Collection[str], record: PeopleRecord) -> Refusal | None:
    """A user stays in a group while work of the user in its namespaces is unfinished."""
    spaces = {
        space
        for name in groups
        if name in record.groups
        for space in record.groups[name].status.namespaces
    }
    kept = {
        space
        for name in user.groups
        if name in record.groups
        for space in record.groups[name].status.namespaces
    }
    unfinished = [each for each in record.unfinished(user.name) if each.namespace in spaces - kept]
    if not unfinished:
        return None
    return Refusal(_blocked(user.name, unfinished), "wait until they end, or delete them")


def _leaves_hint(root: QuotaNode, asked: str) -> str:
    """Full names of leaves below the node: the tables of quota show the last part of a name."""
    names = [each.name for each in root.leaves()]
    meant = [each for each in names if each.endswith(f".{asked}")]
    if len(meant) == 1:
        return f"the full name of that leaf is {meant[0]}"
    more = len(names) - _LEAVES_SHOWN
    return f"the leaves are {', '.join(names[:_LEAVES_SHOWN])}" + (
        f", and {more} more" if more > 0 else ""
    )


def _last_admin(user: User) -> Refusal:
    return Refusal(
        f"{user.name} is the last administrator that is not disabled",
        "make another user an administrator first",
    )


def _blocked(user: str, work: Iterable[UserWork]) -> str:
    return blocked_sentence(user, Counter((each.namespace, each.kind) for each in work))


def _is_last_admin(name: str, record: PeopleRecord) -> bool:
    """Whether this user is an administrator and every other one is disabled or going."""
    admins = [
        each.name
        for each in record.users.values()
        if each.is_admin and not each.is_disabled and not each.is_ending
    ]
    return admins == [name]
