"""A ledger of a few days: two nodes, pods of two teams, their hours, and no prices yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.usage.ledger import (
    GPU,
    HOUR,
    OPEN,
    Amount,
    ClosedBy,
    JobRecord,
    LedgerBatch,
    LedgerJob,
    NodeHour,
    NodeInterval,
    PodHour,
    PodInterval,
    PriceClass,
    UsedBy,
)
from fairlead.model.usage.prices import Price
from fairlead.ports import UsageLedger

DAY: Final = 24 * HOUR
NOVEMBER: Final = 1_793_491_200_000
"""2026-11-01T00:00:00Z."""
A100: Final = PriceClass(
    labels=(("node.kubernetes.io/instance-type", "a100-8"),),
    model="A100",
    gpu=8 * GPU,
    cpu_milli=64_000,
    memory_mib=524_288,
)
PLAIN: Final = PriceClass(
    labels=(("node.kubernetes.io/instance-type", "c-16"),), cpu_milli=16_000, memory_mib=65_536
)
A100_MATCHER: Final = (("gpu-model", "A100"),)


class Life(Struct, frozen=True):
    """A pod from `start` to `end`, hours after the beginning of the ledger; None = it still runs.

    `idle`, `unknown`: of its GPUs, in thousandths.
    """

    namespace: str
    user: str
    leaf: str
    job: str
    pod: str
    node: str
    start: float
    end: float | None
    gpus: float = 0
    cores: float = 1
    memory_mib: int = 4096
    idle: int = 0
    unknown: int = 0


ALICE: Final = Life("team-a", "alice", "root.a", "bert", "bert-0", "gpu-1", 6, 42, gpus=4, cores=16)
BOB: Final = Life(
    "team-b", "bob", "root.b", "", "notebook", "gpu-1", 30, None, gpus=2, cores=8, idle=1000
)
CAROL: Final = Life(
    "team-b", "carol", "root.b", "llm", "llm-0", "gpu-1", 2.5, 20.25, gpus=0.5, cores=4, unknown=400
)
DAVE: Final = Life("team-a", "", "", "", "etl", "cpu-1", 0, 50, cores=8, memory_mib=16_384)
LIVES: Final = (ALICE, BOB, CAROL, DAVE)


def price(node_hour: int, valid_from: int = NOVEMBER, **more: object) -> Price:
    """Of every A100 node, entered when it begins."""
    made = Price(A100_MATCHER, "EUR", node_hour, valid_from, valid_from)
    return replace(made, **more)


async def fill(
    ledger: UsageLedger,
    lives: Sequence[Life] = LIVES,
    *,
    start: int = NOVEMBER,
    hours: int = 72,
    zone: str = "UTC",
    folds: Iterable[tuple[int, int]] = (),
) -> int:
    """Writes the lives, and folds days; the epoch of the recorder."""
    epoch = (await ledger.claim_ledger("test", start, zone)).epoch
    end = start + hours * HOUR
    pods = [pod_interval(each, start) for each in lives]
    nodes = [
        NodeInterval("uid-gpu-1", start, "gpu-1", A100),
        NodeInterval("uid-cpu-1", start, "cpu-1", PLAIN),
    ]
    by_uid = {f"uid-{each.pod}": each for each in lives}
    pod_hours = [
        _pod_hour(each, by_uid[each.pod_uid], *part)
        for each in pods
        for part in parts(each.started_at, min(each.ended_at, end))
        if each.amount.gpu
    ]
    node_hours = list(_node_hours(nodes[0], pods, start, end))
    for hour in range(start, end, HOUR):
        await ledger.write_ledger(
            epoch,
            LedgerBatch(
                at=hour + HOUR,
                pods=tuple(each for each in pods if hour <= each.started_at < hour + HOUR),
                nodes=tuple(nodes) if hour == start else (),
                pod_hours=tuple(each for each in pod_hours if each.hour == hour),
                node_hours=tuple(each for each in node_hours if each.hour == hour),
                jobs=tuple(_jobs(lives, start)) if hour == start else (),
            ),
        )
    for begin, until in folds:
        await ledger.fold_day(epoch, begin, until)
    return epoch


def pod_interval(life: Life, start: int) -> PodInterval:
    ends = life.end is not None
    return PodInterval(
        f"uid-{life.pod}",
        start + round(life.start * HOUR),
        UsedBy(life.namespace, life.user, life.leaf),
        life.pod,
        life.node,
        A100 if life.node == "gpu-1" else PLAIN,
        Amount(round(life.gpus * GPU), 0, round(life.cores * 1000), life.memory_mib),
        LedgerJob(f"uid-{life.job}", life.job, "mpijob") if life.job else LedgerJob(),
        ended_at=start + round((life.end or 0) * HOUR) if ends else OPEN,
        closed_by=ClosedBy.DELETED if ends else ClosedBy.NOT,
    )


def parts(start: int, end: int) -> Iterator[tuple[int, int]]:
    """The hours of a time, and how long it is in each."""
    for hour in range(start // HOUR * HOUR, end, HOUR):
        yield hour, min(end, hour + HOUR) - max(start, hour)


def _pod_hour(each: PodInterval, life: Life, hour: int, held_ms: int) -> PodHour:
    held = each.amount.gpu * held_ms
    idle, unknown = held * life.idle // 1000, held * life.unknown // 1000
    return PodHour(each.pod_uid, each.started_at, hour, held - idle - unknown, idle, unknown)


def _node_hours(
    node: NodeInterval, pods: Sequence[PodInterval], start: int, end: int
) -> Iterator[NodeHour]:
    """One GPU is broken in the first day, and two are stranded in the second."""
    for hour in range(start, end, HOUR):
        held = sum(
            each.amount.gpu * max(0, min(each.ended_at, hour + HOUR) - max(each.started_at, hour))
            for each in pods
            if each.node == node.node
        )
        day = (hour - start) // DAY
        left = node.price_class.gpu * HOUR - held
        broken = min(left, GPU * HOUR) if day == 0 else 0
        stranded = min(left, 2 * GPU * HOUR) if day == 1 else 0
        yield NodeHour(
            node.node_uid,
            node.started_at,
            hour,
            held,
            left - broken - stranded,
            stranded,
            broken,
            lacking="cpu" if stranded else "",
            holders=(("team-a", "bert-0"),) if stranded else (),
        )


def _jobs(lives: Sequence[Life], start: int) -> Iterator[JobRecord]:
    for each in lives:
        if each.job:
            at = start + round(each.start * HOUR)
            end = 0 if each.end is None else start + round(each.end * HOUR)
            by = UsedBy(each.namespace, each.user, each.leaf)
            yield JobRecord(
                f"uid-{each.job}",
                by,
                each.job,
                "mpijob",
                created_at=at,
                started_at=at,
                finished_at=end,
                deleted_at=end,
                status="Deleted" if end else "Running",
            )
