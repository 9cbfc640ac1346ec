"""The audit: who did what, when, and how it ended.

A write has two rows. The first, `begun`, is stored before the write is sent; without it nothing is
sent. The second has the result and names the first. A page shows the second alone, and the first
only while there is no second: then the result is unknown.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

KEPT_MS: Final = 400 * 24 * 60 * 60 * 1000
"""Older rows are removed: 400 days (docs/how-to/store.md#what-is-kept-and-how-long)."""


class AuditResult(StrEnum):
    """How it ended. `refused`: nothing was changed. `begun`: the result is not known yet."""

    BEGUN = "begun"
    OK = "ok"
    REFUSED = "refused"
    FAILED = "failed"


class AuditTarget(Struct, frozen=True):
    """The object. `namespace`: "" = of the whole cluster."""

    kind: str = ""
    namespace: str = ""
    name: str = ""


class AuditRow(Struct, frozen=True):
    """One row. `id`: assigned when it is stored, growing; 0 = not stored. `at`: milliseconds UTC.

    `actor`: the user's id, or the identity of a user without one. `role`: `admin`, `researcher` or
    "" (not signed in). `action`: object, then verb, such as `quota.tree.update`. `code`: of a
    refusal or failure, as in answers of the console. `summary`: names of fields, never values that
    may be secret. `begun_id`: the id of the row `begun` that this row ends, 0 = none.
    """

    at: int
    actor: str
    action: str
    result: AuditResult
    role: str = ""
    source_ip: str = ""
    target: AuditTarget = AuditTarget()
    request_id: str = ""
    code: str = ""
    summary: str = ""
    begun_id: int = 0
    id: int = 0


class AuditFilter(Struct, frozen=True):
    """Which rows: those that match every field. An empty field matches all rows.

    In a tuple any one value matches. `since` (inclusive) and `until` (exclusive): milliseconds, 0 =
    no limit. `text`: part of actor, action, name of the target or summary, in any case.
    """

    actors: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    results: tuple[AuditResult, ...] = ()
    target: AuditTarget = AuditTarget()
    request_id: str = ""
    since: int = 0
    until: int = 0
    text: str = ""
