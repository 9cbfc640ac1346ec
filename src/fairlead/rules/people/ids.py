"""Ids of users and names of groups (docs/spec/people.md#names)."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from fairlead.model.refusal import Refusal

ID_MAX: Final = 63
RESERVED_IDS: Final = ("default",)
"""Every namespace has a ServiceAccount of this name, which pods without another one use."""
_NOT_IN_ID: Final = re.compile(r"[^a-z0-9-]")
_GROUP_NAME: Final = re.compile(r"[0-9a-zA-Z][0-9a-zA-Z-]{0,62}", re.ASCII)


def user_id(user_name: str, taken: Collection[str] = ()) -> str | Refusal:
    """The id of a new user: the name in lower case, with a hyphen for each other character.

    `taken`: ids that exist. Two names may make one id, so a clash is an error and gets no number.

    >>> user_id("Bob_Smith@example"), user_id("-Ann-")
    ('bob-smith-example', 'ann')
    >>> user_id("李")
    Refusal(reason='the user name `李` has no letter a-z and no digit, so it makes no id')
    >>> user_id("Bob", {"bob"})
    Refusal(reason='the user name `Bob` makes the id `bob`, which another user has')
    """
    made = _NOT_IN_ID.sub("-", user_name.lower()).strip("-")
    if not made:
        return Refusal(
            f"the user name `{user_name}` has no letter a-z and no digit, so it makes no id"
        )
    if len(made) > ID_MAX:
        return Refusal(
            f"the user name `{user_name}` makes an id of {len(made)} characters; "
            f"an id has {ID_MAX} at most"
        )
    if made in RESERVED_IDS:
        return Refusal(
            f"the user name `{user_name}` makes the id `{made}`, which is the name of the "
            "ServiceAccount that every namespace has"
        )
    if made in taken:
        return Refusal(f"the user name `{user_name}` makes the id `{made}`, which another user has")
    return made


def group_id(group_name: str, taken: Collection[str] = ()) -> str | Refusal:
    """The object name of a new group. `taken`: as for `user_id`.

    >>> group_id("teamA"), group_id("team_a")
    ('teama', Refusal(reason='the group name `team_a` is not 1 to 63 of 0-9, a-z, A-Z and `-`, \
the first no `-`'))
    """
    if not _GROUP_NAME.fullmatch(group_name):
        return Refusal(
            f"the group name `{group_name}` is not 1 to 63 of 0-9, a-z, A-Z and `-`, "
            "the first no `-`"
        )
    made = group_name.lower().rstrip("-")
    if made in taken:
        return Refusal(
            f"the group name `{group_name}` makes the object name `{made}`, which another group has"
        )
    return made
