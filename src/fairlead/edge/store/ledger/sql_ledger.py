"""The ledger (`ports.UsageLedger`): each method is one transaction in a thread of the store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, insert

from fairlead.edge.store.columns import KEY_LENGTH, NAME_LENGTH
from fairlead.edge.store.ledger import held, reading, sums, upkeep, writing
from fairlead.edge.store.ledger.accounts import AccountIds
from fairlead.edge.store.ledger_tables import prices
from fairlead.edge.store.texts import cut_text, whole_text
from fairlead.model.usage.ledger import (
    HeldHour,
    JobRecord,
    KeptState,
    LedgerBatch,
    LedgerBounds,
    LedgerClaim,
    NodeHour,
    NodeInterval,
    PodHour,
    PodInterval,
    StateKind,
)
from fairlead.model.usage.prices import Price
from fairlead.model.usage.sums import NodeSum, UsageSum

T = TypeVar("T")


class Transaction(Protocol):
    """Runs the work in a transaction, in a thread. Raises StoreDown."""

    def __call__(self, work: Callable[[Connection], T], /) -> Awaitable[T]: ...


class SqlLedger:
    """The ledger of a store; made by `SqlStore.ledger`.

    `is_off`: set where no recorder runs for this store (`LedgerBounds.is_off`).
    """

    def __init__(self, read: Transaction, write: Transaction) -> None:
        self.is_off = False
        self._read = read
        self._write = write
        self._known = AccountIds()

    # writing

    async def claim_ledger(self, holder: str, now: int, zone: str = "UTC") -> LedgerClaim:
        self._known.forget()  # another recorder may have removed accounts

        def claim(connection: Connection) -> LedgerClaim:
            return reading.open_records(connection, writing.claim(connection, holder, now, zone))

        return await self._write(claim)

    async def write_ledger(self, epoch: int, batch: LedgerBatch) -> None:
        known = self._known
        known.keep(await self._write(lambda each: writing.write(each, epoch, batch, known)))

    async def fold_day(self, epoch: int, day: int, end: int) -> None:
        await self._write(lambda connection: upkeep.fold(connection, epoch, day, end))

    async def forget_ledger(self, epoch: int, records_before: int, days_before: int) -> int:
        removed = 0
        for step in upkeep.removals(records_before, days_before):
            while count := await self._write(_fenced(epoch, step)):
                removed += count
        self._known.forget()
        last = -1
        while last:
            after = max(last, 0)
            last = await self._write(
                lambda connection: upkeep.remove_accounts(connection, epoch, after)  # noqa: B023
            )
        return removed

    # prices

    async def add_price(self, price: Price) -> int:
        matcher = [[whole_text(label), whole_text(value)] for label, value in price.matcher]
        values = {
            "matcher": msgspec.json.encode(matcher).decode(),
            "currency": cut_text(price.currency, KEY_LENGTH),
            "node_hour": price.node_hour,
            "list_node_hour": -1 if price.list_node_hour is None else price.list_node_hour,
            "gpu_permille": -1 if price.gpu_permille is None else price.gpu_permille,
            "valid_from": price.valid_from,
            "entered_at": price.entered_at,
            "entered_by": cut_text(price.entered_by, NAME_LENGTH),
            "note": whole_text(price.note),
            "is_end": int(price.ended),
        }

        def add(connection: Connection) -> int:
            added: Any = connection.execute(insert(prices).values(values))
            return int(added.inserted_primary_key[0])

        return await self._write(add)

    async def prices(self) -> tuple[Price, ...]:
        return await self._read(reading.all_prices)

    # reading

    async def ledger_bounds(self) -> LedgerBounds:
        return replace(await self._read(reading.bounds), is_off=self.is_off)

    async def usage_days(
        self, start: int, end: int, namespaces: Collection[str] | None = None
    ) -> tuple[UsageSum, ...]:
        return await self._read(
            lambda connection: reading.usage_days_from(connection, start, end, namespaces)
        )

    async def usage_sums(
        self, start: int, end: int, namespaces: Collection[str] | None = None
    ) -> tuple[UsageSum, ...]:
        return await self._read(
            lambda connection: sums.usage_sums(connection, start, end, namespaces)
        )

    async def node_days(self, start: int, end: int) -> tuple[NodeSum, ...]:
        return await self._read(lambda each: reading.node_days_from(each, start, end))

    async def node_sums(self, start: int, end: int) -> tuple[NodeSum, ...]:
        return await self._read(lambda each: sums.node_sums(each, start, end))

    async def pod_intervals(
        self,
        start: int,
        end: int,
        namespaces: Collection[str] | None = None,
        job_uid: str = "",
        pod_uids: Collection[str] | None = None,
    ) -> tuple[PodInterval, ...]:
        return await self._read(
            lambda each: reading.pods_touching(each, start, end, namespaces, job_uid, pod_uids)
        )

    async def node_intervals(self, start: int, end: int) -> tuple[NodeInterval, ...]:
        return await self._read(lambda each: reading.nodes_touching(each, start, end))

    async def pod_hours(self, start: int, end: int) -> tuple[PodHour, ...]:
        return await self._read(lambda each: reading.hours_of_pods(each, start, end))

    async def idle_hours(
        self, start: int, end: int, namespaces: Collection[str] | None = None
    ) -> tuple[PodHour, ...]:
        return await self._read(lambda each: held.idle_hours(each, start, end, namespaces))

    async def held_hours(self, start: int, end: int) -> tuple[HeldHour, ...]:
        return await self._read(lambda each: held.held_hours(each, start, end))

    async def node_hours(self, start: int, end: int) -> tuple[NodeHour, ...]:
        return await self._read(lambda each: reading.hours_of_nodes(each, start, end))

    async def states_at(
        self, at: int, kinds: Collection[StateKind], namespaces: Collection[str] | None = None
    ) -> tuple[KeptState, ...]:
        return await self._read(lambda each: reading.states_at(each, at, kinds, namespaces))

    async def states_begun(
        self, start: int, end: int, kinds: Collection[StateKind]
    ) -> tuple[KeptState, ...]:
        return await self._read(lambda each: reading.states_begun(each, start, end, kinds))

    async def ledger_jobs(
        self,
        start: int,
        end: int,
        namespaces: Collection[str] | None = None,
        name: str = "",
    ) -> tuple[JobRecord, ...]:
        return await self._read(lambda each: reading.jobs(each, start, end, namespaces, name))


def _fenced(epoch: int, step: upkeep.Step) -> upkeep.Step:
    def fenced(connection: Connection) -> int:
        writing.fence(connection, epoch)
        return step(connection)

    return fenced
