"""What if kube-scheduler asks a moment before our watch has heard that room came free? Then it is told no, and nothing makes it ask again.

What a newcomer gets wrong: a pod that an extender refused waits for the next event of the cluster, up to five minutes; the event that
freed the room is over. So a pod that waits though a node it was asked about now has room is touched: an annotation, and it is tried again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from fairlead.apps.share_feed import ShareFeed
from fairlead.errors import NotFound, OutsideError
from fairlead.model.pod import Pod
from fairlead.ports import Clock, SharingApi
from fairlead.wire.names import ANNOTATION_GPU_RETRY

PATIENCE_SECONDS: Final = 1.0
"""kube-scheduler may be on its way itself."""
AT_ONCE: Final = 10
_REMEMBERED: Final = 4096
_log = logging.getLogger(__name__)


class _Waiting(NamedTuple):
    nodes: tuple[str, ...]
    refused_at: float


class ShareNudge:
    """`refused` and `passed` are told of every filter; `look` once a second touches a few pods at most."""

    def __init__(self, api: SharingApi, feed: ShareFeed, clock: Clock, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._feed = feed
        self._clock = clock
        self._monotonic = monotonic
        self._waiting: dict[str, _Waiting] = {}

    def refused(self, pod: Pod, nodes: Sequence[str]) -> None:
        self._waiting.pop(pod.uid, None)
        if len(self._waiting) >= _REMEMBERED:
            del self._waiting[next(iter(self._waiting))]
        known = self._feed.nodes
        self._waiting[pod.uid] = _Waiting(tuple(known[name].name for name in nodes if name in known), self._monotonic())

    def passed(self, pod: Pod) -> None:
        self._waiting.pop(pod.uid, None)

    async def look(self) -> None:
        for pod in self._forgotten():
            self._waiting.pop(pod.uid, None)  # asked again meanwhile, perhaps
            try:
                await self._api.annotate(pod, {ANNOTATION_GPU_RETRY: str(round(self._clock.now() * 1000))})
                _log.info("pod %s was refused, and now there is room: scheduler asked to try again", pod.key)
            except NotFound:
                continue
            except OutsideError as error:
                _log.info("pod %s could not be touched: %s", pod.key, error.log_line)

    def _forgotten(self) -> list[Pod]:
        """The first few that wait though there is room, by how long they do."""
        found: list[Pod] = []
        for uid, pod, waiting in list(self._long_waiting()):
            if pod is None or pod.node or pod.deleted_at is not None:
                del self._waiting[uid]
            elif len(found) < AT_ONCE and self._feed.ledger.filter(pod, waiting.nodes).passed:
                found.append(pod)
        return found

    def _long_waiting(self) -> Iterator[tuple[str, Pod | None, _Waiting]]:
        limit = self._monotonic() - PATIENCE_SECONDS
        return ((uid, self._feed.pods.get(uid), each) for uid, each in self._waiting.items() if each.refused_at < limit)
