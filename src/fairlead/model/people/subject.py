"""The one that a request of the console comes from: role, namespaces, leaves.

Made anew for each request from the live User, the groups and the tree, and never from a cookie.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.model.people.rows import UserRole


class SignInWay(StrEnum):
    """How a subject signed in. `NONE`: there is no sign-in, every client is `LOCAL_ADMIN`."""

    NONE = "none"
    CODE = "code"
    TOKEN = "token"
    OIDC = "oidc"
    BEARER = "bearer"


class Subject(Struct, frozen=True):
    """`name`: as pages show it. `user`: id of the User; "" = there is none, for example at the
    first run. `namespaces`: those of the subject's leaves; an administrator sees all others, too.
    `groups`: names of the UserGroups. `leaves`: full names. `account`: the user name under which
    the API server is asked (`system:serviceaccount:…`); "" = the server's own rights. `is_bound`:
    whether the people controller has made the user's ServiceAccount, whose name `account` is.
    """

    name: str
    role: UserRole
    user: str = ""
    namespaces: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    leaves: frozenset[str] = frozenset()
    account: str = ""
    is_bound: bool = True
    way: SignInWay = SignInWay.NONE

    @property
    def is_admin(self) -> bool:
        return self.role is UserRole.ADMIN


LOCAL_ADMIN: Final = Subject("admin", UserRole.ADMIN)
"""Every client of a console without sign-in."""
