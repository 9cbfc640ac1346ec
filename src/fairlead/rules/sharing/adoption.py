"""Adoption: cards for pods that somebody else put on a node, and damaged grants written again.

Three Events tell people what they cannot see. One is of a pod that found no room (`GPUShareNoRoom`):
kube-scheduler asks the extender only about nodes whose *sum* of units would do, and says no number about the
others, so it is told here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from fairlead.model.actions import Outcome, RecordEvent, Result, SharingAction, WriteGrants
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.refusal import Refusal
from fairlead.model.sharing import NO_ROOM, NOT_PLACED
from fairlead.rules.holding.account import NodeAccount
from fairlead.rules.nodes.status import CONFLICT, share_mode
from fairlead.rules.sharing.alike import NotYet
from fairlead.rules.sharing.feed import LedgerFeed
from fairlead.rules.sharing.verdict import unknown_gpu_text
from fairlead.rules.sharing.why import ShareWhy

AT_ONCE: Final = 10
"""At most this many grants are being written at a time: bindings wait in the same line of requests."""


class Adoption:
    """One `look` at a time; `written` is told how each `WriteGrants` of it ended.

    `has_unwritten`: one is to be tried again soon.
    """

    def __init__(self, feed: LedgerFeed) -> None:
        self._feed = feed
        self._told: dict[tuple[str, str], str] = {}
        self._unwritten: dict[str, Pod] = {}
        self._writing: set[str] = set()
        self._written: dict[str, Pod] = {}

    @property
    def has_unwritten(self) -> bool:
        return bool(self._unwritten)

    @property
    def is_writing(self) -> bool:
        return bool(self._writing)

    def look(self) -> Iterator[SharingAction | None]:
        """What follows from all that has changed, one node or pod at a time.

        None where other work may come between.
        """
        feed = self._feed
        nodes, news = list(feed.touched), list(feed.news.values())
        feed.touched.clear()
        feed.news.clear()
        for name in nodes:
            yield from self._tell_conflict(feed.nodes.get(name))
            yield from self._adopt_on(feed.ledger.nodes.get(name))
            yield None
        why = ShareWhy(lambda: feed.ledger)
        for pod in news:
            yield from self._tell_no_room(pod, why)
            yield None
        for pod in list(self._unwritten.values()):
            yield from self._write(pod)
        self._forget()

    def written(self, action: WriteGrants, outcome: Outcome) -> None:
        """How a `WriteGrants` ended.

        The cards stay held, whatever the API server said; only the end of the pod frees them.
        """
        uid = action.pod.uid
        self._writing.discard(uid)
        if outcome.result is Result.GONE:
            self._unwritten.pop(uid, None)
            self._feed.drop_pod(uid)
        elif outcome.result is Result.DONE:
            if self._unwritten.get(uid) is self._written.get(uid):  # else it was damaged again meanwhile
                self._unwritten.pop(uid, None)
            if self._unwritten:
                self._feed.on_change()
        elif uid in self._unwritten:
            self._unwritten[uid] = self._unwritten.pop(uid)  # behind the others: those that are never taken must not hold them up

    def _adopt_on(self, account: NodeAccount | None) -> Iterator[SharingAction | None]:
        """Write damaged grants again, and find cards for pods that have none.

        A pod that runs without a card that is known is given none, only told: its kubelet would not look any
        more.
        """
        if account is None:
            return
        for tenant in tuple(account.tenants.values()):
            pod = tenant.pod
            if pod.deleted_at is not None or self._feed.ledger.tenants.get(pod.uid) is not tenant:
                continue  # it leaves, or it changed while other work came between: its node is touched again
            if tenant.is_misread and self._written.get(pod.uid) is not pod:
                self._unwritten[pod.uid] = pod
            elif tenant.grants:
                continue
            elif pod.has_started:
                yield from self._tell(pod.uid, pod, NOT_PLACED, unknown_gpu_text(account, pod.uid))
            else:
                grants = self._feed.ledger.adopt(pod)
                yield None  # a node may have a thousand of them
                if isinstance(grants, NotYet):
                    continue  # the node is touched when others have started
                if isinstance(grants, Refusal):
                    yield from self._tell(pod.uid, pod, NOT_PLACED, f"node {pod.node} has no room: {grants.reason}")
                elif grants:
                    self._unwritten[pod.uid] = pod

    def _write(self, pod: Pod) -> Iterator[SharingAction]:
        if pod.uid in self._writing or len(self._writing) >= AT_ONCE:
            return
        ledger = self._feed.ledger
        tenant = ledger.tenants.get(pod.uid)
        grants = ledger.adopt(tenant.pod) if tenant is not None and tenant.node == pod.node else None
        if tenant is None or not grants or isinstance(grants, Refusal):
            self._unwritten.pop(pod.uid, None)
            return
        self._writing.add(pod.uid)
        self._written[pod.uid] = self._unwritten[pod.uid] = tenant.pod
        yield WriteGrants(tenant.pod, grants, ledger.card_units(pod.node, grants), tenant.is_first_written)

    def _tell_no_room(self, pod: Pod, why: ShareWhy) -> Iterator[SharingAction]:
        if pod.node or pod.deleted_at is not None or pod.is_finished:
            return
        if any(condition.type == "PodScheduled" and condition.reason == "Unschedulable" for condition in pod.conditions):
            short = why(pod)
            yield from self._tell(pod.uid, pod, NO_ROOM, short.by_node if short else "")

    def _tell_conflict(self, node: Node | None) -> Iterator[SharingAction]:
        if node is not None:
            yield from self._tell(node.name, node, CONFLICT, share_mode(node.labels).conflict)

    def _tell(self, key: str, subject: Pod | Node, reason: str, message: str) -> Iterator[SharingAction]:
        """Once, until the words change."""
        if self._told.get((key, reason), "") != message:
            self._told[key, reason] = message
            if message:
                yield RecordEvent(subject, reason, message)

    def _forget(self) -> None:
        """Forget what is not there any more."""
        feed = self._feed
        for key in [key for key in self._told if key[0] not in feed.pods and key[0] not in feed.nodes]:
            del self._told[key]
        for uid in [uid for uid in self._written if uid not in feed.pods]:
            del self._written[uid]
