"""The statuses of users and groups, and their sentences (docs/spec/people.md#status)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from fairlead.model.people.rows import (
    BoundRole,
    GroupStatus,
    Ready,
    ReadyReason,
    User,
    UserBinding,
    UserGroup,
    UserStatus,
)
from fairlead.rules.people.feed import WorkCount
from fairlead.rules.people.leaves import GroupLeaf
from fairlead.rules.people.sight import PeopleSight, wants_of
from fairlead.rules.people.wanted import BindingKey, UserWants

_NAMED_MAX: Final = 3


def user_status(sight: PeopleSight, user: User, refusal: str, now: float) -> UserStatus:
    """What exists for the user. `refusal`: why the API server refused a call for the user, "" = it
    refused none.
    """
    wants = wants_of(sight, user.name)
    held = sight.held.get(user.name, {})
    service_account = sight.service_accounts.get(user.name)
    is_own = service_account is not None and service_account.user == user.name
    ready = _user_ready(sight, user, wants, refusal)
    return UserStatus(
        user.name if is_own else "",
        wants.namespaces,
        tuple(sorted(BoundRole(each.name, each.namespace, _role(each)) for each in held.values())),
        _since(ready, user.status.ready, now),
        user.generation,
        sight.used.get(user.name, ()),
    )


def group_status(
    group: UserGroup, leaf: GroupLeaf, users: int, refusal: str, now: float
) -> GroupStatus:
    """`users`: how many users list the group. `refusal`: as for a user."""
    message = f"the API server refused: {refusal}" if refusal else leaf.message
    reason = ReadyReason.CALL_REFUSED if refusal else leaf.reason
    ready = Ready(is_true=reason is ReadyReason.BOUND, reason=reason, message=message)
    is_renamed = bool(leaf.renamed_to)
    return GroupStatus(
        # until the spec has the new name, the former one is what the next look compares
        group.leaf if is_renamed else leaf.leaf,
        leaf.namespaces,
        leaf.renamed_to,
        users,
        _since(ready, group.status.ready, now),
        group.generation,
    )


def users_of_groups(sight: PeopleSight) -> Counter[str]:
    """How many users list each group."""
    return Counter(group for user in sight.users.values() for group in user.groups)


def blocked_sentence(user: str, blockers: Mapping[WorkCount, int]) -> str:
    """Why the user cannot be deleted, or leave a group, now.

    >>> blocked_sentence("bob", {("namespace1", "pod"): 3, ("namespace2", "job"): 1})
    'bob has 3 unfinished pods in namespace1, 1 unfinished job in namespace2'
    """
    parts = [
        f"{count} unfinished {kind}{'' if count == 1 else 's'} in {namespace}"
        for (namespace, kind), count in sorted(blockers.items())
    ]
    return f"{user} has {_few(parts)}"


def _user_ready(sight: PeopleSight, user: User, wants: UserWants, refusal: str) -> Ready:
    if user.faults:
        return _not(ReadyReason.INVALID, "; ".join(user.faults))
    if user.is_ending:
        blockers = sight.blockers(user)
        if blockers:
            return _not(ReadyReason.DELETION_BLOCKED, blocked_sentence(user.name, blockers))
        return _not(ReadyReason.ENDING, refusal and f"the API server refused: {refusal}")
    if refusal:
        return _not(ReadyReason.CALL_REFUSED, f"the API server refused: {refusal}")
    if sight.is_taken(user):
        place = f"{user.namespace}/{user.name}"
        return _not(
            ReadyReason.NAME_TAKEN,
            f"the ServiceAccount {place} exists and does not belong to the user; "
            f"the label {_label(user)} makes it the user's",
        )
    if foreign := _foreign(sight, wants):
        return _not(
            ReadyReason.NAME_TAKEN,
            f"these bindings exist and do not belong to the user: {_few(foreign)}",
        )
    if user.is_disabled:
        is_over = not sight.held.get(user.name) and user.name not in sight.service_accounts
        return _not(ReadyReason.DISABLED if is_over else ReadyReason.PENDING, "")
    if not _is_complete(sight, user, wants):
        return _not(ReadyReason.PENDING, "")
    return Ready(is_true=True, reason=ReadyReason.BOUND, message=_remark(sight, user, wants))


def _label(user: User) -> str:
    return f"fairlead.io/user={user.name}"


def _remark(sight: PeopleSight, user: User, wants: UserWants) -> str:
    """What a ready user should know."""
    if wants.missing:
        groups = [
            f"the group {each} {'has no leaf' if each in sight.groups else 'does not exist'}"
            for each in wants.missing
        ]
        return _few(groups)
    if not wants.namespaces:
        return f"{user.name} has no quota: no group of the user brings a namespace"
    absent = sorted(
        space
        for space in wants.namespaces
        if not any(namespace == space for namespace, _ in wants.bindings)
    )
    return f"these namespaces do not exist: {_few(absent)}" if absent else ""


def _foreign(sight: PeopleSight, wants: UserWants) -> list[str]:
    return [
        f"{namespace}/{name}" if namespace else name
        for (namespace, name), binding in wants.bindings.items()
        for there in (sight.bindings.get((namespace, name)),)
        if there is not None and not there.user and there.binding != binding
    ]


def _is_complete(sight: PeopleSight, user: User, wants: UserWants) -> bool:
    held: Mapping[BindingKey, UserBinding] = sight.held.get(user.name, {})
    return (
        user.is_held
        and user.name in sight.service_accounts
        and {key: each.binding for key, each in held.items()} == dict(wants.bindings)
    )


def _role(held: UserBinding) -> str:
    return held.binding.role_name


def _not(reason: ReadyReason, message: str) -> Ready:
    return Ready(is_true=False, reason=reason, message=message)


def _since(ready: Ready, before: Ready, now: float) -> Ready:
    """The condition's time changes only with its value."""
    is_kept = before.at is not None and before.is_true == ready.is_true
    return replace(ready, at=before.at if is_kept else now)


def _few(parts: list[str]) -> str:
    more = len(parts) - _NAMED_MAX
    return ", ".join(parts[:_NAMED_MAX]) + (f", and {more} more" if more > 0 else "")
