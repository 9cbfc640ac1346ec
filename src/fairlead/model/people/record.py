"""All users and groups of a cluster at one moment, and the credentials that were issued."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.moment import Moment
from fairlead.model.people.rows import User, UserGroup, UserWork
from fairlead.model.quota.tree import QuotaTree


class PeopleRecord(Struct, frozen=True):
    """`tree`: None = there is none. `work`: pods and jobs that users made, finished ones too.
    `me`: the user name of the client, as the API server reports it.
    """

    users: Mapping[str, User] = {}
    groups: Mapping[str, UserGroup] = {}
    tree: QuotaTree | None = None
    work: tuple[UserWork, ...] = ()
    me: str = ""

    def unfinished(self, user: str) -> tuple[UserWork, ...]:
        return tuple(each for each in self.work if each.user == user and not each.is_finished)


class Credential(Struct, frozen=True):
    """A token that was issued; the token itself is not kept. `name`: of the Secret to which it is
    bound, and without which it does not work. `note`: what it is for. `issued_by`: the user name of
    the client that asked for it. `is_renewed`: `fairlead login` renews the token, so that the
    record does not show when the newest one ends.
    """

    name: str
    user: str
    issued_at: Moment
    expires_at: Moment
    issued_by: str = ""
    note: str = ""
    uid: str = ""
    is_renewed: bool = False


class KeptToken(Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """What `fairlead login` keeps on the user's machine: a token that it renews with the token's
    own right. `secret` and `secret_uid`: the Secret to which all its tokens are bound. `seconds`:
    the lifetime of each of them.
    """

    user: str
    secret: str
    secret_uid: str
    seconds: int
    token: str
    expires_at: Moment


class ServerAddress(Struct, frozen=True):
    """Where users reach the API server. `authority`: PEM; None = the authorities that each machine
    trusts.
    """

    url: str
    authority: bytes | None = None
