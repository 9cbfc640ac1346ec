"""Pods that kube-scheduler should try again: they were rejected a moment before room became free.

A pod that an extender rejected waits for the next event of the cluster, up to five minutes, and
misses the event that freed the room if the extender's watch was behind. So if a node has room now
for a waiting pod that was rejected for it, one of the pod's annotations is changed, and
kube-scheduler tries it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from fairlead.model.actions import TouchPod
from fairlead.model.pod import Pod
from fairlead.rules.holding.account import RESERVED
from fairlead.rules.sharing.feed import LedgerFeed

PATIENCE_SECONDS: Final = 1.0
"""`PATIENCE_SECONDS`: how long a rejected pod is left to kube-scheduler.

It may try the pod again by itself.
"""
AT_ONCE: Final = 10
_REMEMBERED: Final = 4096


class _Waiting(NamedTuple):
    nodes: tuple[str, ...]
    refused_at: float


class RetryHints:
    """Call `refused` and `passed` after every filter.

    `due`, called once a second, names a few pods at most.
    """

    def __init__(self, feed: LedgerFeed) -> None:
        self._feed = feed
        self._waiting: dict[str, _Waiting] = {}

    @property
    def has_waiting(self) -> bool:
        """Whether rejected pods wait: `due` may name some of them later."""
        return bool(self._waiting)

    def refused(self, pod: Pod, nodes: Sequence[str], now: float) -> None:
        self._waiting.pop(pod.uid, None)
        if len(self._waiting) >= _REMEMBERED:
            del self._waiting[next(iter(self._waiting))]
        known = self._feed.nodes
        self._waiting[pod.uid] = _Waiting(
            tuple(known[name].name for name in nodes if name in known), now
        )

    def passed(self, pod: Pod) -> None:
        self._waiting.pop(pod.uid, None)

    def due(self, now: float) -> Iterator[TouchPod | None]:
        """The first few pods that wait although there is room, longest waiting first, each once.

        None where the caller may do other work in between. A pod with an unsettled binding has its
        room already: it waits until the outcome is known.
        """
        found = 0
        for uid, waiting in list(self._waiting.items()):
            if found == AT_ONCE:
                return
            if (
                waiting.refused_at >= now - PATIENCE_SECONDS
                or self._waiting.get(uid) is not waiting
            ):
                continue
            pod, tenant = self._feed.pods.get(uid), self._feed.ledger.tenants.get(uid)
            if pod is None or pod.node or pod.deleted_at is not None:
                del self._waiting[uid]
            elif (tenant is None or tenant.state != RESERVED) and self._feed.ledger.filter(
                pod, waiting.nodes
            ).passed:
                del self._waiting[uid]
                found += 1
                yield TouchPod(pod)
            yield None
