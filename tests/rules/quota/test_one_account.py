"""One account for sentence and table: every number in what a plan says is the number of `quota tree`, of the status and of the
metrics, over random trees, and over clusters that have less than the mins promise.
"""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace
from tests.rules.quota.random_worlds import on_nodes, random_recipe

from fairlead.model.quota.plan import QuotaNodeUse, QuotaPlan, QuotaWaiting
from fairlead.model.quota.state import QuotaState
from fairlead.model.quota.told import read_clauses
from fairlead.model.resources import amount_text
from fairlead.rules.quota.plan import plan_quota
from fairlead.rules.quota.usage import usage_of

FULL = (
    *("in-use", "in-use-there", "in-use-promised", "in-use-there-promised"),
    *("at-max", "at-nodes", "at-max-promised", "at-nodes-promised"),
)


def after(state: QuotaState, plan: QuotaPlan) -> QuotaState:
    """The state as its plan leaves it: who is admitted has no gate any more."""
    admitted = {each.pod.key for each in plan.admit}
    pods = tuple(replace(pod, is_admitted=True, claim_since=None) if pod.key in admitted else pod for pod in state.pods)
    return replace(state, pods=pods)


def wrong(row: QuotaWaiting, table: dict[str, QuotaNodeUse], state: QuotaState) -> list[str]:
    """Clauses of a sentence with a number that the table does not have."""
    found = []
    nodes = {node.name: node for node in state.tree.walk()}
    clauses = read_clauses(row.message)
    resource = next((values["resource"] for _, values, _ in clauses if "resource" in values), "")
    for code, values, words in clauses:
        name = values.get("node") or values.get("leaf") or ""
        if name not in table or code in ("owed", "firm", "cap", "room-again", "min-is", "max-is"):
            continue
        own, named = table[name], values.get("resource") or resource
        if (code in FULL or "min" in values) and values["used"] != amount_text(named, own.used.get(named, 0)):
            found.append(f"{words}: {name} uses {own.used}")
        if "min" in values and code not in FULL:
            least = own.counted_min.get(named, nodes[name].min.get(named, 0))
            if values["min"] != amount_text(named, least):
                found.append(f"{words}: min of {name} counts as {least}")
    borrowed = {leaf.name: over for leaf in state.tree.leaves() if (over := table[leaf.name].borrowed.get(resource, 0))}
    for code, values, words in clauses:
        if code == "nobody-borrows" and borrowed:
            found.append(f"{words}: {borrowed}")
        if code == "borrowers":
            told = dict(each.split(" +") for each in values["leaves"].split(", "))
            found += [f"{words}: {borrowed}" for leaf, over in told.items() if over != amount_text(resource, borrowed.get(leaf, 0))]
    return found


def looks(seed: int) -> list[tuple[QuotaState, QuotaPlan]]:
    """The states and plans of a random life; every second one in a cluster that has less than is promised."""
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


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(60, 300, 60))])
def test_every_number_of_a_sentence_is_the_number_of_the_table(first: int) -> None:
    for seed in range(first, first + 60):
        for state, plan in looks(seed):
            table = {use.node.name: use.own for use in usage_of(after(state, plan))}
            for row in plan.waiting:
                assert not wrong(row, table, state), (seed, row.unit, row.message, wrong(row, table, state))
