"""The quota decider suspends and resumes jobs, returns pods that no node accepts, writes messages,
and survives clocks that go back.
"""

from __future__ import annotations

import itertools
import random

import msgspec
import pytest
from tests.rules.quota.fake_cluster import START, FakeCluster, Faults
from tests.rules.quota.random_worlds import random_tree
from tests.rules.quota.small import tree

from fairlead.model.actions import (
    AdmitPod,
    DeleteObject,
    EvictPod,
    Outcome,
    PatchObject,
    QuotaAction,
    RecordObjectEvent,
    Result,
    SetPodCondition,
)
from fairlead.model.quota.state import QuotaState
from fairlead.model.quota.tree import QuotaNode
from fairlead.rules.quota.account import QuotaAccount
from fairlead.rules.quota.machine import QuotaMachine
from fairlead.rules.quota.plan import plan_quota

LEAVES = "root[20]{a[0] b[20]}"
SUSPENDED_FOR = "fairlead.io/suspended-for"
SUSPENDED_PRIORITY = "fairlead.io/suspended-priority"


class Checked(QuotaMachine):
    """Compares each plan with the plan that is made from the whole state at once."""

    whole: QuotaState | None = None
    plans = 0

    def look(self, now: float) -> list[QuotaAction]:
        self.whole = None
        actions = super().look(now)
        if self.whole is not None:
            self.plans += 1
            theirs, own = plan_quota(self.whole), self.plan
            for part in own.__struct_fields__:
                if part != "violations":
                    assert msgspec.to_builtins(getattr(own, part)) == msgspec.to_builtins(
                        getattr(theirs, part)
                    ), part
        return actions

    def keep(self, root: QuotaNode, now: float) -> QuotaAccount:
        account = super().keep(root, now)
        spaces = {name for leaf in root.leaves() for name in leaf.namespaces}
        known = [pod for pod in self.feed.known.values() if pod.namespace in spaces]
        self.whole = QuotaState(
            root,
            (
                *(self.calls.over(self.reports.over(pod)) for pod in known),
                *(pod for pod, _ in self.calls.ghosts.values()),
                *(
                    pod
                    for uid in self.calls.admitting
                    if (pod := self.calls.going_though_admitted(uid)) is not None
                ),
            ),
            budgets=self.feed.sight.allowed(),
            now=now,
            nodes=account.nodes,
            workloads={
                uid: self.calls.over_workload(job) for uid, job in self.feed.workload_of.items()
            },
            scheduled_at=self.feed.scheduled_at,
        )
        return account


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(4, 200, 4))]
)
def test_kept_pod_by_pod_or_read_at_once_the_plan_is_the_same(first: int) -> None:
    """With calls under way, refused or unanswered, jobs suspended and resumed, and scarce room on
    the node.
    """
    for seed in range(first, first + 4):
        rng = random.Random(seed)
        root = random_tree(rng)
        faults = rng.choice((Faults(), Faults(lost=0.1, busy=0.05, crash=0.01)))
        world = FakeCluster(
            root, seed=seed, faults=faults, delay=rng.choice((0.0, 0.5, 5.0)), machine=Checked
        )
        leaves = [leaf.name for leaf in root.leaves()]
        for number in range(rng.randint(3, 7)):
            kind = rng.choice(("Deployment", "Job", "Job", "RayJob", "StatefulSet", "Bare"))
            request = {each: rng.randint(0, 5) for each in root.min}
            world.create(
                kind,
                rng.choice(leaves),
                f"w{number}",
                rng.randint(1, 4),
                request,
                priority=rng.choice((0, 0, 10)),
            )
            if rng.random() < 0.3:
                world.budget(rng.choice(leaves), rng.randint(0, 3))
            world.run(rng.choice((1, 10, 60)))
        world.run(300)
        assert isinstance(world.machine, Checked) or world.crashes


def job_and_owner() -> tuple[FakeCluster, str]:
    """A job borrows everything; the guaranteed workload comes later."""
    world = FakeCluster(tree(LEAVES))
    job = world.create("RayJob", "a", "train", 4, 5)
    world.settle()
    assert world.running("a") == (4,)
    world.calls.clear()
    return world, job


def test_a_job_is_suspended_for_a_claimant_and_resumed_when_there_is_room() -> None:
    world, job = job_and_owner()
    web = world.create("Deployment", "b", "web", 2, 5)
    world.settle()
    assert (world.running("a", "b"), world.owners[job].is_suspended) == ((0, 2), True)
    turned = [call for call in world.calls if isinstance(call, PatchObject)]
    assert [call.target.uid for call in turned] == [job]
    (claimant,) = {call.patch["metadata"]["annotations"][SUSPENDED_FOR] for call in turned}
    assert claimant in {"b/web-000", "b/web-001"} and turned[0].patch["spec"] == {"suspend": True}
    place = world.calls.index(turned[0])
    before = world.calls[:place]
    trials = [
        number for number, call in enumerate(before) if isinstance(call, EvictPod) and call.is_trial
    ]
    claims = [
        number
        for number, call in enumerate(before)
        if isinstance(call, SetPodCondition) and call.condition.reason == "WaitingForEvictions"
    ]
    assert len({before[number].target.uid for number in trials}) == 4 and min(claims) < min(trials)  # type: ignore[union-attr]
    assert not [call for call in world.calls if isinstance(call, EvictPod) and not call.is_trial]
    world.calls.clear()
    world.scale(web, 0)
    world.settle()
    assert (
        world.running("a"),
        world.owners[job].is_suspended,
        world.owners[job].suspended_for,
    ) == ((4,), False, "")
    (back,) = [call for call in world.calls if isinstance(call, PatchObject)]
    assert (back.patch["spec"], back.patch["metadata"]) == (
        {"suspend": False},
        {"annotations": {SUSPENDED_FOR: None, SUSPENDED_PRIORITY: None}},
    )


def test_of_two_suspended_jobs_the_one_whose_pods_had_the_higher_priority_comes_back_first() -> (
    None
):
    """The job's template names at most a priority class; the number is known only from its pods."""
    world = FakeCluster(tree(LEAVES))
    jobs = [
        world.create("RayJob", "a", name, 2, 5, priority=priority)
        for name, priority in (("older", 0), ("newer", 1000))
    ]
    world.settle()
    web = world.create("Deployment", "b", "web", 4, 5)
    world.settle()
    assert [world.owners[job].is_suspended for job in jobs] == [True, True]
    world.scale(web, 2)
    world.settle()
    assert [world.owners[job].is_suspended for job in jobs] == [True, False]
    assert world.owners[jobs[1]].suspended_priority is None


def test_the_room_of_a_worker_that_failed_is_kept_for_the_one_that_follows() -> None:
    """If a borrower got the room, it would be evicted as soon as the operator has created the new
    worker.
    """
    world = FakeCluster(tree(LEAVES), delay=2.0)
    world.create("RayJob", "b", "train", 2, 5, gang=True)
    world.create("Deployment", "a", "web", 4, 5)
    world.settle()
    assert world.running("a", "b") == (2, 2)
    failed = next(uid for uid, pod in world.pods.items() if pod.namespace == "b")
    world.fail(failed)
    world.settle()
    assert (world.running("a", "b"), world.evictions) == ((2, 2), [])


def test_it_is_kept_for_some_seconds_and_not_longer() -> None:
    world = FakeCluster(tree(LEAVES), delay=0.1)
    job = world.create("RayJob", "b", "train", 2, 5, gang=True)
    world.create("Deployment", "a", "web", 4, 5)
    world.settle()
    world.owners[job].replicas = 1  # no pod follows, while the job's object still has two workers
    world.fail(next(uid for uid, pod in world.pods.items() if pod.namespace == "b"))
    world.run(3)
    assert world.running("a", "b") == (2, 1)
    world.run(4)
    assert world.running("a", "b") == (3, 1)


def test_a_job_that_its_owner_suspended_is_not_touched() -> None:
    world = FakeCluster(tree(LEAVES))
    job = world.create("RayJob", "a", "train", 4, 5, is_suspended=True)
    world.settle()
    world.run(600)
    assert not [
        call for call in world.calls if isinstance(call, PatchObject) and call.target.uid == job
    ]
    assert world.running("a") == (0,)


def test_a_job_that_cannot_be_suspended_stays() -> None:
    world = FakeCluster(tree(LEAVES))
    job = world.create("MPIJob", "a", "train", 4, 5)
    world.settle()
    running = world.running("a")
    assert running > (1,)  # admitted before their job was seen
    world.create("Deployment", "b", "web", 2, 5)
    world.settle()
    assert (world.running("a"), world.evictions) == (running, [])
    assert not [
        call for call in world.calls if isinstance(call, PatchObject) and call.target.uid == job
    ]


def test_pods_that_no_node_takes_return_each_time_twice_as_late() -> None:
    world = FakeCluster(tree(LEAVES))
    world.is_binding = False
    world.create("Deployment", "b", "web", 1, 5)
    times = [world.now]
    for _ in range(300):
        world.run(10)
        if len([call for call in world.calls if isinstance(call, DeleteObject)]) == len(times):
            times.append(world.now)
    gaps = [late - early for early, late in itertools.pairwise(times)]
    assert [round(gap / 100) for gap in gaps] == [3, 6, 12], gaps
    reported = [
        call.reason
        for call in world.calls
        if isinstance(call, RecordObjectEvent) and call.reason == "QuotaReturned"
    ]
    assert len(reported) == 3


def test_a_bare_pod_that_no_node_takes_is_reported_once() -> None:
    world = FakeCluster(tree(LEAVES))
    world.is_binding = False
    world.create("Bare", "b", "one", 1, 5)
    world.run(1200)
    assert not [call for call in world.calls if isinstance(call, DeleteObject)]
    assert (
        len(
            [
                call
                for call in world.calls
                if isinstance(call, RecordObjectEvent) and call.reason == "QuotaReturned"
            ]
        )
        == 1
    )


def test_an_admitted_pod_gets_what_the_leaf_uses_with_it() -> None:
    world = FakeCluster(tree("root[20]{a[10] b[10]}"))
    world.create("Deployment", "a", "web", 3, 5)
    world.settle()
    # the table's numbers once the plan is carried out
    sentences = ["a uses 15 of guaranteed 10 gpu, borrows 5"] * 3
    printed = [
        each for pod in world.pods.values() for each in pod.conditions if each.reason == "Admitted"
    ]
    assert [each.message for each in printed] == sentences
    assert {each.status for each in printed} == {"True"}
    events = [
        call.message
        for call in world.calls
        if isinstance(call, RecordObjectEvent) and call.reason == "QuotaAdmitted"
    ]
    assert sorted(events) == sorted(sentences)


def test_a_pause_does_not_last_while_the_clock_goes_back() -> None:
    world = FakeCluster(tree(LEAVES), delay=0.0)
    world.create("Bare", "b", "one", 1, 5)
    world.run(0.04)
    machine = world.machine
    assert machine is not None

    def admissions(now: float) -> list[AdmitPod]:
        return [action for action in machine.look(now) if isinstance(action, AdmitPod)]

    (first,) = admissions(START)
    machine.done(first, Outcome(Result.REFUSED, "busy", is_busy=True), START)
    assert admissions(START + 0.1) == []
    assert admissions(START - 3600) == [first]
