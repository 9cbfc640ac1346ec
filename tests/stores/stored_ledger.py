"""The ledger of a store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from sqlalchemy import delete

from fairlead.edge.store import engines
from fairlead.edge.store.address import StoreAddress
from fairlead.edge.store.sql_store import SqlStore
from fairlead.edge.store.tables import meta, metadata

PATIENT_SECONDS = 120
"""What is right does not depend on how busy the machine is: no statement is too slow here."""


def emptied(address: StoreAddress) -> None:
    engine = engines.make_engine(address, PATIENT_SECONDS)
    with engines.writing(engine) as connection:
        for table in metadata.sorted_tables:
            if table is not meta:
                connection.execute(delete(table))
    engine.dispose()


class StoredLedger:
    """The ledger of a store, whose calls end before they return."""

    def __init__(self, address: StoreAddress) -> None:
        self._runner = asyncio.Runner()
        self._store = SqlStore(address, PATIENT_SECONDS)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(*words: Any) -> Any:
            return self._runner.run(getattr(self._store.ledger, name)(*words))

        return call

    def ask(self, name: str, *words: Any) -> Any:
        return self._runner.run(getattr(self._store.ledger, name)(*words))

    def close(self) -> None:
        self._runner.run(self._store.close())
        self._runner.close()
