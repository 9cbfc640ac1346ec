"""The two rows of a write in the audit: one before it is sent, one with its result.

Without the first nothing is sent. If the second cannot be stored, the write was done nevertheless,
and the audit shows that its result is not known.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from msgspec import structs

from fairlead.console.http.answers import refusal_of
from fairlead.errors import OutsideError
from fairlead.model.records.audit import AuditResult, AuditRow
from fairlead.ports import AuditTrail

_log = logging.getLogger(__name__)


@asynccontextmanager
async def result_noted(
    audit: AuditTrail, begun: AuditRow, now: Callable[[], int]
) -> AsyncIterator[None]:
    """The second row, after a write. `begun`: the first one, which is stored. `now`: milliseconds
    UTC. An answer of the API server is certain; all others may have come too late.
    """
    try:
        yield
    except Exception as error:
        refused = refusal_of(error)
        result = AuditResult.REFUSED if refused.status < 500 else AuditResult.FAILED
        await note(audit, ended_row(begun, now(), result, refused.code))
        raise
    await note(audit, ended_row(begun, now(), AuditResult.OK))


def ended_row(begun: AuditRow, at: int, result: AuditResult, code: str = "") -> AuditRow:
    """The second row of the write that this one began."""
    return structs.replace(begun, at=at, result=result, code=code, begun_id=begun.id, id=0)


async def note(audit: AuditTrail, row: AuditRow) -> None:
    """A row on which nothing depends: without it the result is unknown, or a refusal not noted."""
    try:
        await audit.append_audit(row)
    except OutsideError as error:
        _log.warning(
            "audit: %s by %s (%s, request id %s) is not noted: %s",
            row.action,
            row.actor,
            row.result,
            row.request_id,
            error.log_line,
        )
