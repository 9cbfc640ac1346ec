"""The cost of one job, also of a deleted one (docs/spec/usage.md#cost)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from fairlead.console.boards.usage.figures import (
    CORE,
    Money,
    figures_of,
    money_sum,
    money_text,
    plain,
    saved_percent,
    table_money,
)
from fairlead.console.boards.usage.ledger_reads import envelope_of, read_usage, time_text
from fairlead.console.pages.usage.tables import JobCost, PodCost
from fairlead.errors import NotFound
from fairlead.model.usage.ledger import (
    DAY,
    GPU,
    HOUR,
    OPEN,
    SUMS_KEPT,
    ClosedBy,
    JobRecord,
    PodInterval,
)
from fairlead.model.usage.sums import UsageIntegral
from fairlead.ports import LedgerReading
from fairlead.rules.usage.cost import Charge, Total, charge, node_time, totals
from fairlead.rules.usage.periods import Period
from fairlead.rules.usage.prices import PriceBook

INSTANCE_TYPE: Final = "node.kubernetes.io/instance-type"
RUNNING: Final = "running"
_SECOND: Final = 1000


async def job_cost(
    ledger: LedgerReading,
    now: int,
    namespace: str,
    name: str,
    job_type: str = "",
    uid: str = "",
) -> JobCost:
    """The newest job of this name, or the one with `uid`. Raises NotFound, StoreDown."""
    found = [
        each
        for each in await ledger.ledger_jobs(0, OPEN, [namespace], name)
        if job_type in ("", each.type)
    ]
    chosen = next((each for each in found if uid in ("", each.uid)), None)
    if chosen is None:
        raise _no_job(namespace, name, job_type, uid)
    bounds = await ledger.ledger_bounds()
    intervals = await ledger.pod_intervals(0, OPEN, [namespace], chosen.uid)
    start, end = _time_of(chosen, intervals, bounds.heartbeat, now)
    read = await read_usage(ledger, bounds, Period("job", start, end), [namespace])
    own = [each for each in read.sums if each.job.uid == chosen.uid]
    total = totals(own, read.book, lambda _: "").get("", Total())
    charges = [interval_charge(each, read.book, bounds.heartbeat) for each in intervals]
    moneys = table_money(charges)
    is_whole = sum(_gpu(each, bounds.heartbeat) for each in intervals) == total.integral.gpu
    # Rows of pods whose records are gone are missing; the days still have what they cost.
    money = money_sum(moneys) if is_whole else table_money([total.charge])[0]
    return JobCost(
        **envelope_of(bounds, now),
        uid=chosen.uid,
        namespace=namespace,
        name=chosen.name,
        type=chosen.type,
        user=chosen.by.user,
        leaf=chosen.by.leaf,
        start=time_text(start) if own or intervals else None,
        end=_end(chosen, intervals),
        currency=read.book.currency,
        figures=figures_of(_with_pods(total, intervals), money),
        pods=[
            _pod_row(each, read.book, money, bounds.heartbeat)
            for each, money in zip(intervals, moneys, strict=True)
        ],
        others=[each.uid for each in found if each.uid != chosen.uid],
    )


def _no_job(namespace: str, name: str, job_type: str, uid: str) -> NotFound:
    kind = f"{job_type} " if job_type else ""
    which = f" with the uid `{uid[:100]}`" if uid else ""
    return NotFound(
        "store",
        f"the ledger has no {kind}job `{name[:253]}` in the namespace `{namespace[:253]}`{which}",
        f"jobs are kept for {SUMS_KEPT // DAY} days after their end; "
        "`fairlead usage --by job` lists them",
    )


def _time_of(
    job: JobRecord, intervals: Sequence[PodInterval], heartbeat: int, now: int
) -> tuple[int, int]:
    """The time in which the job may have held something, at least a millisecond."""
    starts = [each.started_at for each in intervals]
    starts += [at for at in (job.created_at, job.started_at) if at]
    start = max(min(starts, default=now), now - SUMS_KEPT)
    ends = [heartbeat if each.ended_at == OPEN else each.ended_at for each in intervals]
    if job.deleted_at or job.finished_at:
        ends.append(max(job.deleted_at, job.finished_at))
    else:
        ends.append(heartbeat)
    return start, max(start + 1, *ends)


def _end(job: JobRecord, intervals: Sequence[PodInterval]) -> str | None:
    if any(each.ended_at == OPEN for each in intervals):
        return None
    ends = [each.ended_at for each in intervals]
    at = max(ends, default=job.finished_at or job.deleted_at)
    return time_text(at) if at else None


def _with_pods(total: Total, intervals: Sequence[PodInterval]) -> Total:
    """A pod of several days is one pod."""
    pods = len({each.pod_uid for each in intervals}) or total.pods
    return Total(total.integral, pods, total.charge, total.unpriced)


def _gpu(each: PodInterval, heartbeat: int) -> int:
    return each.amount.gpu * max(0, min(each.ended_at, heartbeat) - each.started_at)


def interval_integral(each: PodInterval, milliseconds: int) -> UsageIntegral:
    """What the pod held in a part of its interval, without how busy it was."""
    amount = each.amount
    return UsageIntegral(
        gpu=amount.gpu * milliseconds,
        gpu_memory=amount.gpu_memory_mib * milliseconds,
        cpu=amount.cpu_milli * milliseconds,
        memory=amount.memory_mib * milliseconds,
    )


def interval_charge(each: PodInterval, book: PriceBook, heartbeat: int) -> Charge | None:
    """The cost of an interval until its end or the heartbeat, over all prices of the time."""
    end = max(each.started_at, min(each.ended_at, heartbeat))
    starts = [span.start for span in book.spans(each.price_class)]
    cuts = [each.started_at, *(at for at in starts if each.started_at < at < end), end]
    found: Charge | None = None
    for begin, until in pairwise(cuts):
        price = book.at(each.price_class, begin)
        if price is not None:
            integral = interval_integral(each, until - begin)
            more = charge(node_time(integral, each.price_class, price), price)
            found = more if found is None else found + more
    return found


def _pod_row(each: PodInterval, book: PriceBook, money: Money, heartbeat: int) -> PodCost:
    end = min(each.ended_at, heartbeat)
    price = book.at(each.price_class, max(each.started_at, end - 1))
    hourly: Money = (None, None)
    if price is not None:
        held = node_time(interval_integral(each, HOUR), each.price_class, price)
        hourly = table_money([charge(held, price)])[0]
    amount = each.amount
    return PodCost(
        pod=each.pod,
        node=each.node,
        status=RUNNING if each.closed_by is ClosedBy.NOT else str(each.closed_by),
        start=time_text(each.started_at),
        end=None if each.ended_at == OPEN else time_text(each.ended_at),
        seconds=plain(round(max(0, end - each.started_at) / _SECOND, 3)),
        gpus=plain(round(amount.gpu / GPU, 4)),
        gpu_memory_mib=amount.gpu_memory_mib,
        cores=plain(amount.cpu_milli / CORE),
        memory_mib=amount.memory_mib,
        model=each.price_class.model,
        instance_type=dict(each.price_class.labels).get(INSTANCE_TYPE, ""),
        per_hour=money_text(hourly[0]),
        list_per_hour=money_text(hourly[1]),
        cost=money_text(money[0]),
        list_cost=money_text(money[1]),
        saved_percent=saved_percent(money),
    )
