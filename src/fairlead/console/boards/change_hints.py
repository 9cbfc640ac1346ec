"""Hints of what changed: topics with a version each.

Streams of hints are bounded, and carry no contents.

A slow reader costs nothing: its pending topics are a set, so a hundred changes of `jobs` are one
hint.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Final

import msgspec

from fairlead.model.devices.gpu import GpuReading
from fairlead.model.snapshot import ClusterSnapshot

TOPICS: Final = (
    *("overview", "nodes", "gpus", "jobs", "serving", "quota", "datasets", "health", "clock"),
)
"""Topics of every subject."""
ADMIN_TOPICS: Final = ("users", "groups", "operations")
"""Topics of administrators alone."""
ALL_TOPICS: Final = (*TOPICS, *ADMIN_TOPICS)
STREAMS_MAX: Final = 256
HEARTBEAT_SECONDS: Final = 15.0
_CONCERNS: Final = {
    "nodes": ("nodes", "gpus", "overview"),
    "pods": ("nodes", "gpus", "jobs", "serving", "quota", "overview"),
    "jobs": ("jobs", "overview"),
    "gpus": ("nodes", "gpus", "jobs", "overview"),
    "withheld": ("nodes", "gpus", "overview"),
    "quota": ("quota", "overview"),
    "owners": ("quota",),
    "events": ("overview", "jobs"),
    "sources": ("health",),
    "time": ("clock",),
    "users": ("users", "groups"),
    "groups": ("groups",),
    "data": ("datasets",),
    "operations": ("operations",),
}
"""Part of the snapshot -> topics that show it. `owners`: what the plan asks of pods' owners and
budgets.

The status of the quota tree is none: it follows from the pods.
"""


class TopicVersions:
    """The version of each topic, by comparing the parts of two snapshots
    (the same object = unchanged).

    Versions begin above `start`. `topics`: those that its readers have.
    """

    def __init__(self, start: int = 0, topics: tuple[str, ...] = ALL_TOPICS) -> None:
        self._parts: dict[str, Any] = {}
        self._count = start
        self._versions = dict.fromkeys(topics, 0)

    def note_time(self, version: int) -> None:
        """Counts the topic `clock` up if the time was changed: `version` is not the last call's."""
        self._count_moved({"time": version})

    def note_people(self, users: Mapping[str, Any], groups: Mapping[str, Any]) -> None:
        """Counts the topics of people up if users or groups differ from the last call's."""
        self._count_moved({"users": users, "groups": groups})

    def note_data(self, data: Any) -> None:
        """Counts the topic `datasets` up if `data` differs from the last call's."""
        self._count_moved({"data": data})

    def note_operations(self, operations: Any) -> None:
        """Counts the topic `operations` up if they differ from the last call's."""
        self._count_moved({"operations": operations})

    def update(self, snapshot: ClusterSnapshot, gpus: tuple[GpuReading, ...]) -> None:
        """Count up the topics whose contents differ from the last call's."""
        self._count_moved(parts_of(snapshot, gpus))

    @property
    def count(self) -> int:
        """A number that grows with each change."""
        return self._count

    def _count_moved(self, parts: Mapping[str, Any]) -> None:
        moved = {
            topic
            for name, part in parts.items()
            if self._is_new(name, part)
            for topic in _CONCERNS[name]
        }
        self._parts |= parts
        if moved:
            self._count += 1
        for topic in moved:
            self._versions[topic] = self._count

    def _is_new(self, name: str, part: Any) -> bool:
        if name not in self._parts:
            return True
        old = self._parts[name]
        return old is not part and (name == "gpus" or old != part)

    def as_text(self) -> dict[str, str]:
        return {topic: str(version) for topic, version in self._versions.items()}


def parts_of(snapshot: ClusterSnapshot, gpus: tuple[GpuReading, ...]) -> dict[str, Any]:
    """What topics are compared by."""
    return {
        "nodes": snapshot.nodes,
        "pods": snapshot.pods,
        "jobs": snapshot.jobs,
        "gpus": gpus,
        "withheld": snapshot.withheld,
        "quota": (snapshot.quota, snapshot.quota_tree.faults if snapshot.quota_tree else ()),
        "owners": (snapshot.workloads, snapshot.budgets, snapshot.namespaces),
        "events": snapshot.events,
        "sources": {name: source.state for name, source in snapshot.main_sources.items()},
    }


class HintStream:
    """Topics that the reader has not received yet."""

    def __init__(self) -> None:
        self.pending: set[str] = set()
        self.wake = asyncio.Event()


class ChangeHints:
    """All open streams. `close` ends them, so that stopping never waits for a browser."""

    def __init__(
        self,
        versions: TopicVersions,
        streams_max: int = STREAMS_MAX,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
    ) -> None:
        self.versions = versions
        self.streams_max = streams_max
        self.heartbeat_seconds = heartbeat_seconds
        self._streams: set[HintStream] = set()
        self._closed = False
        self._announced: dict[str, str] = {}

    @property
    def is_full(self) -> bool:
        return len(self._streams) >= self.streams_max

    @property
    def stream_count(self) -> int:
        return len(self._streams)

    @property
    def unannounced(self) -> frozenset[str]:
        """Topics that moved since they were last announced;
        those that never moved are not among them.
        """
        return frozenset(
            topic
            for topic, version in self.versions.as_text().items()
            if version not in ("0", self._announced.get(topic))
        )

    def announce(self, topics: Iterable[str]) -> None:
        """Hand these topics to every stream."""
        changed = frozenset(topics)
        self._announced |= {
            topic: version for topic, version in self.versions.as_text().items() if topic in changed
        }
        for stream in self._streams:
            stream.pending.update(changed)
            stream.wake.set()

    def close(self) -> None:
        self._closed = True
        for stream in self._streams:
            stream.wake.set()

    async def listen(self) -> AsyncIterator[bytes]:
        """The bytes of one `text/event-stream`, until the reader leaves or the server stops."""
        stream = HintStream()
        self._streams.add(stream)
        try:
            yield b"retry: 3000\n\n"
            while not self._closed:
                try:
                    await asyncio.wait_for(stream.wake.wait(), self.heartbeat_seconds)
                except TimeoutError:
                    yield b": heartbeat\n\n"
                    continue
                stream.wake.clear()
                topics, stream.pending = stream.pending, set()
                yield b"".join(self._event(topic) for topic in ALL_TOPICS if topic in topics)
        finally:
            self._streams.discard(stream)

    def _event(self, topic: str) -> bytes:
        hint = {"topic": topic, "version": self.versions.as_text()[topic]}
        return b"event: changed\ndata: " + msgspec.json.encode(hint) + b"\n\n"
