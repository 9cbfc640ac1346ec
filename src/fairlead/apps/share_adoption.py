"""Who gives cards to pods that somebody else put on a node, and tells people what they cannot see? Adoption, and three Events.

What a newcomer gets wrong: kube-scheduler asks the extender only about nodes whose *sum* of units would do. Of all others it says no
number, so the pod is told here (`GPUShareNoRoom`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from fairlead.apps.share_binder import annotations_of
from fairlead.apps.share_feed import ShareFeed
from fairlead.errors import NotFound, OutsideError
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.refusal import Refusal
from fairlead.model.sharing import NO_ROOM, NOT_PLACED
from fairlead.ports import Clock, SharingApi
from fairlead.rules.holding.account import NodeAccount
from fairlead.rules.share_mode import CONFLICT, share_mode
from fairlead.rules.share_verdict import whose_gpu_is_unknown
from fairlead.rules.share_why import why_no_room
from fairlead.wire.allocation import anew

RETRY_SECONDS: Final = 5.0
_WAITING_EVENTS: Final = 2000
_log = logging.getLogger(__name__)


class ShareAdoption:
    """`look` is one turn over what has changed; `say` sends what is to be told, and drops the oldest when it is too much."""

    def __init__(self, api: SharingApi, feed: ShareFeed, clock: Clock) -> None:
        self._api = api
        self._feed = feed
        self._clock = clock
        self._told: dict[tuple[str, str], str] = {}
        self._to_say: deque[tuple[Pod | Node, str, str]] = deque(maxlen=_WAITING_EVENTS)
        self._has_words = asyncio.Event()
        self._unwritten: dict[str, Pod] = {}

    async def look(self) -> None:
        """Adopt and tell; call it only while this process may write."""
        feed = self._feed
        nodes, news = feed.touched.copy(), list(feed.news.values())
        feed.touched.clear()
        feed.news.clear()
        for name in nodes:
            self._tell_conflict(feed.nodes.get(name))
            self._adopt_on(feed.ledger.nodes.get(name))
        for pod in news:
            self._tell_no_room(pod)
        for pod in list(self._unwritten.values()):
            await self._write(pod)
        for key in [key for key in self._told if key[0] not in feed.pods and key[0] not in feed.nodes]:
            del self._told[key]

    @property
    def has_unwritten(self) -> bool:
        """Whether an adoption could not be written yet, and `look` should be called again soon."""
        return bool(self._unwritten)

    async def say(self) -> None:
        """Send Events, one after another, until cancelled."""
        while True:
            while self._to_say:
                subject, reason, message = self._to_say.popleft()
                try:
                    await self._api.warn(subject, reason, message)
                except OutsideError as error:
                    _log.info("Event %s of %s was not written: %s", reason, subject.name, error.log_line)
            self._has_words.clear()
            await self._has_words.wait()

    def _adopt_on(self, account: NodeAccount | None) -> None:
        """What runs without a card has none to be given (its kubelet would not look any more); a damaged grant is written again."""
        if account is None:
            return
        for tenant in tuple(account.tenants.values()):
            pod = tenant.pod
            if tenant.is_misread and pod.deleted_at is None:
                self._unwritten[pod.uid] = pod
            if tenant.grants or pod.deleted_at is not None:
                continue
            if pod.has_started:
                self._tell(pod.uid, pod, NOT_PLACED, whose_gpu_is_unknown(account, pod.uid))
                continue
            grants = self._feed.ledger.adopt(pod)
            if isinstance(grants, Refusal):
                self._tell(pod.uid, pod, NOT_PLACED, f"node {pod.node} has no room: {grants.reason}")
            elif grants:
                self._unwritten[pod.uid] = pod

    async def _write(self, pod: Pod) -> None:
        """The cards are held from here on, whatever the API server says; only the end of the pod frees them."""
        tenant = self._feed.ledger.tenants.get(pod.uid)
        grants = self._feed.ledger.adopt(tenant.pod) if tenant is not None and tenant.node == pod.node else None
        if tenant is None or not grants or isinstance(grants, Refusal):
            self._unwritten.pop(pod.uid, None)
            return
        try:
            written = annotations_of(self._feed, pod, pod.node, grants, self._clock.now())
            await self._api.annotate(pod, written if tenant.is_first_written else anew(written, pod.annotations))
        except NotFound:
            self._feed.pod_sink.remove(pod.uid)
        except OutsideError as error:
            _log.warning("the cards of pod %s are not written yet: %s", pod.key, error.log_line)
            return
        self._unwritten.pop(pod.uid, None)

    def _tell_no_room(self, pod: Pod) -> None:
        if pod.node or pod.deleted_at is not None or pod.is_finished:
            return
        if any(condition.type == "PodScheduled" and condition.reason == "Unschedulable" for condition in pod.conditions):
            self._tell(pod.uid, pod, NO_ROOM, why_no_room(self._feed.ledger, pod))

    def _tell_conflict(self, node: Node | None) -> None:
        if node is not None:
            self._tell(node.name, node, CONFLICT, share_mode(node.labels).conflict)

    def _tell(self, key: str, subject: Pod | Node, reason: str, message: str) -> None:
        """Once, until the words change."""
        if self._told.get((key, reason), "") != message:
            self._told[key, reason] = message
            if message:
                self._to_say.append((subject, reason, message))
                self._has_words.set()
