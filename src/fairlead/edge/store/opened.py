"""Opening a store: bring it to this program's schema, then look whether it answers."""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Callable
from typing import Final

from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.migrate import migrate
from fairlead.edge.store.sql_store import SqlStore
from fairlead.errors import UserError

HELD_SECONDS: Final = 15.0
"""A console that was called to end may hold its file for this time."""


async def open_store(
    address: StoreAddress, say: Callable[[str], None] = lambda line: None
) -> SqlStore:
    """A store that can be used; the caller closes it.

    Raises UserError for a store that is newer than this program, and for a SQLite file that another
    console has; StoreDown if it does not answer.
    """
    await asyncio.to_thread(migrate, address, say)
    return SqlStore(address, held=await _held(address))


async def _held(address: StoreAddress) -> int | None:
    """A lock on the SQLite file, until its descriptor is closed: it is for one console."""
    if address.engine != SQLITE:
        return None
    descriptor = os.open(f"{address.file}.console", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    limit = time.monotonic() + HELD_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > limit:
                os.close(descriptor)
                raise UserError(
                    f"another console uses the store `{address.file}`",
                    "SQLite is for one console: give several a database server",
                ) from None
            await asyncio.sleep(0.1)
        else:
            return descriptor
