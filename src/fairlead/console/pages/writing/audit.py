"""The audit: rows, newest first."""

from __future__ import annotations

from fairlead.console.pages.envelope import Json, Timestamp


class AuditedObject(Json, frozen=True):
    """`namespace`: "" = an object of the whole cluster."""

    kind: str
    namespace: str
    name: str


class AuditEntry(Json, frozen=True):
    """`result`: `ok`, `refused`, `failed`, or `begun`: how it ended is not known. `code`: of a
    refusal or failure, as in the errors of this API. `summary`: names of fields, no secret values.
    """

    id: int
    at: Timestamp
    actor: str
    role: str
    source_ip: str
    action: str
    target: AuditedObject
    request_id: str
    result: str
    code: str
    summary: str


class AuditPage(Json, frozen=True):
    """`total`: rows that match. `before`: what the next page is asked with, 0 = there is none."""

    generated_at: Timestamp
    total: int
    size: int
    before: int
    items: list[AuditEntry]


class AuditLine(Json, frozen=True):
    """A row of the CSV form."""

    id: int
    at: Timestamp
    actor: str
    role: str
    source_ip: str
    action: str
    kind: str
    namespace: str
    name: str
    request_id: str
    result: str
    code: str
    summary: str
