"""The store of the console in each engine: sign-ins looked up, rows appended to the audit."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from tests.stores.database_servers import DatabaseServer, Mariadb, Postgres, is_installed
from tests.stores.rows import NOW, audit_row, sign_in

from bench.support.options import options
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.opened import open_store
from fairlead.model.records.audit import AuditFilter

SIGN_INS: Final = 1000


def measure_store() -> None:
    """A sign-in looked up, a row of the audit appended, the first page of the audit: p50 and p95.

    SQLite writes to the disk of the temporary folder, and each row is on it when the call returns.
    The servers are those of `tests/stores`: on loopback, in memory, without waiting for a disk.
    Calls come one after the other, and then from ten users at once.
    """
    parser = options(measure_store)
    parser.add_argument("--calls", type=int, default=1000, help="of each kind (default 1000)")
    parser.add_argument("--rows", type=int, default=0, help="in the audit before (default 0)")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        _measure("sqlite", StoreAddress(SQLITE, file=str(Path(name) / "store")), chosen)
    for engine, kind in (("postgresql", Postgres), ("mariadb", Mariadb)):
        if not is_installed(engine):
            print(f"{engine}: not installed")
            continue
        server: DatabaseServer = kind()
        try:
            _measure(engine, server.new_database("bench"), chosen)
        finally:
            server.end()


def _measure(engine: str, address: StoreAddress, chosen: object) -> None:
    calls, rows = int(getattr(chosen, "calls", 0)), int(getattr(chosen, "rows", 0))
    for title, times in asyncio.run(_times(address, calls, rows)).items():
        times.sort()
        middle, late = times[len(times) // 2] * 1000, times[-len(times) // 20] * 1000
        print(f"{engine:<11} {title:<34} p50 {middle:6.2f} ms, p95 {late:6.2f} ms", flush=True)


async def _times(address: StoreAddress, calls: int, rows: int) -> dict[str, list[float]]:
    store = await open_store(address)
    for number in range(SIGN_INS):
        await store.add_sign_in(sign_in(number))
    for number in range(rows):
        await store.append_audit(audit_row(at=NOW + number))

    async def look_up(number: int) -> None:
        assert await store.sign_in(f"{number % SIGN_INS:064x}") is not None

    async def append(number: int) -> None:
        await store.append_audit(audit_row(at=NOW + number))

    async def page(_number: int) -> None:
        await store.audit_page(AuditFilter(text="tree"), 50)

    kinds = {"sign-in looked up": look_up, "audit row appended": append, "page of the audit": page}
    found: dict[str, list[float]] = {}
    for title, call in kinds.items():
        found[title] = await _timed(call, calls, at_once=1)
        found[f"{title}, ten at once"] = await _timed(call, calls, at_once=10)
    await store.close()
    return found


async def _timed(
    call: Callable[[int], Awaitable[None]], calls: int, *, at_once: int
) -> list[float]:
    found: list[float] = []

    async def one_user(first: int) -> None:
        for number in range(first, calls, at_once):
            began = time.perf_counter()
            await call(number)
            found.append(time.perf_counter() - began)

    await asyncio.gather(*(one_user(first) for first in range(at_once)))
    return found
