"""Records that wait for the store: each key once, however long the store is down.

A batch that may not have been stored comes back and is sent again: the keys make that idempotent.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from fairlead.model.usage.ledger import (
    OPEN,
    End,
    JobRecord,
    KeptState,
    Key,
    LedgerBatch,
    NodeHour,
    NodeInterval,
    PodHour,
    PodInterval,
    StateEnd,
    StateKind,
)

MOST_RECORDS: Final = 10_000
"""Records of one batch, so that a transaction stays short."""
MOST_PENDING: Final = 500_000
"""Records that wait at most. Above it, the oldest kept states that have ended are dropped, then
hours, then ended intervals: the API server still shows what remains.
"""
HourKey = tuple[str, int, int]
StateKey = tuple[StateKind, str, int]


class Pending:
    """`dropped`: how many records were lost because the store was down for too long."""

    def __init__(self, most: int = MOST_PENDING) -> None:
        self.dropped = 0
        self._most = most
        self._pods: dict[Key, PodInterval] = {}
        self._pod_ends: dict[Key, End] = {}
        self._nodes: dict[Key, NodeInterval] = {}
        self._node_ends: dict[Key, End] = {}
        self._pod_hours: dict[HourKey, PodHour] = {}
        self._node_hours: dict[HourKey, NodeHour] = {}
        self._states: dict[StateKey, KeptState] = {}
        self._state_ends: dict[StateKey, StateEnd] = {}
        self._jobs: dict[str, JobRecord] = {}
        self._all: tuple[dict[Any, Any], ...] = (
            self._pods,
            self._pod_ends,
            self._nodes,
            self._node_ends,
            self._pod_hours,
            self._node_hours,
            self._states,
            self._state_ends,
            self._jobs,
        )

    def __len__(self) -> int:
        return sum(map(len, self._all))

    # --- records ----------------------------------------------------------------------------------

    def put_pod(self, row: PodInterval) -> None:
        """A record with a stored key replaces it, and its end."""
        key = row.pod_uid, row.started_at
        self._pods[key] = row
        self._pod_ends.pop(key, None)

    def end_pod(self, end: End) -> None:
        waiting = self._pods.get(end.key)
        if waiting is None:
            self._pod_ends[end.key] = end
        else:
            self._pods[end.key] = replace(waiting, ended_at=end.ended_at, closed_by=end.closed_by)

    def put_node(self, row: NodeInterval) -> None:
        key = row.node_uid, row.started_at
        self._nodes[key] = row
        self._node_ends.pop(key, None)

    def end_node(self, end: End) -> None:
        waiting = self._nodes.get(end.key)
        if waiting is None:
            self._node_ends[end.key] = end
        else:
            self._nodes[end.key] = replace(waiting, ended_at=end.ended_at, closed_by=end.closed_by)

    def put_state(self, row: KeptState) -> None:
        key = row.kind, row.uid, row.started_at
        self._states[key] = row
        self._state_ends.pop(key, None)

    def end_state(self, end: StateEnd) -> None:
        key = end.kind, *end.key
        waiting = self._states.get(key)
        if waiting is None:
            self._state_ends[key] = end
        else:
            self._states[key] = replace(waiting, ended_at=end.ended_at)

    def put_pod_hour(self, row: PodHour) -> None:
        self._pod_hours[row.pod_uid, row.started_at, row.hour] = row

    def put_node_hour(self, row: NodeHour) -> None:
        self._node_hours[row.node_uid, row.started_at, row.hour] = row

    def put_job(self, row: JobRecord) -> None:
        """A record without a manifest leaves the one that waits."""
        before = self._jobs.get(row.uid)
        if before is not None and before.manifest and not row.manifest:
            row = replace(row, manifest=before.manifest)
        self._jobs[row.uid] = row

    # --- batches ----------------------------------------------------------------------------------

    def take(self, at: int, before: int) -> LedgerBatch:
        """The next records, at most `MOST_RECORDS`. The last batch has the heartbeat `at`; the ones
        ahead of it have `before`, the heartbeat so far, because what follows is not stored yet.
        """
        left, taken = MOST_RECORDS, []
        for kept in self._all:
            keys = list(islice(kept, left))
            taken.append(tuple(kept.pop(key) for key in keys))
            left -= len(keys)
        return LedgerBatch(before if len(self) else at, *taken)

    def add(self, batch: LedgerBatch) -> None:
        """Take a later batch of another queue."""
        _each(self.put_pod, batch.pods)
        _each(self.end_pod, batch.pod_ends)
        _each(self.put_node, batch.nodes)
        _each(self.end_node, batch.node_ends)
        _each(self.put_pod_hour, batch.pod_hours)
        _each(self.put_node_hour, batch.node_hours)
        _each(self.put_state, batch.states)
        _each(self.end_state, batch.state_ends)
        _each(self.put_job, batch.jobs)

    def give_back(self, batch: LedgerBatch) -> None:
        """Take back what may not have been stored. What was recorded since then is newer."""
        newer = LedgerBatch(batch.at, *(tuple(kept.values()) for kept in self._all))
        for kept in self._all:
            kept.clear()
        self.add(batch)
        self.add(newer)
        self._shrink()

    def _shrink(self) -> None:
        over = len(self) - self._most
        if over <= 0:
            return
        past = [key for key, row in self._states.items() if row.ended_at != OPEN]
        over -= self._drop(self._states, past[:over])
        for kept in (self._pod_hours, self._node_hours):
            over -= self._drop(kept, list(kept)[: max(0, over)])
        ended = [key for key, row in self._pods.items() if row.closed_by]
        self._drop(self._pods, ended[: max(0, over)])

    def _drop(self, kept: dict[Any, Any], keys: list[Any]) -> int:
        for key in keys:
            del kept[key]
        self.dropped += len(keys)
        return len(keys)


def _each(put: Any, rows: Iterable[Any]) -> None:
    for row in rows:
        put(row)
