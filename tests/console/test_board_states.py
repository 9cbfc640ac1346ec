"""The current board state: which parts are prepared in the background, and for how long."""

from __future__ import annotations

import gc
import weakref
from functools import cached_property

import msgspec
import pytest
from msgspec.structs import replace
from tests.console.clusters import EPOCH, living_cluster, quota_tree
from tests.console.quota_demo import crowded, demo
from tests.console.worlds import StillCluster, still_world
from tests.sim.small_world import small_world

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.change_hints import TopicVersions
from fairlead.console.http import board_states as board_states
from fairlead.console.http.board_states import BoardStates
from fairlead.model.quota.rows import Budget
from fairlead.model.quota.tree import QuotaTree, Violation
from fairlead_sim.world.driver import Driver


@pytest.mark.parametrize(
    ("watched_seconds", "is_ready"),
    [(60.0, True), (-1.0, False)],
    ids=["asked lately", "asked long ago"],
)
async def test_the_next_board_state_has_ready_what_a_page_requested(
    watched_seconds: float, is_ready: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(board_states, "WATCHED_SECONDS", watched_seconds)
    monkeypatch.setattr(board_states, "CPU_SHARE", 1e9)
    world = still_world(living_cluster())
    known = BoardStates(world, TopicVersions(), lambda: 1.0, lambda seconds: None)
    first = await known.latest()
    unasked = {"gpu_map", "nodes", "jobs", "quota", "overview"}
    assert not unasked & vars(first).keys(), "a part is made when a page asks for it"
    await known.latest("gpu_map")
    assert isinstance(world.cluster, StillCluster)
    world.cluster.show(world.cluster.snapshot())
    second = await known.renew()
    assert second is not first
    assert ("gpu_map" in vars(second)) is is_ready
    assert "gpus" not in vars(second)


async def test_a_part_is_made_when_a_page_asks_for_it_in_the_present_board_state() -> None:
    known = BoardStates(
        still_world(living_cluster()), TopicVersions(), lambda: 1.0, lambda seconds: None
    )
    first = await known.latest()
    assert await known.latest("jobs", "quota") is first
    assert {"jobs", "quota"} <= vars(first).keys() and "overview" not in vars(first)


def test_a_board_state_is_freed_when_no_page_uses_it_any_more() -> None:
    """The memory is freed without the garbage collector: a dozen old states of a large cluster
    would be a gigabyte.
    """
    gc_was = gc.isenabled()
    gc.disable()
    try:
        for snapshot in (living_cluster(), crowded(demo())):
            seen = BoardState(snapshot, EPOCH)
            for name, part in vars(BoardState).items():
                if isinstance(part, cached_property):
                    getattr(seen, name)
            seen.my_work("", "team-a")
            assert all(seen.job(*each.job.key) for each in seen.instances)
            known = weakref.ref(seen)
            del seen
            assert known() is None
    finally:
        if gc_was:
            gc.enable()


async def test_time_that_was_moved_makes_the_board_state_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(board_states, "CPU_SHARE", 1e9)
    driver = Driver(small_world(), 1.0)
    world = msgspec.structs.replace(still_world(living_cluster()), timekeeper=driver)
    known = BoardStates(world, TopicVersions(), lambda: 1.0, lambda seconds: None)
    first = await known.renew()
    assert await known.renew() is first
    driver.pause()
    assert known.is_behind
    assert await known.renew() is not first


def test_a_card_that_an_operator_takes_out_concerns_the_pages_that_show_cards() -> None:
    versions, before = TopicVersions(), living_cluster()
    versions.update(before, before.gpus)
    known = versions.as_text()
    versions.update(
        msgspec.structs.replace(before, withheld={before.nodes[0].name: (0,)}), before.gpus
    )
    assert {topic for topic, version in versions.as_text().items() if version != known[topic]} == {
        "nodes",
        "gpus",
        "overview",
    }


def test_a_plans_request_to_budgets_changes_the_quota_board_and_the_trees_status_does_not() -> None:
    versions = TopicVersions()
    tree = QuotaTree("elasticquotatree", "kube-system", quota_tree())
    before = replace(living_cluster(), quota_tree=tree)
    versions.update(before, ())
    first = versions.as_text()
    versions.update(replace(before, quota_tree=replace(tree, status={"observedGeneration": 2})), ())
    assert versions.as_text() == first
    versions.update(replace(before, budgets=(Budget("team-a", "web", allowed=1),)), ())
    assert {topic for topic, version in versions.as_text().items() if version != first[topic]} == {
        "quota"
    }
    second = versions.as_text()
    fault = Violation("root", "BadShape", "root: unknown field", stops=True)
    broken = replace(tree, faults=(fault,))
    versions.update(
        replace(
            before, quota=None, quota_tree=broken, budgets=(Budget("team-a", "web", allowed=1),)
        ),
        (),
    )
    assert {topic for topic, version in versions.as_text().items() if version != second[topic]} == {
        "quota",
        "overview",
    }
