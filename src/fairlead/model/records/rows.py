"""What is kept of users: the credentials issued to them, the versions of the quota tree, and owners
as rows with ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

KEPT_TREE_VERSIONS = 20
"""Older versions of the tree are removed when a new one is stored."""


class CredentialRecord(Struct, frozen=True):
    """A token that was issued. `name`: of the Secret to which it is bound; the key.

    `user`: the user's id. `issued_by`: the actor of the audit. `revoked_at`: 0 = it was not
    revoked. The Secret decides whether the token works; this row remains when the Secret is gone.
    """

    name: str
    user: str
    issued_at: int
    expires_at: int
    issued_by: str = ""
    note: str = ""
    revoked_at: int = 0


class TreeVersion(Struct, frozen=True):
    """A quota tree as it was written. `id`: assigned when it is stored, growing.

    `tree`: the `spec` as JSON. `version`: the resource version that the API server returned, "" if
    the tree was found and not written. `actor`: "" for a tree that another client wrote.
    """

    at: int
    actor: str
    tree: str
    version: str = ""
    summary: str = ""
    request_id: str = ""
    id: int = 0


class OperationRow(Struct, frozen=True):
    """An operation that has ended, as the history keeps it (docs/spec/operations.md#history).

    `id`: of the operation; the key. `steps`: JSON, as `fairlead operation show -o json` prints
    them.
    """

    id: str
    kind: str
    subject: str
    state: str
    created_by: str
    created_at: int
    ended_at: int
    message: str = ""
    steps: str = "[]"


class OwnerKind(StrEnum):
    """What an owner is. The name of a leaf is its full name (`root.a.1`)."""

    NAMESPACE = "namespace"
    USER = "user"
    LEAF = "leaf"


class UsageOwner(Struct, frozen=True):
    """A namespace, user or leaf that rows of usage refer to by its id."""

    kind: OwnerKind
    name: str
    id: int = 0


class StoreFacts(Struct, frozen=True):
    """What a store is. `engine`: `sqlite`, `postgresql` or `mysql`, with the server's version.

    `place`: file, or host and name of the database; no password. `schema`: the schema's version.
    `id`: made with the store, and kept by export and import.
    """

    engine: str
    engine_version: str
    place: str
    schema: str
    id: str


class StoreCheck(Struct, frozen=True):
    """A store that answers. `rows`: how many, by table."""

    facts: StoreFacts
    rows: Mapping[str, int]


class StoreLook(Struct, frozen=True):
    """Whether a console could use a database. `sentence`: what its engine answers; `hint`: what to
    do. Neither has the password.
    """

    is_good: bool
    sentence: str
    hint: str = ""
