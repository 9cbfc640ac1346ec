"""A ledger in memory, for tests of what writes and reads one, and the oracle of the store's.

It is written from `ports.UsageLedger` and docs/spec/usage.md, and does everything in the plainest
way: each question looks at all records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from fairlead.errors import LedgerTaken, UserError
from fairlead.model.usage.ledger import (
    HOUR,
    OPEN,
    Gap,
    JobRecord,
    KeptState,
    Key,
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
from fairlead.model.usage.sums import NodeSum, UsageIntegral, UsageSum

_WITHOUT_NAMESPACE = (StateKind.NODE, StateKind.TREE, StateKind.NAMESPACE, StateKind.WITHHELD)


class MemoryLedger:
    """`ports.UsageLedger`."""

    def __init__(self) -> None:
        self.pods: dict[Key, PodInterval] = {}
        self.nodes: dict[Key, NodeInterval] = {}
        self.hours_of_pods: dict[Key, PodHour] = {}
        self.hours_of_nodes: dict[Key, NodeHour] = {}
        self.states: dict[tuple[StateKind, str, int], KeptState] = {}
        self.jobs: dict[str, JobRecord] = {}
        self.days: dict[int, tuple[tuple[UsageSum, ...], tuple[NodeSum, ...]]] = {}
        self.gaps: list[Gap] = []
        self.added: list[Price] = []
        self.epoch = self.first = self.heartbeat = self.folded_until = 0
        self.zone = ""

    # LedgerWriting

    async def claim_ledger(self, holder: str, now: int, zone: str = "UTC") -> LedgerClaim:
        if self.zone not in ("", zone):
            raise UserError(
                f"the time zone of billing days is `{self.zone}` in the ledger, not `{zone}`",
                f"set `billingTimeZone: {self.zone}`",
            )
        self.zone = zone
        self.epoch += 1
        if self.heartbeat and self.heartbeat < now:
            self.gaps.append(Gap(self.heartbeat, now))
        hour = self.heartbeat - self.heartbeat % HOUR
        return LedgerClaim(
            epoch=self.epoch,
            heartbeat=self.heartbeat,
            pods=tuple(each for each in self.pods.values() if each.ended_at == OPEN),
            nodes=tuple(each for each in self.nodes.values() if each.ended_at == OPEN),
            states=tuple(each for each in self.states.values() if each.ended_at == OPEN),
            pod_hours=tuple(each for each in self.hours_of_pods.values() if each.hour == hour),
            node_hours=tuple(each for each in self.hours_of_nodes.values() if each.hour == hour),
            jobs=tuple(each for each in self.jobs.values() if not each.deleted_at),
        )

    async def write_ledger(self, epoch: int, batch: LedgerBatch) -> None:
        self._check(epoch)
        self.first = self.first or batch.at
        self.heartbeat = max(self.heartbeat, batch.at)
        self.pods |= {(each.pod_uid, each.started_at): each for each in batch.pods}
        self.nodes |= {(each.node_uid, each.started_at): each for each in batch.nodes}
        self.hours_of_pods |= {(each.pod_uid, each.hour): each for each in batch.pod_hours}
        self.hours_of_nodes |= {(each.node_uid, each.hour): each for each in batch.node_hours}
        self.states |= {(each.kind, each.uid, each.started_at): each for each in batch.states}
        self.jobs |= {each.uid: each for each in batch.jobs}
        for end in batch.pod_ends:
            _end(self.pods, end.key, ended_at=end.ended_at, closed_by=end.closed_by)
        for end in batch.node_ends:
            _end(self.nodes, end.key, ended_at=end.ended_at, closed_by=end.closed_by)
        for state in batch.state_ends:
            _end(self.states, (state.kind, *state.key), ended_at=state.ended_at)

    async def fold_day(self, epoch: int, day: int, end: int) -> None:
        self._check(epoch)
        self.days[day] = (await self.usage_sums(day, end), await self.node_sums(day, end))
        self.folded_until = max(self.folded_until, end)

    async def forget_ledger(self, epoch: int, records_before: int, days_before: int) -> int:
        self._check(epoch)
        before = self._count()
        for ended in (self.pods, self.nodes, self.states):
            _keep(ended, lambda each: each.ended_at >= records_before)
        for hours in (self.hours_of_pods, self.hours_of_nodes):
            _keep(hours, lambda each: each.hour + HOUR >= records_before)
        _keep(self.jobs, lambda each: not each.deleted_at or each.deleted_at >= days_before)
        self.days = {day: sums for day, sums in self.days.items() if day >= days_before}
        self.gaps = [gap for gap in self.gaps if gap.ended_at >= days_before]
        return before - self._count()

    def _count(self) -> int:
        kept: Iterable[dict[Any, Any]] = (
            *(self.pods, self.nodes, self.states, self.hours_of_pods, self.hours_of_nodes),
            *(self.jobs, self.days),
        )
        return sum(map(len, kept))

    def _check(self, epoch: int) -> None:
        if epoch != self.epoch:
            raise LedgerTaken(epoch, self.epoch)

    # PriceRecords

    async def add_price(self, price: Price) -> int:
        self.added.append(replace(price, id=len(self.added) + 1))
        return len(self.added)

    async def prices(self) -> tuple[Price, ...]:
        return tuple(self.added)

    # LedgerReading

    async def ledger_bounds(self) -> LedgerBounds:
        return LedgerBounds(
            self.first,
            self.heartbeat,
            tuple(sorted(self.gaps)),
            self.folded_until,
            self.epoch,
            self.zone or "UTC",
        )

    async def usage_days(
        self, start: int, end: int, namespaces: Collection[str] | None = None
    ) -> tuple[UsageSum, ...]:
        rows = [
            row
            for day, (sums, _) in self.days.items()
            if start <= day < end
            for row in sums
            if _is_of(row.by.namespace, namespaces)
        ]
        return tuple(sorted(rows, key=lambda row: (row.day, row.by, row.job, row.price_class)))

    async def node_days(self, start: int, end: int) -> tuple[NodeSum, ...]:
        rows = [row for day, (_, sums) in self.days.items() if start <= day < end for row in sums]
        return tuple(sorted(rows, key=lambda row: (row.day, row.price_class)))

    async def usage_sums(
        self, start: int, end: int, namespaces: Collection[str] | None = None
    ) -> tuple[UsageSum, ...]:
        sums: dict[Any, list[UsageIntegral]] = {}
        pods: dict[Any, set[str]] = {}
        for each in await self.pod_intervals(start, end, namespaces):
            key = (each.by, each.job, each.price_class)
            sums.setdefault(key, []).append(self._integral(each, start, end))
            pods.setdefault(key, set()).add(each.pod_uid)
        return tuple(
            UsageSum(start, *key, integral=_added(sums[key]), pods=len(pods[key]))
            for key in sorted(sums)
        )

    def _integral(self, each: PodInterval, start: int, end: int) -> UsageIntegral:
        """The hours of a pod belong to the last of its intervals that touch the hour."""
        ms = min(each.ended_at, end, self._known_until) - max(each.started_at, start)
        hours = [
            hour
            for hour in self.hours_of_pods.values()
            if hour.pod_uid == each.pod_uid
            and start <= hour.hour < end
            and self._last_in(hour) == each.started_at
        ]
        amount, ms = each.amount, max(0, ms)
        return UsageIntegral(
            gpu=amount.gpu * ms,
            gpu_memory=amount.gpu_memory_mib * ms,
            cpu=amount.cpu_milli * ms,
            memory=amount.memory_mib * ms,
            busy=sum(hour.busy for hour in hours),
            idle=sum(hour.idle for hour in hours),
            unknown=sum(hour.unknown for hour in hours),
        )

    def _last_in(self, hour: PodHour) -> int:
        return max(
            (
                each.started_at
                for each in self.pods.values()
                if each.pod_uid == hour.pod_uid
                and each.started_at < hour.hour + HOUR
                and each.ended_at > hour.hour
            ),
            default=-1,
        )

    @property
    def _known_until(self) -> int:
        """Open records are known to be true until the heartbeat."""
        return self.heartbeat

    async def node_sums(self, start: int, end: int) -> tuple[NodeSum, ...]:
        sums: dict[Any, NodeSum] = {}
        for each in await self.node_intervals(start, end):
            key = each.price_class
            row = sums.setdefault(key, NodeSum(start, key))
            ms = min(each.ended_at, end, self._known_until) - max(each.started_at, start)
            sums[key] = replace(row, node_ms=row.node_ms + max(0, ms))
        for hour in await self.node_hours(start, end):
            node = self._node_in(hour)
            if node is not None and node.price_class in sums:
                sums[node.price_class] = _with_hour(sums[node.price_class], hour)
        by_class: dict[Any, list[UsageIntegral]] = {}
        for usage in await self.usage_sums(start, end):
            by_class.setdefault(usage.price_class, []).append(usage.integral)
        rows = []
        for key in sorted(sums):
            held = _added(by_class.get(key, []))
            rows.append(replace(sums[key], used=held.busy, idle=held.idle, unknown=held.unknown))
        return tuple(rows)

    def _node_in(self, hour: NodeHour) -> NodeInterval | None:
        found = [
            each
            for each in self.nodes.values()
            if each.node_uid == hour.node_uid
            and each.started_at < hour.hour + HOUR
            and each.ended_at > hour.hour
        ]
        return max(found, key=lambda each: each.started_at, default=None)

    async def pod_intervals(
        self,
        start: int,
        end: int,
        namespaces: Collection[str] | None = None,
        job_uid: str = "",
    ) -> tuple[PodInterval, ...]:
        found = [
            each
            for each in self.pods.values()
            if each.started_at < end
            and each.ended_at > start
            and _is_of(each.by.namespace, namespaces)
            and job_uid in ("", each.job.uid)
        ]
        return tuple(sorted(found, key=lambda each: (each.started_at, each.pod_uid)))

    async def node_intervals(self, start: int, end: int) -> tuple[NodeInterval, ...]:
        found = [
            each for each in self.nodes.values() if each.started_at < end and each.ended_at > start
        ]
        return tuple(sorted(found, key=lambda each: (each.started_at, each.node_uid)))

    async def pod_hours(self, start: int, end: int) -> tuple[PodHour, ...]:
        found = [each for each in self.hours_of_pods.values() if start <= each.hour < end]
        return tuple(sorted(found, key=lambda each: (each.hour, each.pod_uid)))

    async def node_hours(self, start: int, end: int) -> tuple[NodeHour, ...]:
        found = [each for each in self.hours_of_nodes.values() if start <= each.hour < end]
        return tuple(sorted(found, key=lambda each: (each.hour, each.node_uid)))

    async def states_at(
        self, at: int, kinds: Collection[StateKind], namespaces: Collection[str] | None = None
    ) -> tuple[KeptState, ...]:
        found = [
            each
            for each in self.states.values()
            if each.kind in kinds
            and each.started_at <= at < each.ended_at
            and (each.kind in _WITHOUT_NAMESPACE or _is_of(each.namespace, namespaces))
        ]
        return tuple(sorted(found, key=lambda each: (each.kind, each.namespace, each.name)))

    async def states_begun(
        self, start: int, end: int, kinds: Collection[StateKind]
    ) -> tuple[KeptState, ...]:
        found = [
            each
            for each in self.states.values()
            if each.kind in kinds and start <= each.started_at < end
        ]
        return tuple(sorted(found, key=lambda each: (each.started_at, each.kind, each.uid)))

    async def ledger_jobs(
        self,
        start: int,
        end: int,
        namespaces: Collection[str] | None = None,
        name: str = "",
    ) -> tuple[JobRecord, ...]:
        found = [
            each
            for each in self.jobs.values()
            if each.created_at < end
            and (not each.deleted_at or each.deleted_at > start)
            and _is_of(each.by.namespace, namespaces)
            and name in ("", each.name)
        ]
        return tuple(sorted(found, key=lambda each: (-each.created_at, each.uid)))


def _is_of(namespace: str, namespaces: Collection[str] | None) -> bool:
    return namespaces is None or namespace in namespaces


def _end(records: dict[Any, Any], key: Any, **values: Any) -> None:
    """An end of a record that has ended, or does not exist, changes nothing."""
    record = records.get(key)
    if record is not None and record.ended_at == OPEN:
        records[key] = replace(record, **values)


def _keep(records: dict[Any, Any], keeps: Any) -> None:
    for key in [key for key, each in records.items() if not keeps(each)]:
        del records[key]


def _added(parts: Iterable[Struct]) -> UsageIntegral:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in asdict(part).items():
            total[name] = total.get(name, 0) + amount
    return UsageIntegral(**total)


def _with_hour(row: NodeSum, hour: NodeHour) -> NodeSum:
    return replace(
        row,
        free=row.free + hour.free,
        stranded=row.stranded + hour.stranded,
        broken=row.broken + hour.broken,
    )
