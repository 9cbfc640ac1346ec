"""The quota controller's look after one event, without HTTP: all that a change in the cluster costs it.

    .venv/bin/python -m bench.quota_look [leaves] [pods] [--profile]

The machine has heard of a cluster that is full: four of five pods run on nodes, the others wait with their
conditions written. Timed is processor time, from the event to the calls that follow from it (what is heard,
the plan, the actions), and of each answer to those calls. An event a second.
"""

from __future__ import annotations

import cProfile
import gc
import pstats
import random
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable

from bench.quota_plan import world
from msgspec.structs import replace

from fairlead.model.actions import AdmitPod, DeleteObject, EvictPod, Outcome, PatchObject, QuotaAction, SetPodCondition
from fairlead.model.changes import KIND_BUDGETS, KIND_NAMESPACES, KIND_NODES, KIND_PODS, KIND_QUOTA_TREES, changed, listed
from fairlead.model.keys import ANNOTATION_LEAF, LABEL_QUOTA, QUOTA_ENFORCED, QUOTA_GATE
from fairlead.model.node import Condition, Node
from fairlead.model.pod import Container, Owner, Pod, PodPhase
from fairlead.model.quota.rows import Namespace, Workload
from fairlead.model.quota.tree import QuotaTree
from fairlead.rules.quota.machine import QuotaMachine

START = 1_000_000.0
ROUNDS = 200
PODS_PER_JOB = 5
PODS_PER_NODE = 50


class Cluster:
    """The pods as the API server has them, and the machine that hears of them at once."""

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
        rows = {f"node-{n}": Node(f"node-{n}", f"n{n}", allocatable=amounts, conditions=ready) for n in range(nodes)}
        feed.observe(listed(KIND_NODES, rows))
        feed.observe(listed(KIND_QUOTA_TREES, {"tree": QuotaTree("elasticquotatree", "kube-system", state.tree, "tree")}))
        marks = {LABEL_QUOTA: QUOTA_ENFORCED}
        spaces = [name for leaf in state.tree.leaves() for name in leaf.namespaces]
        feed.observe(listed(KIND_NAMESPACES, {each: Namespace(each, each, marks, {ANNOTATION_LEAF: each}) for each in spaces}))
        feed.observe(listed(KIND_BUDGETS, {}))
        feed.observe(listed(KIND_PODS, dict(self.pods)))

    def hear(self, pod: Pod | None, uid: str) -> None:
        if pod is None:
            self.pods.pop(uid, None)
            self.machine.feed.observe(changed(KIND_PODS, uid, None))
        else:
            self.pods[uid] = pod
            self.machine.feed.observe(changed(KIND_PODS, uid, pod))

    def answer(self, actions: Iterable[QuotaAction]) -> int:
        """Carries out what is asked, and what follows from the answers; so many calls."""
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
        """Until nothing is written any more; so many calls."""
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
                self.hear(replace(pod, gates=(), node=f"node-{hash(pod.uid) % self.nodes}", phase=PodPhase.RUNNING), pod.uid)
            case EvictPod(is_trial=False) | DeleteObject():
                self.hear(None, action.target.uid)
            case SetPodCondition():
                if (known := self.pods.get(action.target.uid)) is not None:
                    others = tuple(each for each in known.conditions if each.type != action.condition.type)
                    self.hear(replace(known, conditions=(*others, action.condition)), known.uid)
            case PatchObject():
                raise AssertionError(f"nobody is to be suspended: {action}")


def main(leaf_count: int, pod_count: int, *, is_profiled: bool) -> None:
    cluster = Cluster(leaf_count, pod_count)
    began = time.thread_time()
    calls = cluster.settle()
    waiting = len(cluster.machine.feed.waiting)
    print(f"{leaf_count} leaves, {len(cluster.pods)} pods, of which {waiting} wait; settled by {calls} calls", end=" ")
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
        tell(what, took)
        tell("    each answer to a call", [each * 1000 for each in cluster.seconds])

    play("nothing", lambda _: None)

    def heard(number: int) -> None:
        pod = replace(running[number], phase=PodPhase.RUNNING, labels={"seen": str(number)})
        cluster.hear(pod, pod.uid)

    play("a running pod has another label", heard)

    def created(number: int) -> None:
        uid = f"new-{number}"
        pod = replace(running[number], uid=uid, name=uid, node="", phase=PodPhase.PENDING, gates=(QUOTA_GATE,), conditions=())
        cluster.hear(replace(pod, created_at=cluster.now), uid)

    play("a pod is created", created)
    play("a running pod is gone", lambda number: cluster.hear(None, running[number].uid))
    if is_profiled:
        pstats.Stats(profile).sort_stats("tottime").print_stats(35)


def tell(what: str, took: list[float]) -> None:
    if took:
        took.sort()
        p95 = took[int(len(took) * 0.95)]
        print(f"{what:<48} min {took[0]:7.3f}   median {statistics.median(took):7.3f}   p95 {p95:7.3f}   max {took[-1]:7.3f} ms")


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:] if each.isdigit()]
    main(*(numbers + [1000, 50_000][len(numbers) :]), is_profiled="--profile" in sys.argv)
