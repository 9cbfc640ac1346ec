"""A replay of the past, asked of the ledger (docs/spec/usage.md#replay).

It takes up to minutes. It works in threads, in parts of a fraction of a second, so that a caller
can answer requests meanwhile, show how far it is, and cancel it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Final

from fairlead.console.boards.usage.figures import hours, money_text, plain
from fairlead.console.boards.usage.ledger_reads import EMPTY, shown_period, time_text
from fairlead.console.pages.usage.replay import (
    QuotaReplay,
    ReplayDifference,
    ReplayFidelity,
    ReplayFigures,
    ReplayFree,
    ReplayLeaf,
)
from fairlead.errors import UserError
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.usage.ledger import HOUR, RECORDS_KEPT, Gap, KeptState, PriceClass
from fairlead.ports import LedgerReading
from fairlead.rules.usage.cost import weights
from fairlead.rules.usage.days import time_zone
from fairlead.rules.usage.money import rounded
from fairlead.rules.usage.past import OFF
from fairlead.rules.usage.periods import parse_period, plan_of
from fairlead.rules.usage.prices import PriceBook
from fairlead.rules.usage.replay.changes import ModelChange, asked_tree, with_nodes
from fairlead.rules.usage.replay.history import KINDS, PastRow, ReplayInput, ReplayReader
from fairlead.rules.usage.replay.outcome import (
    Fidelity,
    FreeGpus,
    GpuRate,
    LeafOutcome,
    fidelity_of,
    free_gpus,
    past_held,
    past_outcome,
    replay_outcome,
)
from fairlead.rules.usage.replay.simulation import Replay
from fairlead.wire.usage.states import parse_state

READING: Final = "reading the ledger"
IN_FORCE: Final = "replaying with the tree that was in force"
ASKED: Final = "replaying what is asked for"
DOING: Final = {READING: "reading", IN_FORCE: "in-force", ASKED: "asked"}
"""The codes of the API."""
_PART_MS: Final = 24 * HOUR
_MOMENTS: Final = 100
"""Moments of one part of a replay: tenths of a second."""

Progress = Callable[[str, float], None]
"""What is being done, and which part of it is done, from 0 to 1."""


def _no_progress(_: str, __: float) -> None: ...


async def quota_replay(
    ledger: LedgerReading,
    tree: QuotaTree | None,
    words: Mapping[str, str],
    now: int,
    nodes: Sequence[ModelChange] = (),
    progress: Progress = _no_progress,
) -> QuotaReplay:
    """`tree`: None = the trees that were in force. `words`: of the period (`rules/usage/periods`).

    `now`: milliseconds. Raises UserError for a period without records, for a tree that stops every
    plan or lacks a namespace, and for nodes that cannot be changed so; StoreDown.
    """
    bounds = await ledger.ledger_bounds()
    if not bounds.first:
        raise UserError(*(OFF if bounds.is_off else EMPTY))
    period = parse_period(words, now, time_zone(bounds.zone))
    if period.end - period.start > RECORDS_KEPT:
        raise UserError(
            f"the period `{period.name}` is longer than 90 days",
            "pods and nodes are kept for 90 days: ask for a shorter time",
        )
    plan = plan_of(period, bounds, time_zone(bounds.zone))
    start = max(plan.start, bounds.first)
    if start >= plan.until:
        raise UserError(
            f"the ledger has no record of the period `{period.name}`",
            f"its records are from {time_text(bounds.first)} to {time_text(bounds.heartbeat)}",
        )
    past = await read_past(ledger, start, plan.until, bounds.gaps, progress)
    book = PriceBook(await ledger.prices())
    changed = await asyncio.to_thread(with_nodes, past, nodes)
    other = await asyncio.to_thread(asked_tree, past, tree) if tree is not None else None
    rate, cuts = _gpu_rate(book), _cuts(book, past)
    before = await _played(Replay(past, cuts=cuts), IN_FORCE, progress)
    after = await _played(Replay(changed, other, cuts), ASKED, progress)

    def answer() -> QuotaReplay:
        rows = [
            past_outcome(past, rate),
            replay_outcome(before, rate, cuts),
            replay_outcome(after, rate, cuts),
        ]
        leaves = _leaves(rows)
        return QuotaReplay(
            shown_period(period, plan, bounds),
            [f"{each.model}={each.count:+d}" for each in nodes],
            book.currency,
            [each for each in leaves if each.leaf],
            next(each for each in leaves if not each.leaf),
            _free(free_gpus(past, past_held(past), rate)),
            _free(free_gpus(past, before.held(), rate, cuts)),
            _free(free_gpus(changed, after.held(), rate, cuts)),
            _fidelity(fidelity_of(before)),
        )

    return await asyncio.to_thread(answer)


async def read_past(
    ledger: LedgerReading,
    start: int,
    end: int,
    gaps: Iterable[Gap] = (),
    progress: Progress = _no_progress,
) -> ReplayInput:
    """The pods, nodes and trees of a time, in milliseconds. A day is read at once. `gaps`: all of
    the ledger.
    """
    reader = ReplayReader(start, end)
    reader.observe(_rows(await ledger.states_at(start, KINDS)))
    nodes = await ledger.node_intervals(start, end)
    reader.observe_usage((), nodes)
    for begin in range(start, end, _PART_MS):
        progress(READING, (begin - start) / (end - start))
        until = min(end, begin + _PART_MS)
        states = await ledger.states_begun(begin + 1 if begin == start else begin, until, KINDS)
        for first in range(0, len(states), 2_000):
            part = states[first : first + 2_000]
            await asyncio.to_thread(_observe, reader, part)
        reader.observe_usage((), (), await ledger.pod_hours(begin, until))
    reader.observe_usage(await ledger.pod_intervals(start, end), ())
    of_time = [each for each in gaps if each.started_at < end and each.ended_at > start]
    return await asyncio.to_thread(reader.replay_input, of_time)


def _observe(reader: ReplayReader, states: Iterable[KeptState]) -> None:
    reader.observe(_rows(states))


def _rows(states: Iterable[KeptState]) -> list[PastRow]:
    return [
        PastRow(
            each.kind,
            each.uid,
            each.started_at,
            each.ended_at,
            parse_state(each.kind, each.body),
        )
        for each in states
    ]


async def _played(replay: Replay, what: str, progress: Progress) -> Replay:
    while await asyncio.to_thread(replay.advance, _MOMENTS):
        progress(what, replay.part_done)
    progress(what, 1.0)
    return replay


def _gpu_rate(book: PriceBook) -> GpuRate | None:
    if not book.known:
        return None

    def rate(price_class: PriceClass, at: int) -> Fraction | None:
        price = book.at(price_class, at)
        if price is None or not price_class.gpu:
            return None
        return weights(price_class, price).gpu * price.node_hour / (price_class.gpu * HOUR)

    return rate


def _cuts(book: PriceBook, past: ReplayInput) -> list[float]:
    """When prices change in this time."""
    starts = {span.start / 1000 for kind in set(past.classes.values()) for span in book.spans(kind)}
    return sorted(at for at in starts if past.start < at < past.end)


def _leaves(rows: Sequence[Collection[LeafOutcome]]) -> list[ReplayLeaf]:
    """Each leaf once, by name, and the sum, whose name is ""."""
    found = [{each.leaf: _figures(each) for each in outcome} for outcome in rows]
    names = sorted({name for each in found for name in each})
    return [ReplayLeaf(name, *(each.get(name) for each in found)) for name in names]


def _figures(outcome: LeafOutcome) -> ReplayFigures:
    return ReplayFigures(
        outcome.pods,
        plain(round(outcome.waited / 3600, 4)),
        plain(round(outcome.waited_mean, 3)),
        plain(round(outcome.waited_p95, 3)),
        outcome.waiting,
        outcome.evictions,
        hours(outcome.gpu),
        hours(outcome.idle),
        hours(outcome.lost),
        _money(outcome.idle_cost),
    )


def _free(free: FreeGpus) -> ReplayFree:
    return ReplayFree(hours(free.gpu), _money(free.cost))


def _money(cost: Fraction | None) -> str | None:
    return None if cost is None else money_text(rounded(cost))


def _fidelity(found: Fidelity) -> ReplayFidelity:
    return ReplayFidelity(
        found.happened,
        found.replayed,
        found.both,
        found.within,
        plain(found.tolerance),
        found.out_of_order,
        plain(round(found.median, 3)),
        plain(round(found.worst, 3)),
        found.worst_pod,
        [ReplayDifference(each.cause, each.pods, each.example) for each in found.differences],
    )
