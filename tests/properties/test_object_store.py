"""Properties of the object store: a client that lists and then watches, from any version on, has
the true state after any writes.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.object_writes import WRITES, write
from tests.sim.objects import StillClock

from fairlead_sim.objects.resources import CONFIG_MAPS
from fairlead_sim.store.cluster import StoredCluster

HISTORY = st.lists(WRITES, max_size=40)


def truth(cluster: StoredCluster, chosen: Any = None) -> dict[str, Any]:
    return {
        obj["metadata"]["name"]: obj
        for obj in cluster.list(CONFIG_MAPS)
        if chosen is None or chosen(obj)
    }


def follow(known: dict[str, Any], events: Any) -> None:
    """Keeps a client's cache; fails where a watch skips or repeats an event."""
    for event in events:
        name = event.object["metadata"]["name"]
        assert (name in known) is (event.type != "ADDED"), f"{event.type} of {name}"
        if event.type == "DELETED":
            del known[name]
        else:
            known[name] = event.object


@settings(deadline=None)
@given(HISTORY, st.integers(0, 40), st.booleans())
def test_list_and_watch_know_the_truth(history: list[Any], moment: int, filtered: bool) -> None:
    def chosen(obj: Any) -> bool:
        return not filtered or (obj["metadata"].get("labels") or {}).get("app") == "x"

    cluster = StoredCluster(StillClock())
    for step in history[:moment]:
        write(cluster, *step)
    known, since = truth(cluster, chosen), cluster.resource_version
    for step in history[moment:]:
        write(cluster, *step)
    follow(known, cluster.watch(CONFIG_MAPS, since=since, matches=chosen).poll(limit=100_000))
    assert known == truth(cluster, chosen)


@settings(deadline=None)
@given(HISTORY)
def test_versions_grow_by_one_a_write_and_every_event_has_its_own(history: list[Any]) -> None:
    cluster = StoredCluster(StillClock())
    watch, start = cluster.watch(CONFIG_MAPS), cluster.resource_version
    for step in history:
        write(cluster, *step)
    versions = [event.resource_version for event in watch.poll(limit=100_000)]
    assert versions == list(range(start + 1, cluster.resource_version + 1))


@settings(deadline=None)
@given(HISTORY)
def test_owners_are_found_by_their_dependants_and_nothing_depends_on_the_dead(
    history: list[Any],
) -> None:
    cluster = StoredCluster(StillClock())
    for step in history:
        write(cluster, *step)
    alive = {obj["metadata"]["uid"] for obj in cluster.list(CONFIG_MAPS)}
    for obj in cluster.list(CONFIG_MAPS):
        for reference in obj["metadata"].get("ownerReferences", ()):
            assert obj in cluster.dependents(reference["uid"])
            if "deletionTimestamp" not in obj["metadata"]:
                assert reference["uid"] in alive, "a dependant outlived its owner"
