"""The quota plan without HTTP: 1,000 leaves, 50,000 pods of which 10,000 wait; all, and after one event.

    python -m bench.quota_plan [leaves] [pods]

The events once more with 1,000 cluster nodes that are known, their times also as a multiple of those without.

Prints the least and the median of each, in milliseconds of processor time: other work on the machine does not
count. The tree has three levels, the pods ask for cpu and GPUs in a few sizes; the cluster is full, and some
leaves borrow what others leave.
"""

from __future__ import annotations

import gc
import random
import statistics
import sys
import time
from collections.abc import Callable

from msgspec.structs import replace

from fairlead.model.quota.state import NodeRoom, QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode
from fairlead.rules.quota.account import QuotaAccount, account_of
from fairlead.rules.quota.plan import Planned, plan_account, plan_quota

ROUNDS = 200
NODES = 1000
SIZES = [{"cpu": 1000, "nvidia.com/gpu": 1}, {"cpu": 2000, "nvidia.com/gpu": 2}, {"cpu": 4000, "nvidia.com/gpu": 4}]


def world(leaf_count: int, pod_count: int, chance: random.Random) -> QuotaState:
    """Four of five pods run; root has what they use, and each leaf is guaranteed its part of it."""
    wide = max(1, round(leaf_count**0.5))
    pods: list[QuotaPod] = []
    for number in range(pod_count):
        leaf, runs = f"leaf-{chance.randrange(leaf_count)}", number < pod_count * 4 // 5
        pod = QuotaPod(leaf, f"pod-{number}", f"uid-{number}", chance.choice(SIZES), created_at=float(number), owner=f"owner-{number}")
        pods.append(replace(pod, is_admitted=runs, is_ready=runs, admitted_at=float(runs), node="node" if runs else ""))
    used: dict[str, int] = {}
    for pod in pods:
        if pod.is_admitted:
            for name, amount in pod.request.items():
                used[name] = used.get(name, 0) + amount
    least = {name: amount // leaf_count for name, amount in used.items()}
    most = {name: 3 * amount for name, amount in least.items()}
    groups = []
    for first in range(0, leaf_count, wide):
        names = [f"leaf-{number}" for number in range(first, min(first + wide, leaf_count))]
        group = f"group-{first}"
        leaves = tuple(QuotaNode(name, f"root.{group}.{name}", group, least, most, (name,)) for name in names)
        bound = {name: amount * len(names) for name, amount in least.items()}
        groups.append(QuotaNode(group, f"root.{group}", "root", bound, {}, (), {}, leaves))
    return QuotaState(QuotaNode("root", "root", "", used, used, (), {}, tuple(groups)), tuple(pods), now=1e6)


def on_nodes(state: QuotaState) -> QuotaState:
    """The same cluster with its nodes: each has an equal part of what is used, and a hundredth more.

    Running pods sit on the first node that has room.
    """
    has = {name: -(-amount * 101 // (100 * NODES)) for name, amount in state.tree.max.items()}
    free = [dict(has) for _ in range(NODES)]
    pods: list[QuotaPod] = []
    at = 0
    for pod in state.pods:
        if pod.is_admitted:
            for step in range(NODES):
                room = free[(at + step) % NODES]
                if all(amount <= room[name] for name, amount in pod.request.items()):
                    at = (at + step) % NODES
                    break
            else:
                pod = replace(pod, is_admitted=False, is_ready=False, node="")
            if pod.is_admitted:
                for name, amount in pod.request.items():
                    room[name] -= amount
                pod = replace(pod, node=f"node-{at:04}")
        pods.append(pod)
    return replace(state, pods=tuple(pods), nodes=tuple(NodeRoom(f"node-{number:04}", has) for number in range(NODES)))


def timed(what: str, ask: Callable[[int], object], rounds: int = ROUNDS) -> None:
    took = []
    for number in range(rounds):
        gc.collect() if rounds < ROUNDS else None
        before = time.thread_time()
        ask(number)
        took.append((time.thread_time() - before) * 1000)
    tell(what, took)


def tell(what: str, took: list[float]) -> None:
    took.sort()
    print(f"{what:<64} min {took[0]:8.2f} ms   median {statistics.median(took):8.2f} ms   max {took[-1]:8.2f} ms")


def carry_out(account: QuotaAccount, planned: Planned) -> None:
    """Who is admitted runs where the plan saw room; who is evicted is gone at once, and another waits in his
    place.
    """
    where = {seat.pod.uid: seat.node for seats in account.seats.values() for seat in seats}
    for admission in planned.admit:
        node = where.get(admission.pod.uid, "node")
        account.put(replace(admission.pod, is_admitted=True, is_ready=True, admitted_at=1.0, node=node))
    for eviction in planned.evict:
        account.put(replace(eviction.pod, is_admitted=False, is_ready=False, node=""))


def settled(state: QuotaState) -> tuple[QuotaAccount, QuotaState]:
    """Played until nobody is admitted or evicted: what a controller that keeps up with its cluster sees."""
    account = account_of(state)
    while (planned := plan_account(account, state.now)).admit or planned.evict:
        carry_out(account, planned)
    return account, replace(state, pods=tuple(account.pods.values()))


def events(state: QuotaState, what: str) -> list[list[float]]:
    """Each event with the plan after it; what that plan wants is carried out, and not counted."""
    chance = random.Random(2)
    account, state = settled(state)
    plan_account(account, state.now)
    timed(f"nothing happened{what}", lambda _: plan_account(account, state.now))
    running = [pod for pod in state.pods if pod.is_admitted]
    chance.shuffle(running)

    def play(event: str, change: Callable[[int], object]) -> list[float]:
        took, done, gone = [], 0, 0
        for number in range(ROUNDS):
            before = time.thread_time()
            change(number)
            planned = plan_account(account, state.now)
            planned.reasons()
            took.append((time.thread_time() - before) * 1000)
            while planned.admit or planned.evict:
                done, gone = done + len(planned.admit), gone + len(planned.evict)
                carry_out(account, planned)
                planned = plan_account(account, state.now)
        tell(event + what, took)
        print(f"    admitted then: {done}, evicted: {gone}")
        return took

    def created(number: int) -> None:
        pod = running[number]
        account.put(replace(pod, uid=f"new-{number}", name=f"new-{number}", is_admitted=False, is_ready=False, node="", created_at=1e6))

    return [
        play("a pod is created: plan, and who waits for what now", created),
        play("a running pod is gone: plan, and who waits for what now", lambda number: account.drop(running[number].uid)),
    ]


def main(leaf_count: int, pod_count: int) -> None:
    beginning = world(leaf_count, pod_count, random.Random(1))
    _, state = settled(beginning)
    waiting = sum(1 for pod in state.pods if not pod.is_admitted)
    print(f"{leaf_count} leaves, {len(state.pods)} pods, of which {waiting} wait")
    timed("read the pods and plan", lambda _: plan_account(account_of(state), state.now), 7)
    full = account_of(state)

    def again(_: int) -> None:
        full.dirty |= set(full.books)
        plan_account(full, state.now)

    timed("plan from pods that are read, every leaf anew", again, 7)
    timed("the same with every sentence and every node's sums", lambda _: plan_quota(state), 3)
    without, known = events(state, ""), events(on_nodes(state), ", nodes known")
    for name, before, after in zip(("created", "gone"), without, known, strict=True):
        ratio = statistics.median(after) / statistics.median(before)
        print(f"{name}: with {NODES} nodes {ratio:.2f} times as long (medians)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, int(sys.argv[2]) if len(sys.argv) > 2 else 50_000)
