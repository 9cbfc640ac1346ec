"""The quota plan and the quota controller's look, without HTTP."""

from __future__ import annotations

import cProfile
import gc
import pstats
import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable

from msgspec.structs import replace

from bench.support.options import options
from fairlead.model.actions import (
    AdmitPod,
    DeleteObject,
    EvictPod,
    Outcome,
    PatchObject,
    QuotaAction,
    SetPodCondition,
)
from fairlead.model.changes import (
    KIND_BUDGETS,
    KIND_NAMESPACES,
    KIND_NODES,
    KIND_PODS,
    KIND_QUOTA_TREES,
    changed,
    listed,
)
from fairlead.model.keys import ANNOTATION_LEAF, LABEL_QUOTA, QUOTA_ENFORCED, QUOTA_GATE
from fairlead.model.node import Condition, Node
from fairlead.model.people.rows import KIND_GROUPS
from fairlead.model.pod import Container, Owner, Pod, PodPhase
from fairlead.model.quota.rows import Namespace, Workload
from fairlead.model.quota.state import NodeRoom, QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode, QuotaTree
from fairlead.rules.quota.account import QuotaAccount, account_of
from fairlead.rules.quota.machine import QuotaMachine
from fairlead.rules.quota.plan import Planned, plan_account, plan_quota

ROUNDS = 200
NODES = 1000
SIZES = [
    {"cpu": 1000, "nvidia.com/gpu": 1},
    {"cpu": 2000, "nvidia.com/gpu": 2},
    {"cpu": 4000, "nvidia.com/gpu": 4},
]


def world(leaf_count: int, pod_count: int, chance: random.Random) -> QuotaState:
    """Four of five pods run; root has what they use, and each leaf is guaranteed its part of it."""
    wide = max(1, round(leaf_count**0.5))
    pods: list[QuotaPod] = []
    for number in range(pod_count):
        leaf, runs = f"leaf-{chance.randrange(leaf_count)}", number < pod_count * 4 // 5
        pod = QuotaPod(
            leaf,
            f"pod-{number}",
            f"uid-{number}",
            chance.choice(SIZES),
            created_at=float(number),
            owner=f"owner-{number}",
        )
        pods.append(
            replace(
                pod,
                is_admitted=runs,
                is_ready=runs,
                admitted_at=float(runs),
                node="node" if runs else "",
            )
        )
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
        leaves = tuple(
            QuotaNode(name, f"root.{group}.{name}", group, least, most, (name,)) for name in names
        )
        bound = {name: amount * len(names) for name, amount in least.items()}
        groups.append(QuotaNode(group, f"root.{group}", "root", bound, {}, (), {}, leaves))
    return QuotaState(
        QuotaNode("root", "root", "", used, used, (), {}, tuple(groups)), tuple(pods), now=1e6
    )


def on_nodes(state: QuotaState) -> QuotaState:
    """The same cluster with nodes: each has an equal part of what is used, and a hundredth more.

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
    return replace(
        state,
        pods=tuple(pods),
        nodes=tuple(NodeRoom(f"node-{number:04}", has) for number in range(NODES)),
    )


def timed(what: str, ask: Callable[[int], object], rounds: int = ROUNDS) -> None:
    took = []
    for number in range(rounds):
        gc.collect() if rounds < ROUNDS else None
        before = time.thread_time()
        ask(number)
        took.append((time.thread_time() - before) * 1000)
    print_quota_plan(what, took)


def print_quota_plan(what: str, took: list[float]) -> None:
    took.sort()
    print(
        f"{what:<64} min {took[0]:8.2f} ms   median {statistics.median(took):8.2f} ms   max "
        f"{took[-1]:8.2f} ms"
    )


def carry_out(account: QuotaAccount, planned: Planned) -> None:
    """Who is admitted runs where the plan saw room; who is evicted is gone at once, and another
    waits in his place.
    """
    where = {seat.pod.uid: seat.node for seats in account.seats.values() for seat in seats}
    for admission in planned.admit:
        node = where.get(admission.pod.uid, "node")
        account.put(
            replace(admission.pod, is_admitted=True, is_ready=True, admitted_at=1.0, node=node)
        )
    for eviction in planned.evict:
        account.put(replace(eviction.pod, is_admitted=False, is_ready=False, node=""))


def settled(state: QuotaState) -> tuple[QuotaAccount, QuotaState]:
    """Simulates until no pod is admitted or evicted: the state that a running controller sees."""
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
        print_quota_plan(event + what, took)
        print(f"    admitted then: {done}, evicted: {gone}")
        return took

    def created(number: int) -> None:
        pod = running[number]
        account.put(
            replace(
                pod,
                uid=f"new-{number}",
                name=f"new-{number}",
                is_admitted=False,
                is_ready=False,
                node="",
                created_at=1e6,
            )
        )

    return [
        play("a pod is created: plan, and who waits for what now", created),
        play(
            "a running pod is gone: plan, and who waits for what now",
            lambda number: account.drop(running[number].uid),
        ),
    ]


def _quota_plan_run(leaf_count: int, pod_count: int) -> None:
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


def measure_quota_plan() -> None:
    """The quota plan without HTTP: 1,000 leaves, 50,000 pods of which 10,000 wait.

    The whole plan, and the plan after one event.

        python -m bench quota_plan [leaves] [pods]

    The events once more with 1,000 cluster nodes that are known, their times also as a multiple of
    those without.

    Prints the least and the median of each, in milliseconds of processor time: other work on the
    machine does not count. The tree has three levels, the pods ask for cpu and GPUs in a few
    sizes; the cluster is full, and some leaves borrow what others leave.
    """
    parser = options(measure_quota_plan)
    parser.add_argument("leaves", nargs="?", type=int, default=1000)
    parser.add_argument("pods", nargs="?", type=int, default=50_000)
    chosen = parser.parse_args()
    _quota_plan_run(chosen.leaves, chosen.pods)


START = 1_000_000.0
PODS_PER_JOB = 5
PODS_PER_NODE = 50


class Cluster:
    """The pods as the API server has them, and the machine that receives each change at once."""

    def __init__(self, leaf_count: int, pod_count: int) -> None:
        state = world(leaf_count, pod_count, random.Random(1))
        self.machine = QuotaMachine(workload_kinds=("Job",))
        self.now = START
        self.pods: dict[str, Pod] = {}
        self.seconds: list[float] = []
        nodes = self.nodes = max(1, pod_count // PODS_PER_NODE)
        amounts = {"cpu": 10**6, "nvidia.com/gpu": 10**4, "pods": 10**4}
        ready = (Condition("Ready", "True"),)
        jobs: dict[str, Workload] = {}
        members: dict[str, int] = {}
        for number, each in enumerate(state.pods):
            members[each.namespace] = members.get(each.namespace, 0) + 1
            job = f"{each.namespace}-job-{members[each.namespace] // PODS_PER_JOB}"
            jobs[job] = Workload("Job", "batch/v1", each.namespace, job, job, pods=PODS_PER_JOB)
            self.pods[each.uid] = Pod(
                each.namespace,
                each.name,
                each.uid,
                owners=(Owner("Job", job, job, True),),
                gates=() if each.is_admitted else (QUOTA_GATE,),
                containers=(Container("main", requests=each.request),),
                created_at=each.created_at,
                node=f"node-{number % nodes}" if each.is_admitted else "",
                phase=PodPhase.RUNNING if each.is_admitted else PodPhase.PENDING,
            )
        feed = self.machine.feed
        feed.rebuild()
        feed.observe(listed("Job", jobs))
        rows = {
            f"node-{n}": Node(f"node-{n}", f"n{n}", allocatable=amounts, conditions=ready)
            for n in range(nodes)
        }
        feed.observe(listed(KIND_NODES, rows))
        feed.observe(
            listed(
                KIND_QUOTA_TREES,
                {"tree": QuotaTree("elasticquotatree", "kube-system", state.tree, "tree")},
            )
        )
        marks = {LABEL_QUOTA: QUOTA_ENFORCED}
        spaces = [name for leaf in state.tree.leaves() for name in leaf.namespaces]
        feed.observe(
            listed(
                KIND_NAMESPACES,
                {each: Namespace(each, each, marks, {ANNOTATION_LEAF: each}) for each in spaces},
            )
        )
        feed.observe(listed(KIND_BUDGETS, {}))
        feed.observe(listed(KIND_GROUPS, {}))
        feed.observe(listed(KIND_PODS, dict(self.pods)))

    def receive(self, pod: Pod | None, uid: str) -> None:
        if pod is None:
            self.pods.pop(uid, None)
            self.machine.feed.observe(changed(KIND_PODS, uid, None))
        else:
            self.pods[uid] = pod
            self.machine.feed.observe(changed(KIND_PODS, uid, pod))

    def answer(self, actions: Iterable[QuotaAction]) -> int:
        """Carry out the actions and those that follow from the answers; return the calls made."""
        calls, queue = 0, deque(actions)
        while queue:
            action = queue.popleft()
            calls += 1
            self._carry_out(action)
            began = time.thread_time()
            queue.extend(self.machine.done(action, Outcome(), self.now))
            self.seconds.append(time.thread_time() - began)
        return calls

    def settle(self) -> int:
        """Play until nothing is written any more; return the number of calls."""
        calls, quiet = 0, 0
        while quiet < 3:
            made = self.answer(self.machine.look(self.now))
            calls += made
            quiet = 0 if made else quiet + 1
            self.now += 0.1 if made else 31.0
        return calls

    def _carry_out(self, action: QuotaAction) -> None:
        match action:
            case AdmitPod():
                pod = self.pods[action.target.uid]
                self.receive(
                    replace(
                        pod,
                        gates=(),
                        node=f"node-{hash(pod.uid) % self.nodes}",
                        phase=PodPhase.RUNNING,
                    ),
                    pod.uid,
                )
            case EvictPod(is_trial=False) | DeleteObject():
                self.receive(None, action.target.uid)
            case SetPodCondition():
                if (known := self.pods.get(action.target.uid)) is not None:
                    others = tuple(
                        each for each in known.conditions if each.type != action.condition.type
                    )
                    self.receive(replace(known, conditions=(*others, action.condition)), known.uid)
            case PatchObject():
                raise AssertionError(f"no job is to be suspended: {action}")


def _quota_look_run(leaf_count: int, pod_count: int, *, is_profiled: bool) -> None:
    cluster = Cluster(leaf_count, pod_count)
    began = time.thread_time()
    calls = cluster.settle()
    waiting = len(cluster.machine.feed.waiting)
    print(
        (
            f"{leaf_count} leaves, {len(cluster.pods)} pods, of which {waiting} wait; settled by "
            f"{calls} calls"
        ),
        end=" ",
    )
    print(f"in {time.thread_time() - began:.1f} s")
    gc.collect()
    gc.freeze()
    gc.disable()
    chance = random.Random(2)
    running = [pod for pod in cluster.pods.values() if not pod.gates]
    chance.shuffle(running)
    profile = cProfile.Profile()

    def play(what: str, change: Callable[[int], None]) -> None:
        took: list[float] = []
        cluster.seconds.clear()
        for number in range(ROUNDS):
            cluster.now += 1.0
            began = time.thread_time()
            if is_profiled and what[0] == "a":
                profile.enable()
            change(number)
            actions = cluster.machine.look(cluster.now)
            profile.disable()
            took.append((time.thread_time() - began) * 1000)
            cluster.answer(actions)
        print_quota_look(what, took)
        print_quota_look("    each answer to a call", [each * 1000 for each in cluster.seconds])

    play("nothing", lambda _: None)

    def relabelled(number: int) -> None:
        pod = replace(running[number], phase=PodPhase.RUNNING, labels={"seen": str(number)})
        cluster.receive(pod, pod.uid)

    play("a running pod has another label", relabelled)

    def created(number: int) -> None:
        uid = f"new-{number}"
        pod = replace(
            running[number],
            uid=uid,
            name=uid,
            node="",
            phase=PodPhase.PENDING,
            gates=(QUOTA_GATE,),
            conditions=(),
        )
        cluster.receive(replace(pod, created_at=cluster.now), uid)

    play("a pod is created", created)
    play("a running pod is gone", lambda number: cluster.receive(None, running[number].uid))
    if is_profiled:
        pstats.Stats(profile).sort_stats("tottime").print_stats(35)


def print_quota_look(what: str, took: list[float]) -> None:
    if took:
        took.sort()
        p95 = took[int(len(took) * 0.95)]
        print(
            f"{what:<48} min {took[0]:7.3f}   median {statistics.median(took):7.3f}   p95 "
            f"{p95:7.3f}   max {took[-1]:7.3f} ms"
        )


def measure_quota_look() -> None:
    """The quota controller's look after one event, without HTTP: all that a change costs it.

        python -m bench quota_look [leaves] [pods] [--profile]

    The machine has received a cluster that is full: four of five pods run on nodes, the others
    wait with their conditions written. Timed is processor time, from the event to the calls that
    follow from it (the changes, the plan, the actions), and of each answer to those calls. An
    event a second.
    """
    parser = options(measure_quota_look)
    parser.add_argument("leaves", nargs="?", type=int, default=1000)
    parser.add_argument("pods", nargs="?", type=int, default=50_000)
    parser.add_argument("--profile", action="store_true", help="print where the time went")
    chosen = parser.parse_args()
    _quota_look_run(chosen.leaves, chosen.pods, is_profiled=chosen.profile)
