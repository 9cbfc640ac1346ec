"""The object store: what watchers and listeners see, in which order, and what happens to watchers
that read too slowly.
"""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from tests.sim.objects import StillClock, config_map, namespace, pod

from fairlead_sim.objects.resources import CONFIG_MAPS, PODS
from fairlead_sim.objects.watch_log import LoggedChange, Subscription
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.cluster import StoredCluster


@pytest.fixture
def cluster() -> StoredCluster:
    return StoredCluster(StillClock(), log_capacity=100)


def seen(subscription: Subscription) -> list[tuple[str, str]]:
    return [(event.type, event.object["metadata"]["name"]) for event in subscription.poll()]


def test_a_watch_reports_every_write_in_order(cluster: StoredCluster) -> None:
    watch = cluster.watch(PODS)
    cluster.create(pod("a"))
    cluster.create(pod("b"))
    cluster.merge_patch(PODS, "default", "a", {"metadata": {"labels": {"x": "y"}}})
    cluster.delete(PODS, "default", "b")
    events = watch.poll()
    assert [event.type for event in events] == ["ADDED", "ADDED", "MODIFIED", "MODIFIED", "DELETED"]
    assert events[3].object["metadata"]["deletionTimestamp"], (
        "a pod is marked as going before it goes"
    )
    versions = [int(event.object["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(set(versions)), "a deletion has a version of its own"
    assert watch.poll() == []


def test_a_watch_continues_where_a_list_ended(cluster: StoredCluster) -> None:
    cluster.create(pod("a"))
    since = cluster.resource_version
    cluster.create(pod("b"))
    assert seen(cluster.watch(PODS, since=since)) == [("ADDED", "b")]


def test_a_watch_of_one_namespace_sees_no_other(cluster: StoredCluster) -> None:
    cluster.create(namespace("team"))
    watch = cluster.watch(PODS, "team")
    cluster.create(pod("a"))
    cluster.create(pod("b", "team"))
    assert seen(watch) == [("ADDED", "b")]


def test_for_a_filter_entering_is_added_and_leaving_is_deleted(cluster: StoredCluster) -> None:
    watch = cluster.watch(
        PODS, matches=lambda obj: (obj["metadata"].get("labels") or {}).get("app") == "web"
    )
    cluster.create(pod("a"))
    for label in ("web", "web", "other"):
        cluster.merge_patch(
            PODS,
            "default",
            "a",
            {
                "metadata": {
                    "labels": {"app": label},
                    "annotations": {"n": str(cluster.resource_version)},
                }
            },
        )
    events = watch.poll()
    assert [event.type for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    assert events[-1].object["metadata"]["labels"] == {"app": "web"}, "the last state that matched"
    assert events[-1].object["metadata"]["resourceVersion"] == str(cluster.resource_version)


def test_too_old_a_version_is_gone(cluster: StoredCluster) -> None:
    since = cluster.resource_version
    for index in range(250):
        cluster.create(config_map(f"c{index}"))
    with pytest.raises(ApiStatus, match="too old resource version") as caught:
        cluster.watch(CONFIG_MAPS, since=since)
    assert caught.value.code == 410
    cluster.watch(PODS, since=since)


def test_a_reader_that_never_reads_costs_nothing_and_gets_an_error(cluster: StoredCluster) -> None:
    watches = [cluster.watch(CONFIG_MAPS) for _ in range(50)]
    cluster.create(config_map("c", {"n": "0"}))
    gc.collect()
    before = len(gc.get_objects())
    for index in range(5_000):
        cluster.merge_patch(CONFIG_MAPS, "default", "c", {"data": {"n": str(index)}})
    gc.collect()
    assert len(gc.get_objects()) - before < 2_000, "50 readers of 5,000 events would hold 250,000"
    with pytest.raises(ApiStatus) as caught:
        watches[0].poll()
    assert caught.value.code == 410


def test_compaction_forgets_everything(cluster: StoredCluster) -> None:
    since = cluster.resource_version
    cluster.create(pod("a"))
    cluster.compact(PODS)
    with pytest.raises(ApiStatus):
        cluster.watch(PODS, since=since)
    assert seen(cluster.watch(PODS, since=cluster.resource_version)) == []


def test_all_listeners_see_one_order_even_when_one_of_them_writes(cluster: StoredCluster) -> None:
    reported: dict[str, list[str]] = {"first": [], "second": []}

    def first(event: LoggedChange) -> None:
        reported["first"].append(event.object["metadata"]["name"])
        if event.object["metadata"]["name"] == "a" and event.type == "ADDED":
            cluster.create(pod("made-by-first"))

    cluster.subscribe(PODS, first)
    cluster.subscribe(
        PODS, lambda event: reported["second"].append(event.object["metadata"]["name"])
    )
    cluster.create(pod("a"))
    assert reported == {"first": ["a", "made-by-first"], "second": ["a", "made-by-first"]}


def test_a_listener_can_leave(cluster: StoredCluster) -> None:
    reported: list[Any] = []
    leave = cluster.subscribe(PODS, reported.append)
    leave()
    cluster.create(pod("a"))
    assert reported == []


async def test_iteration_waits_for_news_and_ends_when_closed(cluster: StoredCluster) -> None:
    watch = cluster.watch(PODS)
    asyncio.get_running_loop().call_later(0.01, cluster.create, pod("a"))
    reported = []
    async for event in watch:
        reported.append(event.object["metadata"]["name"])
        asyncio.get_running_loop().call_later(0.01, watch.close)
    assert reported == ["a"]


async def test_waiting_has_an_end(cluster: StoredCluster) -> None:
    watch = cluster.watch(PODS)
    assert await watch.wait(0.01) is False
    cluster.create(pod("a"))
    assert await watch.wait(0.01) is True
