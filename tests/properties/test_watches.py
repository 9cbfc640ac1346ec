"""A watch neither skips nor repeats an event: from any version on, in chunks of any size,
interrupted anywhere, and continued from the last event or bookmark.
"""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.properties.object_writes import WRITES, write
from tests.sim.objects import StillClock

from fairlead_sim.objects.resources import CONFIG_MAPS
from fairlead_sim.objects.watch_log import DELETED, LoggedChange, Subscription
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.cluster import StoredCluster

CLIENT = st.one_of(
    st.tuples(st.just("write"), WRITES),
    st.tuples(st.just("write"), WRITES),
    st.tuples(st.just("poll"), st.integers(1, 5)),
    st.tuples(st.just("bookmark"), st.none()),
    st.tuples(st.just("resume"), st.none()),
)
ReportedChange = tuple[str, str, int]


def is_x(obj: Any) -> bool:
    return bool((obj["metadata"].get("labels") or {}).get("app") == "x")


class Client:
    """The state of a reflector: the events that it received, and the version from which it
    continues.
    """

    def __init__(self, cluster: StoredCluster, since: int, filtered: bool) -> None:
        self.cluster, self.since, self.matches = cluster, since, is_x if filtered else None
        self.seen: list[ReportedChange] = []
        self.watch = self.open()

    def open(self) -> Subscription:
        return self.cluster.watch(CONFIG_MAPS, since=self.since, matches=self.matches)

    def do(self, what: str, how: Any) -> None:
        if what == "poll":
            for event in self.watch.poll(how):
                self.seen.append(reported(event.type, event))
                self.since = event.resource_version
        elif what == "bookmark":
            assert self.watch.bookmark_version() >= self.since, "a bookmark leads back"
            self.since = self.watch.bookmark_version()
        elif what == "resume":
            self.watch.close()
            self.watch = self.open()


def reported(kind: str, event: LoggedChange) -> ReportedChange:
    return (kind, event.object["metadata"]["name"], event.resource_version)


def expected(events: list[LoggedChange], since: int, filtered: bool) -> list[ReportedChange]:
    """The events that a watch must deliver, from all writes: an object that enters the selection is
    ADDED, one that leaves it is DELETED.
    """
    owed = []
    for event in events:
        before = event.previous is not None and (not filtered or is_x(event.previous))
        after = event.type != DELETED and (not filtered or is_x(event.object))
        if event.resource_version > since and (before or after):
            owed.append(
                reported("MODIFIED" if before and after else "ADDED" if after else "DELETED", event)
            )
    return owed


@examples(
    100,
    1000,
    st.lists(WRITES, max_size=20),
    st.integers(0, 30),
    st.lists(CLIENT, min_size=10, max_size=60),
    st.booleans(),
)
def test_whatever_a_reader_does_it_gets_every_write_once(
    before: list[Any], back: int, steps: list[Any], filtered: bool
) -> None:
    cluster, events = StoredCluster(StillClock()), list[LoggedChange]()
    cluster.subscribe(CONFIG_MAPS, events.append)
    born = cluster.resource_version
    for step in before:
        write(cluster, *step)
    since = max(born, cluster.resource_version - back)
    client = Client(cluster, since, filtered)
    for what, how in steps:
        if what == "write":
            write(cluster, *how)
        else:
            client.do(what, how)
    for _ in range(len(events) + 1):
        client.do("poll", 3)
    assert client.seen == expected(events, since, filtered)


@given(st.lists(WRITES, min_size=1, max_size=60), st.integers(0, 60), st.integers(1, 8))
def test_a_short_memory_answers_gone_exactly_when_something_would_be_skipped(
    history: list[Any], back: int, capacity: int
) -> None:
    cluster, events = StoredCluster(StillClock(), log_capacity=capacity), list[LoggedChange]()
    cluster.subscribe(CONFIG_MAPS, events.append)
    born = cluster.resource_version
    for step in history:
        write(cluster, *step)
    since = max(born, cluster.resource_version - back)
    owed = expected(events, since, filtered=False)
    try:
        seen = [
            reported(event.type, event)
            for event in cluster.watch(CONFIG_MAPS, since=since).poll(10_000)
        ]
    except ApiStatus as gone:
        assert gone.code == 410
        assert len(owed) > capacity, "what is kept must be sent"
        return
    assert seen == owed
