"""What a route of the console needs, and the answer to whether a subject may use it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct


class ConsoleVerb(StrEnum):
    """What is done. A preview (`dryRun`) needs the same verb as the write."""

    GET = "get"
    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


class ConsoleResource(StrEnum):
    """What the console shows and writes. Their rights: `rules/people/may`.

    `CLUSTER`: what pages derive from the snapshot for this subject (boards, search, charts, hints).
    `MY_CREDENTIALS`: those of the subject; `CREDENTIALS`: those of any user.
    """

    SESSION = "session"
    CLUSTER = "cluster"
    NODES = "nodes"
    CLOCK = "clock"
    HEALTH = "health"
    JOBS = "jobs"
    LOGS = "logs"
    SERVING = "serving"
    DATASETS = "data sets"
    OPERATIONS = "operations"
    COMPONENTS = "components"
    NAMESPACES = "namespaces"
    QUOTA = "quota"
    QUOTA_TREE = "quota tree"
    QUOTA_PLANS = "quota plans"
    USERS = "users"
    GROUPS = "groups"
    CREDENTIALS = "credentials"
    MY_CREDENTIALS = "own credentials"
    AUDIT = "audit log"
    USAGE = "usage"
    PRICES = "prices"
    SNAPSHOTS = "snapshots"


class Right(Struct, frozen=True):
    """What a route needs. If its path has a `{namespace}`, the right is needed there.

    `is_open`: no sign-in is needed, as for signing in itself. `in_body`: the namespace is in the
    body, where the route checks it; before, it is checked that there is any.
    """

    verb: ConsoleVerb
    resource: ConsoleResource
    is_open: bool = False
    in_body: bool = False


ANYONE: Final = Right(ConsoleVerb.GET, ConsoleResource.SESSION, is_open=True)
"""The right of routes before sign-in. They answer the same to every client."""


class Allowed(Struct, frozen=True):
    """The subject may."""


class Denied(Struct, frozen=True):
    """The subject may not. `status`, `code`: of the HTTP answer. `reason`, `hint`: sentences."""

    reason: str
    hint: str = ""
    status: int = 403
    code: str = "forbidden"


ALLOWED: Final = Allowed()
