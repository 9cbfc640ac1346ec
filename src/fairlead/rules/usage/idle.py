"""Which GPUs cost money while nothing runs on them, since when, and why.

A pod or node is listed by its last whole hour. Unknown is never idle.
Specification: docs/spec/usage.md#idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from typing import Final, TypeVar

from msgspec import Struct

from fairlead.model.usage.ledger import (
    GPU,
    HOUR,
    OPEN,
    HeldHour,
    NodeHour,
    NodeInterval,
    PodHour,
    PodInterval,
)
from fairlead.model.usage.sums import NodeSum
from fairlead.rules.usage.cost import weights
from fairlead.rules.usage.prices import PriceBook

Row = TypeVar("Row", PodInterval, NodeInterval, PodHour, NodeHour)

SMALLEST: Final = GPU // 100
"""GPUs of a node that no pod holds are listed from here on: the rest of shared memory is no GPU."""


class IdleReason(StrEnum):
    """Why GPUs do nothing, in the order of the table."""

    IDLE = "idle"
    STRANDED = "stranded"
    BROKEN = "broken"
    UNKNOWN = "unknown"
    FREE = "free"


class IdleUse(Struct, frozen=True):
    """A pod that holds GPUs that are idle or unknown, or a node with GPUs that no pod holds.

    `gpus`: millionths, now. `since`: milliseconds, not before the facts begin. `gpu_ms`: the
    integral of the period; `cost`: its GPU money, None = no price.
    """

    reason: IdleReason
    gpus: int
    since: int
    gpu_ms: int
    cost: Fraction | None
    node: str
    model: str
    pod: PodInterval | None = None
    hour: NodeHour | None = None


class IdleFacts(Struct, frozen=True):
    """What the ledger has of a time that begins and ends with whole hours.

    `idle_hours`: of pods that may be listed; `pods`: those; `held`: what all pods held.
    """

    start: int
    end: int
    pods: tuple[PodInterval, ...]
    nodes: tuple[NodeInterval, ...]
    idle_hours: tuple[PodHour, ...]
    held: tuple[HeldHour, ...]
    node_hours: tuple[NodeHour, ...]


def idle_uses(facts: IdleFacts, book: PriceBook) -> list[IdleUse]:
    """Reason by reason, the most GPU-hours first."""
    found = [*_idle_pods(facts, book), *_idle_nodes(facts, book)]
    order = list(IdleReason)
    return sorted(
        found,
        key=lambda use: (
            order.index(use.reason),
            -use.gpu_ms,
            use.pod.by.namespace if use.pod else "",
            use.pod.pod if use.pod else use.node,
        ),
    )


def _idle_pods(facts: IdleFacts, book: PriceBook) -> Iterable[IdleUse]:
    last = facts.end - HOUR
    hours = _by_uid(facts.idle_hours, "pod_uid")
    for uid, intervals in _by_uid(facts.pods, "pod_uid").items():
        now = intervals[-1]
        rows = hours.get(uid, ())
        if not rows or rows[-1].hour != last or now.started_at > last or now.ended_at != OPEN:
            continue
        newest = rows[-1]
        known = newest.busy + newest.idle
        if newest.idle:
            reason, gpus = IdleReason.IDLE, now.amount.gpu * newest.idle // known
        elif not known and newest.unknown:
            reason, gpus = IdleReason.UNKNOWN, now.amount.gpu
        else:
            continue
        yield IdleUse(
            reason,
            gpus,
            _since(rows, reason, intervals[0].started_at),
            sum(getattr(each, reason) for each in rows),
            _cost(rows, reason, intervals, book),
            now.node,
            now.price_class.model,
            pod=now,
        )


def _idle_nodes(facts: IdleFacts, book: PriceBook) -> Iterable[IdleUse]:
    last = facts.end - HOUR
    hours = _by_uid(facts.node_hours, "node_uid")
    for uid, intervals in _by_uid(facts.nodes, "node_uid").items():
        now, rows = intervals[-1], hours.get(uid, ())
        if not rows or rows[-1].hour != last or now.ended_at != OPEN:
            continue
        for reason in (IdleReason.STRANDED, IdleReason.BROKEN, IdleReason.FREE):
            gpus = getattr(rows[-1], reason) // HOUR
            if gpus >= SMALLEST:
                yield IdleUse(
                    reason,
                    gpus,
                    _since(rows, reason, intervals[0].started_at),
                    sum(getattr(each, reason) for each in rows),
                    _cost(rows, reason, intervals, book),
                    now.node,
                    now.price_class.model,
                    hour=rows[-1],
                )


def _since(rows: Sequence[PodHour | NodeHour], reason: IdleReason, started_at: int) -> int:
    """The beginning of the hours without a break in which it was so."""
    since = rows[-1].hour
    for each in reversed(rows):
        if each.hour < since - HOUR or not getattr(each, reason):
            break
        since = each.hour
    return max(since, started_at)


def _cost(
    rows: Sequence[PodHour | NodeHour],
    reason: IdleReason,
    intervals: Sequence[PodInterval] | Sequence[NodeInterval],
    book: PriceBook,
) -> Fraction | None:
    """The GPU money of what was idle; None = no part of it has a price."""
    classes = {each.started_at: each.price_class for each in intervals}
    cost: Fraction | None = None
    for each in rows:
        price_class = classes.get(each.started_at)
        if price_class is None or not price_class.gpu:
            continue
        price = book.at(price_class, max(each.hour, each.started_at))
        if price is not None:
            share = weights(price_class, price).gpu * price.node_hour
            more = share * getattr(each, reason) / (HOUR * price_class.gpu)
            cost = more if cost is None else cost + more
    return cost


def node_sums(facts: IdleFacts) -> Iterator[tuple[str, NodeSum]]:
    """What the GPUs of each node were, hour by hour, with the name of the node. `day`: the hour."""
    held = {
        (each.node, each.price_class, each.hour): (each.busy, each.idle, each.unknown)
        for each in facts.held
    }
    rows = {(each.node_uid, each.started_at, each.hour): each for each in facts.node_hours}
    for each in facts.nodes:
        start, end = max(each.started_at, facts.start), min(each.ended_at, facts.end)
        if not each.price_class.gpu:
            continue
        for hour in range(start // HOUR * HOUR, end, HOUR):
            node_ms = min(end, hour + HOUR) - max(start, hour)
            row = rows.get((each.node_uid, each.started_at, hour), _NO_HOUR)
            busy, idle, unknown = held.get((each.node, each.price_class, hour), (0, 0, 0))
            parts = busy, idle, unknown, row.free, row.stranded, row.broken
            yield each.node, NodeSum(hour, each.price_class, node_ms, *parts)


_NO_HOUR: Final = NodeHour("", 0, 0)


def _by_uid(rows: Iterable[Row], field: str) -> Mapping[str, list[Row]]:
    """In the order of the rows, which is that of time."""
    found: dict[str, list[Row]] = {}
    for each in rows:
        found.setdefault(getattr(each, field), []).append(each)
    return found
