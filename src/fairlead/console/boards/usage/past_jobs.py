"""Jobs that were deleted, from the ledger: their rows, and the page of one.

Specification: docs/spec/usage.md#usage.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from msgspec import Struct

from fairlead.console.boards.jobs_rows import STATUSES, job_entry_of, job_row_set
from fairlead.console.boards.rows import RowSet
from fairlead.console.boards.usage.figures import CORE
from fairlead.console.pages.envelope import Sentence, counted, exact_timestamp, neat, timestamp
from fairlead.console.pages.jobs import Instance, InstanceCounts, JobRow, LifeStep
from fairlead.model.usage.ledger import GPU, OPEN, SUMS_KEPT, ClosedBy, JobRecord, PodInterval
from fairlead.ports import LedgerReading
from fairlead.rules.jobs.status import FAILED, SUCCEEDED, board_state

DELETED: Final = "Deleted"
"""The status of a job that was deleted before its end."""
_SECOND: Final = 1000
_ENDED: Final = (SUCCEEDED, FAILED)
JobName = tuple[str, str, str]
"""Namespace, type and name."""


class PastJob(Struct, frozen=True):
    """A job that the cluster does not have any more. `intervals`: of its pods."""

    record: JobRecord
    intervals: tuple[PodInterval, ...]


async def past_jobs(
    ledger: LedgerReading, now: int, namespaces: Collection[str] | None
) -> tuple[JobRecord, ...]:
    """The deleted jobs of the last 400 days, the newest first. `namespaces`: None = all."""
    found = await ledger.ledger_jobs(now - SUMS_KEPT, now + 1, namespaces)
    return tuple(record for record in found if record.deleted_at)


async def past_job(
    ledger: LedgerReading, now: int, named: JobName, uid: str = ""
) -> PastJob | None:
    """The newest job of this name, or the one with `uid`; None if the ledger never had one."""
    namespace, type_, name = named
    found = await ledger.ledger_jobs(now - SUMS_KEPT, now + 1, (namespace,), name)
    record = next((each for each in found if each.type == type_ and uid in ("", each.uid)), None)
    if record is None:
        return None
    start = record.created_at or now - SUMS_KEPT
    intervals = await ledger.pod_intervals(start, now + 1, (namespace,), record.uid)
    return PastJob(record, tuple(intervals))


def past_job_rows(records: Iterable[JobRecord], now: int) -> RowSet[JobRow]:
    return job_row_set([job_entry_of(past_job_row(record, now), {}) for record in records])


def past_jobs_sentence(rows: Sequence[JobRow]) -> Sentence:
    if not rows:
        return Sentence("jobs-no-deleted", {}, "The ledger has no deleted jobs.")
    text = f"{counted(len(rows), 'deleted job')} in the ledger."
    return Sentence("jobs-deleted", {"n": len(rows)}, text)


def past_status(record: JobRecord) -> str:
    """The board's word: that of its end, else `Deleted`.

    >>> from fairlead.model.usage.ledger import UsedBy
    >>> record = JobRecord("u", UsedBy("a"), "bert", "mpijob", status="SUCCEEDED")
    >>> past_status(record), past_status(JobRecord("u", UsedBy("a"), "bert", "mpijob"))
    ('Succeeded', 'Deleted')
    """
    state = board_state(record.status)
    return STATUSES[state] if state in _ENDED else DELETED


def past_job_row(
    record: JobRecord, now: int, intervals: Sequence[PodInterval] | None = None
) -> JobRow:
    """What is known of a deleted job. `intervals`: None = they were not read.

    What a job held that ran before the first record is unknown, not 0.
    """
    if not intervals and record.started_at:
        intervals = None
    end = record.finished_at or record.deleted_at or now
    begin = record.started_at or record.created_at or end
    held = intervals or ()
    return JobRow(
        namespace=record.by.namespace,
        name=record.name,
        type=record.type,
        status=past_status(record),
        state=record.status or DELETED.upper(),
        waiting=None,
        duration_seconds=max(0, end - begin) // _SECOND,
        held_seconds=None,
        gpus_requested=neat(record.gpu / GPU),
        gpus_allocated=0,
        gpu_memory_requested_mib=None,
        gpu_memory_allocated_mib=None,
        gpu_memory_used_mib=None,
        gpu_memory_used_of_mib=None,
        gpu_util_percent=None,
        uid=record.uid,
        api_version=record.api_version,
        user=record.by.user,
        quota_path=record.by.leaf,
        created_at=_at(record.created_at),
        started_at=_at(record.started_at),
        finished_at=_at(record.finished_at),
        deleted_at=_at(record.deleted_at),
        instances=InstanceCounts(record.instances, 0, 0, 0, 0, 0),
        nodes=sorted({each.node for each in held}),
        gpu_seconds=None if intervals is None else _integral(held, now, GPU, "gpu"),
        core_seconds=None if intervals is None else _integral(held, now, CORE, "cpu_milli"),
        cost=None,
        list_cost=None,
        live=False,
    )


def _integral(intervals: Iterable[PodInterval], now: int, unit: int, name: str) -> float:
    """Amounts times seconds."""
    total = sum(
        getattr(each.amount, name) * (_end(each, now) - each.started_at) for each in intervals
    )
    return neat(total / unit / _SECOND)


def _end(interval: PodInterval, now: int) -> int:
    return now if interval.ended_at == OPEN else interval.ended_at


def past_life(record: JobRecord) -> list[LifeStep]:
    """When it was created, ran and ended, as far as it is known."""
    known = [
        (step, at)
        for step, at in (
            ("created", record.created_at),
            ("running", record.started_at),
            ("ended", record.finished_at or record.deleted_at),
        )
        if at
    ]
    ends = [at for _, at in known[1:]]
    return [
        LifeStep(
            step,
            exact_timestamp(at / _SECOND),
            None if step == "ended" or place == len(ends) else max(0, ends[place] - at) // _SECOND,
            status=past_status(record) if step == "ended" else "",
        )
        for place, (step, at) in enumerate(known)
    ]


def past_instances(intervals: Iterable[PodInterval], now: int) -> list[Instance]:
    """One row for each pod, with what it held last."""
    by_pod: dict[str, list[PodInterval]] = {}
    for each in intervals:
        by_pod.setdefault(each.pod_uid, []).append(each)
    rows = [_instance(held, now) for held in by_pod.values()]
    return sorted(rows, key=lambda row: row.name)


def _instance(held: Sequence[PodInterval], now: int) -> Instance:
    last = max(held, key=lambda each: each.started_at)
    return Instance(
        name=last.pod,
        role="",
        status="Finished" if last.closed_by == ClosedBy.FINISHED else DELETED,
        node=last.node,
        ip="",
        gpus=neat(last.amount.gpu / GPU),
        gpu_indexes=sorted({card.index for card in last.cards}),
        gpu_uuids=[card.uuid for card in last.cards if card.uuid],
        gpu_memory_allocated_mib=float(last.amount.gpu_memory_mib),
        gpu_memory_used_mib=None,
        gpu_memory_used_of_mib=None,
        gpu_util_percent=None,
        restarts=None,
        age_seconds=sum(_end(each, now) - each.started_at for each in held) // _SECOND,
        is_chief=False,
        waiting=None,
    )


def _at(milliseconds: int) -> str | None:
    return timestamp(milliseconds / _SECOND) if milliseconds else None
