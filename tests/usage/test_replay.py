"""A replay of a simulated week with the tree that was in force gives the admissions that happened.

The tolerance: until a race goes the other way each admission is within a minute. From then on what
follows is another history: the median of the differences stays below a minute, GPU-hours within a
twentieth, and each difference has its cause.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from tests.examples import long_case
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.replayed_world import MODEL, lived

from fairlead.console.boards.usage.replay import quota_replay
from fairlead.console.pages.usage.replay import QuotaReplay
from fairlead.errors import UserError
from fairlead.model.usage.prices import Price
from fairlead.rules.usage.replay.changes import ModelChange


def replayed(days: float = 0.5, seed: int = 6, **more: Any) -> QuotaReplay:
    ledger, end, _ = lived(days, seed)
    words = {"period": f"{round(days * 24)}h"}
    return asyncio.run(quota_replay(ledger, more.pop("tree", None), words, end, **more))


@pytest.mark.parametrize(("seed", "unreplaced"), [(6, 1), long_case(1, 0)])
def test_half_a_day_is_replayed_as_it_was(seed: int, unreplaced: int) -> None:
    """`unreplaced`: victims whose jobs are suspended at the end; the ledger counts those that came
    again.
    """
    found = replayed(seed=seed)
    near = found.fidelity
    assert near.happened == near.replayed == near.both > 100
    assert near.within_tolerance == near.both
    assert near.median_seconds < 1
    assert (near.out_of_order, near.differences) == (0, [])
    was, now = found.totals.happened, found.totals.in_force
    assert was is not None
    assert now is not None
    assert now.evictions - unreplaced == was.evictions > 10
    assert abs(now.waited_hours - was.waited_hours) < 0.05 * was.waited_hours
    assert abs(now.gpu_hours - was.gpu_hours) < 0.02 * was.gpu_hours


@pytest.mark.parametrize(("days", "seed"), [(0.5, 3), long_case(7, 6)])
def test_where_a_race_goes_the_other_way_the_differences_are_named(days: float, seed: int) -> None:
    found = replayed(days, seed)
    near = found.fidelity
    assert near.both > 0.98 * near.happened > 100
    assert near.median_seconds < 60
    was, now = found.totals.happened, found.totals.in_force
    assert was is not None
    assert now is not None
    assert abs(now.gpu_hours - was.gpu_hours) < 0.05 * was.gpu_hours
    different = near.happened + near.replayed - near.both - near.within_tolerance
    assert sum(each.pods for each in near.differences) == different > 0
    assert {each.cause for each in near.differences} <= {"evicted", "consequence", "unknown"}


def test_more_room_takes_hours_of_waiting_away_and_leaves_more_gpus_free() -> None:
    tree = lived(0.5, 6)[2]
    assert tree.root is not None
    vision, language = tree.root.children
    most = {"nvidia.com/gpu": 32}
    children = (replace(vision, max=most), replace(language, max=most))
    wide = replace(tree, root=replace(tree.root, min=most, max=most, children=children))
    found = replayed(tree=wide, nodes=[ModelChange(MODEL, 2)])
    was, now = found.totals.in_force, found.totals.asked
    assert was is not None
    assert now is not None
    assert found.nodes == [f"{MODEL}=+2"]
    assert now.waited_hours < was.waited_hours / 4
    assert now.evictions == 0
    assert found.free_asked.gpu_hours > found.free_in_force.gpu_hours + 2 * 8 * 12 * 0.9


def test_another_tree_is_asked_about_and_costs_follow_the_price() -> None:
    ledger, end, tree = lived(0.5, 6)
    assert tree.root is not None
    ledger.added = [Price((), "EUR", 8_000_000, 0, 0)]
    vision, language = tree.root.children
    small = replace(vision, min={"nvidia.com/gpu": 2}, max={"nvidia.com/gpu": 4})
    asked = replace(tree, root=replace(tree.root, children=(small, language)))
    try:
        found = replayed(tree=asked)
    finally:
        ledger.added = []
    leaves = {each.leaf: each for each in found.leaves}
    held, before = leaves["root.vision"].asked, leaves["root.vision"].in_force
    assert held is not None
    assert before is not None
    assert held.waited_hours > before.waited_hours
    assert held.gpu_hours <= 4 * 12, "the max of the leaf, for half a day"
    assert found.currency == "EUR"
    # 8 EUR for a node with 8 GPUs, of which 0.9 are for them
    cost = float(found.free_asked.cost or 0)
    assert cost == pytest.approx(0.9 * found.free_asked.gpu_hours, rel=1e-4)
    assert end > 0


def test_what_cannot_be_replayed_is_refused_with_what_to_do() -> None:
    ledger, end, tree = lived(0.5, 6)
    assert tree.root is not None
    vision, language = tree.root.children
    lacking = replace(tree, root=replace(tree.root, children=(vision,)))
    with pytest.raises(UserError) as caught:
        replayed(tree=lacking)
    assert "the tree has no leaf for `language` (" in caught.value.what
    assert caught.value.hint == "add these namespaces to leaves of the tree"
    twice = replace(tree, root=replace(tree.root, children=(vision, language, vision)))
    with pytest.raises(UserError) as caught:
        replayed(tree=twice)
    assert caught.value.what.startswith("the tree stops every plan: ")
    with pytest.raises(UserError) as caught:
        replayed(nodes=[ModelChange("H100", 1)])
    assert caught.value.what == "no node of this time has GPUs of the model `H100`"
    assert caught.value.hint == f"the models are `{MODEL}`"
    with pytest.raises(UserError) as caught:
        replayed(nodes=[ModelChange(MODEL, -3)])
    assert "removes more nodes than the 2 that there were" in caught.value.what
    with pytest.raises(UserError) as caught:
        asyncio.run(quota_replay(MemoryLedger(), tree, {"period": "24h"}, end))
    assert caught.value.what == ("the usage ledger is empty: no recorder has written to this store")
    with pytest.raises(UserError) as caught:
        asyncio.run(quota_replay(ledger, tree, {"period": "100d"}, end))
    assert caught.value.what == "the period `100d` is longer than 90 days"
