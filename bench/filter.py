"""The extender's answers without HTTP: 500 names of 5,000 nodes × 8 cards, and a rebuild from 10,000 pods.

    python -m bench.filter [nodes] [names]

Prints the median and the 99th percentile of each question, in milliseconds of processor time: other work on
the machine does not count.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

from fairlead.model.changes import KIND_NODES, KIND_PODS, changed
from fairlead.model.devices.gpu import GpuSlot
from fairlead.model.node import Node
from fairlead.model.pod import Container, Pod
from fairlead.model.refusal import Refusal
from fairlead.model.resources import GPU_COUNT, GPU_MEMORY
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.sharing.ledger import Ledger, ledger_of
from fairlead.rules.sharing.machine import SharingMachine
from fairlead.rules.sharing.preempt import Victims, plan_preemption
from fairlead.rules.sharing.what_if import what_must_go

CARDS = 8
ROUNDS = 400


def node(number: int) -> Node:
    name = f"gpu-node-{number:05}"
    slots = tuple(GpuSlot(card, f"GPU-{number:08}-{card}", card, "NVIDIA H200", 143150, 139, mode="shared") for card in range(CARDS))
    return Node(name, labels={"cgpu": "true"}, capacity={GPU_MEMORY: 139 * CARDS, GPU_COUNT: CARDS}, gpus=slots)


def pod(number: int, units: int, **more: Any) -> Pod:
    limits = {GPU_MEMORY: units}
    return Pod("work", f"pod-{number}", f"uid-{number}", containers=(Container("main", requests=limits, limits=limits),), **more)


def filled(nodes: list[Node], chance: random.Random) -> Ledger:
    """Two thirds of all memory granted, in pods of 10 to 60 units."""
    ledger = ledger_of(ClusterSnapshot(nodes=tuple(nodes)))
    for number in range(len(nodes) * CARDS * 8 // 3):
        asker = pod(number, chance.randint(10, 60))
        name = chance.choice(nodes).name
        grants = ledger.reserve(asker, name)
        if not isinstance(grants, Refusal):
            ledger.set_pod(msgspec.structs.replace(asker, node=name, grants=grants))
    return ledger


def timed(what: str, ask: Callable[[int], object], rounds: int = ROUNDS) -> None:
    took = []
    for number in range(rounds):
        before = time.thread_time()
        ask(number)
        took.append((time.thread_time() - before) * 1000)
    took.sort()
    print(f"{what:<44} p50 {statistics.median(took):7.3f} ms   p99 {took[int(len(took) * 0.99)]:7.3f} ms")


def _crowded() -> None:
    """A node that has as many pods as units, 1,112: on known cards, on cards that nobody knows, half of each.

    Then the same with room that is promised to a pod.
    """
    for every, place in ((1, "cards known"), (0, "cards unknown"), (2, "half known")):
        crowd = ledger_of(ClusterSnapshot(nodes=(node(0),)))
        known = [number for number in range(139 * CARDS) if every and number % every == 0]
        for number in dict.fromkeys([*known, *range(139 * CARDS)]):  # what is known first: nobody knows where there is room for the others
            is_known = bool(every) and number % every == 0
            where, rank = "" if is_known else node(0).name, number % 7
            asker = pod(number, 1, phase="Running", started_at=float(number), node=where, priority=rank)
            grants = crowd.reserve(asker, node(0).name) if is_known else None
            if isinstance(grants, Refusal):
                raise AssertionError(grants.reason)
            crowd.set_pod(asker if grants is None else msgspec.structs.replace(asker, node=node(0).name, grants=grants))
        timed(f"1,112 pods, {place}: preempt", lambda number: _preempt(crowd, number, 139), 20)  # noqa: B023
        timed(f"1,112 pods, {place}: preempt, small", lambda number: _preempt(crowd, number, 5), 20)  # noqa: B023
        timed(f"1,112 pods, {place}: what must go", lambda number: what_must_go(crowd, pod(-number, 139)), 20)  # noqa: B023
        timed(f"1,112 pods, {place}: node anew", lambda _: crowd.set_node(node(0)), 20)  # noqa: B023
        crowd.set_pod(pod(-9999, 20, priority=50, nominated_node=node(0).name))
        timed(f"1,112 pods, {place}, promised: preempt", lambda number: _preempt(crowd, number, 5), 20)  # noqa: B023


def _preempt(crowd: Ledger, number: int, units: int) -> None:
    plan_preemption(crowd, pod(-number, units, priority=40), {node(0).name: Victims(())})


def _adopted() -> None:
    """1,112 pods that somebody else put on a node: the longest time between two places for other work."""
    for phase in ("Pending", "Running"):
        machine = SharingMachine()
        machine.feed.observe(changed(KIND_NODES, "n", node(0)))
        for number in range(139 * CARDS):
            started = 1.0 if phase == "Running" else None
            machine.feed.observe(changed(KIND_PODS, f"uid-{number}", pod(number, 1, phase=phase, started_at=started, node=node(0).name)))
        longest, before = 0.0, time.thread_time()
        for action in machine.adoption.look():
            if action is None:
                longest, before = max(longest, time.thread_time() - before), time.thread_time()
        print(f"{f'1,112 pods, {phase}: adoption':<44} longest {longest * 1000:7.3f} ms")


def main(node_count: int, name_count: int) -> None:
    chance = random.Random(1)
    nodes = [node(number) for number in range(node_count)]
    names = [[each.name for each in chance.sample(nodes, name_count)] for _ in range(ROUNDS)]
    ledger = filled(nodes, chance)
    fits = sum(len(ledger.filter(pod(-1, 100), asked).passed) for asked in names) / ROUNDS
    print(f"{node_count} nodes x {CARDS} cards, {len(ledger.tenants)} pods, {name_count} names; 100 units fit {fits:.0f} of them")
    sizes = [chance.randint(1, 139) for _ in range(ROUNDS)]
    timed("filter, memory on one card", lambda number: ledger.filter(pod(-number, sizes[number]), names[number]))
    timed("filter, never fits", lambda number: ledger.filter(pod(-number, 140), names[number]))
    labels = {GPU_COUNT: "2"}
    timed("filter, two cards", lambda number: ledger.filter(pod(-number, 2 * sizes[number], labels=labels), names[number]))
    timed("prioritize", lambda number: ledger.prioritize(pod(-number, sizes[number]), names[number]))

    def bind(number: int) -> None:
        asker, name = pod(-1 - number, 8), names[number][0]
        grants = ledger.reserve(asker, name)
        if not isinstance(grants, Refusal):
            ledger.set_pod(msgspec.structs.replace(asker, node=name, grants=grants))
            ledger.remove_pod(asker.uid)

    timed("reserve, confirm, release", bind)
    proposed = {name: Victims(tuple(ledger.nodes[name].tenants)[:1]) for name in names[0][:10]}
    timed("preempt on ten nodes", lambda number: plan_preemption(ledger, pod(-number, 139, priority=1), proposed))
    _crowded()
    _adopted()
    pods = tuple(tenant.pod for tenant in ledger.tenants.values())[:10_000]
    snapshot = ClusterSnapshot(nodes=tuple(nodes), pods=pods)
    before = time.perf_counter()
    ledger_of(snapshot)
    print(f"rebuild from {len(nodes)} nodes and {len(pods)} pods: {time.perf_counter() - before:.2f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000, int(sys.argv[2]) if len(sys.argv) > 2 else 500)
