"""What quota knows of the cluster, as the API server's lists and watches tell it, object by object.

Pods are kept as quota sees them (`QuotaPod`), without their containers; all else as its own lean row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Generic, Protocol, TypeVar

from fairlead.model.keys import QUOTA_GATE
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.quota.rows import Budget, Namespace, Workload
from fairlead.model.quota.state import QuotaPod, QuotaSettings
from fairlead.model.quota.tree import QuotaTree
from fairlead.rules.quota.seen import quota_pod

Row = TypeVar("Row")


class _Sink(Protocol):
    unreadable: frozenset[str]


class QuotaFeed:
    """`ports.QuotaSinks`. `is_rebuilt`: all was listed since the last `rebuild`.

    By uid: `known` pods; `waiting`: the place of the gate among the gates of those that have it; `restless`:
    those that stop, or are admitted and on no node. `pods_of` counts pods by owner. `version` grows with
    every change that quota can see; `listings` with every `rebuild`. `on_change` is called after each change.
    """

    def __init__(self, settings: QuotaSettings, on_change: Callable[[], None]) -> None:
        self.settings = settings
        self.on_change = on_change
        self.version = 0
        self.listings = 0
        self.is_rebuilt = False
        self.known: dict[str, QuotaPod] = {}
        self.waiting: dict[str, int] = {}
        self.restless: set[str] = set()
        self.pods_of: Counter[str] = Counter()
        self.workload_of: dict[str, Workload] = {}
        self.pods = PodSink(self)
        self.nodes: Rows[Node] = Rows(self)
        self.trees: Rows[QuotaTree] = Rows(self)
        self.namespaces: Rows[Namespace] = Rows(self)
        self.budgets: Rows[Budget] = Rows(self)
        self._workloads: dict[str, WorkloadSink] = {}
        self._asked: set[str] = set()
        self._missing: set[object] = set()

    def workloads(self, kind: str) -> WorkloadSink:
        sink = self._workloads.get(kind)
        if sink is None:
            sink = self._workloads[kind] = WorkloadSink(self)
        self._asked.add(kind)
        if not self.is_rebuilt:
            self._missing.add(sink)
        return sink

    def rebuild(self) -> None:
        """Doubt all that is known, until each kind has been listed again."""
        self.is_rebuilt = False
        self.listings += 1
        self._asked.clear()
        self._missing = {self.pods, self.nodes, self.trees, self.namespaces, self.budgets}

    def listed(self, sink: object) -> None:
        """Called by a sink when a list of its kind has come."""
        if sink in self._missing:
            self._missing.discard(sink)
            if not self._missing:
                for kind in self._workloads.keys() - self._asked:  # it is not served any more
                    self._workloads.pop(kind).replace({}, ())
                self.is_rebuilt = True
        self.changed()

    def changed(self) -> None:
        self.version += 1
        self.on_change()

    @property
    def tree(self) -> QuotaTree | None:
        return next(iter(self.trees.rows.values()), None)

    @property
    def unreadable(self) -> int:
        """So many objects could not be read; they count as they were before."""
        kinds: tuple[_Sink, ...] = self.pods, self.nodes, self.trees, self.namespaces, self.budgets, *self._workloads.values()
        return sum(len(each.unreadable) for each in kinds)


class Rows(Generic[Row]):
    """Takes the objects of one kind and keeps them by uid."""

    def __init__(self, feed: QuotaFeed) -> None:
        self._feed = feed
        self.rows: dict[str, Row] = {}
        self.unreadable: frozenset[str] = frozenset()

    def replace(self, rows: dict[str, Row], unreadable: Collection[str]) -> None:
        self.unreadable = frozenset(unreadable)
        for key in [key for key in self.rows if key not in rows and key not in self.unreadable]:
            self.drop(key)
        for key, row in rows.items():
            self.put(key, row)
        self._feed.listed(self)

    def upsert(self, key: str, row: Row) -> None:
        if self.put(key, row):
            self._feed.changed()

    def remove(self, key: str) -> None:
        if self.drop(key):
            self._feed.changed()

    def put(self, key: str, row: Row) -> bool:
        """Whether that changed anything."""
        if self.rows.get(key) == row:
            return False
        self.rows[key] = row
        return True

    def drop(self, key: str) -> bool:
        return self.rows.pop(key, None) is not None


class WorkloadSink(Rows[Workload]):
    """Takes the workloads of one kind; all kinds together are found by uid."""

    def put(self, key: str, row: Workload) -> bool:
        self._feed.workload_of[key] = row
        return super().put(key, row)

    def drop(self, key: str) -> bool:
        self._feed.workload_of.pop(key, None)
        return super().drop(key)


class PodSink:
    """Takes pods. Changes that quota cannot see change nothing."""

    def __init__(self, feed: QuotaFeed) -> None:
        self._feed = feed
        self.unreadable: frozenset[str] = frozenset()

    def replace(self, rows: dict[str, Pod], unreadable: Collection[str]) -> None:
        self.unreadable = frozenset(unreadable)
        for uid in [uid for uid in self._feed.known if uid not in rows and uid not in self.unreadable]:
            self._put(uid, None)
        for uid, pod in rows.items():
            self._see(uid, pod)
        self._feed.listed(self)

    def upsert(self, key: str, row: Pod) -> None:
        if self._see(key, row):
            self._feed.changed()

    def remove(self, key: str) -> None:
        if self._put(key, None):
            self._feed.changed()

    def _see(self, uid: str, row: Pod) -> bool:
        pod = quota_pod(row)
        if pod is not None and not pod.is_admitted:
            self._feed.waiting[uid] = row.gates.index(QUOTA_GATE)
        return self._put(uid, pod)

    def _put(self, uid: str, pod: QuotaPod | None) -> bool:
        feed = self._feed
        before = feed.known.get(uid)
        if before == pod:
            return False
        if before is not None:
            feed.pods_of[before.owner] -= 1
            if not feed.pods_of[before.owner]:
                del feed.pods_of[before.owner]
        if pod is None:
            del feed.known[uid]
        else:
            feed.known[uid] = pod
            feed.pods_of[pod.owner] += 1
        if pod is None or pod.is_admitted:
            feed.waiting.pop(uid, None)
        if pod is not None and (pod.is_stopping or (pod.is_admitted and not pod.node)):
            feed.restless.add(uid)
        else:
            feed.restless.discard(uid)
        return True
