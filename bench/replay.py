"""What-if on the past: the pods of a month, played through the quota plan."""

from __future__ import annotations

import math
import random
import sys
import time

from msgspec.structs import replace

from bench.support.options import options
from fairlead.model.quota.state import NodeRoom, QuotaPod
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.model.usage.ledger import GPU
from fairlead.rules.usage.replay.history import NodeSpan, PastPod, ReplayInput, TreeSpan
from fairlead.rules.usage.replay.simulation import Replay

NODES = 60
LEAVES = 20
DAY = 86_400.0
START = 1_767_600_000.0
SHARE = 0.75
"""Which part of the GPUs is asked for, over the whole time."""
SIZES = (1, 1, 1, 1, 2, 2, 4, 8)


def measure_quota_replay() -> None:
    """A replay of 30 days with 100,000 pods on 480 GPUs: seconds, and how many plans it makes.

    It works on one thread: CPU seconds are what an idle machine needs. Aim: 60 s.
    """
    parser = options(measure_quota_replay)
    parser.add_argument("--pods", type=int, default=100_000)
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    history = month(args.pods, args.days, random.Random(args.seed))
    replay = Replay(history)
    began = shown = time.perf_counter()
    cpu = time.process_time()
    while replay.advance():
        if time.perf_counter() > shown + 5.0:
            shown = time.perf_counter()
            waiting = sum(each.is_waiting for each in replay.places)
            print(
                f"{replay.part_done:.0%} {replay.plans} plans, {waiting} wait",
                file=sys.stderr,
                flush=True,
            )
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    evicted = sum(each.evictions for each in replay.places)
    waited = sum(each.waited for each in replay.places) / 3600
    print(
        f"{args.days:g} days, {args.pods} pods: {cpu:.1f} CPU s, {seconds:.1f} s wall, "
        f"{replay.plans} plans, "
        f"{waited:.0f} hours of waiting, {evicted} evictions"
    )


def month(pods: int, days: float, chance: random.Random) -> ReplayInput:
    """Jobs of one to eight pods of a few leaves arrive by day more often than by night."""
    end = START + days * DAY
    mean = NODES * 8 * days * 24 * SHARE / (pods * sum(SIZES) / len(SIZES))
    found: list[PastPod] = []
    while len(found) < pods:
        at = START + chance.random() * days * DAY
        if chance.random() > 0.6 + 0.4 * math.sin(2 * math.pi * (at - START) / DAY):
            continue
        leaf, size, gpus = (
            chance.randrange(LEAVES),
            chance.choice((1, 1, 1, 2, 4)),
            chance.choice(SIZES),
        )
        hours = chance.lognormvariate(math.log(mean) - 0.5, 1.0)
        job = f"job-{len(found)}"
        for number in range(min(size, pods - len(found))):
            name = f"{job}-{number}"
            pod = QuotaPod(
                f"ns-{leaf}",
                name,
                name,
                {"nvidia.com/gpu": gpus, "cpu": 4000 * gpus, "memory": gpus << 35},
                created_at=at,
                owner=job,
            )
            if size > 1:
                pod = replace(pod, gang=job, gang_size=size)
            found.append(
                PastPod(
                    pod,
                    at,
                    at,
                    at,
                    at + hours * 3600,
                    hours * 3600,
                    spells=((at, at),),
                    gpu=gpus * GPU,
                )
            )
    room = {"nvidia.com/gpu": 8, "cpu": 128_000, "memory": 1 << 40, "pods": 110}
    nodes = tuple(
        NodeSpan(START, None, NodeRoom(f"node-{number:03}", room)) for number in range(NODES)
    )
    return ReplayInput(
        START,
        end,
        tuple(sorted(found, key=lambda past: past.arrived_at)),
        nodes,
        (TreeSpan(START, tree()),),
    )


def tree(spread: int = 2) -> QuotaTree:
    """Each leaf is guaranteed an equal part, and may have `spread` times as much."""
    whole = {"nvidia.com/gpu": NODES * 8}
    each = NODES * 8 // LEAVES
    leaves = tuple(
        QuotaNode(
            f"leaf-{number}",
            f"root.leaf-{number}",
            "root",
            {"nvidia.com/gpu": each},
            {"nvidia.com/gpu": spread * each},
            (f"ns-{number}",),
        )
        for number in range(LEAVES)
    )
    return QuotaTree(
        "elasticquotatree",
        "kube-system",
        QuotaNode("root", "root", "", whole, whole, children=leaves),
    )
