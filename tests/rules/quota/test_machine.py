"""The quota decider against a cluster in memory: the demo of docs/spec/quota.md#the-40-core-demo,
faults and crashes.
"""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.quota.fake_cluster import KINDS, OWN, PROTECTED, FakeCluster, Faults
from tests.rules.quota.random_worlds import random_tree
from tests.rules.quota.small import tree

from fairlead.model.actions import (
    AdmitPod,
    DeleteObject,
    EvictPod,
    Outcome,
    QuotaAction,
    RecordObjectEvent,
    Result,
    SetPodCondition,
    WriteTreeStatus,
)
from fairlead.model.changes import KIND_PODS, KIND_QUOTA_TREES, changed, listed
from fairlead.model.quota.rows import Namespace
from fairlead.model.quota.tree import QuotaNode, QuotaSettings, QuotaTree, Violation
from fairlead.rules.quota.machine import QuotaMachine

DEMO = "root[40]{a[20/40]{a1[10/20] a2[10/20]} b[20/40]{b1[10/20] b2[10/20]}}"
LEAVES = ("a1", "a2", "b1", "b2")


def play_demo(seed: int, faults: Faults) -> FakeCluster:
    world = FakeCluster(tree(DEMO), seed=seed, faults=faults)
    seen = []
    for leaf in LEAVES:
        world.create("Deployment", leaf, "nginx", 5, 5)
        world.settle()
        seen.append((world.running(*LEAVES), len(world.evictions)))
    assert seen == [((4, 0, 0, 0), 0), ((4, 4, 0, 0), 0), ((3, 3, 2, 0), 2), ((2, 2, 2, 2), 4)], (
        f"seed {seed}"
    )
    assert not world.unclaimed, f"seed {seed}"
    return world


@pytest.mark.parametrize("seed", range(10))
def test_the_demo_with_late_watches_and_any_grace(seed: int) -> None:
    world = play_demo(seed, Faults())
    assert world.reasons("a1") == ["WaitingForIdleQuota"] * 3


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(10, 200, 10))]
)
def test_the_demo_with_lost_answers_refusals_and_crashes_200_of_200(first: int) -> None:
    """A tenth of all calls fail, half of those after they were carried out; one in fifty calls is
    the controller's last.
    """
    for seed in range(first, first + 10):
        play_demo(seed, Faults(lost=0.1, busy=0.05, crash=0.02))


def storm(seed: int) -> FakeCluster:
    """Random trees, Deployments, StatefulSets, bare pods, gangs and budgets; users scale workloads
    meanwhile.
    """
    rng = random.Random(seed)
    root = random_tree(rng)
    faults = rng.choice((Faults(), Faults(lost=0.1, busy=0.05, crash=0.02)))
    world = FakeCluster(
        root,
        seed=seed,
        faults=faults,
        grace=rng.choice((0.0, 5.0, 60.0)),
        delay=rng.choice((0.0, 0.5, 5.0)),
    )
    leaves = [leaf.name for leaf in root.leaves()]
    made = []
    for number in range(rng.randint(2, 8)):
        leaf, kind = (
            rng.choice(leaves),
            rng.choice(("Deployment", "Deployment", "StatefulSet", "Bare")),
        )
        request = {each: rng.randint(0, 5) for each in root.min}
        more = {"priority": rng.choice((0, 0, 10, 100)), "gang": rng.random() < 0.2}
        made.append(world.create(kind, leaf, f"w{number}", rng.randint(1, 4), request, **more))
        if rng.random() < 0.4:
            world.budget(leaf, rng.randint(0, 3))
        world.run(rng.choice((0, 1, 10, 60)))
        if rng.random() < 0.3:
            world.scale(rng.choice(made), rng.randint(0, 4))
    world.settle()
    return world


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(20, 400, 20))]
)
def test_storms_end_and_never_exceed_a_max(first: int) -> None:
    """The auditor of the cluster in memory checks every admission."""
    for seed in range(first, first + 20):
        try:
            storm(seed)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def one_leaf(**more: object) -> FakeCluster:
    return FakeCluster(tree("root[20]{a[0] b[20]}"), **more)  # type: ignore[arg-type]


def test_what_the_tree_sets_holds_for_pods_that_are_there() -> None:
    """A pod without a controller may borrow once the setting makes it evictable, and it is evicted
    when `b` needs its guarantee.
    """
    world = one_leaf()
    world.create("Bare", "a", "alone", 1, 5)
    world.settle()
    assert world.reasons("a") == ["NeverFits"]
    world.set_tree(world.root, settings=QuotaSettings(are_bare_pods_preemptible=True))
    world.settle()
    assert world.running("a") == (1,)
    world.create("Deployment", "b", "web", 4, 5)
    world.settle()
    assert world.running("a", "b") == (0, 4)


@pytest.mark.parametrize("namespace", PROTECTED)
def test_a_protected_namespace_that_got_onto_a_leaf_is_left_alone(namespace: str) -> None:
    """Its pods are neither counted nor evicted, and gated pods are released."""
    world = FakeCluster(
        tree(f"root[20]{{{namespace}[0] b[20]}}"), machine=partial(QuotaMachine, own=OWN)
    )
    world.namespaces[namespace] = Namespace(
        namespace,
        f"ns-{namespace}",
        {"fairlead.io/quota": "enforced"},
        {"fairlead.io/leaf": namespace},
    )
    world.start()
    world.create("Deployment", namespace, "dns", 2, 5)
    world.settle()
    assert world.running(namespace) == (2,)
    world.create("Deployment", "b", "web", 5, 5)
    world.settle()
    assert (world.running(namespace, "b"), world.evictions) == ((2, 4), [])
    space = world.namespaces[namespace]
    assert (dict(space.labels), dict(space.annotations)) == ({}, {})


@pytest.mark.parametrize("namespace", OWN)
def test_the_status_of_a_tree_names_a_leaf_with_fairleads_own_namespace(namespace: str) -> None:
    world = FakeCluster(
        tree(f"root[20]{{{namespace}[0] b[20]}}"), machine=partial(QuotaMachine, own=OWN)
    )
    world.settle()
    *_, status = (call for call in world.calls if isinstance(call, WriteTreeStatus))
    sentence = f"{namespace}: namespace {namespace} is one of Fairlead's own and takes no quota"
    assert [each.message for each in status.violations if each.is_error] == [sentence]


def test_what_the_clock_alone_changes_is_seen_in_time_and_not_at_the_next_round_look() -> None:
    """A pod that no node accepts is returned after seven seconds."""
    world = one_leaf(delay=0.1)
    world.set_tree(world.root, settings=QuotaSettings(unbound_seconds=7))
    world.is_binding = False
    world.create("Deployment", "b", "web", 1, 5)
    world.run(6)
    assert not any(isinstance(call, DeleteObject) for call in world.calls)
    world.run(3)
    assert sum(isinstance(call, DeleteObject) for call in world.calls) == 1


def test_a_second_tree_counts_for_nothing() -> None:
    """The second tree was accepted under another tool's definition, and is listed first."""
    world = FakeCluster(tree("root[20]{a[10/10]}"))
    right = world.tree
    second = QuotaTree("second", "kube-system", tree("root[20]{a[20]}"), "1")
    world.machine.feed.observe(listed(KIND_QUOTA_TREES, {"1": second}))
    assert right is not None
    world.machine.feed.observe(changed(KIND_QUOTA_TREES, right.uid, right))
    world.create("Deployment", "a", "web", 4, 5)
    world.settle()
    assert world.running("a") == (2,)


def test_a_leaf_without_namespaces_is_in_the_status_with_nothing() -> None:
    root = tree("root[20]{a[0] b[10] c[10]}")
    *others, last = root.children
    world = FakeCluster(replace(root, children=(*others, replace(last, namespaces=()))))
    world.create("Deployment", "b", "web", 1, 5)
    world.settle()
    *_, status = (call for call in world.calls if isinstance(call, WriteTreeStatus))
    assert [(node.name, node.used.get("gpu", 0)) for node in status.nodes] == [
        ("root", 5),
        ("a", 0),
        ("b", 5),
        ("c", 0),
    ]


def test_an_idle_queue_writes_nothing() -> None:
    world = one_leaf()
    world.create("Deployment", "b", "web", 30, 5)
    world.settle()
    world.run(600)
    before = len(world.calls)
    world.run(900)
    assert (world.calls[before:], len(world.waiting("b"))) == ([], 26)


def test_a_claim_is_written_before_the_first_eviction() -> None:
    world = one_leaf()
    world.create("Deployment", "a", "web", 4, 5)
    world.settle()
    before = len(world.calls)
    world.create("Deployment", "b", "web", 1, 5)
    world.settle()
    calls = world.calls[before:]
    evicted = next(place for place, call in enumerate(calls) if isinstance(call, EvictPod))
    printed = [
        call.condition.reason for call in calls[:evicted] if isinstance(call, SetPodCondition)
    ]
    assert "WaitingForEvictions" in printed
    assert world.running("a", "b") == (3, 1)


def test_several_victims_are_tried_dry_and_all_go() -> None:
    world = one_leaf()
    world.create("Deployment", "a", "web", 4, 5)
    world.settle()
    before = len(world.calls)
    world.create("Deployment", "b", "big", 1, 15)
    world.settle()
    evictions = [call.is_trial for call in world.calls[before:] if isinstance(call, EvictPod)]
    assert evictions == [True, True, True, False, False, False]
    assert world.running("a", "b") == (1, 1)


def evicted(actions: list[QuotaAction]) -> list[str]:
    return [each.target.uid for each in actions if isinstance(each, EvictPod) and not each.is_trial]


def two_claimants(first: int, second: int = 5) -> tuple[FakeCluster, QuotaMachine]:
    """`b` takes back its min for a pod of `first` GPUs and one of `second`; a new machine has
    listed all and has decided nothing.
    """
    world = one_leaf(delay=0.0)
    world.create("Deployment", "a", "web", 4, 5)
    world.settle()
    world.machine = None
    world.create("Deployment", "b", "first", 1, first)
    world.create("Deployment", "b", "second", 1, second)
    world.run(0.0)
    machine = QuotaMachine(KINDS)
    world.rebuild(machine)
    return world, machine


def claims(machine: QuotaMachine, now: float) -> list[SetPodCondition]:
    """The claims that are sent now, in the order of the names of their pods."""
    sent = [each for each in machine.look(now) if isinstance(each, SetPodCondition)]
    sent.sort(key=lambda each: each.target.name)
    assert [each.condition.reason for each in sent] == ["WaitingForEvictions"] * 2
    return sent


def test_no_pod_is_evicted_for_a_later_unit_while_an_earlier_one_is_tried() -> None:
    """Its pod would stop, and make room for the first unit: then other victims are chosen."""
    world, machine = two_claimants(first=10)
    for claim in claims(machine, world.now):
        machine.done(claim, Outcome(), world.now)
    tried = machine.look(world.now)
    trials = [each for each in tried if isinstance(each, EvictPod)]
    assert [each.is_trial for each in trials] == [True, True]
    for trial in trials:
        machine.done(trial, Outcome(), world.now)
    sent = evicted(machine.look(world.now))
    assert sorted(sent[:2]) == sorted(each.target.uid for each in trials)
    assert len(sent) == 3


@pytest.mark.parametrize("answered", [0, 1])
def test_no_pod_is_evicted_before_all_claims_of_one_second_are_written(answered: int) -> None:
    world, machine = two_claimants(first=5)
    sent = claims(machine, world.now)
    machine.done(sent[answered], Outcome(), world.now)
    assert evicted(machine.look(world.now)) == []
    machine.done(sent[1 - answered], Outcome(), world.now)
    assert len(evicted(machine.look(world.now))) == 2


def test_an_earlier_claim_waits_for_no_later_one() -> None:
    world, machine = two_claimants(first=5)
    sent = claims(machine, world.now)
    world.create("Deployment", "b", "third", 1, 5)
    world.run(5.0)
    [third] = [pod for pod in world.pods.values() if pod.name.startswith("third")]
    machine.observe(changed(KIND_PODS, third.uid, third))
    [late] = [each for each in machine.look(world.now) if isinstance(each, SetPodCondition)]
    assert late.target.uid == third.uid
    for claim in sent:
        machine.done(claim, Outcome(), world.now)
    assert len(evicted(machine.look(world.now))) == 2
    machine.done(late, Outcome(), world.now)
    assert len(evicted(machine.look(world.now))) == 1


def test_a_trial_that_is_done_waits_for_that_of_an_earlier_unit() -> None:
    world, machine = two_claimants(first=10, second=10)
    for claim in claims(machine, world.now):
        machine.done(claim, Outcome(), world.now)
    trials = [each for each in machine.look(world.now) if isinstance(each, EvictPod)]
    assert [each.is_trial for each in trials] == [True] * 4
    for trial in trials[2:]:
        machine.done(trial, Outcome(), world.now)
    assert evicted(machine.look(world.now)) == []
    for trial in trials[:2]:
        machine.done(trial, Outcome(), world.now)
    assert evicted(machine.look(world.now)) == [each.target.uid for each in trials]


def test_a_claim_that_is_not_written_holds_no_later_unit() -> None:
    world, machine = two_claimants(first=5)
    first, second = claims(machine, world.now)
    machine.done(second, Outcome(), world.now)
    machine.done(first, Outcome(Result.UNKNOWN, "no answer"), world.now)
    assert len(evicted(machine.look(world.now))) == 1


def test_trials_whose_answers_are_lost_are_repeated_after_a_new_list() -> None:
    world, machine = two_claimants(first=10)
    for claim in claims(machine, world.now):
        machine.done(claim, Outcome(), world.now)
    tried = [each for each in machine.look(world.now) if isinstance(each, EvictPod)]
    assert not [each for each in machine.look(world.now) if isinstance(each, EvictPod)]
    machine.rebuild()
    world.rebuild(machine)
    assert [each for each in machine.look(world.now) if isinstance(each, EvictPod)] == tried


def test_a_trial_that_is_refused_holds_no_later_unit() -> None:
    world, machine = two_claimants(first=10)
    for claim in claims(machine, world.now):
        machine.done(claim, Outcome(), world.now)
    trials = [each for each in machine.look(world.now) if isinstance(each, EvictPod)]
    machine.done(trials[0], Outcome(Result.UNKNOWN, "no answer"), world.now)
    machine.done(trials[1], Outcome(), world.now)
    assert len(evicted(machine.look(world.now))) == 1


def test_the_claims_of_one_plan_keep_their_order_while_they_are_answered() -> None:
    """`big` comes first by priority, and after the claims by name. Were `small` first for a moment,
    because its claim was answered first, another victim would be chosen for it.
    """
    world = FakeCluster(tree("root[20]{a[0] b[20]}"), delay=0.0)
    for number, size in enumerate((5, 5, 5, 5)):
        world.create("Deployment", "a", f"w{number}", 1, size)
        world.run(60)
    world.machine = None
    world.create("Deployment", "b", "big", 1, 10, priority=1)
    world.create("Deployment", "b", "small", 1, 5)
    world.run(0.0)
    machine = QuotaMachine(KINDS)
    world.rebuild(machine)
    big, small = claims(machine, world.now)
    before = [each.for_unit for each in machine.plan.evict]
    machine.done(small, Outcome(), world.now)
    machine.look(world.now)
    assert [each.for_unit for each in machine.plan.evict] == before
    assert before[0].startswith("b/big")
    assert big.condition.reason == small.condition.reason


def test_a_budget_that_changes_its_mind_is_never_broken() -> None:
    """The watch still shows one allowed disruption when the API server already refuses it: another
    pod is evicted, or none.
    """
    world = one_leaf(delay=10.0)
    world.create("Deployment", "a", "web", 4, 5)
    world.settle()
    world.budget("a", 3)
    world.run(60)
    world.create("Deployment", "b", "web", 2, 5)
    world.settle()
    assert world.running("a", "b") == (3, 1)
    assert len(world.evictions) == 1


WIDE = "root[40]{a[0/20] b[0/40]}"


def drained(most: int) -> QuotaNode:
    return tree(f"root[40]{{a[0/{most}] b[0/40]}}", {"a": {"fairlead.io/drain-over-max": "true"}})


@pytest.mark.parametrize("faults", [Faults(), Faults(lost=0.1, busy=0.05, crash=0.02)])
def test_a_max_with_drain_that_is_lowered_evicts_down_to_it(faults: Faults) -> None:
    world = FakeCluster(tree(WIDE), faults=faults)
    world.create("Deployment", "a", "web", 4, 5)
    world.settle()
    assert world.running("a") == (4,)
    world.set_tree(drained(10))
    world.settle()
    assert (world.running("a"), len(world.evictions), world.reasons("a")) == (
        (2,),
        2,
        ["OverMax"] * 2,
    )
    events = {
        call.message
        for call in world.calls
        if isinstance(call, RecordObjectEvent)
        and call.reason == "QuotaReclaimed"
        and call.target.kind == "Pod"
    }
    assert events == {"a gives up what it uses above its max of 10 gpu"}


def test_a_drain_lowers_a_job_and_at_last_suspends_it_and_gives_it_back() -> None:
    world = FakeCluster(tree(WIDE))
    job = world.create("Job", "a", "sweep", 4, 5)
    world.settle()
    world.set_tree(drained(10))
    world.settle()
    assert (world.running("a"), world.owners[job].replicas) == ((2,), 2)
    world.set_tree(drained(4))
    world.settle()
    assert (world.running("a"), world.owners[job].is_suspended) == ((0,), True)
    assert world.owners[job].marks["fairlead.io/suspended-for"] == "over-max"
    reported = [
        (call.reason, call.message)
        for call in world.calls
        if isinstance(call, RecordObjectEvent) and call.target.kind == "Job"
    ]
    assert [each for each in reported if "parallelism 4 is 2" in each[1]] == [
        ("QuotaReclaimed", "makes room for the max of a; parallelism 4 is 2 now")
    ]
    assert ("QuotaSuspended", "makes room for the max of a") in reported
    assert world.owners[job].failed == 0
    world.set_tree(drained(20))
    world.settle()
    assert (world.running("a"), world.owners[job].replicas, world.owners[job].marks) == (
        (4,),
        4,
        {},
    )


def test_a_drain_that_is_tried_holds_no_unit() -> None:
    """A Job is tried before it is lowered; meanwhile a claimant gets a pod of another leaf."""
    world = FakeCluster(tree("root[40]{a[0/20] b[0/40] c[20]}"), delay=0.0)
    world.create("Job", "a", "sweep", 4, 5)
    world.create("Deployment", "b", "web", 4, 5)
    world.settle()
    world.machine = None
    world.create("Deployment", "c", "owner", 1, 15)
    world.run(0.0)
    drains = {"a": {"fairlead.io/drain-over-max": "true"}}
    world.set_tree(tree("root[40]{a[0/10] b[0/40] c[20]}", drains))
    machine = QuotaMachine(KINDS)
    world.rebuild(machine)
    [claim] = [each for each in machine.look(world.now) if isinstance(each, SetPodCondition)]
    machine.done(claim, Outcome(), world.now)
    sent = evicted(machine.look(world.now))
    assert [world.pods[uid].namespace for uid in sent] == ["b"]


def test_a_paused_victim_of_a_drain_holds_no_other() -> None:
    """Of two victims one is left alone for a while; the other is evicted at once."""
    world = FakeCluster(tree(WIDE), delay=0.0)
    world.create("Deployment", "a", "web", 4, 5)
    world.settle()

    def sent(*paused: str) -> list[str]:
        machine = QuotaMachine(KINDS)
        world.rebuild(machine)
        for uid in paused:
            machine.calls.pauses.pause(uid, world.now)
        return evicted(machine.look(world.now))

    world.set_tree(drained(10))
    first, second = sent()
    assert sent(first) == [second]


@pytest.mark.parametrize(
    "more",
    [{"root": None}, {"faults": (Violation("root.a", "BadShape", "root.a: no", stops=True),)}],
)
def test_without_a_valid_tree_no_pod_is_admitted_or_evicted_and_each_gets_the_reason(
    more: dict[str, Any],
) -> None:
    world = one_leaf()
    world.create("Deployment", "a", "web", 4, 5)
    world.settle()
    root = more.pop("root", world.root)
    world.set_tree(root, **more)
    world.run(30)
    before = len(world.calls)
    world.create("Deployment", "b", "web", 2, 5)
    world.settle()
    assert not [call for call in world.calls[before:] if isinstance(call, AdmitPod | EvictPod)]
    assert (world.running("a", "b"), world.reasons("b")) == ((4, 0), ["TreeInvalid"] * 2)


def test_namespaces_of_leaves_are_marked_and_one_that_leaves_is_let_go() -> None:
    world = one_leaf()
    world.settle()
    marks = {
        name: (dict(space.labels), dict(space.annotations))
        for name, space in world.namespaces.items()
    }
    assert marks == {
        name: ({"fairlead.io/quota": "enforced"}, {"fairlead.io/leaf": name}) for name in ("a", "b")
    }
    world.create("Deployment", "b", "web", 6, 5)
    world.settle()
    assert world.running("b") == (4,)
    world.set_tree(tree("root[20]{a[0] c[20]}"))
    world.settle()
    assert (
        world.running("b"),
        world.namespaces["b"].labels,
        world.namespaces["b"].annotations,
    ) == ((6,), {}, {})


def test_a_statefulset_goes_on_where_it_was() -> None:
    world = one_leaf()
    world.create("StatefulSet", "a", "db", 4, 5)
    world.settle()
    assert world.running("a") == (4,)
    world.create("Deployment", "b", "web", 2, 5)
    world.settle()
    assert (world.running("a", "b"), len(world.evictions)) == ((2, 2), 2)
    assert [pod.name for pod in world.waiting("a")] == ["db-2"]


def test_the_feed_refuses_a_kind_that_quota_does_not_follow() -> None:
    feed = QuotaMachine(workload_kinds=("Job",)).feed
    feed.observe(listed("Job", {}))
    with pytest.raises(ValueError, match="`pod`"):
        feed.observe(listed("pod", {}))


def test_sentences_of_leaves_at_which_no_plan_looked_follow_what_changed_elsewhere() -> None:
    """Eighty pods wait in four leaves; then root gets more, and a fifth leaf takes what it is
    guaranteed.
    """
    root = tree("root[40]{a[0] b[0] c[0] d[0] e[20]}")
    world = FakeCluster(root, seed=5, delay=0.1)
    for name in "abcd":
        world.create("ReplicaSet", name, f"web-{name}", 30, 1)
    world.settle()
    assert all("root 40/40 in use" in printed for printed in reported(world, "a"))
    world.set_tree(tree("root[42]{a[0] b[0] c[0] d[0] e[20]}"))
    world.settle()
    world.create("ReplicaSet", "e", "web-e", 3, 1)
    world.settle()
    used = {name: world.running(name)[0] for name in "abcd"}
    most = sorted(used, key=lambda name: (-used[name], name))[:3]
    borrowers = "biggest borrowers: " + ", ".join(f"{name} +{used[name]}" for name in most)
    for name in "abcd":
        whole = (
            f"gpu asks 1; root 42/42 in use; {name} uses {used[name]} of guaranteed 0, so it may "
            f"only borrow idle quota; {borrowers}"
        )
        assert set(reported(world, name)) == {whole}


def reported(world: FakeCluster, space: str) -> list[str]:
    """The messages of the pods that wait in this namespace."""
    return [
        each.message
        for pod in world.waiting(space)
        for each in pod.conditions
        if each.reason != "Admitted"
    ]
