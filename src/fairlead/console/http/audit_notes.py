"""The two rows of a write in the audit: one before it is sent, one with its result.

Without the first nothing is sent. If the second cannot be stored, the write was done nevertheless,
and the audit shows that its result is not known.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from msgspec import structs

from fairlead.console.http.answers import refusal_of
from fairlead.errors import StoreDown
from fairlead.model.records.audit import AuditResult, AuditRow
from fairlead.ports import AuditTrail

_log = logging.getLogger(__name__)


@asynccontextmanager
async def audited(audit: AuditTrail | None, row: AuditRow) -> AsyncIterator[None]:
    """Around one write. `row`: without a result; `audit`: None = no row is written.

    Raises StoreDown before the write if the first row cannot be stored, and what the write raises.
    """
    if audit is None:
        yield
        return
    begun = structs.replace(row, result=AuditResult.BEGUN)
    begun_id = await audit.append_audit(begun)
    ended = structs.replace(row, result=AuditResult.OK, begun_id=begun_id)
    try:
        yield
    except Exception as error:
        refused = refusal_of(error)
        result = AuditResult.FAILED if refused.status >= 500 else AuditResult.REFUSED
        await _store(audit, structs.replace(ended, result=result, code=refused.code))
        raise
    await _store(audit, ended)


async def _store(audit: AuditTrail, row: AuditRow) -> None:
    try:
        await audit.append_audit(row)
    except StoreDown as error:
        _log.warning("the result of %s is not in the audit: %s", row.action, error.log_line)
