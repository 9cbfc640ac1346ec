"""The cluster at a moment of the past, read from the ledger (docs/spec/usage.md#past)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from msgspec import Struct

from fairlead.collector import quiet_collector
from fairlead.kinds.parts.kind import source_of
from fairlead.kinds.registry import KINDS
from fairlead.kinds.workloads import workload_of
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.usage.ledger import KeptState, StateKind
from fairlead.ports import LedgerReading
from fairlead.rules.usage.days import time_zone
from fairlead.rules.usage.past import (
    PastMoment,
    gap_text,
    parse_past_moment,
    past_moment,
    past_snapshot,
)
from fairlead.wire.usage.states import StateRows

_SOURCES = {kind.TYPE: source_of(kind) for kind in KINDS}


class PastCluster(Struct, frozen=True):
    """`gap`: the sentence about a time that was not recorded; "" = the moment was."""

    moment: PastMoment
    snapshot: ClusterSnapshot
    gap: str = ""


async def find_moment(ledger: LedgerReading, text: str, now: int) -> tuple[PastMoment, str]:
    """What the ledger has of the moment in `text`, and the sentence about its gap. `now`:
    milliseconds UTC.

    Raises UserError with the bounds, or with the forms of a moment; StoreDown.
    """
    bounds = await ledger.ledger_bounds()
    zone = time_zone(bounds.zone)
    now = max(now, bounds.heartbeat)
    found = past_moment(parse_past_moment(text, now, zone), bounds, now)
    return found, gap_text(found, zone)


async def read_past(
    ledger: LedgerReading, moment: PastMoment, gap: str, reader: StateRows | None = None
) -> PastCluster:
    """The cluster at the moment. `reader`: of all moments of a process, so that rows are read once.

    Raises StoreDown, and OutsideError for a damaged state.
    """
    states = await ledger.states_at(moment.shown, tuple(StateKind))
    with quiet_collector():
        snapshot = await asyncio.to_thread(snapshot_of, states, moment.shown, gap, reader)
    return PastCluster(moment, snapshot, gap)


def snapshot_of(
    states: Iterable[KeptState], shown: int, gap: str = "", reader: StateRows | None = None
) -> ClusterSnapshot:
    """The snapshot of these states, which are all of the moment `shown` (milliseconds UTC)."""
    rows = (reader or StateRows()).of(states)
    jobs = rows.get(StateKind.JOB, [])
    types = {job.type for job in jobs}
    if StateKind.TREE in rows:
        # As on a living cluster: a job is an owner of pods, and is not kept twice.
        workloads = rows.setdefault(StateKind.WORKLOAD, [])
        known = {each.uid for each in workloads}
        workloads += [workload_of(job) for job in jobs if job.uid not in known]
    sources = sorted({_SOURCES[type_] for type_ in types if type_ in _SOURCES})
    return past_snapshot(rows, shown, sources, gap)
