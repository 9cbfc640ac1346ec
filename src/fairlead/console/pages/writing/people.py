"""Users, groups and credentials: rows, and the bodies of their writes."""

from __future__ import annotations

from typing import Literal

from fairlead.console.pages.envelope import Json, ListAnswer, Timestamp

Role = Literal["admin", "researcher"]


class ExternalPerson(Json, frozen=True, forbid_unknown_fields=True):
    """The user in another system. `auth_type`: `oidc` for one who signs in at the OpenID Connect
    provider; `uid`: as that system names the user.
    """

    auth_type: str
    uid: str
    name: str = ""


class UserRow(Json, frozen=True):
    """`id`: of the user, also of the ServiceAccount. `roles`: `namespace: role` of each
    RoleBinding, `cluster_roles`: of each ClusterRoleBinding, as they exist. `state`: the reason of
    the condition `Ready`, such as `Bound`, `Pending` or `Disabled`; `message`: its sentence.
    `version`: what `If-Match` names.
    """

    id: str
    user_name: str
    role: str
    groups: list[str]
    roles: list[str]
    cluster_roles: list[str]
    namespaces: list[str]
    state: str
    message: str
    disabled: bool
    deletable: bool
    external: ExternalPerson | None
    created_at: Timestamp | None
    version: str


class UserList(ListAnswer, frozen=True):
    items: list[UserRow]


class UserOrder(Json, frozen=True):
    """A new user. The id is made of the name: in lower case, with a hyphen for each other
    character.
    """

    user_name: str
    role: Role = "researcher"
    groups: list[str] = []
    external: ExternalPerson | None = None


class OwnUserOrder(Json, frozen=True):
    """The user of the account that signed in: an administrator. The id is made of the name."""

    user_name: str


class UserChange(Json, frozen=True):
    """What a user becomes; `groups`: all of them."""

    user_name: str
    role: Role
    groups: list[str]
    disabled: bool
    external: ExternalPerson | None = None


class GroupRow(Json, frozen=True):
    """`name`: of the object. `users`: ids of those who list the group. Others: see `UserRow`."""

    name: str
    group_name: str
    leaf: str
    namespaces: list[str]
    users: list[str]
    default_roles: list[str]
    default_cluster_roles: list[str]
    user_caps: dict[str, dict[str, str]]
    state: str
    message: str
    created_at: Timestamp | None
    version: str


class GroupList(ListAnswer, frozen=True):
    items: list[GroupRow]


class GroupOrder(Json, frozen=True):
    """A new group. `leaf`: full name of the leaf of the quota tree. `users`: ids of those who are
    put into it.
    """

    group_name: str
    leaf: str
    users: list[str] = []


class GroupChange(Json, frozen=True):
    """What a group becomes. `users`: ids of all who shall list it, null = as it is."""

    group_name: str
    users: list[str] | None = None
    default_roles: list[str] | None = None
    default_cluster_roles: list[str] | None = None
    user_caps: dict[str, dict[str, str]] | None = None


class CredentialRow(Json, frozen=True):
    """A token that was issued and not revoked; the token itself is kept nowhere. `state`: `valid`,
    `expired`, or `unknown` for one that its user renews. `issued_by`: the user who asked for it.
    """

    id: str
    user: str
    state: str
    issued_at: Timestamp
    expires_at: Timestamp
    issued_by: str
    note: str


class CredentialList(Json, frozen=True):
    generated_at: Timestamp
    items: list[CredentialRow]


class CredentialOrder(Json, frozen=True):
    """`lifetime_seconds`: how long the token shall work; the answer has the time that the API
    server granted.
    """

    lifetime_seconds: int = 28_800
    note: str = ""


class UserKubeconfigOrder(Json, frozen=True):
    """`namespace`: of the kubeconfig's context, "" = the first of the user's."""

    lifetime_seconds: int = 28_800
    note: str = ""
    namespace: str = ""


class IssuedToken(Json, frozen=True):
    """`token` is shown once and kept nowhere. `id`: of the credential, which revokes it."""

    id: str
    token: str
    expires_at: Timestamp


class IssuedKubeconfig(Json, frozen=True):
    """`kubeconfig`: the text of the file, with the token in it. `server`: the API server in it."""

    id: str
    file_name: str
    kubeconfig: str
    server: str
    expires_at: Timestamp
