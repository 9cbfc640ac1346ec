"""Contract: what a watcher sees. The same assertions over both worlds."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from tests.contracts.api_client import TABLE, ApiClient
from tests.contracts.objects import config_map, config_maps, pod, pods


def version(api: ApiClient, space: str) -> str:
    return str(api.get(pods(space)).body["metadata"]["resourceVersion"])


def take(events: Iterator[dict[str, Any]], count: int) -> list[tuple[str, str]]:
    return [(event["type"], event["object"]["metadata"]["name"]) for event in islice(events, count)]


def test_writes_come_in_their_order(api: ApiClient, space: str) -> None:
    since = version(api, space)
    api.post(pods(space), pod("a"))
    api.post(pods(space), pod("b"))
    api.patch(pods(space, "a"), {"metadata": {"labels": {"x": "y"}}})
    api.delete(pods(space, "b"))
    marked = [("MODIFIED", "b"), ("DELETED", "b")]  # a pod is marked before it is deleted
    with api.watch(pods(space), resourceVersion=since) as events:
        assert take(events, 5) == [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "a"), *marked]


def test_a_live_watch_sees_what_happens_after_it_began(api: ApiClient, space: str) -> None:
    with api.watch(pods(space), resourceVersion=version(api, space)) as events:
        api.post(pods(space), pod("a"))
        assert take(events, 1) == [("ADDED", "a")]


def test_a_watch_from_nowhere_begins_with_what_is_there(api: ApiClient, space: str) -> None:
    api.post(pods(space), pod("a"))
    with api.watch(pods(space)) as events:
        assert take(events, 1) == [("ADDED", "a")]
        api.post(pods(space), pod("b"))
        assert take(events, 1) == [("ADDED", "b")]


def test_each_event_has_a_greater_version(api: ApiClient, space: str) -> None:
    since = version(api, space)
    for name in "abc":
        api.post(pods(space), pod(name))
        api.delete(pods(space, name))
    with api.watch(pods(space), resourceVersion=since) as events:
        versions = [
            int(event["object"]["metadata"]["resourceVersion"]) for event in islice(events, 9)
        ]
    assert versions == sorted(set(versions)) and versions[0] > int(since)


def test_a_deletion_in_grace_is_reported_step_by_step(api: ApiClient, space: str) -> None:
    api.post(pods(space), pod(spec={"nodeName": "no-such-node"}))
    since = version(api, space)
    api.delete(pods(space, "a"))
    api.delete(pods(space, "a"), gracePeriodSeconds=0)
    with api.watch(pods(space), resourceVersion=since) as events:
        seen = list(islice(events, 3))
    assert [event["type"] for event in seen] == ["MODIFIED", "MODIFIED", "DELETED"]
    assert [event["object"]["metadata"]["deletionGracePeriodSeconds"] for event in seen] == [
        30,
        0,
        0,
    ]


def test_for_a_selector_entering_is_added_and_leaving_is_deleted(
    api: ApiClient, space: str
) -> None:
    since = version(api, space)
    api.post(config_maps(space), config_map("a", labels={"app": "none"}))
    for label in ("web", "other", "web"):
        api.patch(config_maps(space, "a"), {"metadata": {"labels": {"app": label}}})
    api.delete(config_maps(space, "a"))
    with api.watch(config_maps(space), resourceVersion=since, labelSelector="app=web") as events:
        seen = list(islice(events, 4))
    assert [event["type"] for event in seen] == ["ADDED", "DELETED", "ADDED", "DELETED"]
    assert int(seen[1]["object"]["metadata"]["resourceVersion"]) > int(
        seen[0]["object"]["metadata"]["resourceVersion"]
    )


def test_one_object_is_watched_by_its_name(api: ApiClient, space: str) -> None:
    since = version(api, space)
    for name in "ab":
        api.post(pods(space), pod(name))
    with api.watch(pods(space), resourceVersion=since, fieldSelector="metadata.name=b") as events:
        assert take(events, 1) == [("ADDED", "b")]


def test_a_streamed_list_ends_with_its_bookmark(api: ApiClient, space: str) -> None:
    for name in "ba":
        api.post(config_maps(space), config_map(name, labels={"mine": "1"}))
    query = {
        "sendInitialEvents": "true",
        "resourceVersionMatch": "NotOlderThan",
        "allowWatchBookmarks": "true",
        "labelSelector": "mine",
    }
    with api.watch(config_maps(space), **query) as events:
        seen = list(islice(events, 3))
        assert [(event["type"], event["object"]["metadata"].get("name")) for event in seen[:2]] == [
            ("ADDED", "a"),
            ("ADDED", "b"),
        ]
        assert seen[2]["type"] == "BOOKMARK"
        assert seen[2]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert seen[2]["object"]["metadata"]["resourceVersion"].isdecimal()
        api.post(config_maps(space), config_map("c", labels={"mine": "1"}))
        assert take(events, 1) == [("ADDED", "c")]


def test_a_watch_ends_when_its_time_is_over(api: ApiClient, space: str) -> None:
    with api.watch(pods(space), resourceVersion=version(api, space), timeoutSeconds=1) as events:
        assert [event for event in events if event["type"] != "BOOKMARK"] == []


def test_a_watched_table_has_its_columns_once(api: ApiClient, space: str) -> None:
    since = version(api, space)
    for name in "ab":
        api.post(pods(space), pod(name))
    with api.watch(pods(space), accept=TABLE, resourceVersion=since) as events:
        first, second = islice(events, 2)
    assert [column["name"] for column in first["object"]["columnDefinitions"]][:3] == [
        "Name",
        "Ready",
        "Status",
    ]
    assert not second["object"].get("columnDefinitions")
    assert second["object"]["rows"][0]["cells"][:3] == ["b", "0/1", "Pending"]


def test_unicode_survives_a_watch(api: ApiClient, space: str) -> None:
    since = api.get(config_maps(space)).body["metadata"]["resourceVersion"]
    api.post(config_maps(space), config_map(data={"a": "中文\u2028\n"}))
    with api.watch(
        config_maps(space), resourceVersion=since, fieldSelector="metadata.name=a"
    ) as events:
        assert next(events)["object"]["data"] == {"a": "中文\u2028\n"}


def test_a_watcher_that_dies_goes_on_where_it_was(api: ApiClient, space: str) -> None:
    """A watcher that comes back with the last version that it saw misses nothing and sees nothing
    twice.
    """
    since = version(api, space)
    names = [f"p{number}" for number in range(30)]
    for name in names:
        api.post(pods(space), pod(name))
    seen: list[str] = []
    while len(seen) < len(names):
        with api.watch(pods(space), resourceVersion=since) as events:
            for event in islice(events, 7):
                seen.append(event["object"]["metadata"]["name"])
                since = event["object"]["metadata"]["resourceVersion"]
                if len(seen) == len(names):
                    break
    assert seen == names


def test_a_watcher_that_takes_nothing_harms_no_other_client(api: ApiClient, space: str) -> None:
    with (
        api.watch(config_maps(space)),
        api.watch(config_maps(space), resourceVersion=version(api, space)) as lively,
    ):
        for number in range(20):
            assert (
                api.post(config_maps(space), config_map(f"m{number}", {"a": "x" * 20_000})).status
                == 201
            )
        assert len([event for event in islice(lively, 20) if event["type"] == "ADDED"]) == 20
    assert api.get(config_maps(space)).status == 200
