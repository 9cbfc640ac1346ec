"""Bindings of pods to nodes that are under way or in doubt.

The problem. kube-scheduler asks for a binding and waits for the answer. The extender reserves cards
and sends one call, which sets the node and the grants of the pod. The call may end without an
answer, and the watch shows its effect later, or never if the call was not carried out. Meanwhile
the reserved memory must not be given to another pod.

The states of a question (`under_way`, by the uid of its pod):

- read: the pod is not known yet, and `ReadPod` asks the API server for it;
- waiting: the node is guarded, and other containers must start before the pod can have its cards.
  It is tried again by `waited`, for at most `WAIT_SECONDS`;
- called: cards are reserved and `BindPod` is in flight;
- unknown: the call ended without an answer. The pod is read at once; if it is on the node, the
  question is answered with success, else with an error, since the call may still be carried out;
- answered: `AnswerBind` ends the question.

A reservation outlives its question as a doubt (`doubts`) until the watch shows the pod, or until a
read at least `SETTLE_SECONDS` after the call settles it: the pod is on the node (the doubt stays
until the watch shows that), it is not (rolled back), or it is gone (dropped).

The invariants:

- A reservation is rolled back only when its binding was certainly not carried out. To hold memory
  too long delays a pod for a minute; to grant it twice lets two pods fail.
- A pod has at most one question under way. The same question again gets no steps, since it waits
  for the same answer; a question about another node is refused.
- A doubt is settled only while no question of its pod is under way.

Why the order in `_try`: the identity of the pod first, then whether it is bound already, so that a
repeated question about a bound pod succeeds without a new reservation.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from fairlead.model.actions import BindPod, Outcome, Result
from fairlead.model.pod import Pod
from fairlead.model.refusal import Refusal
from fairlead.model.sharing import BindAsked
from fairlead.rules.holding.account import RESERVED
from fairlead.rules.holding.need import asks_share
from fairlead.rules.sharing.alike import NotYet
from fairlead.rules.sharing.feed import LedgerFeed

SETTLE_SECONDS: Final = 15.0
"""How long after a call the API server is asked whether the pod was bound.

By then the API server has decided: the call ends with the Lease (3 s at most), and etcd may be
later.
"""
WAIT_SECONDS: Final = 5.0
"""How long a question waits on a guarded node for other containers to start; kube-scheduler waits
10 s for the answer.
"""
# pods that kube-scheduler asked about and that are kept; the oldest is dropped for a new one
_REMEMBERED: Final = 4096


class ReadPod(Struct, frozen=True):
    """Read this pod from the API server.

    `unknown`: how the preceding call ended without a known outcome, "" = there was none. `settles`:
    the answer settles a doubt.
    """

    asked: BindAsked
    unknown: str = ""
    settles: bool = False


class ReadOutcome(Outcome, frozen=True):
    """The outcome of a `ReadPod`.

    `found`: the pod, None = it is absent, Refusal = the API server could not be asked.
    """

    found: Pod | Refusal | None = None


class _Waiting(Struct, frozen=True):
    """A question about a guarded node that has room for the pod once other containers have started.

    `until`: when it is answered with an error.
    """

    asked: BindAsked
    until: float


class AnswerBind(Struct, frozen=True):
    """The answer to a question of kube-scheduler.

    `why`: why the pod is not bound; "" = it is on the node, with its cards.
    """

    asked: BindAsked
    why: str


class Doubt(Struct, frozen=True):
    """A binding whose outcome the watch does not show yet.

    `due_at`: when the API server is asked about it; None = the next `due` sets it.
    """

    pod: Pod
    node: str
    due_at: float | None


Step = BindPod | ReadPod | AnswerBind


class Bindings:
    """Bindings by the uid of their pod. Times are seconds of one monotonic clock.

    `results` counts answers by result: bound, repeated, refused, unknown.
    """

    def __init__(self, feed: LedgerFeed) -> None:
        self.results: dict[str, int] = dict.fromkeys(("bound", "repeated", "refused", "unknown"), 0)
        self.doubts: dict[str, Doubt] = {}
        self.under_way: dict[str, BindAsked] = {}
        self._feed = feed
        self._seen: dict[str, Pod] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._settling: dict[str, Doubt] = {}
        feed.on_doubt = lambda pod, node: self._doubt(pod, node, None)

    def remember(self, pod: Pod) -> None:
        """Keep a pod that kube-scheduler asked about: the watch may show it later."""
        if pod.uid:
            while len(self._seen) >= _REMEMBERED:
                del self._seen[next(iter(self._seen))]
            self._seen[pod.uid] = pod

    @property
    def has_waiting(self) -> bool:
        """Whether a question waits for other containers to start: `waited` must be called soon."""
        return bool(self._waiting)

    def ask(self, asked: BindAsked, now: float) -> list[Step]:
        """The steps of a question of kube-scheduler.

        There are none while the same question is under way, because both get the same answer, and
        while other containers must start before the pod can have its cards (`waited`).
        """
        running = self.under_way.get(asked.uid)
        if running == asked:
            return []
        if running is not None:
            self.results["refused"] += 1
            return [
                AnswerBind(
                    asked,
                    (
                        f"pod {running.namespace}/{running.name} is being "
                        f"bound to node {running.node}"
                    ),
                )
            ]
        self.under_way[asked.uid] = asked
        pod = self._feed.pods.get(asked.uid) or self._seen.get(asked.uid)
        return [ReadPod(asked)] if pod is None else self._try(asked, pod, now)

    def called(self, call: BindPod, outcome: Outcome, now: float) -> list[Step]:
        """The steps that follow from the outcome of a call."""
        asked = self.under_way[call.pod.uid]
        if outcome.result is Result.REFUSED:
            # an earlier call for the same reservation may still be carried out
            if call.pod.uid not in self.doubts:
                self._feed.ledger.roll_back(call.pod.uid)
            return self._answer(asked, "refused", outcome.reason)
        tenant = self._feed.ledger.tenants.get(call.pod.uid)
        # also after a success: the pod may be gone before the watch shows it as bound
        if tenant is not None and tenant.state == RESERVED:
            self._doubt(call.pod, call.node, now + SETTLE_SECONDS)
        if outcome.result is Result.DONE:
            return self._answer(asked, "bound")
        return [ReadPod(asked, outcome.reason or "no answer")]

    def read(self, read: ReadPod, found: Pod | Refusal | None, now: float) -> list[Step]:
        """The steps that follow from reading the pod.

        `found`: the pod, None = it is absent, Refusal = the API server could not be asked.
        """
        if read.settles:
            self._settle(read.asked.uid, found)
            return []
        # a pod on the node proves the binding; a pod without a node proves nothing, because the
        # call may still be carried out
        if read.unknown:
            if isinstance(found, Pod) and found.uid == read.asked.uid and found.node:
                return self._already(read.asked, found)
            where = (
                f"pod {read.asked.namespace}/{read.asked.name} was bound to node {read.asked.node}"
            )
            return self._answer(
                read.asked, "unknown", f"whether {where} is not known yet: {read.unknown}"
            )
        if isinstance(found, Refusal):
            return self._answer(read.asked, "refused", found.reason)
        if found is None:
            return self._answer(read.asked, "refused", f'pods "{read.asked.name}" not found')
        self.remember(found)
        return self._try(read.asked, found, now)

    def waited(self, now: float, why_not: str = "") -> list[Step]:
        """The steps of questions that wait on guarded nodes, the oldest first.

        `why_not`: why no pod may be bound now; all of them are refused with this reason. "" = each
        is tried again.
        """
        steps: list[Step] = []
        for uid, waiting in list(self._waiting.items()):
            pod = self._feed.pods.get(uid) or self._seen.get(uid)
            if why_not or pod is None:
                steps += self._answer(
                    waiting.asked, "refused", why_not or (f'pods "{waiting.asked.name}" not found')
                )
            else:
                steps += self._try(waiting.asked, pod, now)
        return steps

    def due(self, now: float) -> list[ReadPod]:
        """The reads of doubts that are due and that the watch has not settled."""
        reads = []
        for uid, doubt in list(self.doubts.items()):
            tenant = self._feed.ledger.tenants.get(uid)
            if tenant is None or tenant.state != RESERVED:
                del self.doubts[uid]
            elif doubt.due_at is None:
                self._doubt(doubt.pod, doubt.node, now + SETTLE_SECONDS)
            elif now >= doubt.due_at and uid not in self.under_way and uid not in self._settling:
                self._settling[uid] = doubt
                asked = BindAsked(doubt.pod.namespace, doubt.pod.name, uid, doubt.node)
                reads.append(ReadPod(asked, settles=True))
        return reads

    def _settle(self, uid: str, found: Pod | Refusal | None) -> None:
        doubt = self._settling.pop(uid)
        if isinstance(found, Refusal) or uid in self.under_way or self.doubts.get(uid) != doubt:
            return  # the outcome is still unknown, or a new attempt has begun
        del self.doubts[uid]
        if found is None or found.uid != uid:
            self._feed.drop_pod(uid)
        elif found.node == doubt.node:
            # it is bound; the watch is late, and will show it
            self._doubt(doubt.pod, doubt.node, None)
        else:
            # if it is on another node, the watch shows what it holds
            self._feed.ledger.roll_back(uid)

    def _try(self, asked: BindAsked, pod: Pod, now: float) -> list[Step]:
        if (pod.uid, pod.namespace, pod.name) != (asked.uid, asked.namespace, asked.name):
            message = (
                f"pod {pod.key} has uid {pod.uid}, and asked was pod "
                f"{asked.namespace}/{asked.name} with uid {asked.uid}"
            )
            return self._answer(asked, "refused", message)
        if pod.node:
            return self._already(asked, pod)
        if not asks_share(pod):
            return self._answer(
                asked,
                "refused",
                f"pod {pod.key} asks for nothing of shared GPUs: its scheduler binds it itself",
            )
        ledger = self._feed.ledger
        grants = ledger.reserve(pod, asked.node)
        if (
            isinstance(grants, NotYet)
            and now < self._waiting.setdefault(asked.uid, _Waiting(asked, now + WAIT_SECONDS)).until
        ):
            return []
        if isinstance(grants, Refusal):
            return self._answer(asked, "refused", grants.reason)
        self._waiting.pop(asked.uid, None)
        return [BindPod(pod, asked.node, grants, ledger.card_units(asked.node, grants))]

    def _already(self, asked: BindAsked, pod: Pod) -> list[Step]:
        if pod.node == asked.node:
            return self._answer(asked, "repeated")
        return self._answer(
            asked, "refused", f"pod {pod.key} is already assigned to node {pod.node}"
        )

    def _answer(self, asked: BindAsked, result: str, why: str = "") -> list[Step]:
        self.results[result] += 1
        del self.under_way[asked.uid]
        self._waiting.pop(asked.uid, None)
        return [AnswerBind(asked, why)]

    def _doubt(self, pod: Pod, node: str, due_at: float | None) -> None:
        self.doubts[pod.uid] = Doubt(pod, node, due_at)
