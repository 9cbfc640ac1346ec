"""Pods that kube-scheduler should try again: they were refused a moment before room came free.

A pod that an extender refused waits for the next event of the cluster, up to five minutes, and the event that
freed the room is over when our watch was behind. So a pod that waits though a node it was asked about now has
room is touched: one of its annotations changes, and kube-scheduler tries it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fairlead.model.actions import TouchPod
from fairlead.model.pod import Pod
from fairlead.rules.holding.account import RESERVED
from fairlead.rules.sharing.feed import LedgerFeed

PATIENCE_SECONDS: Final = 1.0
"""How long a refused pod is left alone: kube-scheduler may try it again by itself."""
AT_ONCE: Final = 10
_REMEMBERED: Final = 4096


class _Waiting(NamedTuple):
    nodes: tuple[str, ...]
    refused_at: float


class RetryHints:
    """`refused` and `passed` are told of every filter.

    `due`, looked at once a second, names a few pods at most.
    """

    def __init__(self, feed: LedgerFeed) -> None:
        self._feed = feed
        self._waiting: dict[str, _Waiting] = {}

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    def refused(self, pod: Pod, nodes: Sequence[str], now: float) -> None:
        self._waiting.pop(pod.uid, None)
        if len(self._waiting) >= _REMEMBERED:
            del self._waiting[next(iter(self._waiting))]
        known = self._feed.nodes
        self._waiting[pod.uid] = _Waiting(tuple(known[name].name for name in nodes if name in known), now)

    def passed(self, pod: Pod) -> None:
        self._waiting.pop(pod.uid, None)

    def due(self, now: float) -> Iterator[TouchPod | None]:
        """The first few that wait though there is room, by how long they do, each named once.

        None where other work may come between. A pod whose binding is in doubt has its room already: it waits
        until the doubt is settled.
        """
        found = 0
        for uid, waiting in list(self._waiting.items()):
            if found == AT_ONCE:
                return
            if waiting.refused_at >= now - PATIENCE_SECONDS or self._waiting.get(uid) is not waiting:
                continue
            pod, tenant = self._feed.pods.get(uid), self._feed.ledger.tenants.get(uid)
            if pod is None or pod.node or pod.deleted_at is not None:
                del self._waiting[uid]
            elif (tenant is None or tenant.state != RESERVED) and self._feed.ledger.filter(pod, waiting.nodes).passed:
                del self._waiting[uid]
                found += 1
                yield TouchPod(pod)
            yield None
