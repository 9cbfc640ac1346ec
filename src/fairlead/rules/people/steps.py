"""The calls that bring a cluster nearer to what users should have, from any half-made state.

The order is the order in which rights may change: what is withdrawn goes first. A user's
ServiceAccount, and with it every token, goes only when the bindings are gone, and the finalizer
only when nothing is left. Nothing is made for a user whose object could vanish without it.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead.model.people.actions import (
    AdoptBinding,
    CreateBinding,
    CreateServiceAccount,
    DeleteBinding,
    DeleteServiceAccount,
    HoldUser,
    MoveGroup,
    PeopleAction,
)
from fairlead.model.people.rows import User, UserBinding, UserServiceAccount
from fairlead.rules.people.sight import PeopleSight, wants_of


def next_steps(sight: PeopleSight) -> Iterator[PeopleAction]:
    """All calls that may be sent now, side by side; they are the same until the cluster changes."""
    yield from _withdrawn(sight)
    yield from _ended_service_accounts(sight)
    for user in sight.users.values():
        yield from _holding(sight, user)
        if user.is_held:
            yield from _made(sight, user)
    yield from _moved_groups(sight)


def _withdrawn(sight: PeopleSight) -> Iterator[PeopleAction]:
    """Labelled bindings that their user should not have, or not in this form."""
    for user, held in sight.held.items():
        wanted = wants_of(sight, user).bindings
        for key, each in held.items():
            if wanted.get(key) != each.binding and not each.is_ending:
                yield DeleteBinding(each)


def _ended_service_accounts(sight: PeopleSight) -> Iterator[PeopleAction]:
    """Labelled ServiceAccounts that no user should have, when their bindings are gone."""
    for each in sight.service_accounts.values():
        if not each.user or each.is_ending or sight.held.get(each.user):
            continue
        if each.name != wants_of(sight, each.user).service_account:
            yield DeleteServiceAccount(each)


def _holding(sight: PeopleSight, user: User) -> Iterator[PeopleAction]:
    if not user.is_held:
        if not user.is_ending and not user.faults:
            yield HoldUser(user, is_held=True)
    elif user.is_ending and user.name not in sight.wants and not _left(sight, user):
        yield HoldUser(user, is_held=False)


def _left(sight: PeopleSight, user: User) -> bool:
    """Whether something still exists that was made for the user."""
    service_account = sight.service_accounts.get(user.name)
    is_own = service_account is not None and service_account.user == user.name
    return is_own or bool(sight.held.get(user.name))


def _made(sight: PeopleSight, user: User) -> Iterator[PeopleAction]:
    wanted = wants_of(sight, user.name)
    if wanted.service_account and user.name not in sight.service_accounts:
        yield CreateServiceAccount(UserServiceAccount(user.name, user.namespace, user=user.name))
    for key, binding in wanted.bindings.items():
        there = sight.bindings.get(key)
        if there is None:
            yield CreateBinding(UserBinding(binding, user=user.name))
        elif not there.user and there.binding == binding and not there.is_ending:
            yield AdoptBinding(there, user.name)


def _moved_groups(sight: PeopleSight) -> Iterator[PeopleAction]:
    """The new name of a leaf is in the status before it is written into the spec."""
    for name, leaf in sight.leaves.items():
        group = sight.groups[name]
        if leaf.renamed_to and group.status.renamed_to == leaf.renamed_to:
            yield MoveGroup(group, leaf.renamed_to)
