"""Usage per billing day, for the bars of the page (docs/spec/usage.md#usage)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import date
from typing import Final

from fairlead.console.boards.usage.figures import hours
from fairlead.console.boards.usage.ledger_reads import UsageRead, envelope_of, read_usage, time_text
from fairlead.console.boards.usage.usage_rows import BY_DEFAULT, OWNERS, RowOwner, checked_by
from fairlead.console.pages.usage.days import UsageDay, UsageDayRow, UsageDays
from fairlead.model.usage.sums import UsageSum
from fairlead.ports import LedgerReading
from fairlead.rules.usage.days import day_of, days_between, time_zone
from fairlead.rules.usage.periods import parse_period

NAMED: Final = 8
"""Rows with a part of their own; more colors look alike."""


async def usage_days(
    ledger: LedgerReading,
    words: Mapping[str, str],
    now: int,
    namespaces: Collection[str] | None = None,
) -> UsageDays:
    """`words`: `by` and those of a period. `namespaces`: only these; None = all. Raises UserError,
    StoreDown.
    """
    by = checked_by(words.get("by") or BY_DEFAULT)
    bounds = await ledger.ledger_bounds()
    period = parse_period(words, now, time_zone(bounds.zone))
    read = await read_usage(ledger, bounds, period, namespaces)
    rows, days = bars_of(read, by)
    return UsageDays(
        **envelope_of(read.bounds, now),
        by=by,
        period=read.shown_period,
        recorded_since=time_text(read.bounds.first) if read.bounds.first else None,
        rows=rows,
        days=days,
    )


def _begin(read: UsageRead) -> int:
    """Days before the first record are unknown, and have no bar."""
    return max(read.plan.start, min([read.bounds.first, *(each.day for each in read.sums)]))


def bars_of(read: UsageRead, by: str) -> tuple[list[UsageDayRow], list[UsageDay]]:
    """Every billing day from the beginning of what is recorded to its end, also empty ones."""
    zone, plan = time_zone(read.bounds.zone), read.plan
    by_day: dict[date, list[UsageSum]] = {}
    starts: dict[date, int] = {}
    for start, _ in days_between(_begin(read), plan.until, zone):
        by_day[day_of(start, zone)] = []
        starts[day_of(start, zone)] = start
    for each in read.sums:
        by_day.setdefault(day_of(each.day, zone), []).append(each)
        starts.setdefault(day_of(each.day, zone), each.day)
    owner_of = OWNERS[by]
    named = most_gpu(read.sums, by)
    is_rest = any(each.integral.gpu and owner_of(each) not in named for each in read.sums)
    rows = [
        UsageDayRow(owner.name, owner.namespace, owner.type, owner.uid, is_rest=False)
        for owner in named
    ]
    if is_rest:
        rows.append(UsageDayRow("", "", "", "", is_rest=True))
    places = {owner: place for place, owner in enumerate(named)}
    days = []
    for day, sums in sorted(by_day.items()):
        parts = [0] * len(rows)
        for each in sums:
            if each.integral.gpu:
                parts[places.get(owner_of(each), len(named))] += each.integral.gpu
        days.append(
            UsageDay(
                day=day.isoformat(),
                start=time_text(starts[day]),
                rows=[hours(part) for part in parts],
                busy=hours(sum(each.integral.busy for each in sums)),
                idle=hours(sum(each.integral.idle for each in sums)),
                unknown=hours(sum(each.integral.unknown for each in sums)),
            )
        )
    return rows, days


def most_gpu(sums: Sequence[UsageSum], by: str) -> list[RowOwner]:
    """The rows with most GPU time, the largest first."""
    owner_of, gpu = OWNERS[by], dict[RowOwner, int]()
    for each in sums:
        if each.integral.gpu:
            owner = owner_of(each)
            gpu[owner] = gpu.get(owner, 0) + each.integral.gpu
    return sorted(gpu, key=lambda owner: (-gpu[owner], owner))[:NAMED]
