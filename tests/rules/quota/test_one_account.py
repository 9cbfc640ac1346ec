"""Sentences and tables agree: every number in a plan's message is also the number of `quota tree`,
of the status and of the metrics, over random trees, and over clusters that have less than the mins
promise.
"""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from tests.rules.quota.one_account import wrong
from tests.rules.quota.random_worlds import on_nodes, random_recipe
from tests.rules.quota.small import SmallWorld, tree

from fairlead.model.quota.plan import QuotaPlan, Reason
from fairlead.model.quota.rows import Workload, scaled
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.rules.quota.plan import plan_quota
from fairlead.rules.quota.usage import usage_of


def after(state: QuotaState, plan: QuotaPlan) -> QuotaState:
    """The state after its plan is carried out: admitted pods have no gate, claimants have the
    condition, jobs are resumed.
    """
    admitted = {each.pod.key for each in plan.admit}
    claimed = {pod.key for claim in plan.claims for pod in claim.pods}

    def reported(pod: QuotaPod) -> QuotaPod:
        if pod.key in admitted:
            return replace(pod, is_admitted=True, claim_since=None, condition_reason="")
        if pod.key not in claimed:
            return replace(pod, claim_since=None)
        return replace(
            pod,
            claim_since=state.now if pod.claim_since is None else pod.claim_since,
            condition_reason=str(Reason.WAITING_FOR_EVICTIONS),
        )

    return replace(
        state,
        pods=tuple(map(reported, state.pods)),
        workloads={**state.workloads, **resumed(state, plan)},
    )


def resumed(state: QuotaState, plan: QuotaPlan) -> dict[str, Workload]:
    """Resumed jobs, as the controller sees them until their pods exist."""
    found: dict[str, Workload] = {}
    for each in plan.resume:
        job = found.get(each.workload.uid, each.workload)
        if each.pods:
            running = 0 if job.is_suspended else job.pods
            job = scaled(job, running + each.pods, job.own_parallelism or job.parallelism)
        found[job.uid] = replace(job, is_suspended=False, suspended_for="", is_awaited=True)
    return found


def looks(seed: int) -> list[tuple[QuotaState, QuotaPlan]]:
    """The states and plans of a random world; every second world has a cluster with less than is
    promised.
    """
    recipe = random_recipe(seed)
    if seed % 2:
        recipe = on_nodes(recipe, random.Random(f"nodes {seed}"))
    seen: list[tuple[QuotaState, QuotaPlan]] = []

    def plan(state: QuotaState) -> QuotaPlan:
        made = plan_quota(state)
        seen.append((state, made))
        return made

    recipe.world(plan=plan).settle()
    return seen


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(60, 300, 60))]
)
def test_every_number_of_a_sentence_is_the_number_of_the_table(first: int) -> None:
    for seed in range(first, first + 60):
        for state, plan in looks(seed):
            table = {use.node.name: use.own for use in usage_of(after(state, plan))}
            for row in plan.waiting:
                assert not wrong(row, table, state), (
                    seed,
                    row.unit,
                    row.message,
                    wrong(row, table, state),
                )


def test_room_kept_for_a_member_that_comes_late_is_promised_in_every_table() -> None:
    """An MPIJob's two workers claim and run, and its launcher comes last: 3 are promised, then 1
    for the launcher, then nothing.
    """
    job = Workload(
        "MPIJob",
        "",
        "a",
        "mpi",
        "u",
        can_suspend=True,
        pods=3,
        request={"gpu": 3},
        least=2,
        late={"gpu": 1},
        late_pods=1,
    )
    world = SmallWorld(tree("root[4]{a[3] b[1]}"), grace=3)
    world.workloads["u"] = job
    world.add("b", 4, runs=True)
    world.add("a", 2, gang="mpi", gang_size=2, owner="u")

    def promised() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
        """What the plan reports, and what boards and `quota tree` show afterwards: claimed,
        claimed, used.
        """
        plan = world.step()
        reported = next(row for row in plan.nodes if row.name == "a")
        [shown] = [use.own for use in usage_of(world.state()) if use.node.name == "a"]
        return dict(reported.claimed), dict(shown.claimed), dict(shown.used)

    assert promised() == ({"gpu": 3}, {"gpu": 3}, {})
    for _ in range(5):
        reported, shown, _ = promised()
    assert (reported, shown, world.running("a", "b")) == ({"gpu": 1}, {"gpu": 1}, (2, 1))
    reported_to_b = {row.message for row in world.step().waiting if row.leaf == "b"}
    assert reported_to_b and all("root 3/4 in use, 1 promised" in each for each in reported_to_b), (
        reported_to_b
    )
    world.add("a", 1, gang="mpi", gang_size=2, owner="u")
    assert promised()[1:] == ({}, {"gpu": 3})
