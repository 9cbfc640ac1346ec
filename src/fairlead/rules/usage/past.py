"""The cluster as it was: which moments the ledger has, and the snapshot of one.

Specification: docs/spec/usage.md#past. The snapshot goes through the same functions as the present
one. What is not kept is a source that is off, never zero.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.structs import replace

from fairlead.errors import UserError
from fairlead.model.changes import (
    KIND_BUDGETS,
    KIND_NAMESPACES,
    KIND_NODES,
    KIND_PODS,
    KIND_QUOTA_TREES,
)
from fairlead.model.devices.gpu import GpuHolder, GpuReading
from fairlead.model.snapshot import (
    GPU_TELEMETRY,
    GPU_TOPOLOGIES,
    GPU_WITHHELD,
    ClusterSnapshot,
    build_snapshot,
)
from fairlead.model.source import Source, SourceState
from fairlead.model.usage.ledger import RECORDS_KEPT, Gap, KeptCards, LedgerBounds, StateKind

NOT_KEPT: Final = "utilization, used memory and power of GPUs are not kept"
LATE_MS: Final = 60_000
"""A heartbeat may be this old without a gap: the recorder writes one every 10 s."""
EVENTS: Final = "events"
PAST: Final = "past"
"""The source of a snapshot whose moment was not recorded."""
_MS: Final = 1000
_NOT_KEPT: Final = {
    GPU_TELEMETRY: NOT_KEPT,
    GPU_TOPOLOGIES: "topologies of GPUs are not kept",
    EVENTS: "Events are not kept",
}
_AGO: Final = re.compile(r"-(\d{1,7})([smhd])", re.ASCII)
_UNIT_MS: Final = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DAY_WORD: Final = re.compile(r"(today|yesterday) (\d{2}:\d{2}(?::\d{2})?)", re.ASCII)
MOMENT_HINT: Final = (
    "write 2026-11-20T02:00Z, 2026-11-20T02:00 (in the time zone of billing days), `-2h` "
    "(s, m, h or d), or `yesterday 02:00`"
)


class PastMoment(Struct, frozen=True):
    """`at`: the moment that was asked for; `shown`: the moment whose states answer it; both
    milliseconds UTC. They differ if nothing was recorded at `at`: then `gap` has that time.
    """

    at: int
    shown: int
    gap: Gap | None = None


def parse_past_moment(text: str, now: int, zone: ZoneInfo) -> int:
    """The moment that a user names, in milliseconds UTC. `now`: likewise; `zone`: of billing days,
    for times without a zone.

    Raises UserError for a text that names no moment, or two, or a time that clocks left out.

    >>> day = 86_400_000
    >>> [parse_past_moment(text, 20 * day, ZoneInfo("UTC")) // 1000 for text in
    ...  ("1970-01-03T02:00Z", "1970-01-03T02:00", "1970-01-03 02:00", "-2h", "yesterday 02:00")]
    [180000, 180000, 180000, 1720800, 1648800]
    """
    if (ago := _AGO.fullmatch(text)) is not None:
        return now - int(ago[1]) * _UNIT_MS[ago[2]]
    if (word := _DAY_WORD.fullmatch(text)) is not None:
        day = datetime.fromtimestamp(now // _MS, zone).date()
        text = f"{day - timedelta(days=word[1] == 'yesterday')}T{word[2]}"
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is not None:
            return round(found.timestamp() * _MS)
        return _local(found, zone)
    except (ValueError, OverflowError) as error:
        raise UserError(f"`{text[:60]}` names no moment", MOMENT_HINT) from error


def _local(naive: datetime, zone: ZoneInfo) -> int:
    """The moment of a time on the clocks of a zone, which must be there once."""
    first, second = (naive.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    if first.utcoffset() == second.utcoffset():
        return round(first.timestamp() * _MS)
    moments = sorted((first.astimezone(UTC), second.astimezone(UTC)))
    names = " or ".join(each.astimezone(zone).isoformat() for each in moments)
    is_twice = moments[0].astimezone(zone).replace(tzinfo=None) == naive
    raise UserError(
        f"`{naive.isoformat()}` is {'twice' if is_twice else 'not'} on the clocks of `{zone.key}`",
        f"write {names}",
    )


OFF: Final = (
    "a laptop of more than 200 nodes does not record usage",
    "start `fairlead up` with a smaller scenario",
)
"""What is answered where `LedgerBounds.is_off`, and what to do."""


def past_moment(at: int, bounds: LedgerBounds, now: int) -> PastMoment:
    """What the ledger has of a moment. `at`, `now`: milliseconds UTC.

    Raises UserError, with the bounds, for a moment in the future, before the first record, or older
    than states are kept.
    """
    zone = ZoneInfo(bounds.zone)
    times = shown_times(bounds, now)
    if times is None and bounds.is_off:
        raise UserError(*OFF)
    if times is None:
        raise UserError(
            "the ledger has no record yet",
            "the usage recorder writes it: `fairlead usage-recorder`",
        )
    earliest, latest = times
    if not earliest <= at <= latest:
        why = (
            "is in the future"
            if at > latest
            else "is before the first record"
            if at < bounds.first
            else "is older than 90 days, for which states are kept"
        )
        raise UserError(
            f"{moment_text(at, zone)} {why}",
            f"ask for a moment from {moment_text(earliest, zone)} to {moment_text(latest, zone)}",
        )
    for gap in bounds.gaps:
        if gap.started_at <= at < gap.ended_at:
            return PastMoment(at, max(bounds.first, gap.started_at - 1), gap)
    if at > bounds.heartbeat:
        is_late = at - bounds.heartbeat > LATE_MS
        return PastMoment(at, bounds.heartbeat, Gap(bounds.heartbeat, at) if is_late else None)
    return PastMoment(at, at)


def shown_times(bounds: LedgerBounds, now: int) -> tuple[int, int] | None:
    """The first and the last moment that can be shown; None = nothing is recorded yet.

    The recorder forgets by its own clock: what is older than 90 days at the heartbeat is gone.
    """
    if not bounds.first:
        return None
    return max(bounds.first, bounds.heartbeat - RECORDS_KEPT), max(now, bounds.heartbeat)


def moment_text(at: int, zone: ZoneInfo) -> str:
    """The moment in a zone, in seconds.

    >>> moment_text(1_767_225_600_999, ZoneInfo("Asia/Shanghai"))
    '2026-01-01T08:00:00+08:00'
    """
    try:
        return datetime.fromtimestamp(at // _MS, zone).isoformat()
    except (ValueError, OverflowError, OSError):
        return f"the moment {at} ms after 1970"


def gap_text(moment: PastMoment, zone: ZoneInfo) -> str:
    """The sentence about the gap of a moment; "" = there is none."""
    gap = moment.gap
    if gap is None:
        return ""
    return (
        f"nothing was recorded from {moment_text(gap.started_at, zone)} to "
        f"{moment_text(gap.ended_at, zone)}: the last state before it is shown"
    )


def kept_cards(readings: Iterable[GpuReading]) -> dict[str, KeptCards]:
    """What is kept of these readings, by node: without telemetry and times of reading.

    >>> used = GpuReading("n", 0, "GPU-0", memory_used_mib=5.0, healthy=True, read_at=9.0)
    >>> kept_cards([used])["n"].readings == (GpuReading("n", 0, "GPU-0", healthy=True),)
    True
    """
    found: dict[str, list[GpuReading]] = {}
    for reading in readings:
        found.setdefault(reading.node, []).append(_kept_card(reading))
    return {
        node: KeptCards(node, tuple(sorted(cards, key=lambda card: card.index)))
        for node, cards in found.items()
    }


def _kept_card(reading: GpuReading) -> GpuReading:
    return replace(
        reading,
        memory_total_mib=_mib(reading.memory_total_mib),
        memory_used_mib=None,
        utilization_ratio=None,
        temperature_celsius=None,
        power_watts=None,
        idle_since=None,
        read_at=0.0,
        holders=tuple(map(_kept_holder, reading.holders)),
        instances=tuple(
            replace(
                each,
                memory_total_mib=_mib(each.memory_total_mib),
                memory_used_mib=None,
                utilization_ratio=None,
                holders=tuple(map(_kept_holder, each.holders)),
            )
            for each in reading.instances
        ),
    )


def _kept_holder(holder: GpuHolder) -> GpuHolder:
    return replace(
        holder,
        memory_limit_mib=_mib(holder.memory_limit_mib),
        memory_used_mib=None,
        utilization_ratio=None,
    )


def _mib(amount: float | None) -> float | None:
    """Whole numbers and floats that are equal have different texts."""
    return None if amount is None else float(amount)


def past_snapshot(
    rows: Mapping[StateKind, Iterable[Any]],
    shown: int,
    job_sources: Iterable[str] = (),
    gap: str = "",
) -> ClusterSnapshot:
    """The snapshot of the states of a moment. `rows`: by kind, each of its type
    (`wire/usage/states`); `shown`: milliseconds UTC; `job_sources`: names of the sources of jobs;
    `gap`: the sentence about a gap, which becomes the source `PAST`.
    """
    moment = shown / _MS
    trees = list(rows.get(StateKind.TREE, ()))
    read = (KIND_NODES, KIND_PODS, KIND_QUOTA_TREES, *job_sources)
    of_quota = (KIND_NAMESPACES, KIND_BUDGETS)
    return build_snapshot(
        taken_at=moment,
        version=shown,
        nodes=rows.get(StateKind.NODE, ()),
        pods=rows.get(StateKind.POD, ()),
        jobs=rows.get(StateKind.JOB, ()),
        gpus=(card for each in rows.get(StateKind.CARDS, ()) for card in each.readings),
        quota_tree=trees[0] if trees else None,
        withheld=((each.node, each.indexes) for each in rows.get(StateKind.WITHHELD, ())),
        workloads=rows.get(StateKind.WORKLOAD, ()),
        budgets=rows.get(StateKind.BUDGET, ()),
        namespaces=rows.get(StateKind.NAMESPACE, ()),
        sources=(
            *(Source(name, good_at=moment) for name in (*read, GPU_WITHHELD)),
            *(Source(name, good_at=moment, is_optional=True) for name in of_quota if trees),
            *(Source(name, SourceState.OFF, text) for name, text in _NOT_KEPT.items()),
            *((Source(PAST, SourceState.FAILING, gap, good_at=moment),) if gap else ()),
        ),
    )
