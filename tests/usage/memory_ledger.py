"""The ledger in memory, as docs/spec/usage.md describes it: for tests of what writes and reads one,
and the oracle of the store. It looks at every record for every question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from operator import attrgetter
from typing import Any, Final, TypeVar

from msgspec import structs

from fairlead.errors import LedgerTaken, UserError
from fairlead.model.usage.ledger import (
    HOUR,
    MOST,
    OPEN,
    RECENT,
    RELEASES_KEPT,
    Amount,
    End,
    Gap,
    HeldHour,
    JobRecord,
    KeptState,
    LedgerBatch,
    LedgerBounds,
    LedgerClaim,
    LedgerJob,
    NodeHour,
    NodeInterval,
    PodHour,
    PodInterval,
    PriceClass,
    StateKind,
    UsedBy,
)
from fairlead.model.usage.prices import Price
from fairlead.model.usage.sums import NodeSum, UsageIntegral, UsageSum

LONGEST: Final = 1 << 36
Interval = TypeVar("Interval", PodInterval, NodeInterval)
Record = TypeVar("Record", PodInterval, NodeInterval, KeptState)
Group = tuple[UsedBy, LedgerJob, PriceClass]


class MemoryLedger:
    """A `ports.UsageLedger`. Set `down` to an exception that each call raises."""

    def __init__(self) -> None:
        self.down: Exception | None = None
        self.epoch = 0
        self.zone = ""
        self.holder = ""
        self.is_off = False
        self.first = 0
        self.heartbeat = 0
        self.folded_until = 0
        self.gaps: dict[int, Gap] = {}
        self.pods: dict[tuple[str, int], PodInterval] = {}
        self.nodes: dict[tuple[str, int], NodeInterval] = {}
        self.states: dict[tuple[StateKind, str, int], KeptState] = {}
        self.hours_of_pods: dict[tuple[str, int, int], PodHour] = {}
        self.hours_of_nodes: dict[tuple[str, int, int], NodeHour] = {}
        self.jobs: dict[str, JobRecord] = {}
        self.days: dict[int, tuple[UsageSum, ...]] = {}
        self.days_of_nodes: dict[int, tuple[NodeSum, ...]] = {}
        self.added: list[Price] = []
        self.batches: list[LedgerBatch] = []
        """What was written, in order."""

    # writing

    async def claim_ledger(self, holder: str, now: int, zone: str = "UTC") -> LedgerClaim:
        self._check()
        if self.zone not in ("", zone):
            raise UserError(
                f"the days of the usage ledger are those of `{self.zone}`, not of `{zone}`",
                f"set billingTimeZone to `{self.zone}`",
            )
        self.zone = zone
        self.holder = holder
        self.epoch += 1
        self.heartbeat = min(self.heartbeat, now)
        if self.heartbeat and self.heartbeat < now:
            self.gaps[self.heartbeat] = Gap(self.heartbeat, now)
        hour = self.heartbeat - self.heartbeat % HOUR
        ended = {
            each.pod_uid
            for each in self.pods.values()
            if self.heartbeat - RECENT < each.ended_at < OPEN
        }
        return LedgerClaim(
            self.epoch,
            self.heartbeat,
            _sorted(
                (each for each in self.pods.values() if each.ended_at == OPEN),
                "pod_uid",
                "started_at",
            ),
            tuple(sorted(ended)),
            _sorted(
                (each for each in self.nodes.values() if each.ended_at == OPEN),
                "node_uid",
                "started_at",
            ),
            _in_order(each for each in self.states.values() if each.ended_at == OPEN),
            await self.pod_hours(hour, hour + 1),
            await self.node_hours(hour, hour + 1),
            tuple(self.jobs[uid] for uid in sorted(self.jobs) if not self.jobs[uid].deleted_at),
            _sorted(
                (
                    each
                    for each in self.pods.values()
                    if hour < each.ended_at < OPEN
                    and (each.amount.gpu or self.heartbeat - RELEASES_KEPT < each.ended_at)
                ),
                "pod_uid",
                "started_at",
            ),
        )

    async def write_ledger(self, epoch: int, batch: LedgerBatch) -> None:
        self._check(epoch)
        self.batches.append(batch)
        self.first = self.first or batch.at
        self.heartbeat = max(self.heartbeat, batch.at)
        for pod in batch.pods:
            self.pods[pod.pod_uid, pod.started_at] = _closed(
                structs.replace(pod, amount=_bounded(pod.amount))
            )
        for node in batch.nodes:
            self.nodes[node.node_uid, node.started_at] = _closed(node)
        for state in batch.states:
            self.states[state.kind, state.uid, state.started_at] = _closed(state)
        _end(self.pods, batch.pod_ends)
        _end(self.nodes, batch.node_ends)
        for end in batch.state_ends:
            kept = self.states.get((end.kind, *end.key))
            if kept is not None and kept.ended_at == OPEN:
                ended = structs.replace(kept, ended_at=max(end.ended_at, kept.started_at))
                self.states[end.kind, *end.key] = ended
        for hour in batch.pod_hours:
            if (hour.pod_uid, hour.started_at) in self.pods:
                self.hours_of_pods[hour.pod_uid, hour.started_at, hour.hour] = hour
        for row in batch.node_hours:
            if (row.node_uid, row.started_at) in self.nodes:
                self.hours_of_nodes[row.node_uid, row.started_at, row.hour] = row
        for job in batch.jobs:
            before = self.jobs.get(job.uid)
            manifest = job.manifest or (before.manifest if before is not None else "")
            self.jobs[job.uid] = structs.replace(job, manifest=manifest)

    async def fold_day(self, epoch: int, day: int, end: int) -> None:
        self._check(epoch)
        self.days[day] = tuple(map(_kept_sum, await self.usage_sums(day, end)))
        self.days_of_nodes[day] = await self.node_sums(day, end)
        self.folded_until = max(self.folded_until, end)

    async def forget_ledger(self, epoch: int, records_before: int, days_before: int) -> int:
        self._check(epoch)
        pods = {key for key, each in self.pods.items() if each.ended_at < records_before}
        nodes = {key for key, each in self.nodes.items() if each.ended_at < records_before}
        hours_before = records_before - HOUR
        removed = [
            _remove(self.hours_of_pods, lambda each: each.hour < hours_before),
            _remove(self.hours_of_pods, lambda each: (each.pod_uid, each.started_at) in pods),
            _remove(self.hours_of_nodes, lambda each: each.hour < hours_before),
            _remove(self.hours_of_nodes, lambda each: (each.node_uid, each.started_at) in nodes),
            _remove(self.pods, lambda each: each.ended_at < records_before),
            _remove(self.nodes, lambda each: each.ended_at < records_before),
            _remove(self.states, lambda each: each.ended_at < records_before),
            _remove(self.gaps, lambda each: each.ended_at < days_before),
            _remove(self.jobs, lambda each: 0 < each.deleted_at < days_before),
        ]
        for day in [day for day in self.days if day < days_before]:
            removed.append(len(self.days.pop(day)) + len(self.days_of_nodes.pop(day)))
        return sum(removed)

    # prices

    async def add_price(self, price: Price) -> int:
        self._check()
        id = len(self.added) + 1
        self.added.append(structs.replace(price, id=id))
        return id

    async def prices(self) -> tuple[Price, ...]:
        self._check()
        return tuple(self.added)

    # reading

    async def ledger_bounds(self) -> LedgerBounds:
        self._check()
        return LedgerBounds(
            self.first,
            self.heartbeat,
            tuple(self.gaps[key] for key in sorted(self.gaps)),
            self.folded_until,
            self.epoch,
            self.zone or "UTC",
            self.holder,
            self.is_off,
        )

    async def usage_days(
        self, start: int, end: int, namespaces: Collection[str] | None = None
    ) -> tuple[UsageSum, ...]:
        self._check()
        days = sorted(day for day in self.days if start <= day < end)
        rows = (row for day in days for row in self.days[day])
        return tuple(row for row in rows if _is_in(row.by.namespace, namespaces))

    async def usage_sums(
        self, start: int, end: int, namespaces: Collection[str] | None = None
    ) -> tuple[UsageSum, ...]:
        self._check()
        _check_length(start, end)
        last = min(end, self.heartbeat)
        pods: dict[Group, set[str]] = defaultdict(set)
        sums: dict[Group, list[int]] = defaultdict(lambda: [0] * 7)
        for pod in self.pods.values():
            time = _overlap(pod, start, last)
            if time:
                pods[_group(pod)].add(pod.pod_uid)
                amounts = structs.astuple(pod.amount)
                _add(sums[_group(pod)], [amount * time for amount in amounts])
        for hour in self.hours_of_pods.values():
            if start <= hour.hour < end:
                group = _group(self.pods[hour.pod_uid, hour.started_at])
                _add(sums[group], [0, 0, 0, 0, hour.busy, hour.idle, hour.unknown])
        return tuple(
            UsageSum(start, *group, UsageIntegral(*sums[group]), len(pods[group]))
            for group in sorted(sums)
            if _is_in(group[0].namespace, namespaces)
        )

    async def node_days(self, start: int, end: int) -> tuple[NodeSum, ...]:
        self._check()
        days = sorted(day for day in self.days_of_nodes if start <= day < end)
        return tuple(row for day in days for row in self.days_of_nodes[day])

    async def node_sums(self, start: int, end: int) -> tuple[NodeSum, ...]:
        self._check()
        _check_length(start, end)
        sums: dict[PriceClass, list[int]] = defaultdict(lambda: [0] * 7)
        for node in self.nodes.values():
            time = _overlap(node, start, min(end, self.heartbeat))
            if time:
                _add(sums[node.price_class], [time, 0, 0, 0, 0, 0, 0])
        for hour in self.hours_of_pods.values():
            if start <= hour.hour < end:
                pod = self.pods[hour.pod_uid, hour.started_at]
                _add(sums[pod.price_class], [0, hour.busy, hour.idle, hour.unknown, 0, 0, 0])
        for row in self.hours_of_nodes.values():
            if start <= row.hour < end:
                node = self.nodes[row.node_uid, row.started_at]
                _add(sums[node.price_class], [0, 0, 0, 0, row.free, row.stranded, row.broken])
        return tuple(NodeSum(start, each, *sums[each]) for each in sorted(sums))

    async def pod_intervals(
        self,
        start: int,
        end: int,
        namespaces: Collection[str] | None = None,
        job_uid: str = "",
        pod_uids: Collection[str] | None = None,
    ) -> tuple[PodInterval, ...]:
        self._check()
        found = (
            each
            for each in self.pods.values()
            if _overlap(each, start, end)
            and _is_in(each.by.namespace, namespaces)
            and (not job_uid or each.job.uid == job_uid)
            and _is_in(each.pod_uid, pod_uids)
        )
        return _sorted(found, "started_at", "pod_uid")

    async def node_intervals(self, start: int, end: int) -> tuple[NodeInterval, ...]:
        self._check()
        found = (each for each in self.nodes.values() if _overlap(each, start, end))
        return _sorted(found, "started_at", "node_uid")

    async def pod_hours(self, start: int, end: int) -> tuple[PodHour, ...]:
        self._check()
        found = (each for each in self.hours_of_pods.values() if start <= each.hour < end)
        return tuple(sorted(found, key=attrgetter("hour", "pod_uid", "started_at")))

    async def idle_hours(
        self, start: int, end: int, namespaces: Collection[str] | None = None
    ) -> tuple[PodHour, ...]:
        listed = {
            each.pod_uid
            for each in await self.pod_hours(max(start, end - HOUR), end)
            if (each.idle > 0 or not each.busy) and self._is_of(each, namespaces)
        }
        return tuple(
            each
            for each in await self.pod_hours(start, end)
            if each.pod_uid in listed and self._is_of(each, namespaces)
        )

    def _is_of(self, hour: PodHour, namespaces: Collection[str] | None) -> bool:
        return _is_in(self.pods[hour.pod_uid, hour.started_at].by.namespace, namespaces)

    async def held_hours(self, start: int, end: int) -> tuple[HeldHour, ...]:
        sums: dict[tuple[int, str, PriceClass], list[int]] = defaultdict(lambda: [0] * 3)
        for each in await self.pod_hours(start, end):
            pod = self.pods[each.pod_uid, each.started_at]
            key = each.hour, pod.node, pod.price_class
            _add(sums[key], [each.busy, each.idle, each.unknown])
        return tuple(HeldHour(*key, *sums[key]) for key in sorted(sums))

    async def node_hours(self, start: int, end: int) -> tuple[NodeHour, ...]:
        self._check()
        found = (each for each in self.hours_of_nodes.values() if start <= each.hour < end)
        return tuple(sorted(found, key=attrgetter("hour", "node_uid", "started_at")))

    async def states_at(
        self, at: int, kinds: Collection[StateKind], namespaces: Collection[str] | None = None
    ) -> tuple[KeptState, ...]:
        self._check()
        return _in_order(
            each
            for each in self.states.values()
            if each.started_at <= at < each.ended_at
            and each.kind in kinds
            and (not each.namespace or _is_in(each.namespace, namespaces))
        )

    async def states_begun(
        self, start: int, end: int, kinds: Collection[StateKind]
    ) -> tuple[KeptState, ...]:
        self._check()
        found = (
            each
            for each in self.states.values()
            if start <= each.started_at < end and each.kind in kinds
        )
        return tuple(sorted(found, key=attrgetter("started_at", "kind", "uid")))

    async def ledger_jobs(
        self,
        start: int,
        end: int,
        namespaces: Collection[str] | None = None,
        name: str = "",
    ) -> tuple[JobRecord, ...]:
        self._check()
        found = [
            each
            for each in self.jobs.values()
            if each.created_at < end
            and (not each.deleted_at or each.deleted_at > start)
            and _is_in(each.by.namespace, namespaces)
            and name in ("", each.name)
        ]
        return tuple(sorted(found, key=lambda each: (-each.created_at, each.uid)))

    def _check(self, epoch: int | None = None) -> None:
        if self.down is not None:
            raise self.down
        if epoch is not None and epoch != self.epoch:
            raise LedgerTaken(epoch, self.epoch)


def _check_length(start: int, end: int) -> None:
    if end - start > LONGEST:
        raise UserError("a period of more than two years", "ask for a shorter one")


def _kept_sum(each: UsageSum) -> UsageSum:
    """Integrals of folded days have 63 bits."""
    kept = [min(amount, (1 << 63) - 1) for amount in structs.astuple(each.integral)]
    return structs.replace(each, integral=UsageIntegral(*kept))


def _bounded(amount: Amount) -> Amount:
    return Amount(*(min(max(each, 0), MOST) for each in structs.astuple(amount)))


def _closed(record: Record) -> Record:
    return structs.replace(record, ended_at=max(record.started_at, record.ended_at))


def _end(kept: dict[tuple[str, int], Interval], ends: Iterable[End]) -> None:
    for end in ends:
        found = kept.get(end.key)
        if found is not None and found.ended_at == OPEN:
            ended_at = max(end.ended_at, found.started_at)
            kept[end.key] = structs.replace(found, ended_at=ended_at, closed_by=end.closed_by)


def _overlap(each: PodInterval | NodeInterval, start: int, end: int) -> int:
    return max(0, min(each.ended_at, end) - max(each.started_at, start))


def _group(pod: PodInterval) -> Group:
    return pod.by, pod.job, pod.price_class


def _add(sums: list[int], more: list[int]) -> None:
    for at, each in enumerate(more):
        sums[at] += each


def _is_in(name: str, names: Collection[str] | None) -> bool:
    return names is None or name in names


def _sorted(found: Iterable[Interval], *fields: str) -> tuple[Interval, ...]:
    return tuple(sorted(found, key=attrgetter(*fields)))


def _in_order(found: Iterable[KeptState]) -> tuple[KeptState, ...]:
    return tuple(sorted(found, key=attrgetter("kind", "namespace", "name", "uid", "started_at")))


def _remove(kept: dict[Any, Any], is_over: Callable[[Any], bool]) -> int:
    over = [key for key, each in kept.items() if is_over(each)]
    for key in over:
        del kept[key]
    return len(over)
