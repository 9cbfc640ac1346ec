"""What the quota controller reports to users: the condition of every waiting pod, and Events.

The problem. The sentences of thousands of waiting pods may change with every plan, and the calls
that write them share one limit (300 a second) with admissions and evictions. So reports are
rationed: only `AT_ONCE` of these calls are in flight, and each answer lets the next ones go.

The states of a pod's report:

- wanted: the plan gives a reason and a sentence. A changed reason is due at once (`_reasons`). A
  changed sentence alone is due when the pod's last one is `SENTENCE_SECONDS` old (`_sentences`), at
  most `SENTENCES_PER_SECOND` over all pods;
- in flight: the condition was sent. The pod gets no second condition meanwhile;
- written: the API server has answered. The condition is laid over the pod (`over`) until the watch
  shows it, at most for `SEEN_SECONDS`. Then the Event that belongs to it is queued;
- failed: unless the pod is gone, it is paused for `AGAIN_SECONDS`, and the report is wanted again.

The invariants:

- `_in_flight` is the number of these calls in flight. A new listing sets it to 0: the process that
  sent them may have been cut off from their answers.
- A pod is in `_sentence_line` at most once, and an owner's report (`_owners`) is keyed by owner and
  reason. Both lines are heaps by due time, so an answer costs the same for any number of pods.
- An owner gets one Event for a reason in `OWNER_SECONDS`, and none if the number of its waiting
  pods is the one last reported.

Why this order in `more`: a changed reason is written at once
(docs/spec/quota.md#conditions-and-sentences), so admissions and other new reasons go first; Events
follow; a changed sentence may wait for a minute, so sentences go last. Claims are not rationed:
`claim` returns the call at once, because evictions wait for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.actions import ObjectRef, Outcome, RecordObjectEvent, Result, SetPodCondition
from fairlead.model.keys import QUOTA_CONDITION
from fairlead.model.node import Condition
from fairlead.model.quota.plan import QuotaWaiting, Reason
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import QuotaPod
from fairlead.rules.control.messages import SentMessages
from fairlead.rules.quota.feed import QuotaFeed

# the number of conditions and Events that may be in flight; admissions and evictions get the rest
# of the controller's calls
AT_ONCE: Final = 20
# conditions of which only the sentence changed, over all pods: a tenth of the rate of calls
SENTENCES_PER_SECOND: Final = 30.0
SENTENCE_SECONDS: Final = 60.0
"""The shortest time between two changes of the sentence alone of one pod."""
OWNER_SECONDS: Final = 300.0
"""The shortest time between two Events about the same owner and reason."""
OWNER_PATIENCE_SECONDS: Final = 5.0
"""The first Event about an owner waits for this time: its pods are created one after the other."""
# how long a pod is left alone after a condition of it was not written
AGAIN_SECONDS: Final = 1.0
SEEN_SECONDS: Final = 60.0
"""How long a written condition stays laid over its pod while the watch does not show it.

It is written again afterwards.
"""
# Events that may wait to be sent; those above this number are dropped
MOST_EVENTS: Final = 20_000
ADMITTED: Final = "Admitted"
CLAIMS: Final = Reason.WAITING_FOR_EVICTIONS

ReportAction = SetPodCondition | RecordObjectEvent
Message = tuple[str, str]
"""Reason and sentence."""


class _Written(Struct):
    """A condition that this process sent at `at`.

    `is_in_flight`: its answer has not arrived. `event`: the reason of the Event that is queued once
    it is written, "" = none.
    """

    condition: Condition
    at: float
    event: str
    is_in_flight: bool = True


class _Owner(NamedTuple):
    """An owner whose pods wait: time of its next Event, number of pods, sentence of the first."""

    due_at: float
    pods: int
    sentence: str


class QuotaReports:
    """`want` takes the rows of a plan; `more` returns the calls that may be sent now, also after an
    outcome, which `done` takes. `forget` compares with the watch, before a plan is made.
    """

    def __init__(self, feed: QuotaFeed) -> None:
        self._feed = feed
        self._listing = feed.listings
        self._written: dict[str, _Written] = {}
        self._pauses: dict[str, float] = {}
        self._reasons: dict[str, tuple[QuotaPod, Message]] = {}
        self._sentences: dict[str, tuple[QuotaPod, Message]] = {}
        self._sentences_sent: SentMessages[str] = SentMessages(SENTENCE_SECONDS)
        self._sentence_line: list[tuple[float, int, str]] = []
        self._lined_up: set[str] = set()
        self._number = 0
        self._admitted: dict[str, tuple[QuotaPod, str]] = {}
        self._events: deque[RecordObjectEvent] = deque()
        self._in_flight = 0
        self._owners: dict[tuple[str, str], _Owner] = {}
        self._owner_line: list[tuple[float, tuple[str, str]]] = []
        self._last_owner_event: dict[tuple[str, str], tuple[float, int]] = {}
        self._owner_events: deque[tuple[float, tuple[str, str]]] = deque()
        self._rows_of: dict[str, tuple[list[str], dict[tuple[str, str], tuple[int, str]]]] = {}
        self._wanted: dict[str, Message] = {}
        self._waits: dict[tuple[str, str], int] = {}
        self._tokens, self._tokens_at = SENTENCES_PER_SECOND, 0.0

    # --- conditions that the watch does not show yet ----------------------------------------------

    def over(self, pod: QuotaPod) -> QuotaPod:
        """The pod with the condition that was written and that the watch does not show yet.

        Of a condition in flight only the claim counts: the claims of one plan are answered one by
        one, and the order of the claimants must not change meanwhile.
        """
        written = self._written.get(pod.uid)
        if written is None:
            return pod
        condition = written.condition
        if written.is_in_flight:
            is_first = condition.reason == CLAIMS and pod.claim_since is None
            return replace(pod, claim_since=condition.at) if is_first else pod
        since = condition.at if condition.reason == CLAIMS and not pod.is_admitted else None
        return replace(
            pod,
            condition_reason=condition.reason,
            condition_message=condition.message,
            condition_since=condition.at,
            claim_since=since,
        )

    def is_claimed(self, pod: QuotaPod) -> bool:
        """Whether the API server has the claim of this pod, as `over` returned it."""
        written = self._written.get(pod.uid)
        if written is not None and written.is_in_flight:
            shown = self._feed.known.get(pod.uid)
            return shown is not None and shown.claim_since is not None
        return pod.claim_since is not None

    @property
    def touched(self) -> Iterable[str]:
        return self._written

    # --- what is wanted ---------------------------------------------------------------------------

    def want(self, rows: Mapping[str, Iterable[QuotaWaiting]], now: float) -> None:
        """Take the plan's rows of waiting pods, of all leaves."""
        for leaf in [leaf for leaf in self._rows_of if leaf not in rows]:
            for key in self._forget_leaf(leaf):
                self._forget_owner(key, now)
        for leaf, its in rows.items():
            self.want_in(leaf, its, now)

    def want_in(self, leaf: str, rows: Iterable[QuotaWaiting], now: float) -> None:
        """Take the rows of one leaf; those of other leaves stay."""
        before = self._forget_leaf(leaf)
        uids: list[str] = []
        counts: dict[tuple[str, str], tuple[int, str]] = {}
        for row in rows:
            message = str(row.reason), row.message
            for pod in row.pods:
                uids.append(pod.uid)
                self._wanted[pod.uid] = message
                self._want(pod, message)
                if pod.owner:
                    key = pod.owner, message[0]
                    count, first = counts.get(key, (0, row.message))
                    counts[key] = count + 1, first
        self._rows_of[leaf] = uids, counts
        for key in [key for key in before if key not in counts]:
            self._owners.pop(key, None)
            self._forget_owner(key, now)
        for key, (count, sentence) in counts.items():
            self._waits[key] = count
            self._want_owner(key, count, sentence, now)

    def _forget_leaf(self, leaf: str) -> Collection[tuple[str, str]]:
        """Forget the rows of a leaf. Returns its owners with waiting pods, each with the reason."""
        uids, counts = self._rows_of.pop(leaf, ((), {}))
        for uid in uids:
            for wanted in (self._wanted, self._reasons, self._sentences):
                wanted.pop(uid, None)
        for key in counts:
            self._waits.pop(key, None)
        return counts

    def admitted(self, pod: QuotaPod, sentence: str) -> None:
        self._admitted[pod.uid] = pod, sentence

    def event(self, target: ObjectRef, reason: str, message: str, kind: str = "Normal") -> None:
        if len(self._events) < MOST_EVENTS:
            self._events.append(RecordObjectEvent(target, reason, message, kind))

    def claim(self, pod: QuotaPod, sentence: str, now: float) -> SetPodCondition | None:
        """The call that writes a claim, not rationed: the first eviction for the claim waits for
        it. None while a condition of the pod is in flight, or the pod is paused.
        """
        self._reasons.pop(pod.uid, None)
        return self._write(pod, (CLAIMS, sentence), now) if self._may_write(pod.uid, now) else None

    def more(self, now: float) -> list[ReportAction]:
        """The calls that may be sent now: reasons first, then Events, then sentences."""
        actions: list[ReportAction] = []
        for uid in self._free(self._admitted, now):
            pod, sentence = self._admitted.pop(uid)
            actions.append(self._write(pod, (ADMITTED, sentence), now))
        for uid in self._free(self._reasons, now):
            pod, message = self._reasons.pop(uid)
            actions.append(self._write(pod, message, now))
        if self._in_flight >= AT_ONCE:
            return actions
        self._report_owners(now)
        while self._events and self._in_flight < AT_ONCE:
            self._in_flight += 1
            actions.append(self._events.popleft())
        return [*actions, *self._next_sentences(now)]

    def _free(self, wanted: Iterable[str], now: float) -> list[str]:
        """The first of these pods whose condition may be written now."""
        return list(
            islice(
                (uid for uid in wanted if self._may_write(uid, now)),
                max(0, AT_ONCE - self._in_flight),
            )
        )

    def done(self, action: ReportAction, outcome: Outcome, now: float) -> None:
        self._in_flight = max(0, self._in_flight - 1)
        if isinstance(action, RecordObjectEvent):
            return
        uid = action.target.uid
        written = self._written.get(uid)
        if written is None or written.condition != action.condition:
            return
        if outcome.result is Result.DONE:
            written.is_in_flight = False
            if written.event:
                self.event(action.target, written.event, action.condition.message)
            return
        del self._written[uid]
        pod = self._feed.known.get(uid)
        if pod is not None and outcome.result is not Result.GONE:
            self._pauses[uid] = now + AGAIN_SECONDS
            if action.condition.reason == ADMITTED:
                self._admitted.setdefault(uid, (pod, action.condition.message))
            elif uid in self._wanted:
                self._want(self.over(pod), self._wanted[uid])

    def next_after(self, now: float) -> float | None:
        """When the next report is due even if nothing changes."""
        times = [at for at in self._pauses.values() if at > now]
        if self._owner_line:
            first = self._owner_line[0][0]
            times.append(first if first > now else now + 1.0)
        if self._sentence_line:
            times.append(max(self._sentence_line[0][0], now + 1.0))
        return min(times, default=None)

    def step_back(self, now: float) -> None:
        """The clock was set back: no pause may last longer because of it."""
        self._pauses.clear()
        self._sentences_sent.clear()
        self._sentence_line = [
            (min(at, now), number, uid) for at, number, uid in self._sentence_line
        ]
        heapify(self._sentence_line)
        self._owners = {
            key: owner._replace(due_at=min(owner.due_at, now))
            for key, owner in self._owners.items()
        }
        self._owner_line = [(owner.due_at, key) for key, owner in self._owners.items()]
        heapify(self._owner_line)
        self._last_owner_event = {
            key: (min(at, now), pods) for key, (at, pods) in self._last_owner_event.items()
        }
        self._owner_events = deque(
            sorted((at, key) for key, (at, _) in self._last_owner_event.items())
        )
        self._tokens_at = now
        for written in self._written.values():
            written.at = min(written.at, now)

    # --- how it is written ------------------------------------------------------------------------

    def _want(self, pod: QuotaPod, message: Message) -> None:
        written = self._written.get(pod.uid)
        shown = (
            (pod.condition_reason, pod.condition_message)
            if written is None
            else (written.condition.reason, written.condition.message)
        )
        if shown[0] != message[0]:
            self._reasons[pod.uid] = pod, message
        elif shown[1] != message[1]:
            self._sentences[pod.uid] = pod, message
            self._line_up(pod.uid, self._sentences_sent.free_at(pod.uid))

    def _line_up(self, uid: str, at: float) -> None:
        """Its sentence may be written from `at` on. A pod is in the line at most once."""
        if uid not in self._lined_up:
            self._lined_up.add(uid)
            self._number += 1
            heappush(self._sentence_line, (at, self._number, uid))

    def _want_owner(self, key: tuple[str, str], pods: int, sentence: str, now: float) -> None:
        last = self._last_owner_event.get(key)
        known = self._owners.pop(key, None)
        if last is not None and last[1] == pods:
            return
        due_at = (
            known.due_at
            if known is not None
            else now + OWNER_PATIENCE_SECONDS
            if last is None
            else last[0] + OWNER_SECONDS
        )
        self._owners[key] = _Owner(due_at, pods, sentence)
        if known is None:
            heappush(self._owner_line, (due_at, key))

    def _report_owners(self, now: float) -> None:
        while self._owner_line and self._owner_line[0][0] <= now:
            _, key = heappop(self._owner_line)
            due = self._owners.get(key)
            if due is None or due.due_at > now:  # it is no longer wanted, or due at another time
                continue
            del self._owners[key]
            self._last_owner_event[key] = now, due.pods
            self._owner_events.append((now, key))
            owner = self._feed.workload_of.get(key[0])
            if owner is not None:
                waits = "waits" if due.pods == 1 else "wait"
                text = f"{due.pods} of {self._feed.pods_of[key[0]]} pods {waits}: {due.sentence}"
                self.event(workload_ref(owner), "QuotaWaiting", text)

    def _next_sentences(self, now: float) -> Iterable[ReportAction]:
        self._tokens = min(
            SENTENCES_PER_SECOND, self._tokens + (now - self._tokens_at) * SENTENCES_PER_SECOND
        )
        self._tokens_at = now
        line = self._sentence_line
        while line and line[0][0] <= now and self._tokens >= 1 and self._in_flight < AT_ONCE:
            _, _, uid = heappop(line)
            self._lined_up.discard(uid)
            if uid not in self._sentences:
                continue
            if not (self._sentences_sent.may_send(uid, now) and self._may_write(uid, now)):
                self._line_up(uid, max(self._sentences_sent.free_at(uid), now + AGAIN_SECONDS))
                continue
            self._tokens -= 1
            self._sentences_sent.sent(uid, now)
            pod, message = self._sentences.pop(uid)
            yield self._write(pod, message, now)

    def _may_write(self, uid: str, now: float) -> bool:
        written = self._written.get(uid)
        return (written is None or not written.is_in_flight) and now >= self._pauses.get(uid, 0.0)

    def _write(self, pod: QuotaPod, message: Message, now: float) -> SetPodCondition:
        """The call that writes a condition.

        Its time is the one at which the reason changed, in whole seconds, as the API server stores
        it.
        """
        reason, sentence = message
        is_admitted = reason == ADMITTED
        is_new = self.over(pod).condition_reason != reason
        since = float(int(now)) if is_new or pod.condition_since is None else pod.condition_since
        condition = Condition(
            QUOTA_CONDITION, "True" if is_admitted else "False", reason, sentence, since
        )
        event = ("QuotaAdmitted" if is_admitted else "QuotaWaiting") if is_new else ""
        self._written[pod.uid] = _Written(condition, now, event)
        self._in_flight += 1
        return SetPodCondition(pod_ref(pod), condition)

    def forget(self, now: float) -> None:
        """Forget written conditions that the watch shows or should have shown, and past times."""
        known = self._feed.known
        if self._listing != self._feed.listings:  # the process may have been cut off from answers
            self._listing, self._in_flight = self._feed.listings, 0
            self._written = {
                uid: each for uid, each in self._written.items() if not each.is_in_flight
            }
        for uid, written in list(self._written.items()):
            pod = known.get(uid)
            condition = written.condition
            is_seen = pod is None or (
                pod.condition_reason,
                pod.condition_message,
                pod.condition_since,
            ) == (
                condition.reason,
                condition.message,
                condition.at,
            )
            if not written.is_in_flight and (is_seen or now >= written.at + SEEN_SECONDS):
                del self._written[uid]
        for uid in [uid for uid, until in self._pauses.items() if now >= until]:
            del self._pauses[uid]
        self._sentences_sent.forget(now)
        while self._owner_events and now >= self._owner_events[0][0] + OWNER_SECONDS:
            _, key = self._owner_events.popleft()
            if key not in self._waits:
                self._forget_owner(key, now)

    def _forget_owner(self, key: tuple[str, str], now: float) -> None:
        """The owner no longer waits for this reason.

        Its last Event is remembered for `OWNER_SECONDS`, so that it is not repeated within that
        time.
        """
        last = self._last_owner_event.get(key)
        if last is not None and now >= last[0] + OWNER_SECONDS:
            del self._last_owner_event[key]


def pod_ref(pod: QuotaPod) -> ObjectRef:
    return ObjectRef("v1", "Pod", pod.name, pod.namespace, pod.uid, "pods")


def workload_ref(workload: Workload) -> ObjectRef:
    return ObjectRef(
        workload.api_version, workload.kind, workload.name, workload.namespace, workload.uid
    )
