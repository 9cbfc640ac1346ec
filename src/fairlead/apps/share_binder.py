"""How does a pod get its cards? Reserve, one call to the API server, and then either it is so, or it is undone, or somebody finds out.

What a newcomer gets wrong: a reservation is given back only when it is certain that the binding never comes true. Until then the memory
is held: too little is sold for a minute rather than twice the same.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from fairlead.apps.share_feed import ShareFeed
from fairlead.errors import OutsideError
from fairlead.model.pod import GrantsByContainer, Pod
from fairlead.model.refusal import Refusal
from fairlead.ports import BindOutcome, Clock, SharingApi
from fairlead.rules.holding.account import RESERVED
from fairlead.wire.allocation import render_bind
from fairlead.wire.scheduler_extender import BindAsked

SETTLE_SECONDS: Final = 15.0
"""When an unknown outcome is asked for: the API server has given the binding up by then (`edge.sharing_api.BIND_SECONDS`)."""
_REMEMBERED: Final = 4096
_log = logging.getLogger(__name__)


class Doubt(NamedTuple):
    pod: Pod
    node: str
    due_at: float


class ShareBinder:
    """`results` counts binds by how they ended: bound, repeated, refused, unknown."""

    def __init__(
        self, api: SharingApi, feed: ShareFeed, clock: Clock, may_write: Callable[[], str], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.results: dict[str, int] = dict.fromkeys(("bound", "repeated", "refused", "unknown"), 0)
        self.doubts: dict[str, Doubt] = {}
        self._api = api
        self._feed = feed
        self._clock = clock
        self._may_write = may_write
        self._monotonic = monotonic
        self._seen: dict[str, Pod] = {}
        self._running: dict[str, tuple[str, asyncio.Task[str]]] = {}
        feed.on_doubt = self.doubt

    def remember(self, pod: Pod) -> None:
        """A pod that the scheduler has asked about: it may know it before our watch does."""
        if pod.uid:
            while len(self._seen) >= _REMEMBERED:
                del self._seen[next(iter(self._seen))]
            self._seen[pod.uid] = pod

    async def bind(self, asked: BindAsked) -> str:
        """ "" when the pod is on the node, with its cards; else why not. The same question while one is on its way waits for its answer."""
        running = self._running.get(asked.uid)
        if running is not None and running[0] != asked.node:
            return self._count("refused", f"pod {asked.namespace}/{asked.name} is being bound to node {running[0]}")
        if running is not None:
            return await asyncio.shield(running[1])
        task = asyncio.ensure_future(self._bind(asked))
        self._running[asked.uid] = (asked.node, task)
        task.add_done_callback(lambda _: self._running.pop(asked.uid, None))
        return await asyncio.shield(task)

    async def finish(self) -> None:
        """Wait for what is on its way."""
        if self._running:
            await asyncio.wait([task for _, task in self._running.values()])

    def doubt(self, pod: Pod, node: str) -> None:
        """Whether the pod sits on the node has not been seen; unless it is, `settle_due` will ask."""
        self.doubts[pod.uid] = Doubt(pod, node, self._monotonic() + SETTLE_SECONDS)

    async def settle_due(self) -> None:
        """Ask about each doubt whose time has come and that the watch has not answered."""
        for uid, doubt in list(self.doubts.items()):
            tenant = self._feed.ledger.tenants.get(uid)
            if tenant is None or tenant.state != RESERVED:
                self.doubts.pop(uid, None)
            elif self._monotonic() >= doubt.due_at and uid not in self._running:
                await self._settle(uid, doubt)

    async def _settle(self, uid: str, doubt: Doubt) -> None:
        try:
            pod = await self._api.get_pod(doubt.pod.namespace, doubt.pod.name)
        except OutsideError as error:
            _log.info("whether pod %s is bound is not yet known: %s", doubt.pod.key, error.log_line)
            return
        if uid in self._running or self.doubts.get(uid) != doubt:
            return  # a new try began meanwhile
        del self.doubts[uid]
        if pod is None or pod.uid != uid:
            self._feed.pod_sink.remove(uid)
        elif pod.node == doubt.node:
            self.doubt(doubt.pod, doubt.node)  # it is bound, and the watch, which is behind, will say so
        else:
            self._feed.ledger.roll_back(uid)  # if it is on another node, the watch says what it holds there

    async def _bind(self, asked: BindAsked) -> str:
        pod = await self._find(asked)
        if isinstance(pod, str):
            return self._count("refused", pod)
        if pod.node:
            return self._already(pod, asked.node)
        grants = self._feed.ledger.reserve(pod, asked.node)
        if isinstance(grants, Refusal):
            return self._count("refused", grants.reason)
        if why := self._may_write():
            self._undo(pod)
            return self._count("refused", why)
        return await self._call(pod, asked.node, annotations_of(self._feed, pod, asked.node, grants, self._clock.now()))

    async def _call(self, pod: Pod, node: str, annotations: Mapping[str, str]) -> str:
        try:
            outcome = await self._api.bind(pod, node, annotations)
        except Exception as error:  # noqa: BLE001 - whatever ended the call (credentials, a key), the API server may have had it
            _log.warning("binding pod %s to node %s ended in %r", pod.key, node, error)
            outcome = BindOutcome(str(error) or type(error).__name__, is_known=False)
        if outcome.error and outcome.is_known:
            self._undo(pod)
            return self._count("refused", outcome.error)
        self.doubt(pod, node)  # also of a success: the pod may be gone before our watch has seen it bound
        if not outcome.error:
            return self._count("bound", "")
        return await self._ask(pod, node, outcome.error)

    async def _ask(self, pod: Pod, node: str, why: str) -> str:
        """A yes may be had at once; a no would be too early: the first call may still be on its way."""
        try:
            now = await self._api.get_pod(pod.namespace, pod.name)
        except OutsideError:
            now = None
        if now is not None and now.uid == pod.uid and now.node:
            return self._already(now, node)
        return self._count("unknown", f"whether pod {pod.key} was bound to node {node} is not known yet: {why}")

    async def _find(self, asked: BindAsked) -> Pod | str:
        pod = self._feed.pods.get(asked.uid) or self._seen.get(asked.uid)
        if pod is None:
            try:
                pod = await self._api.get_pod(asked.namespace, asked.name)
            except OutsideError as error:
                return error.what
        if pod is None:
            return f'pods "{asked.name}" not found'
        if (pod.uid, pod.namespace, pod.name) != (asked.uid, asked.namespace, asked.name):
            return f"pod {asked.namespace}/{asked.name} has uid {pod.uid}, not {asked.uid}"
        return pod

    def _already(self, pod: Pod, node: str) -> str:
        if pod.node == node:
            return self._count("repeated", "")
        return self._count("refused", f"pod {pod.key} is already assigned to node {pod.node}")

    def _undo(self, pod: Pod) -> None:
        if pod.uid not in self.doubts:  # an earlier try of the same reservation may still come true
            self._feed.ledger.roll_back(pod.uid)

    def _count(self, result: str, answer: str) -> str:
        self.results[result] += 1
        return answer


def annotations_of(feed: ShareFeed, pod: Pod, node: str, grants: GrantsByContainer, now: float) -> dict[str, str]:
    """What is written on a pod that gets these grants; nothing for one that asks for nothing."""
    account = feed.ledger.nodes.get(node)
    if account is None or not grants:
        return {}
    cards = (account.card_of(grant) for given in grants.values() for grant in given)
    return render_bind(pod, grants, max((card.units for card in cards if card is not None), default=0), now)
