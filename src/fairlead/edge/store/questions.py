"""Questions of commands to the usage ledger of a store, which a console may be using."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from fairlead.edge.store.address import StoreAddress
from fairlead.edge.store.sql_store import SqlStore
from fairlead.ports import UsageLedger

Answer = TypeVar("Answer")


class LedgerQuestions:
    """Blocking; each question connects and disconnects, and migrates nothing."""

    def __init__(self, address: StoreAddress) -> None:
        self._address = address

    def ask(self, question: Callable[[UsageLedger], Awaitable[Answer]]) -> Answer:
        """Raises UserError for a store of another schema, StoreDown if it does not answer."""
        return asyncio.run(self._asked(question))

    async def _asked(self, question: Callable[[UsageLedger], Awaitable[Answer]]) -> Answer:
        store = SqlStore(self._address)
        try:
            await store.facts()  # it refuses a store of another schema, in words
            return await question(store.ledger)
        finally:
            await store.close()
