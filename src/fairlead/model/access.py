"""Access to an API server: requests with their users, and what roles and bindings allow.

A request is for a resource or for a path, never both. An empty `namespace` means the cluster scope,
an empty `name` means all objects.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
MASTERS = "system:masters"
"""The group that may do everything, whatever roles and bindings allow."""
_ACCOUNT_PREFIX = "system:serviceaccount:"


class Identity(Struct, frozen=True):
    """The user of a request, as authentication identified it."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, tuple[str, ...]] = {}

    @property
    def is_master(self) -> bool:
        return MASTERS in self.groups


def account_name(namespace: str, name: str) -> str:
    """The user name of a ServiceAccount.

    >>> account_name("team-a", "ci")
    'system:serviceaccount:team-a:ci'
    """
    return f"{_ACCOUNT_PREFIX}{namespace}:{name}"


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups that every ServiceAccount of the namespace is in."""
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


def named_account(user: str) -> tuple[str, str] | None:
    """Namespace and name of the ServiceAccount of a user name; None for other users."""
    namespace, colon, name = user.removeprefix(_ACCOUNT_PREFIX).partition(":")
    return (
        (namespace, name)
        if user.startswith(_ACCOUNT_PREFIX) and colon and namespace and name and ":" not in name
        else None
    )


class AccessRequest(Struct, frozen=True):
    """One request to an API server.

    `path` is set for requests that are for no resource (`/healthz`).
    """

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class PolicyRule(Struct, frozen=True):
    """What one rule of a role allows.

    In each field `*` means everything; empty `resource_names` means all names.
    """

    verbs: tuple[str, ...]
    groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()


class BindingSubject(Struct, frozen=True):
    """A user, group or ServiceAccount that a binding is for.

    `kind` is User, Group or ServiceAccount; an empty `namespace` is that of the binding.
    """

    kind: str
    name: str
    namespace: str = ""


class Binding(Struct, frozen=True):
    """A RoleBinding, or with an empty `namespace` a ClusterRoleBinding."""

    name: str
    namespace: str
    role_kind: str
    role_name: str
    subjects: tuple[BindingSubject, ...]
