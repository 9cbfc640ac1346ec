"""How long the console keeps what it stores: 400 days of the audit, no more and no less."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.console.sign_in_parts import Parts
from tests.stores.rows import audit_row
from tests.waiting import until

from fairlead.console.http.sign_in import signed_in_subjects
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.opened import open_store
from fairlead.model.records.audit import AuditFilter

DAY = 24 * 60 * 60


async def test_a_row_of_the_audit_is_kept_for_400_days(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signed_in_subjects, "EXPIRE_SECONDS", 0.01)
    store = await open_store(StoreAddress(SQLITE, file=str(tmp_path / "store")))
    parts = Parts(store=store, records=store)
    parts.clock.at = 500.0 * DAY
    for day in (99, 100, 101):
        await store.append_audit(audit_row(at=(day * DAY + 1) * 1000, summary=str(day)))
    loops = [asyncio.create_task(loop()) for loop in parts.desk().loops()]

    async def days() -> list[str]:
        return [row.summary for row in await store.audit_page(AuditFilter(), 10)]

    async def one_is_gone() -> bool:
        return await days() == ["101", "100"]

    await until(one_is_gone)
    parts.clock.at += DAY

    async def two_are_gone() -> bool:
        return await days() == ["101"]

    await until(two_are_gone)
    for each in loops:
        each.cancel()
    await asyncio.gather(*loops, return_exceptions=True)
    await store.close()
