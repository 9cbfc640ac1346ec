"""Random lives of nodes and pods around midnight of a time zone, with prices that change there."""

from __future__ import annotations

from datetime import date
from itertools import pairwise
from typing import Final

from hypothesis import strategies as st
from msgspec import Struct
from tests.rules.usage.cost_oracle import STEP

from fairlead.model.usage.ledger import (
    GPU,
    HOUR,
    Amount,
    LedgerBatch,
    NodeHour,
    NodeInterval,
    PodHour,
    PodInterval,
    PriceClass,
    UsedBy,
)
from fairlead.model.usage.prices import Price
from fairlead.ports import UsageLedger
from fairlead.rules.usage.days import start_of, time_zone

STEPS: Final = 36
"""Three hours, with midnight in the middle."""
NIGHTS: Final = (
    ("UTC", date(2026, 11, 2)),
    ("Europe/Berlin", date(2026, 3, 29)),
    ("Europe/Berlin", date(2026, 10, 26)),
    ("Africa/Cairo", date(2026, 4, 24)),
    ("Asia/Kolkata", date(2026, 7, 1)),
)
"""Zones and days; in Cairo clocks go from 00:00 to 01:00 in this night."""
CLASSES: Final = (
    PriceClass((("node.kubernetes.io/instance-type", "a"),), "A100", 8 * GPU, 64_000, 524_288),
    PriceClass((("node.kubernetes.io/instance-type", "b"),), "T4", 3 * GPU, 7_001, 30_011),
    PriceClass((), "", 0, 16_000, 65_536),
    PriceClass((), "L4", GPU, 0, 8_192),
    PriceClass((), "GH200", 4 * GPU),
    PriceClass((), "", 0, 0, 4_096),
)
MATCHERS: Final = (
    (),
    (("gpu-model", "A100"),),
    (("gpu-model", "T4"),),
    (("gpu-model", "A100"), ("node.kubernetes.io/instance-type", "a")),
)
"""No two of the same length match one class."""


class World(Struct, frozen=True):
    """Times are milliseconds. `midnight`: the beginning of the second billing day."""

    zone: str
    start: int
    midnight: int
    end: int
    nodes: tuple[NodeInterval, ...]
    pods: tuple[PodInterval, ...]
    prices: tuple[Price, ...]
    pod_hours: tuple[PodHour, ...]
    node_hours: tuple[NodeHour, ...]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    zone, day = draw(st.sampled_from(NIGHTS))
    midnight = start_of(day, time_zone(zone))
    start = midnight - STEPS // 2 * STEP
    nodes, pods = [], []
    for number in range(draw(st.integers(1, 2))):
        node = draw(_nodes(number, start))
        nodes += node
        for interval in node:
            pods += draw(_pods(interval, start, f"{number}-{interval.started_at}"))
    return World(
        zone,
        start,
        midnight,
        start + STEPS * STEP,
        tuple(nodes),
        tuple(pods),
        draw(_prices(start_of(day.replace(day=1), time_zone(zone)), midnight)),
        tuple(row for each in pods for row in draw(_pod_hours(each, start))),
        tuple(row for each in nodes for row in draw(_node_hours(each, pods, start))),
    )


@st.composite
def _nodes(draw: st.DrawFn, number: int, start: int) -> list[NodeInterval]:
    """One node, whose class may change while it lives."""
    cuts = sorted(draw(st.sets(st.integers(0, STEPS), min_size=2, max_size=3)))
    return [
        NodeInterval(
            f"node-{number}",
            start + begin * STEP,
            f"n{number}",
            draw(st.sampled_from(CLASSES)),
            start + end * STEP,
        )
        for begin, end in pairwise(cuts)
    ]


@st.composite
def _pods(draw: st.DrawFn, node: NodeInterval, start: int, name: str) -> list[PodInterval]:
    """Pods that together never hold more than the node has; each may be resized."""
    left = node.price_class
    found = []
    for number in range(draw(st.integers(0, 3))):
        most = (left.gpu, left.cpu_milli, left.memory_mib)
        top = [draw(st.integers(0, each)) for each in most]
        left = PriceClass(
            gpu=most[0] - top[0], cpu_milli=most[1] - top[1], memory_mib=most[2] - top[2]
        )
        first = (node.started_at - start) // STEP
        last = (node.ended_at - start) // STEP
        marks = st.sets(st.integers(first, last), min_size=2, max_size=3)
        cuts = sorted(draw(marks)) if last > first else []
        user = f"user-{name}-{number}"
        for begin, end in pairwise(cuts):
            gpu, cpu, memory = (draw(st.integers(0, each)) for each in top)
            found.append(
                PodInterval(
                    f"uid-{name}-{number}",
                    start + begin * STEP,
                    UsedBy(f"team-{number}", user),
                    user,
                    node.node,
                    node.price_class,
                    Amount(gpu, 0, cpu, memory),
                    ended_at=start + end * STEP,
                )
            )
    return found


@st.composite
def _prices(draw: st.DrawFn, earlier: int, midnight: int) -> tuple[Price, ...]:
    """`valid_from` is the beginning of a billing day; some are entered late."""
    found = []
    for number in range(draw(st.integers(0, 5))):
        valid_from = draw(st.sampled_from((earlier, midnight)))
        found.append(
            Price(
                draw(st.sampled_from(MATCHERS)),
                "EUR",
                draw(st.integers(0, 10**8)),
                valid_from,
                draw(st.sampled_from((earlier, midnight, midnight + HOUR))),
                list_node_hour=draw(st.none() | st.integers(0, 10**8)),
                gpu_permille=draw(st.none() | st.integers(0, 1000)),
                ended=draw(st.booleans()) and number > 0,
                id=number + 1,
            )
        )
    return tuple(found)


def hours_of(start: int, end: int) -> range:
    return range(start // HOUR * HOUR, end, HOUR)


@st.composite
def _pod_hours(draw: st.DrawFn, pod: PodInterval, start: int) -> list[PodHour]:
    found = []
    for hour in hours_of(pod.started_at, pod.ended_at):
        ms = min(pod.ended_at, hour + HOUR) - max(pod.started_at, hour)
        held = pod.amount.gpu * ms
        busy = draw(st.integers(0, held))
        idle = draw(st.integers(0, held - busy))
        found.append(PodHour(pod.pod_uid, pod.started_at, hour, busy, idle, held - busy - idle))
    return found


@st.composite
def _node_hours(
    draw: st.DrawFn, node: NodeInterval, pods: list[PodInterval], start: int
) -> list[NodeHour]:
    found = []
    own = [each for each in pods if each.node == node.node]
    for hour in hours_of(node.started_at, node.ended_at):
        begin, end = max(node.started_at, hour), min(node.ended_at, hour + HOUR)
        held = sum(
            each.amount.gpu * max(0, min(each.ended_at, end) - max(each.started_at, begin))
            for each in own
        )
        left = node.price_class.gpu * (end - begin) - held
        stranded = draw(st.integers(0, left))
        broken = draw(st.integers(0, left - stranded))
        free = left - stranded - broken
        found.append(NodeHour(node.node_uid, node.started_at, hour, held, free, stranded, broken))
    return found


async def write(world: World, ledger: UsageLedger) -> int:
    """All of the world in one batch; the epoch of the recorder."""
    claim = await ledger.claim_ledger("test", world.start, world.zone)
    batch = LedgerBatch(
        world.end,
        pods=world.pods,
        nodes=world.nodes,
        pod_hours=world.pod_hours,
        node_hours=world.node_hours,
    )
    await ledger.write_ledger(claim.epoch, batch)
    for each in world.prices:
        await ledger.add_price(each)
    return claim.epoch
