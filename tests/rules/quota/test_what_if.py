"""What-if questions about the specification's demo and scenarios, answered from a plan that is not
carried out.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.quota.fake_cluster import FakeCluster
from tests.rules.quota.small import tree

from fairlead.errors import UserError
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.rules.quota.what_if import (
    AddedPods,
    SettledQuota,
    running_by_leaf,
    settle,
    with_pods,
    without_pods,
)

DEMO = tree("root[40]{a[20/40]{a1[10/20] a2[10/20]} b[20/40]{b1[10/20] b2[10/20]}}", resource="cpu")


def running_pods(
    space: str, count: int, cpu: int = 5, first: int = 0, **more: Any
) -> tuple[QuotaPod, ...]:
    made = []
    for number in range(first, first + count):
        pod = QuotaPod(
            space,
            f"{space}-{number}",
            f"{space}/{number}",
            {"cpu": 1000 * cpu},
            created_at=float(number),
            owner=f"of-{space}",
        )
        made.append(
            replace(pod, is_admitted=True, is_ready=True, admitted_at=float(number), **more)
        )
    return tuple(made)


def add(state: QuotaState, space: str, count: int, cpu: int = 5, **more: Any) -> SettledQuota:
    return settle(with_pods(state, [AddedPods(space, count, {"cpu": 1000 * cpu}, **more)]))


def counts(settled: SettledQuota) -> list[int]:
    return list(running_by_leaf(settled.state).values())


def reasons(settled: SettledQuota) -> Counter[tuple[str, str]]:
    return Counter((each.leaf, str(each.reason)) for each in settled.plan.waiting)


def test_the_demo_of_the_contract_step_by_step() -> None:
    state = QuotaState(DEMO)
    table: list[tuple[list[int], int, Counter[str]]] = []
    evictions = 0
    for space in ("a1", "a2", "b1", "b2"):
        settled = add(state, space, 5)
        evictions += len(settled.evicted)
        table.append(
            (counts(settled), evictions, Counter(each.leaf for each in settled.plan.waiting))
        )
        state = replace(settled.state, now=settled.state.now + 60)

    assert [row[0] for row in table] == [[4, 0, 0, 0], [4, 4, 0, 0], [3, 3, 2, 0], [2, 2, 2, 2]]
    assert [row[1] for row in table] == [0, 0, 2, 4]
    assert table[2][2] == Counter(a1=2, a2=2, b1=3)
    assert table[3][2] == Counter(a1=3, a2=3, b1=3, b2=3)
    assert {reason for _, reason in reasons(settled)} == {"WaitingForIdleQuota"}


def test_victims_of_a_deployment_wait_in_its_place_and_bare_pods_are_gone() -> None:
    root = tree("root[20]{a[0] b[20]}", resource="cpu")
    pods = running_pods("a", 4)
    pods = (*pods[:3], replace(pods[3], owner=""))

    settled = add(QuotaState(root, pods, now=100.0), "b", 4)

    assert counts(settled) == [0, 4]
    assert len(settled.evicted) == 4
    assert sorted(each.unit for each in settled.plan.waiting) == ["a/a-0+1", "a/a-1+1", "a/a-2+1"]


def test_a_pod_that_is_evicted_twice_counts_on() -> None:
    root = tree("root[10]{a[0] b[5] c[10]}", resource="cpu")
    before = QuotaState(root, running_pods("a", 1), now=10.0)
    first = add(before, "c", 2)
    assert [each.unit for each in first.plan.waiting] == ["a/a-0+1"]

    free = settle(without_pods(first.state, ["c/added-1"]))
    assert [each.pod.key for each in free.admitted] == ["a/a-0+1"]

    again = add(free.state, "b", 1)
    assert [each.pod.key for each in again.evicted] == ["a/a-0+1"]
    assert [each.unit for each in again.plan.waiting] == ["a/a-0+2"]


def test_a_budget_lets_go_as_many_as_it_allows_until_its_pods_are_back() -> None:
    root = tree("root[20]{a[0] b[20]}", resource="cpu")
    pods = running_pods("a", 4, budgets=("a/web",))

    settled = add(QuotaState(root, pods, budgets={"a/web": 1}, now=100.0), "b", 4)

    assert counts(settled) == [3, 1]
    assert len(settled.evicted) == 1
    assert reasons(settled)["b", "PDBBlocked"] == 3


def test_a_gang_is_admitted_whole_or_not_at_all() -> None:
    root = tree("root[4]{a[0] b[4]}", resource="cpu")
    state = QuotaState(root, running_pods("a", 3, cpu=1), now=100.0)

    whole = add(state, "b", 4, cpu=1, gang=4)
    assert counts(whole) == [0, 4]
    assert len(whole.evicted) == 3

    short = add(state, "b", 3, cpu=1, gang=4)
    assert counts(short) == [3, 0]
    assert "3/4 pods exist" in short.plan.waiting[0].message


def test_priority_evicts_inside_the_leaf() -> None:
    root = tree("root[20]{a[10] b[10]}", resource="cpu")
    settled = add(QuotaState(root, running_pods("a", 4), now=100.0), "a", 1, priority=100)

    assert counts(settled) == [4, 0]
    assert [each.pod.key for each in settled.evicted] == ["a/a-3"]


def test_a_surge_pod_swaps_with_its_predecessor_after_a_while() -> None:
    root = tree("root[5]{a[5]}", resource="cpu")
    old = running_pods("a", 1, deployment="web", revision=1)
    new = QuotaPod(
        "a",
        "new",
        "new",
        {"cpu": 5000},
        created_at=90.0,
        owner="of-a",
        deployment="web",
        revision=2,
    )

    settled = settle(QuotaState(root, (*old, new), now=100.0))

    assert [each.pod.key for each in settled.evicted] == ["a/a-0"]
    assert [each.pod.key for each in settled.admitted] == ["a/new"]
    assert settled.state.now >= 150.0, "sixty seconds after the newer pod came"


def test_stopping_pods_go_and_make_room() -> None:
    root = tree("root[5]{a[5]}", resource="cpu")
    stopping = running_pods("a", 1, is_stopping=True)
    settled = add(QuotaState(root, stopping, now=100.0), "a", 1)

    assert counts(settled) == [1]
    assert not settled.evicted


def test_another_tree_takes_effect_on_the_same_pods() -> None:
    before = tree("root[20]{a[0] b[0]}", resource="cpu")
    pods = (
        *running_pods("a", 4),
        QuotaPod("b", "p", "p", {"cpu": 5000}, created_at=9.0, owner="of-b"),
    )
    state = QuotaState(before, pods, now=100.0)
    assert not settle(state).evicted

    after = settle(replace(state, tree=tree("root[20]{a[10] b[5]}", resource="cpu")))

    assert [each.pod.key for each in after.evicted] == ["a/a-3"]
    assert counts(after) == [3, 1]


def test_names_that_are_taken_are_not_given_again() -> None:
    root = tree("root[20]{a[20]}", resource="cpu")
    state = with_pods(
        QuotaState(root), [AddedPods("a", 2, {"cpu": 1000}), AddedPods("a", 1, {"cpu": 1000})]
    )
    assert [pod.name for pod in state.pods] == ["added-1", "added-2", "added-3"]


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (
            lambda state: with_pods(state, [AddedPods("x", 1, {"cpu": 1000})]),
            "namespace `x` is on no leaf of the quota tree, so quota does not count its pods",
        ),
        (lambda state: without_pods(state, ["a/none"]), "quota counts no pod `a/none`"),
        (
            lambda state: settle(
                with_pods(state, [AddedPods("a", 1, {"cpu": 1000})]), most_plans=0
            ),
            "plans do not come to an end: 0 plans with 1 admissions and 0 evictions",
        ),
    ],
)
def test_questions_without_an_answer(question: Any, sentence: str) -> None:
    state = QuotaState(tree("root[20]{a[20]}", resource="cpu"))
    with pytest.raises(UserError) as caught:
        question(state)
    assert caught.value.what == sentence


# --- the same pods as the controller --------------------------------------------------------------

LENT = tree("root[40]{a[20/40]{a1[0/40] a2[10/40]} b[20/40]}")
TAKEN_BACK = tree("root[40]{a[20/40]{a1[10/40] a2[10/40]} b[20/40]}")


def named_and_gone(sizes: Sequence[int], waiting: Sequence[int], seed: int) -> list[set[str]]:
    """`b` borrows with pods of these sizes, the eldest first, and `a1` waits; then the min of `a1`
    is raised. The victims of `settle`, and of the controller.
    """
    world = FakeCluster(LENT, seed=seed)
    for number, size in enumerate(sizes):
        world.create("Deployment", "b", f"w{number}", 1, size)
        world.run(30)
    world.settle()
    rng = random.Random(seed)
    for number, size in enumerate(waiting):
        world.create("Deployment", "a1", f"{rng.choice('mno')}{number}", 1, size)
        world.run(rng.choice((0.2, 30.0)))
    world.settle()
    assert world.machine is not None
    account = world.machine.keep(LENT, world.now)
    state = QuotaState(
        TAKEN_BACK, tuple(account.pods.values()), now=world.now, workloads=dict(account.workloads)
    )
    before, old = set(world.pods), len(world.evictions)
    named = {each.pod.uid for each in settle(state).evicted}
    world.set_tree(TAKEN_BACK)
    world.settle()
    return [named & before, set(world.evictions[old:]) & before]


def test_a_later_unit_of_one_victim_does_not_overtake_an_earlier_one_of_several() -> None:
    """Three pods of three are guaranteed room, and the youngest of `b` have one or five."""
    named, gone = named_and_gone((1, 5, 5, 5, 1, 5, 1, 5, 5, 1, 1, 1, 1, 1), (3, 3, 3), 0)
    assert named == gone and len(gone) == 5


@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 300), marks=pytest.mark.long)], ids=str
)
def test_victims_of_any_size_are_those_of_the_controller(seeds: range) -> None:
    found = []
    for seed in seeds:
        rng = random.Random(seed)
        sizes: list[int] = []
        while sum(sizes) < 38:
            size = rng.choice((1, 2, 3, 5))
            if sum(sizes) + size <= 40:
                sizes.append(size)
        found.append((seed, *named_and_gone(sizes, rng.choices((2, 3, 4), k=3), seed)))
    assert [seed for seed, named, gone in found if named != gone] == []
    assert sum(len(gone) for _, _, gone in found) > len(found), "few of these worlds evict at all"
