"""What the people controller asks a cluster to do. `subject`: the object that the call is about."""

from __future__ import annotations

from msgspec import Struct

from fairlead.model.people.rows import (
    GroupStatus,
    User,
    UserBinding,
    UserGroup,
    UserServiceAccount,
    UserStatus,
)


class HoldUser(Struct, frozen=True):
    """Add Fairlead's finalizer to the user, or with `is_held` False remove it, if the object has
    not changed since.
    """

    subject: User
    is_held: bool


class CreateServiceAccount(Struct, frozen=True):
    """Create it, with the label of its user."""

    subject: UserServiceAccount


class DeleteServiceAccount(Struct, frozen=True):
    """Delete it (by uid), and with it every token of it."""

    subject: UserServiceAccount


class CreateBinding(Struct, frozen=True):
    """Create it, with the label of its user."""

    subject: UserBinding


class AdoptBinding(Struct, frozen=True):
    """Give the binding the label of this user, if it has not changed since."""

    subject: UserBinding
    user: str


class DeleteBinding(Struct, frozen=True):
    """Delete it (by uid)."""

    subject: UserBinding


class MoveGroup(Struct, frozen=True):
    """Write the new name of the group's leaf into its spec, if the group has not changed since."""

    subject: UserGroup
    leaf: str


class WriteUserStatus(Struct, frozen=True):
    """Write the user's status, if the object has not changed since."""

    subject: User
    status: UserStatus


class WriteGroupStatus(Struct, frozen=True):
    """Write the group's status, if the object has not changed since."""

    subject: UserGroup
    status: GroupStatus


PeopleAction = (
    HoldUser
    | CreateServiceAccount
    | DeleteServiceAccount
    | CreateBinding
    | AdoptBinding
    | DeleteBinding
    | MoveGroup
    | WriteUserStatus
    | WriteGroupStatus
)
