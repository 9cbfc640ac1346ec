"""Which user an identity is, and what the user is at this moment (docs/spec/console.md#sign-in).

Users and groups are those that the API server shows now. A sign-in has only the identity, so that
what an administrator changes holds for the next request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from fairlead.model.access import Identity, account_name, named_account
from fairlead.model.changes import Changes
from fairlead.model.people.permission import Denied
from fairlead.model.people.rows import (
    KIND_GROUPS,
    KIND_USERS,
    ReadyReason,
    User,
    UserGroup,
    UserRole,
)
from fairlead.model.people.subject import SignInWay, Subject
from fairlead.settings import USERS_NAMESPACE

OIDC_TYPE: Final = "oidc"
"""`externalUser.authType` of users who sign in at the OIDC provider."""
KUBERNETES_TYPE: Final = "kubernetes"
"""`externalUser.authType` of users that sign in with another identity of the cluster than their
ServiceAccount; `uid` is the user name of that identity.
"""
_ASK: Final = "ask an administrator"


class Roster:
    """The users and groups of the cluster, kept current by lists and watches."""

    def __init__(self) -> None:
        self._rows: dict[str, dict[str, Any]] = {KIND_USERS: {}, KIND_GROUPS: {}}
        self._listed: set[str] = set()
        self._users: dict[str, User] = {}
        self._groups: dict[str, UserGroup] = {}

    @property
    def is_complete(self) -> bool:
        """Whether both kinds were listed."""
        return len(self._listed) == len(self._rows)

    @property
    def users(self) -> Mapping[str, User]:
        return self._users

    @property
    def groups(self) -> Mapping[str, UserGroup]:
        return self._groups

    def observe(self, changes: Changes[Any]) -> None:
        """Take a list or a change of users or groups."""
        known = self._rows[changes.kind]
        if changes.is_list:
            self._rows[changes.kind] = changes.all_rows()
            self._listed.add(changes.kind)
        else:
            for uid, row in changes.rows.items():
                known.pop(uid, None)
                if row is not None:
                    known[uid] = row
        by_name = {each.name: each for each in self._rows[changes.kind].values()}
        if changes.kind == KIND_USERS:
            self._users = by_name
        else:
            self._groups = by_name


def user_of_account(identity: str, users: Mapping[str, User]) -> User | None:
    """The user whose ServiceAccount this is. `identity`: the API server's name of it."""
    named = named_account(identity)
    return users.get(named[1]) if named is not None and named[0] == USERS_NAMESPACE else None


def is_own_account(identity: str) -> bool:
    """Whether it is a ServiceAccount of the users namespace, which only the user of its name has.

    >>> is_own_account("system:serviceaccount:kube-ai:bob"), is_own_account("bob")
    (True, False)
    """
    named = named_account(identity)
    return named is not None and named[0] == USERS_NAMESPACE


def user_of_identity(identity: str, users: Mapping[str, User]) -> User | Denied | None:
    """The user that the API server knows by this name: that of a ServiceAccount of the users
    namespace, else the one whose `externalUser` has it. None: the identity has no user.
    """
    if is_own_account(identity):
        return user_of_account(identity, users)
    return _linked(KUBERNETES_TYPE, identity, users)


def user_of_external(uid: str, users: Mapping[str, User]) -> User | Denied:
    """The one user with this uid at the OIDC provider."""
    return _linked(OIDC_TYPE, uid, users) or _no_user(
        f"no user has the external uid `{uid[:200]}`",
        f"{_ASK} to set `externalUser` of your user: authType {OIDC_TYPE}, and this uid",
    )


def _linked(auth_type: str, uid: str, users: Mapping[str, User]) -> User | Denied | None:
    """The one user whose `externalUser` this is; Denied for several."""
    found = [
        each
        for each in users.values()
        if uid and each.external.uid == uid and each.external.auth_type.lower() == auth_type
    ]
    if len(found) > 1:
        names = ", ".join(f"`{each.name}`" for each in sorted(found, key=lambda each: each.name))
        return _no_user(f"several users have the external uid `{uid[:200]}`: {names}")
    return found[0] if found else None


def check_account(user: User) -> Denied | None:
    """Why a new sign-in with a token of the user's ServiceAccount is refused; None = it is not.

    Before the people controller has found the ServiceAccount to be its own, another program may
    have made it, for which the token then is.
    """
    if user.status.service_account == user.name:
        return None
    return _no_user(
        f"the user `{user.name}` has no ServiceAccount of Fairlead's yet",
        "wait until `fairlead user show` has the user as ready",
    )


def subject_of_user(
    user: User, groups: Mapping[str, UserGroup], way: SignInWay
) -> Subject | Denied:
    """What the user is now.

    The namespaces are those that the user's groups bring and that the people controller has bound:
    one that is taken away counts at once, one that is given when the user may work in it.
    """
    if user.is_disabled:
        return _no_user(f"the user `{user.name}` is disabled")
    if user.is_ending:
        return _no_user(f"the user `{user.name}` is being deleted")
    if user.faults:
        return _no_user(f"the user `{user.name}` is malformed: {'; '.join(user.faults)}"[:500])
    if user.status.ready.reason == ReadyReason.NAME_TAKEN:
        return _no_user(f"the user `{user.name}` has no rights: {user.status.ready.message}"[:500])
    mine = [groups[each] for each in user.groups if each in groups]
    mine = [each for each in mine if each.status.leaf and each.status.leaf == each.leaf]
    brought = {space for each in mine for space in each.status.namespaces}
    return Subject(
        name=user.user_name or user.name,
        role=UserRole.ADMIN if user.is_admin else UserRole.RESEARCHER,
        user=user.name,
        namespaces=frozenset(brought.intersection(user.status.namespaces)),
        groups=frozenset(each.name for each in mine),
        leaves=frozenset(each.status.leaf for each in mine),
        account=account_name(USERS_NAMESPACE, user.name),
        is_bound=user.status.service_account == user.name,
        way=way,
    )


def first_administrator(identity: Identity, way: SignInWay, *, is_own: bool) -> Subject:
    """An identity without a User that may update users. `is_own`: the console's own identity."""
    return Subject(
        name=identity.name,
        role=UserRole.ADMIN,
        account="" if is_own else identity.name,
        way=way,
    )


def made_later(user: User) -> Denied:
    """The refusal of a sign-in that is older than the user whose it would be."""
    return _no_user(f"this sign-in began before the user `{user.name}` was made", "sign in again")


def no_user(identity: str) -> Denied:
    """The refusal of an identity that has no User and may not make one."""
    return _no_user(f"`{identity[:200]}` is signed in at the cluster and is no user of Fairlead")


def _no_user(reason: str, hint: str = _ASK) -> Denied:
    return Denied(reason, hint, code="no-user")
