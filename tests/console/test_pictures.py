"""When a picture is made anew, and what it costs of the whole board state."""

from __future__ import annotations

import asyncio
import threading

import pytest
from msgspec.structs import replace
from tests.console.clusters import EPOCH, GATED, pod
from tests.console.tenants import BOB, MARK, Others, snapshot, world
from tests.console.worlds import StillClock, StillCluster

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.change_hints import TopicVersions
from fairlead.console.boards.gpus_rows import listed_gpus
from fairlead.console.boards.holders import holder_rows
from fairlead.console.boards.jobs_rows import job_rows, paths_by_namespace
from fairlead.console.boards.overview import held_by_namespace
from fairlead.console.boards.restricted.board import RestrictedBoard, SharedBoard
from fairlead.console.boards.rows import matching, page_of
from fairlead.console.http import pictures
from fairlead.console.http.board_states import RENEWED_AFTER_SECONDS, BoardStates
from fairlead.console.http.pictures import Pictures
from fairlead.console.pages.list_query import ListQuery, SortKey
from fairlead.kinds.instances import all_instances
from fairlead.model.keys import QUOTA_CONDITION
from fairlead.model.node import Condition
from fairlead.model.people.reach import Reach, reach_of
from fairlead.model.people.subject import LOCAL_ADMIN
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.people.restricted import restricted


class Watched:
    """Pictures of a world whose clocks a test moves."""

    def __init__(self) -> None:
        self.world = world(Others())
        self.states = BoardStates(self.world, TopicVersions(), lambda: 1.0, lambda seconds: None)
        self.seconds = 100.0
        self.pictures = Pictures(self.states, self.world, lambda: self.seconds)

    async def show(self, now: ClusterSnapshot, later: float) -> str:
        """`generatedAt` of Bob's picture, `later` seconds after the last one."""
        cluster, clock = self.world.cluster, self.world.clock
        assert isinstance(cluster, StillCluster)
        assert isinstance(clock, StillClock)
        cluster.show(now)
        clock.at += later
        self.seconds += later
        while self.states.is_behind:
            await self.states.renew()
            await asyncio.sleep(0)
        return (await self.pictures.of(BOB).latest()).generated_at


async def test_another_tenants_change_does_not_renew_a_picture() -> None:
    """Otherwise its time would show when the other tenant acted."""
    watched = Watched()
    first = await watched.show(snapshot(Others()), 0.0)
    assert await watched.show(snapshot(Others(jobs=3, held=2)), 1.0) == first
    assert await watched.show(snapshot(Others(jobs=2)), RENEWED_AFTER_SECONDS) != first


async def test_an_own_change_renews_it_at_once() -> None:
    watched = Watched()
    first = await watched.show(snapshot(Others()), 0.0)
    now = snapshot(Others())
    assert await watched.show(replace(now, pods=now.pods[1:]), 1.0) != first


async def test_a_figure_of_capacity_is_the_newest_all_the_same() -> None:
    watched = Watched()
    await watched.show(snapshot(Others(held=0)), 0.0)
    await watched.show(snapshot(Others(held=2)), 1.0)
    assert (await watched.pictures.of(BOB).latest()).totals.gpus_allocated > 4


async def test_versions_of_a_researcher_never_go_back() -> None:
    """Also of a picture that was dropped and is made again."""
    watched = Watched()
    await watched.show(snapshot(Others()), 0.0)
    reach = reach_of(BOB)
    assert reach is not None
    before = watched.pictures.picture(reach).versions.count
    for number in range(pictures.PICTURES_MAX + 1):
        watched.pictures.picture(Reach(frozenset({f"team-{number}"})))
    await watched.show(snapshot(Others()), 10.0)
    assert watched.pictures.picture(reach).versions.count > before


async def test_the_administrator_has_the_whole_board_state() -> None:
    watched = Watched()
    assert watched.pictures.of(LOCAL_ADMIN) is watched.states


async def test_an_older_board_state_is_let_go() -> None:
    """It may be large."""
    watched = Watched()
    await watched.show(snapshot(Others()), 0.0)
    old = await watched.pictures.of(BOB).latest()
    await watched.show(snapshot(Others(jobs=2)), 1.0)
    await watched.pictures.follow()
    assert await watched.pictures.of(BOB).latest() is not old


REACH = Reach(BOB.namespaces, BOB.leaves)
LATER = EPOCH + 100


def board_of(seen: ClusterSnapshot) -> RestrictedBoard:
    """Bob's, 100 seconds after the whole board state was made."""
    return RestrictedBoard(SharedBoard(seen, EPOCH), restricted(seen, REACH), REACH, LATER)


def test_shared_rows_of_jobs_are_those_that_the_restricted_snapshot_gives() -> None:
    board = board_of(snapshot(Others()))
    assert board.instances == all_instances(board.snapshot)
    expected = job_rows(
        board.instances,
        board.occupancy,
        board.snapshot.quota,
        LATER,
        board.explainer,
        board.silent_nodes,
    )
    assert {row.name for row in board.job_list} == {"bert", "waits", "lent"}
    assert board.jobs == expected


def test_a_gated_pod_of_an_own_job_is_seen_without_the_names_that_it_waits_for() -> None:
    seen = snapshot(Others())
    waits = next(job for job in seen.jobs if job.name == "waits")
    condition = Condition(QUOTA_CONDITION, "False", "WaitingForIdleQuota", f"for {MARK}", EPOCH)
    gated = pod("waits-worker-1", job=waits, gates=GATED, conditions=[condition])
    board = board_of(replace(seen, pods=(*seen.pods, gated)))
    (each,) = (each for each in board.instances if each.job.name == "waits")
    assert "waits-worker-1" in {member.name for member in each.pods}
    assert board.instances == all_instances(board.snapshot)
    assert not any(MARK in repr(member) for member in each.pods)


def test_what_is_shared_of_pods_is_what_the_restricted_snapshot_gives() -> None:
    board = board_of(snapshot(Others()))
    alone = BoardState(board.snapshot, LATER)
    assert board.gpu_pods == alone.gpu_pods
    assert {name: board.job_by_pod.get(name, "") for name in alone.job_by_pod} == alone.job_by_pod
    assert board.held_by_namespace == held_by_namespace(alone.gpu_pods, board.occupancy)
    assert board.held_by_namespace.keys() == BOB.namespaces
    made = holder_rows(
        board.snapshot,
        board.occupancy,
        paths_by_namespace(board.snapshot.quota),
        board.job_by_pod,
        {(row.namespace, f"{row.type}/{row.name}"): row.user for row in board.job_list},
        {pod.key: (each.job.kind, each.job.name) for each in board.instances for pod in each.pods},
        board.silent_nodes,
        board.idle,
    )
    assert board.holders == made
    assert len(made.entries) == 3


def test_a_pod_of_another_namespace_that_names_the_job_as_its_owner_is_not_seen() -> None:
    seen = snapshot(Others())
    bert = next(job for job in seen.jobs if job.name == "bert")
    forged = replace(
        pod(f"{MARK}-forged", "gpu-1", {"nvidia.com/gpu": 1}, namespace="other", job=bert),
        labels={},
    )
    board = board_of(replace(seen, pods=(*seen.pods, forged)))
    (each,) = (each for each in board.instances if each.job.name == "bert")
    assert [member.name for member in each.pods] == ["bert-worker-0", "bert-worker-1"]
    assert board.jobs.entries[0].row.instances.running == 2


@pytest.mark.parametrize("parts", ["jobs", "overview", "holders", "waiting", "instances", "places"])
async def test_what_a_picture_shares_is_made_before_it(parts: str) -> None:
    """A picture is made in the event loop: what is expensive of the whole must be there already."""
    watched = Watched()
    watched.world.cluster.show(snapshot(Others(jobs=2, held=2)))  # type: ignore[attr-defined]
    reach = reach_of(BOB)
    assert reach is not None
    whole = await watched.states.latest(*pictures.shared_by([parts]))
    before = set(vars(whole)), set(vars(whole.snapshot))
    await watched.pictures.picture(reach).of(whole, parts)
    assert set(vars(whole)) == before[0]
    assert set(vars(whole.snapshot)) == before[1]


@pytest.mark.parametrize(("most", "is_in_thread"), [(1_000, False), (1, True)])
async def test_a_picture_of_many_pods_is_made_in_a_thread(
    monkeypatch: pytest.MonkeyPatch, most: int, is_in_thread: bool
) -> None:
    made_in: list[bool] = []

    def noted(seen: ClusterSnapshot, reach: Reach) -> ClusterSnapshot:
        made_in.append(threading.current_thread() is not threading.main_thread())
        return restricted(seen, reach)

    monkeypatch.setattr(pictures, "MADE_AT_ONCE_PODS", most)
    monkeypatch.setattr(pictures, "restricted", noted)
    await Watched().show(snapshot(Others()), 0.0)
    assert made_in == [is_in_thread]


QUERIES = [
    ListQuery(),
    ListQuery(filters={"status": frozenset(("allocated",))}),
    ListQuery(sort=(SortKey("memoryUsedMiB", descending=True), SortKey("index"))),
    ListQuery(q="bert"),
    ListQuery(q="gpu-1", filters={"GPU": frozenset("01")}),
]


@pytest.mark.parametrize("has_readings", [True, False])
@pytest.mark.parametrize("query", QUERIES, ids=str)
def test_cards_that_are_found_are_those_of_the_builder(
    query: ListQuery, has_readings: bool
) -> None:
    """Own holders are named where a card is shown, and by what `q` finds."""
    seen = snapshot(Others(held=2, splits=2))
    if not has_readings:
        seen = replace(seen, gpus=tuple(replace(each, holders=()) for each in seen.gpus))
    board = board_of(seen)
    expected = listed_gpus(board.occupancy, EPOCH, lambda pod: pod.namespace in BOB.namespaces)
    for _ in range(2):
        found = matching(board.gpus, query)
        assert list(found) == list(matching(expected, query))
        assert [found[place] for place in range(len(found))] == list(found)
        assert page_of(found, query).total == len(found)
    assert any(row.holders for row in found) or not has_readings


@pytest.mark.parametrize("has_readings", [True, False])
def test_cards_with_own_holders_are_those_that_the_builder_gives(has_readings: bool) -> None:
    """Where holders are reported, rows are the shared ones with names; else they are made anew."""
    seen = snapshot(Others(held=2, splits=2))
    if not has_readings:
        seen = replace(seen, gpus=tuple(replace(each, holders=()) for each in seen.gpus))
    board = board_of(seen)
    expected = listed_gpus(board.occupancy, EPOCH, lambda pod: pod.namespace in BOB.namespaces)
    assert list(board.gpus.entries) == list(expected.entries)
    assert len(board.gpus.entries) == len(expected.entries)
    assert board.gpus.facets == expected.facets
    names = {name for entry in board.gpus.entries for name in entry.row.holders}
    assert {"team-b/bob-share"} <= names
