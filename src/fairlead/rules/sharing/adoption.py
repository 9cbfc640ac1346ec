"""Adoption: cards for pods that another scheduler or a user bound to a node.

Damaged grants are written again.

Three Events report what users cannot see otherwise: a conflict of GPU modes on a node, a pod
without a known card (`GPUShareNotPlaced`), and a pod without room (`GPUShareNoRoom`).
kube-scheduler asks the extender only about nodes whose *sum* of units is large enough, and its own
Event has no numbers about the others, so `GPUShareNoRoom` has them.
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
"""The number of grants that may be in flight: bindings share the limit of requests with them."""


class Adoption:
    """At most one `look` runs at a time; `written` takes the outcome of each `WriteGrants` of it.

    `has_unwritten`: a grant is not written yet, so the next look is due soon.
    """

    def __init__(self, feed: LedgerFeed) -> None:
        self._feed = feed
        self._reported: dict[tuple[str, str], str] = {}
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
        """The actions that follow from all changes, one node or pod at a time.

        A None is a point at which the driver may do other work.
        """
        feed = self._feed
        nodes, news = list(feed.touched), list(feed.news.values())
        feed.touched.clear()
        feed.news.clear()
        for name in nodes:
            yield from self._report_conflict(feed.nodes.get(name))
            yield from self._adopt_on(feed.ledger.nodes.get(name))
            yield None
        why = ShareWhy(lambda: feed.ledger)
        for pod in news:
            yield from self._report_no_room(pod, why)
            yield None
        for pod in list(self._unwritten.values()):
            yield from self._write(pod)
        self._forget()

    def written(self, action: WriteGrants, outcome: Outcome) -> None:
        """Take the outcome of a `WriteGrants`.

        The cards stay held, whatever the outcome; only the end of the pod frees them.
        """
        uid = action.pod.uid
        self._writing.discard(uid)
        if outcome.result is Result.GONE:
            self._unwritten.pop(uid, None)
            self._feed.drop_pod(uid)
        elif outcome.result is Result.DONE:
            if self._unwritten.get(uid) is self._written.get(uid):  # else it was damaged again
                self._unwritten.pop(uid, None)
            if self._unwritten:
                self._feed.on_change()
        elif uid in self._unwritten:
            # behind the others: a grant that is refused every time must not delay them
            self._unwritten[uid] = self._unwritten.pop(uid)

    def _adopt_on(self, account: NodeAccount | None) -> Iterator[SharingAction | None]:
        """Write damaged grants again, and find cards for pods that have none.

        A pod that runs on an unknown card gets none, only an Event: its containers have started, so
        its kubelet would not apply the grant.
        """
        if account is None:
            return
        for tenant in tuple(account.tenants.values()):
            pod = tenant.pod
            if pod.deleted_at is not None or self._feed.ledger.tenants.get(pod.uid) is not tenant:
                # it is being deleted, or it changed during other work: its node is touched again
                continue
            if tenant.is_misread and self._written.get(pod.uid) is not pod:
                self._unwritten[pod.uid] = pod
            elif tenant.grants:
                continue
            elif pod.has_started:
                yield from self._report(
                    pod.uid, pod, NOT_PLACED, unknown_gpu_text(account, pod.uid)
                )
            else:
                grants = self._feed.ledger.adopt(pod)
                yield None  # a node may have a thousand of them
                if isinstance(grants, NotYet):
                    continue  # the node is touched when other containers have started
                if isinstance(grants, Refusal):
                    yield from self._report(
                        pod.uid, pod, NOT_PLACED, f"node {pod.node} has no room: {grants.reason}"
                    )
                elif grants:
                    self._unwritten[pod.uid] = pod

    def _write(self, pod: Pod) -> Iterator[SharingAction]:
        if pod.uid in self._writing or len(self._writing) >= AT_ONCE:
            return
        ledger = self._feed.ledger
        tenant = ledger.tenants.get(pod.uid)
        grants = (
            ledger.adopt(tenant.pod) if tenant is not None and tenant.node == pod.node else None
        )
        if tenant is None or not grants or isinstance(grants, Refusal):
            self._unwritten.pop(pod.uid, None)
            return
        self._writing.add(pod.uid)
        self._written[pod.uid] = self._unwritten[pod.uid] = tenant.pod
        yield WriteGrants(
            tenant.pod, grants, ledger.card_units(pod.node, grants), tenant.is_first_written
        )

    def _report_no_room(self, pod: Pod, why: ShareWhy) -> Iterator[SharingAction]:
        if pod.node or pod.deleted_at is not None or pod.is_finished:
            return
        if any(
            condition.type == "PodScheduled" and condition.reason == "Unschedulable"
            for condition in pod.conditions
        ):
            short = why(pod)
            yield from self._report(pod.uid, pod, NO_ROOM, short.by_node if short else "")

    def _report_conflict(self, node: Node | None) -> Iterator[SharingAction]:
        if node is not None:
            yield from self._report(node.name, node, CONFLICT, share_mode(node.labels).conflict)

    def _report(
        self, key: str, subject: Pod | Node, reason: str, message: str
    ) -> Iterator[SharingAction]:
        """Record the Event once, until its message changes."""
        if self._reported.get((key, reason), "") != message:
            self._reported[key, reason] = message
            if message:
                yield RecordEvent(subject, reason, message)

    def _forget(self) -> None:
        """Forget pods and nodes that no longer exist."""
        feed = self._feed
        for key in [
            key for key in self._reported if key[0] not in feed.pods and key[0] not in feed.nodes
        ]:
            del self._reported[key]
        for uid in [uid for uid in self._written if uid not in feed.pods]:
            del self._written[uid]
