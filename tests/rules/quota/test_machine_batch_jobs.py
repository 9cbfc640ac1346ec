"""The quota decider and batch Jobs: it lowers `parallelism` so that as many pods go as are needed,
and raises it again one by one.

What the owner of a Job writes wins, whenever it is written. A controller that dies between any two
calls leaves nothing undone.
"""

from __future__ import annotations

import pytest
from tests.rules.quota.fake_cluster import FakeCluster, Faults
from tests.rules.quota.small import tree

from fairlead.model.actions import DeleteObject, EvictPod, PatchObject, RecordObjectEvent, ScaleJob

LEAVES = "root[20]{a[0] b[20]}"
OWN, LOWERED = "fairlead.io/parallelism", "fairlead.io/lowered-parallelism"
SUSPENDED_FOR = "fairlead.io/suspended-for"


def job_and_owner(owner_pods: int = 1, **more: object) -> tuple[FakeCluster, str, str]:
    """A Job of four pods borrows everything; then the other leaf takes back some."""
    world = FakeCluster(tree(LEAVES), **more)  # type: ignore[arg-type]
    job = world.create("Job", "a", "sweep", 4, 5)
    world.settle()
    assert world.running("a") == (4,)
    world.calls.clear()
    web = world.create("Deployment", "b", "web", owner_pods, 5)
    world.settle()
    return world, job, web


def scaled(world: FakeCluster) -> list[tuple[int, int]]:
    return [(call.before, call.count) for call in world.calls if isinstance(call, ScaleJob)]


def test_one_pod_is_taken_and_none_is_evicted_or_counted_as_failed() -> None:
    world, job, _ = job_and_owner()
    assert (world.running("a", "b"), world.owners[job].replicas) == ((3, 1), 3)
    assert world.owners[job].marks == {OWN: "4", LOWERED: "3"}
    assert (len(world.removed), world.evictions, world.owners[job].failed) == (1, [], 0)
    assert not [call for call in world.calls if isinstance(call, EvictPod) and not call.is_trial]
    reported = [
        call
        for call in world.calls
        if isinstance(call, RecordObjectEvent) and call.reason == "QuotaReclaimed"
    ]
    assert {call.target.kind for call in reported} == {"Pod", "Job"}
    assert any(call.message.endswith("parallelism 4 is 3 now") for call in reported)


def test_pods_come_back_as_there_is_room_and_at_last_the_owners_own_number() -> None:
    world, job, web = job_and_owner(3)
    assert (world.running("a", "b"), world.owners[job].replicas) == ((1, 3), 1)
    world.scale(web, 2)
    world.settle()
    assert (world.running("a", "b"), world.owners[job].marks) == ((2, 2), {OWN: "4", LOWERED: "2"})
    world.scale(web, 0)
    world.settle()
    assert (world.running("a"), world.owners[job].replicas, world.owners[job].marks) == (
        (4,),
        4,
        {},
    )
    assert (len(world.removed), world.owners[job].failed) == (3, 0)


def test_when_all_its_pods_go_the_job_is_suspended_and_resumed_with_as_many_as_fit() -> None:
    world, job, web = job_and_owner(4)
    assert (
        world.running("a", "b"),
        world.owners[job].is_suspended,
        world.owners[job].replicas,
    ) == ((0, 4), True, 1)
    world.scale(web, 3)
    world.settle()
    assert (
        world.running("a", "b"),
        world.owners[job].is_suspended,
        world.owners[job].replicas,
    ) == ((1, 3), False, 1)
    assert world.owners[job].marks == {OWN: "4", LOWERED: "1"}
    world.scale(web, 0)
    world.settle()
    assert (world.running("a"), world.owners[job].replicas, world.owners[job].marks) == (
        (4,),
        4,
        {},
    )


def test_pods_that_wait_go_with_a_lowered_job_and_the_right_one_of_those_that_run() -> None:
    """The Job controller removes pods without a node first: to free one running pod, a Job of six
    of which two wait is lowered to three, not to five.
    """
    world = FakeCluster(tree(LEAVES))
    job = world.create("Job", "a", "sweep", 6, 5)
    world.settle()
    assert (world.running("a"), len(world.waiting("a"))) == ((4,), 2)
    world.create("Deployment", "b", "web", 1, 5)
    world.settle()
    assert (world.running("a", "b"), len(world.waiting("a"))) == ((3, 1), 0)
    assert (world.owners[job].replicas, world.owners[job].marks[OWN], len(world.removed)) == (
        3,
        "6",
        1,
    )


@pytest.mark.parametrize("number", [2, 6])
def test_what_the_owner_of_a_job_writes_wins(number: int) -> None:
    world, job, web = job_and_owner()
    world.edit(job, parallelism=number)
    world.settle()
    assert (world.owners[job].replicas, world.owners[job].marks) == (number, {})
    world.scale(web, 0)
    world.settle()
    assert (world.owners[job].replicas, world.running("a")) == (number, (min(number, 4),))


def test_the_number_that_the_owner_writes_back_after_another_is_his() -> None:
    """Both edits come between two looks. A number that the owner changed is not taken for the
    controller's own number again.
    """
    world, job, web = job_and_owner(delay=0.0)
    world.edit(job, parallelism=2)
    world.edit(job, parallelism=3)
    world.settle()
    assert (world.owners[job].replicas, world.owners[job].marks) == (3, {})
    world.scale(web, 0)
    world.settle()
    assert world.running("a") == (3,)


def test_an_edit_that_comes_while_we_lower_is_not_undone() -> None:
    """The patch tests the previous value, so the API server refuses it, and the next plan uses the
    owner's number.
    """
    world = FakeCluster(tree(LEAVES), delay=5.0)
    job = world.create("Job", "a", "sweep", 4, 5)
    world.settle()
    world.create("Deployment", "b", "web", 1, 5)
    for _ in range(3000):
        world.run(0.01)
        if any(isinstance(call, EvictPod) and call.is_trial for call in world.calls):
            world.owners[job].replicas = 2  # the watch delivers it five seconds later
            world.after(5.0, lambda: world.edit(job, parallelism=2))
            break
    world.run(4.0)
    assert scaled(world) == [(4, 3)] and world.owners[job].replicas == 2
    world.settle()
    assert (world.owners[job].replicas, world.running("a", "b")) == (2, (2, 1))
    assert world.owners[job].marks == {}


@pytest.mark.parametrize("kind", ["Job", "RayJob"])
def test_a_job_that_its_owner_suspends_again_after_resuming_it_is_not_resumed_by_us(
    kind: str,
) -> None:
    world = FakeCluster(tree(LEAVES), delay=0.0)
    job = world.create(kind, "a", "train", 4, 5)
    world.settle()
    web = world.create("Deployment", "b", "web", 4, 5)
    world.settle()
    assert SUSPENDED_FOR in world.owners[job].marks
    world.edit(job, suspend=False)
    world.settle()
    assert SUSPENDED_FOR not in world.owners[job].marks, (
        "the mark is withdrawn where the job is seen to run"
    )
    world.edit(job, suspend=True)
    world.settle()
    world.scale(web, 0)
    world.settle()
    assert (world.owners[job].is_suspended, world.running("a")) == (True, (0,))


def test_so_too_when_both_edits_come_between_two_looks() -> None:
    world = FakeCluster(tree(LEAVES), delay=0.0)
    job = world.create("RayJob", "a", "train", 4, 5)
    world.settle()
    web = world.create("Deployment", "b", "web", 4, 5)
    world.settle()
    world.edit(job, suspend=False)
    world.edit(job, suspend=True)
    world.settle()
    world.scale(web, 0)
    world.settle()
    assert (world.owners[job].is_suspended, world.owners[job].marks) == (True, {})


def test_what_fairlead_suspends_after_a_mark_was_withdrawn_is_fairleads() -> None:
    world = FakeCluster(tree(LEAVES), delay=0.0)
    job = world.create("RayJob", "a", "train", 2, 5)
    world.settle()
    web = world.create("Deployment", "b", "web", 4, 5)
    world.settle()
    world.scale(web, 1)
    world.edit(job, suspend=False)
    world.settle()
    assert (world.running("a"), world.owners[job].marks) == ((2,), {})
    world.scale(web, 4)
    world.settle()
    assert world.owners[job].is_suspended
    world.scale(web, 0)
    world.settle()
    assert (world.owners[job].is_suspended, world.running("a")) == (False, (2,))


def test_pods_of_a_job_that_no_node_takes_are_never_deleted() -> None:
    world = FakeCluster(tree(LEAVES))
    job = world.create("Job", "b", "sweep", 2, 5)
    world.settle()
    world.is_binding = False
    world.edit(job, parallelism=3)
    world.run(400)
    assert not [call for call in world.calls if isinstance(call, DeleteObject)]
    assert (3, 2) in scaled(world) and world.owners[job].failed == 0
    assert [call.reason for call in world.calls if isinstance(call, RecordObjectEvent)].count(
        "QuotaReturned"
    ) == 1
    world.is_binding = True
    world.run(900)
    assert (world.running("b"), world.owners[job].replicas, world.owners[job].marks) == (
        (3,),
        3,
        {},
    )
    assert len([pod for pod in world.pods.values() if pod.node]) == 3


def test_a_job_of_which_no_pod_finds_a_node_is_suspended_and_tried_again() -> None:
    world = FakeCluster(tree(LEAVES))
    world.is_binding = False
    job = world.create("Job", "b", "sweep", 2, 5)
    world.run(320)
    assert not [call for call in world.calls if isinstance(call, DeleteObject)]
    (call,) = [
        each
        for each in world.calls
        if isinstance(each, PatchObject)
        and each.target.uid == job
        and each.patch["spec"]["suspend"]
    ]
    assert call.patch["metadata"]["annotations"][SUSPENDED_FOR] == "no-node"
    world.is_binding = True
    world.settle()
    assert (world.running("b"), world.owners[job].is_suspended, world.owners[job].failed) == (
        (2,),
        False,
        0,
    )


def test_nothing_is_returned_while_no_scheduler_answers() -> None:
    world = FakeCluster(tree(LEAVES))
    world.is_binding = world.is_answering = False
    job = world.create("Job", "b", "sweep", 2, 5)
    web = world.create("Deployment", "a", "web", 1, 5)
    world.run(3600)
    assert not [call for call in world.calls if isinstance(call, DeleteObject)] and not scaled(
        world
    )
    assert not world.owners[job].is_suspended and web in world.owners


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(20, 200, 20))]
)
def test_crashes_and_lost_answers_between_any_two_calls_take_no_pod_more(first: int) -> None:
    """The claimant needs two pods: two are taken, whatever fails on the way."""
    for seed in range(first, first + 20):
        faults = Faults(lost=0.2, crash=0.1) if seed % 2 else Faults(crash=0.3)
        world = FakeCluster(tree(LEAVES), seed=seed, faults=faults, delay=(0.0, 1.0, 5.0)[seed % 3])
        job = world.create("Job", "a", "sweep", 4, 5)
        world.settle(quiet=180.0)
        assert world.running("a") == (4,)
        web = world.create("Deployment", "b", "web", 2, 5)
        world.settle(quiet=180.0)
        assert (world.running("a", "b"), len(world.removed), world.evictions) == ((2, 2), 2, []), (
            seed
        )
        world.scale(web, 0)
        world.settle(quiet=180.0)
        assert (world.running("a"), world.owners[job].replicas, world.owners[job].marks) == (
            (4,),
            4,
            {},
        ), seed
        assert (len(world.removed), world.owners[job].failed) == (2, 0), seed
