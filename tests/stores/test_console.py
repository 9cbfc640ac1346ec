"""The console over a real store that goes away: pages work, signing in is refused and noted."""

from __future__ import annotations

import pytest
from tests.apps.signed_browser import Browser, served
from tests.console.sign_in_parts import Parts
from tests.stores.database_servers import DatabaseServer
from tests.waiting import until

from fairlead.edge.store.address import StoreAddress
from fairlead.edge.store.sql_store import SqlStore
from fairlead.model.records.audit import AuditFilter
from fairlead.rules.people.sign_in import TRIES_MAX


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
async def test_without_its_server_the_console_shows_pages_and_signs_no_user_in(
    address: StoreAddress, store: SqlStore, server: DatabaseServer
) -> None:
    parts = Parts(store=store, records=store)
    async with served(parts) as page, served(parts) as replica:
        anna = await Browser(page).signed_in("token-of-anna")
        assert await anna.code("/nodes") == ""
        server.crash()
        parts.clock.at += 60.0
        assert await anna.code("/nodes") == ""
        for _ in range(2 * TRIES_MAX):
            status, refused = await Browser(page).sign_in("token-of-bob")
            assert (status, refused["code"]) == (503, "store-down")
            assert address.password not in str(refused)
        server.start()

        async def signs_in() -> bool:
            return (await Browser(page).sign_in("token-of-bob"))[0] == 200

        await until(signs_in)
        there = Browser(replica)
        there.cookies = dict(anna.cookies)
        parts.clock.at += 60.0
        assert (await there.me())["user"]["id"] == "anna"
    rows = [row async for row in store.audit_rows(AuditFilter())]
    assert [(row.actor, row.action, row.result) for row in rows] == [
        ("anna", "session.begin", "ok"),
        ("bob", "session.begin", "ok"),
    ]
