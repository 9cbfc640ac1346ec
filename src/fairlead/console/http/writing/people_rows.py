"""Rows of the pages Users and Groups, from the users and groups of the cluster as they are now."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from fairlead.console.boards.rows import Entry, RowSet, choices, lowered
from fairlead.console.pages.envelope import Sentence, counted, timestamp
from fairlead.console.pages.writing.people import (
    CredentialRow,
    ExternalPerson,
    GroupRow,
    UserRow,
)
from fairlead.model.people.record import Credential
from fairlead.model.people.rows import ExternalUser, User, UserGroup, UserRole


def user_row(user: User) -> UserRow:
    status, external = user.status, user.external
    bindings = sorted(status.bindings)
    return UserRow(
        id=user.name,
        user_name=user.user_name,
        role=str(UserRole.ADMIN if user.is_admin else UserRole.RESEARCHER),
        groups=list(user.groups),
        roles=[f"{each.namespace}: {each.role}" for each in bindings if each.namespace],
        cluster_roles=[each.role for each in bindings if not each.namespace],
        namespaces=list(status.namespaces),
        state=_state(user),
        message="; ".join(user.faults) or status.ready.message,
        disabled=user.is_disabled,
        deletable=user.is_deletable,
        external=None
        if external == ExternalUser()
        else ExternalPerson(external.auth_type, external.uid, external.name),
        created_at=timestamp(user.created_at or None),
        version=user_version(user),
    )


def user_version(user: User) -> str:
    """Changes with the spec, and not with the status, which the controller writes at any time."""
    return f"{user.uid}.{user.generation}"


def group_version(group: UserGroup, users: Iterable[str]) -> str:
    """The same; the users who list the group are part of what is edited."""
    names = hashlib.blake2b(",".join(sorted(users)).encode(), digest_size=6).hexdigest()
    return f"{group.uid}.{group.generation}.{names}"


def group_row(group: UserGroup, users: Iterable[User]) -> GroupRow:
    ready = group.status.ready
    names = sorted(each.name for each in users if group.name in each.groups)
    return GroupRow(
        name=group.name,
        group_name=group.group_name,
        leaf=group.leaf,
        namespaces=list(group.status.namespaces),
        users=names,
        default_roles=list(group.default_roles),
        default_cluster_roles=list(group.default_cluster_roles),
        user_caps={user: dict(caps) for user, caps in group.user_caps.items()},
        state="Ending" if group.is_ending else ready.reason or "Pending",
        message="; ".join(group.faults) or ready.message,
        created_at=timestamp(group.created_at or None),
        version=group_version(group, names),
    )


def credential_row(credential: Credential, now: float) -> CredentialRow:
    state = "valid" if credential.expires_at > now else "expired"
    return CredentialRow(
        id=credential.name,
        user=credential.user,
        state="unknown" if credential.is_renewed else state,
        issued_at=timestamp(credential.issued_at) or "",
        expires_at=timestamp(credential.expires_at) or "",
        issued_by=credential.issued_by,
        note=credential.note,
    )


def user_rows(users: Mapping[str, User]) -> RowSet[UserRow]:
    rows = [user_row(each) for _, each in sorted(users.items())]
    entries = [
        Entry(
            row,
            "\n".join(lowered(row.id, row.user_name, *row.groups, *row.namespaces)),
            {
                "group": lowered(*row.groups),
                "role": lowered(row.role),
                "state": lowered(row.state),
                "namespace": lowered(*row.namespaces),
            },
        )
        for row in rows
    ]
    facets = {
        "group": choices(each for row in rows for each in row.groups),
        "role": choices(row.role for row in rows),
        "state": choices(row.state for row in rows),
        "namespace": choices(each for row in rows for each in row.namespaces),
    }
    return RowSet(UserRow, entries, facets, ties="id")


def group_rows(groups: Mapping[str, UserGroup], users: Mapping[str, User]) -> RowSet[GroupRow]:
    rows = [group_row(each, users.values()) for _, each in sorted(groups.items())]
    entries = [
        Entry(
            row,
            "\n".join(lowered(row.name, row.group_name, row.leaf, *row.users)),
            {
                "leaf": lowered(row.leaf),
                "user": lowered(*row.users),
                "state": lowered(row.state),
            },
        )
        for row in rows
    ]
    facets = {
        "leaf": choices(row.leaf for row in rows),
        "user": choices(each for row in rows for each in row.users),
        "state": choices(row.state for row in rows),
    }
    return RowSet(GroupRow, entries, facets)


def users_sentence(users: Mapping[str, User]) -> Sentence:
    admins = sum(each.is_admin for each in users.values())
    disabled = sum(each.is_disabled for each in users.values())
    values: dict[str, str | int | float | None] = {
        "users": len(users),
        "admins": admins,
        "disabled": disabled,
    }
    text = (
        f"{counted(len(users), 'user')}, {counted(admins, 'administrator')} among them, "
        f"{disabled} disabled."
    )
    return Sentence("users", values, text)


def groups_sentence(groups: Mapping[str, UserGroup]) -> Sentence:
    without = sum(not each.status.ready.is_true for each in groups.values())
    values: dict[str, str | int | float | None] = {"groups": len(groups), "without": without}
    return Sentence(
        "groups", values, f"{counted(len(groups), 'group')}, {without} of them without a leaf."
    )


def _state(user: User) -> str:
    reason = user.status.ready.reason
    if user.is_ending:
        return reason or "Ending"
    return "Disabled" if user.is_disabled else reason or "Pending"
