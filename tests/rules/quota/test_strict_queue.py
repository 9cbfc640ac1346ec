"""A leaf with `fairlead.io/queue: strict`: the first unit that lacks room holds back all later
units.

The oracle walks the queue of one leaf by plain sums and follows these sentences alone: units are
tried by priority, then age, then name; the first that lacks room holds back all later ones;
claimants pass; a unit that waits for another reason holds back none.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pytest
from msgspec.structs import replace
from tests.rules.quota.many_worlds import broken, reported
from tests.rules.quota.random_worlds import random_recipe, with_strict_leaves
from tests.rules.quota.small import SmallWorld, tree

from fairlead.model.quota.plan import QuotaPlan, QuotaWaiting, Reason
from fairlead.model.quota.state import NodeRoom, QuotaPod
from fairlead.model.quota.tree import QuotaNode

STRICT = {"fairlead.io/queue": "strict"}
SEEDS = [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(200, 2000, 200))]


def strict_tree(text: str, *leaves: str, **more: Mapping[str, str]) -> QuotaNode:
    return tree(
        text, {**more, **{leaf: {**STRICT, **more.get(leaf, {})} for leaf in leaves or ("a",)}}
    )


def waits(world: SmallWorld, leaf: str = "a") -> list[tuple[str, str]]:
    """The waiting units of a leaf, each with its reason, in the order of the plan."""
    return [
        (each.unit, str(each.reason))
        for each in world.plan(world.state()).waiting
        if each.leaf == leaf
    ]


# --- a big pod behind small ones ------------------------------------------------------------------


@pytest.mark.parametrize(("queue", "starves"), [("strict", False), ("backfill", True), ("", True)])
def test_a_big_pod_behind_a_stream_of_small_ones(queue: str, starves: bool) -> None:
    """Each second one small pod ends and another comes. Ten run at first; the large pod requests
    five of ten.
    """
    world = SmallWorld(
        tree("root[10]{a[10]}", {"a": {"fairlead.io/queue": queue}} if queue else {})
    )
    world.add("a", 10, 1, runs=True, owner="none")
    world.add("a", 1, 5)
    big = max(world.pods)
    seconds = 0
    while not world.pods[big].is_admitted and seconds < 100:
        seconds += 1
        oldest = min(
            (pod for pod in world.pods.values() if pod.is_admitted),
            key=lambda pod: (pod.created_at, pod.name),
        )
        world.remove(lambda pod, gone=oldest.key: pod.key != gone)
        world.add("a", 1, 1)
        world.step()
    assert world.pods[big].is_admitted is not starves
    assert seconds == (100 if starves else 5), "as soon as five of the small ones have ended"
    assert world.evictions == 0


def test_later_units_are_held_with_a_reason_and_a_sentence_of_their_own() -> None:
    world = SmallWorld(strict_tree("root[20]{a[10/10] b[10]}"))
    world.add("a", 8, 1, runs=True)
    world.add("a", 1, 5)
    world.add("a", 3, 1)
    plan = world.step()
    assert plan.is_empty
    assert [
        (each.unit, str(each.reason), each.position, each.message) for each in plan.waiting
    ] == [
        ("a/p009", "OverMax", 1, "gpu asks 5; a uses 8 of max 10"),
        (
            "a/p010",
            "QueuedBehind",
            2,
            "waits behind a/p009, which is first in the strict queue of a",
        ),
        (
            "a/p011",
            "QueuedBehind",
            3,
            "waits behind a/p009, which is first in the strict queue of a",
        ),
        (
            "a/p012",
            "QueuedBehind",
            4,
            "waits behind a/p009, which is first in the strict queue of a",
        ),
    ]


# --- the order ------------------------------------------------------------------------------------


def test_a_later_unit_within_the_min_waits_for_an_earlier_one_that_borrows() -> None:
    """The leaf uses 8 of its min of 10. The first unit requests 4, the second 2."""
    world = SmallWorld(strict_tree("root[20]{a[10] b[10]}"))
    world.add("b", 10, 1, runs=True)
    world.add("a", 4, 2, runs=True)
    world.add("a", 1, 4)
    world.add("a", 1, 2)
    assert world.step().is_empty
    assert waits(world) == [("a/p005", "WaitingForIdleQuota"), ("a/p006", "QueuedBehind")]


def test_priority_goes_before_age() -> None:
    world = SmallWorld(strict_tree("root[10]{a[10]}"))
    world.add("a", 8, 1, runs=True)
    world.add("a", 1, 5)
    world.add("a", 1, 2, priority=10)
    assert [each.pod.name for each in world.step().admit] == ["p010"]


def test_among_equals_the_user_who_has_less_is_first() -> None:
    root = strict_tree("root[10]{a[10]}", a={"fairlead.io/user-order": "fair"})
    world = SmallWorld(root)
    world.add("a", 3, 2, runs=True, user="ann")
    world.add("a", 1, 5, user="ann")
    world.add("a", 1, 3, user="bob")
    world.add("a", 1, 1, user="bob")
    plan = world.step()
    assert [each.pod.name for each in plan.admit] == ["p005", "p006"]
    assert [(each.unit, each.reason) for each in plan.waiting] == [("a/p004", Reason.OVER_MAX)]


def test_a_gang_is_first_by_its_eldest_member() -> None:
    world = SmallWorld(strict_tree("root[10]{a[10]}"))
    world.add("a", 8, 1, runs=True)
    world.add("a", 1, 1, gang="g", gang_size=3)
    world.add("a", 1, 1)
    world.add("a", 2, 1, gang="g", gang_size=3)
    assert world.step().is_empty
    assert [reason for _, reason in waits(world)] == ["OverMax", "QueuedBehind"]


@pytest.mark.parametrize("kind", ["PyTorchJob", "Job"])
def test_pods_of_a_job_that_was_resumed_go_before_a_unit_that_came_while_it_was_suspended(
    kind: str,
) -> None:
    """Its pods are created after that unit. If they stood behind it, they would wait while the
    job's deadline runs.
    """
    world = SmallWorld(strict_tree("root[10]{a[10/10]}"))
    world.add("a", 8, 1, runs=True)
    world.add_job("a", "train", 2, 1, kind=kind)
    (job,) = world.workloads.values()
    world.workloads[job.uid] = replace(job, is_suspended=True, suspended_for="first-admission")
    members = [pod for pod in world.pods.values() if pod.owner == job.uid]
    world.remove(lambda pod: pod.owner != job.uid)
    world.add("a", 1, 5)
    assert [each.workload.name for each in world.step().resume] == ["train"]
    for number, pod in enumerate(members):
        world.pods[f"a/made-{number}"] = replace(
            pod, name=f"made-{number}", uid=f"uid-made-{number}", created_at=world.now
        )
    assert [each.pod.name for each in world.step().admit] == ["made-0", "made-1"]
    assert waits(world) == [("a/p011", "OverMax")]


# --- units that hold back no others ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "reason"),
    [
        ({"request": 11}, "NeverFits"),
        ({"gated_by": "other.io/gate"}, "GatedByOthers"),
        ({"gang": "g", "gang_size": 2}, "GangIncomplete"),
        ({"user": "ann", "request": 3}, "UserCap"),
        ({"is_preemptible": False, "request": 4}, "NonPreemptibleOverMin"),
    ],
    ids=str,
)
def test_a_unit_that_waits_for_another_reason_holds_no_others(
    held: dict[str, Any], reason: str
) -> None:
    root = strict_tree("root[10]{a[6] b[4]}")
    a, b = root.children
    world = SmallWorld(replace(root, children=(replace(a, user_cap={"gpu": 2}), b)))
    world.add("a", 1, 3, runs=True, is_preemptible=False)
    world.add("a", 1, held.pop("request", 1), **held)
    world.add("a", 1, 2)
    assert [each.pod.name for each in world.step().admit] == ["p003"]
    assert waits(world) == [("a/p002", reason)]


def test_a_job_over_the_count_of_jobs_holds_no_others() -> None:
    world = SmallWorld(strict_tree("root[10]{a[10]}"))
    [leaf] = world.tree.children
    world.tree = replace(world.tree, children=(replace(leaf, max={"kube-queue/max-jobs": 1}),))
    world.add("a", 1, 1, runs=True, owner="one")
    world.add("a", 1, 1, owner="two")
    world.add("a", 1, 1, owner="one")
    assert [each.pod.name for each in world.step().admit] == ["p003"]


# --- nodes ----------------------------------------------------------------------------------------


def test_a_unit_that_no_node_has_room_for_holds_the_later_ones_until_there_is() -> None:
    """Each node has two GPUs free; a stream of small pods would fill them."""
    nodes = tuple(NodeRoom(name, {"gpu": 4}) for name in ("n1", "n2"))
    world = SmallWorld(strict_tree("root[8]{a[8]}"), nodes=nodes)
    world.add("a", 1, 2, runs=True)
    world.add("a", 1, 2, runs=True)
    world.change("a/p002", node="n2")
    world.add("a", 1, 4)
    world.add("a", 1, 1)
    assert world.step().is_empty
    assert waits(world) == [("a/p003", "NoFitOnNodes"), ("a/p004", "QueuedBehind")]
    world.remove(lambda pod: pod.name != "p002")
    assert [each.pod.name for each in world.step().admit] == ["p003", "p004"]


@pytest.mark.parametrize(
    "held",
    [
        {"request": 5},
        {"request": {"gpu": 1, "memory": 9}},
        {"card_units": 3, "request": {"gpu": 3}},
    ],
    ids=str,
)
def test_a_unit_that_no_node_can_ever_hold_holds_no_others(held: dict[str, Any]) -> None:
    cards = {"aliyun.com/gpu-mem": 4}
    nodes = tuple(
        NodeRoom(name, {"gpu": 4, "memory": 8, **cards}, holes=(2, 2)) for name in ("n1", "n2")
    )
    world = SmallWorld(strict_tree("root[8]{a[8]}"), nodes=nodes)
    world.add("a", 1, held.pop("request"))
    if held:
        world.change("a/p001", **held)
    world.add("a", 1, 1)
    assert [each.pod.name for each in world.step().admit] == ["p002"]
    assert waits(world) == [("a/p001", "NoFitOnNodes")]


# --- claims, evictions and other leaves -----------------------------------------------------------


def test_the_first_takes_its_min_back_and_the_next_is_tried_beside_its_claim() -> None:
    world = SmallWorld(strict_tree("root[20]{a[10] b[10]}"), grace=3)
    world.add("b", 17, 1, runs=True)
    world.add("a", 1, 5)
    world.add("a", 1, 2)
    world.add("a", 1, 4)
    plan = world.step()
    assert [each.unit for each in plan.claims] == ["a/p001", "a/p002"]
    assert {each.for_unit for each in plan.evict} == {"a/p001", "a/p002"}
    assert waits(world) == [
        ("a/p001", "WaitingForEvictions"),
        ("a/p002", "WaitingForEvictions"),
        ("a/p003", "WaitingForIdleQuota"),
    ]
    world.settle()
    assert world.running("a", "b") == (2, 13)


def test_a_claimant_passes_one_of_higher_priority_that_came_later() -> None:
    world = SmallWorld(strict_tree("root[20]{a[10] b[10]}"), grace=3)
    world.add("b", 20, 1, runs=True)
    world.add("a", 1, 5)
    world.step()
    world.add("a", 1, 11, priority=100)
    world.add("a", 1, 1)
    world.settle()
    assert world.pods["a/p001"].is_admitted
    assert waits(world) == [("a/p002", "WaitingForIdleQuota"), ("a/p003", "QueuedBehind")]


def test_the_first_holds_no_room_above_its_leaf() -> None:
    world = SmallWorld(strict_tree("root[10]{a[0] b[0]}"))
    world.add("a", 3, 1, runs=True)
    world.add("b", 3, 1, runs=True)
    world.add("a", 1, 5)
    world.add("a", 1, 1)
    world.add("b", 3, 1)
    assert {each.pod.namespace for each in world.step().admit} == {"b"}
    assert waits(world) == [("a/p004", "WaitingForIdleQuota"), ("a/p005", "QueuedBehind")]


def test_units_admitted_after_one_that_gives_way_in_the_same_plan_give_way_too() -> None:
    """The first unit of `b` is at its user's cap, so the guarantee of the second is considered only
    after `a` has borrowed it.
    """
    root = strict_tree("root[12]{a[0] b[6] c[6]}", "a", "b")
    a, b, c = root.children
    world = SmallWorld(replace(root, children=(a, replace(b, user_cap={"gpu": 2}), c)))
    world.add("a", 1, 8, priority=10)
    world.add("a", 1, 2, priority=10)
    world.add("b", 1, 7, user="ann")
    world.add("b", 1, 6)
    plan = world.step()
    assert [each.pod.key for each in plan.admit] == ["b/p002"]
    assert not plan.evict
    assert waits(world) == [("a/p001", "WaitingForIdleQuota"), ("a/p002", "QueuedBehind")]


def test_two_that_give_way_together_are_taken_back_once() -> None:
    """The single pod of `a` gives way before the gang that was admitted after it; then only the
    room of `d` is left for `c`.
    """
    root = strict_tree("root[16]{a[4] b[10] c[2] d[0]}", "a", "b", "c")
    a, b, c, d = root.children
    world = SmallWorld(
        replace(
            root, children=(a, replace(b, user_cap={"gpu": 2}), replace(c, user_cap={"gpu": 1}), d)
        )
    )
    world.add("d", 1, 2, runs=True)
    world.add("a", 1, 4, runs=True)
    world.add("a", 1, 5, priority=10)
    world.add("a", 2, 2, priority=10, gang="g", gang_size=2)
    world.add("b", 1, 11, user="ann", priority=5)
    world.add("b", 1, 10, priority=5)
    world.add("c", 1, 3, user="ann")
    world.add("c", 1, 2)
    plan = world.step()
    assert [each.pod.key for each in plan.admit] == ["b/p002"]
    assert [(each.pod.key, each.for_unit) for each in plan.evict] == [("d/p001", "c/p002")]
    assert [reason for _, reason in waits(world)] == ["WaitingForIdleQuota", "QueuedBehind"]


def test_a_first_unit_whose_victims_a_budget_protects_holds_the_later_ones() -> None:
    """3 of 20 are idle. The first unit would evict 2 pods, which the budget refuses; the second
    would fit now.
    """
    world = SmallWorld(strict_tree("root[20]{a[10] b[10]}"), budgets={"b/all": 0})
    world.add("b", 17, 1, runs=True, budgets=("b/all",))
    world.add("a", 1, 5)
    world.add("a", 1, 2)
    assert world.step().is_empty
    assert waits(world) == [("a/p001", "PDBBlocked"), ("a/p002", "QueuedBehind")]


def test_a_strict_leaf_is_planned_again_when_another_leaf_frees_room() -> None:
    """One account serves all plans, as in the controller; only the other leaf changes."""
    from fairlead.rules.quota.account import account_of
    from fairlead.rules.quota.plan import plan_account

    world = SmallWorld(strict_tree("root[10]{a[0] b[0]}"))
    world.add("b", 6, 1, runs=True)
    world.add("a", 1, 5)
    world.add("a", 2, 1)
    account = account_of(world.state())
    assert plan_account(account, world.now).plan().is_empty
    assert plan_account(account, world.now + 1).plan().is_empty
    printed = {row.unit: str(row.reason) for row in plan_account(account, world.now + 2).waiting()}
    assert printed == {
        "a/p001": "WaitingForIdleQuota",
        "a/p002": "QueuedBehind",
        "a/p003": "QueuedBehind",
    }
    account.drop("uid-b/p001")
    assert [each.pod.name for each in plan_account(account, world.now + 3).admit] == ["p001"]
    account.put(replace(account.pods["uid-a/p001"], is_admitted=True, node="n"))
    printed = {row.unit: row.message for row in plan_account(account, world.now + 4).waiting()}
    assert set(printed) == {"a/p002", "a/p003"}
    account.drop("uid-b/p002")
    assert [each.pod.name for each in plan_account(account, world.now + 5).admit] == ["p002"]


# --- the queue of one leaf, walked by plain sums --------------------------------------------------


@pytest.mark.parametrize("first", SEEDS)
def test_one_leaf_admits_what_its_line_admits_walked_by_hand(first: int) -> None:
    """Equal priorities cause no evictions, so each plan admits the beginning of the queue, except
    units that can never fit.
    """
    held = 0
    for seed in range(first, first + 200):
        world = one_leaf(random.Random(seed))
        expected, holder = walked(world)
        plan = world.step()
        assert sorted({each.pod.gang or each.pod.name for each in plan.admit}) == sorted(
            expected
        ), f"seed {seed}"
        named = {each.message for each in plan.waiting if each.reason is Reason.QUEUED_BEHIND}
        assert named <= {f"waits behind {holder}, which is first in the strict queue of a"}, (
            f"seed {seed}"
        )
        assert not plan.evict, f"seed {seed}"
        held += bool(named)
    assert held > 50, held


def one_leaf(rng: random.Random) -> SmallWorld:
    world = SmallWorld(
        strict_tree(f"root[{rng.randint(8, 16)}]{{a[{rng.randint(0, 8)}]}}"), seed=rng.random()
    )
    for number in range(rng.randint(3, 9)):
        count = rng.choice((1, 1, 1, 2, 3))
        gang = (
            {"gang": f"g{number}", "gang_size": count + (rng.random() < 0.1)} if count > 1 else {}
        )
        runs = number < 3 and not gang
        world.add("a", count, rng.randint(1, 6), runs=runs and rng.random() < 0.7, **gang)
    world.pods = {
        key: pod for key, pod in world.pods.items() if not pod.is_admitted or within(world, key)
    }
    return world


def within(world: SmallWorld, key: str) -> bool:
    """Whether the pod has room beside the pods that run before it: no world begins
    above its max.
    """
    there = [pod for other, pod in world.pods.items() if other <= key and pod.is_admitted]
    return asked(there) <= world.tree.max["gpu"]


def walked(world: SmallWorld) -> tuple[list[str], str]:
    """Names of gangs and pods that are admitted, and the key of the unit that holds
    back the rest.
    """
    used, most = asked(pod for pod in world.pods.values() if pod.is_admitted), world.tree.max["gpu"]
    units: defaultdict[str, list[QuotaPod]] = defaultdict(list)
    for pod in world.pods.values():
        if not pod.is_admitted:
            units[pod.gang or pod.name].append(pod)
    admitted = []
    for name, pods in sorted(units.items(), key=lambda each: place(each[1])):
        if asked(pods) > most or len(pods) < pods[0].gang_size:
            continue
        if used + asked(pods) > most:
            return admitted, f"a/{min(pods, key=lambda pod: (pod.created_at, pod.name)).name}"
        used += asked(pods)
        admitted.append(name)
    return admitted, ""


def asked(pods: Iterable[QuotaPod]) -> int:
    return sum(pod.request["gpu"] for pod in pods)


def place(pods: Sequence[QuotaPod], jobs: Mapping[str, float] = {}) -> tuple[object, ...]:
    """The sort key of a unit in the queue. `jobs`: creation times of jobs that can be suspended;
    their pods count as equally old.
    """
    eldest = min(pods, key=lambda pod: (pod.created_at, pod.name))
    age = min(eldest.created_at, jobs.get(eldest.owner, eldest.created_at))
    return -max(pod.priority for pod in pods), age, eldest.namespace, eldest.name


# --- random worlds --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(60, 600, 60))]
)
def test_no_plan_admits_a_unit_behind_one_that_lacks_room(first: int) -> None:
    """Trees of several levels, gangs, budgets, evictions, nodes: before a unit that is admitted
    without a claim, none lacks room.
    """
    queued = passed = 0
    for seed in range(first, first + 60):
        recipe = with_strict_leaves(random_recipe(seed))
        world = recipe.world()
        for _ in range(12):
            before = dict(world.pods)
            plan = world.step()
            try:
                queued += check_line(world, recipe.tree, plan, before)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}: {error}") from error
            passed += len(plan.admit)
            leaf = random.Random(seed + queued).choice(list(recipe.tree.leaves()))
            world.add(leaf.name, 1, dict.fromkeys(recipe.tree.min, 1))
    assert queued > 50, queued
    assert passed > 50, passed


def check_line(
    world: SmallWorld, root: QuotaNode, plan: QuotaPlan, before: Mapping[str, QuotaPod]
) -> int:
    """Asserts the invariants of each strict leaf after a plan; returns the number of units that are
    held back.
    """
    queued = 0
    for leaf in root.leaves():
        rows = [row for row in plan.waiting if row.leaf == leaf.name]
        overall = [row.overall for row in sorted(rows, key=lambda row: row.position)]
        assert overall == sorted(overall), f"{leaf.name}: {overall} is not the order of the leaf"
        kept = [row for row in rows if row.reason is Reason.QUEUED_BEHIND]
        if leaf.attributes.get("fairlead.io/queue") != "strict":
            assert not kept, f"{leaf.name} is not strict"
            continue
        queued += len(kept)
        named = {row.message.split(" ")[2].rstrip(",") for row in kept}
        assert len(named) <= 1, f"{leaf.name} has several that are first: {named}"
        holder = next((row for row in rows if row.unit in named), None)
        assert bool(kept) <= (holder is not None), f"{named} does not wait"
        if holder is not None:
            assert holder.reason in (
                Reason.WAITING_FOR_IDLE_QUOTA,
                Reason.OVER_MAX,
                Reason.PDB_BLOCKED,
                Reason.NO_FIT_ON_NODES,
            ), holder
            assert rows.index(holder) < rows.index(kept[0]), "it stands after those that it holds"
        if leaf.attributes.get("fairlead.io/user-order") == "fair" or not before:
            continue
        jobs = {uid: job.created_at for uid, job in world.workloads.items() if job.can_suspend}
        lacking = [
            row for row in rows if lacks_room(row) and row.pods and not before_claims(row, before)
        ]
        for group in admitted_units(plan, leaf.name):
            if any(
                before[pod.key].claim_since is not None or is_partial(before, pod)
                for pod in group
                if pod.key in before
            ):
                continue
            passed = [row.unit for row in lacking if place(row.pods, jobs) < place(group, jobs)]
            assert not passed, f"{[pod.key for pod in group]} went before {passed}"
        for row in kept:
            if row.pods and holder is not None and holder.pods:
                assert place(holder.pods, jobs) < place(row.pods, jobs), (
                    f"{row.unit} stands before {holder.unit}"
                )
    return queued


def lacks_room(row: QuotaWaiting) -> bool:
    """Only the certain cases: NoFitOnNodes may last for ever, and the surplus of a gang waits for
    its gang.
    """
    return row.reason in (
        Reason.WAITING_FOR_IDLE_QUOTA,
        Reason.OVER_MAX,
        Reason.PDB_BLOCKED,
    ) and not row.message.startswith("gang ")


def before_claims(row: QuotaWaiting, before: Mapping[str, QuotaPod]) -> bool:
    return any(before[pod.key].claim_since is not None for pod in row.pods if pod.key in before)


def admitted_units(plan: QuotaPlan, leaf: str) -> list[list[QuotaPod]]:
    units: defaultdict[str, list[QuotaPod]] = defaultdict(list)
    for each in plan.admit:
        if each.leaf == leaf:
            units[each.pod.gang or each.pod.key].append(each.pod)
    return list(units.values())


def is_partial(before: Mapping[str, QuotaPod], pod: QuotaPod) -> bool:
    """Whether other members of its gang ran already."""
    return bool(pod.gang) and any(
        each.is_admitted and (each.namespace, each.gang) == (pod.namespace, pod.gang)
        for each in before.values()
    )


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(20, 200, 20))]
)
def test_the_properties_of_any_plan_hold_with_strict_leaves(first: int) -> None:
    for seed in range(first, first + 20):
        recipe = with_strict_leaves(random_recipe(seed))
        assert not broken(recipe), reported(recipe)
