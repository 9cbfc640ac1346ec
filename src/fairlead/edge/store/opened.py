"""Opening a store: bring it to this program's schema, then look whether it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fairlead.edge.store.address import StoreAddress
from fairlead.edge.store.migrate import migrate
from fairlead.edge.store.sql_store import SqlStore


async def open_store(
    address: StoreAddress, say: Callable[[str], None] = lambda line: None
) -> SqlStore:
    """A store that can be used; the caller closes it.

    Raises UserError for a store that is newer than this program, StoreDown if it does not answer.
    """
    await asyncio.to_thread(migrate, address, say)
    return SqlStore(address)
