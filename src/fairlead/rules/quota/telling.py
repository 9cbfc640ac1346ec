"""What people are told: the condition of every waiting pod, and Events.

A changed reason is written at once; a changed sentence alone at most once a minute per pod, and at a tenth of
the rate of calls. Only a few of these calls are on their way at a time, so that admissions and evictions,
which share the rate with them, do not wait in their line.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.actions import ObjectRef, Outcome, Result, SetPodCondition, TellObjectEvent
from fairlead.model.keys import QUOTA_CONDITION
from fairlead.model.node import Condition
from fairlead.model.quota.plan import QuotaWaiting, Reason
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import QuotaPod
from fairlead.rules.quota.feed import QuotaFeed

AT_ONCE: Final = 20
SENTENCES_PER_SECOND: Final = 30.0
SENTENCE_SECONDS: Final = 60.0
"""The sentence of one pod changes at most so often."""
OWNER_SECONDS: Final = 300.0
"""One Event about an owner and a reason in this time."""
OWNER_PATIENCE_SECONDS: Final = 5.0
"""An owner's pods come one after the other: they are counted a little later."""
AGAIN_SECONDS: Final = 1.0
SEEN_SECONDS: Final = 60.0
"""What was written and is not seen after that time is written again."""
MOST_EVENTS: Final = 20_000
ADMITTED: Final = "Admitted"
CLAIMS: Final = Reason.WAITING_FOR_EVICTIONS

TellAction = SetPodCondition | TellObjectEvent
Told = tuple[str, str]
"""Reason and sentence."""


class _Written(Struct):
    """A condition of ours. `is_flying`: its answer has not come. `by`: the Event that goes with it."""

    condition: Condition
    at: float
    event: str
    is_flying: bool = True


class _Owner(NamedTuple):
    """Whose pods wait: from when it is told, how many, and the sentence of the first."""

    due_at: float
    pods: int
    sentence: str


class Telling:
    """`want` takes what the plan says; `next` gives the calls for it, `done` hears how each ended."""

    def __init__(self, feed: QuotaFeed) -> None:
        self._feed = feed
        self._listing = feed.listings
        self._written: dict[str, _Written] = {}
        self._pauses: dict[str, float] = {}
        self._reasons: dict[str, tuple[QuotaPod, Told]] = {}
        self._sentences: dict[str, tuple[QuotaPod, Told]] = {}
        self._sentence_at: dict[str, float] = {}
        self._admitted: dict[str, tuple[QuotaPod, str]] = {}
        self._events: deque[TellObjectEvent] = deque()
        self._flying = 0
        self._owners: dict[tuple[str, str], _Owner] = {}
        self._owner_told: dict[tuple[str, str], tuple[float, int]] = {}
        self._rows_of: dict[str, tuple[list[str], dict[tuple[str, str], tuple[int, str]]]] = {}
        self._wanted: dict[str, Told] = {}
        self._waits: dict[tuple[str, str], int] = {}
        self._tokens, self._tokens_at = SENTENCES_PER_SECOND, 0.0

    # --- what pods say --------------------------------------------------------------------------------------

    def over(self, pod: QuotaPod) -> QuotaPod:
        """The pod with the condition that we wrote and the watch does not show yet."""
        written = self._written.get(pod.uid)
        if written is None or written.is_flying:
            return pod
        said = written.condition
        since = said.at if said.reason == CLAIMS and not pod.is_admitted else None
        return replace(pod, said_reason=said.reason, said=said.message, said_at=said.at, claim_since=since)

    @property
    def touched(self) -> Iterable[str]:
        return self._written

    # --- what is to be told ---------------------------------------------------------------------------------

    def want(self, rows: Mapping[str, Iterable[QuotaWaiting]], now: float) -> None:
        """The plan's rows of those that wait, of all leaves."""
        for leaf in [leaf for leaf in self._rows_of if leaf not in rows]:
            self._forget_leaf(leaf)
        for leaf, its in rows.items():
            self.want_in(leaf, its, now)

    def want_in(self, leaf: str, rows: Iterable[QuotaWaiting], now: float) -> None:
        """Of one leaf; what is wanted of the others stays."""
        before = self._forget_leaf(leaf)
        uids: list[str] = []
        counts: dict[tuple[str, str], tuple[int, str]] = {}
        for row in rows:
            told = str(row.reason), row.message
            for pod in row.pods:
                uids.append(pod.uid)
                self._wanted[pod.uid] = told
                self._want(pod, told)
                if pod.owner:
                    key = pod.owner, told[0]
                    count, first = counts.get(key, (0, row.message))
                    counts[key] = count + 1, first
        self._rows_of[leaf] = uids, counts
        for key in [key for key in before if key not in counts]:
            self._owners.pop(key, None)
        for key, (count, sentence) in counts.items():
            self._waits[key] = count
            self._want_owner(key, count, sentence, now)

    def _forget_leaf(self, leaf: str) -> Collection[tuple[str, str]]:
        """The owners that waited there, and why."""
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
            self._events.append(TellObjectEvent(target, reason, message, kind))

    def claim(self, pod: QuotaPod, sentence: str, now: float) -> SetPodCondition | None:
        """A claim is written before the first eviction for it, so at once. None: it is being written."""
        self._reasons.pop(pod.uid, None)
        return self._write(pod, (CLAIMS, sentence), now) if self._may_write(pod.uid, now) else None

    def next(self, now: float) -> list[TellAction]:
        """As many calls as may be on their way now: reasons first, then Events, then sentences."""
        self._forget(now)
        actions: list[TellAction] = []
        for uid, (pod, sentence) in list(self._admitted.items()):
            if self._flying >= AT_ONCE:
                return actions
            if self._may_write(uid, now):
                del self._admitted[uid]
                actions.append(self._write(pod, (ADMITTED, sentence), now))
        for uid, (pod, told) in list(self._reasons.items()):
            if self._flying >= AT_ONCE:
                return actions
            if self._may_write(uid, now):
                del self._reasons[uid]
                actions.append(self._write(pod, told, now))
        self._tell_owners(now)
        while self._events and self._flying < AT_ONCE:
            self._flying += 1
            actions.append(self._events.popleft())
        return [*actions, *self._next_sentences(now)]

    def done(self, action: TellAction, outcome: Outcome, now: float) -> None:
        self._flying = max(0, self._flying - 1)
        if isinstance(action, TellObjectEvent):
            return
        uid = action.target.uid
        written = self._written.get(uid)
        if written is None or written.condition != action.condition:
            return
        if outcome.result is Result.DONE:
            written.is_flying = False
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
        """When the clock alone lets something be told."""
        times = [*(owner.due_at for owner in self._owners.values()), *self._pauses.values()]
        if self._sentences:
            free = min(self._sentence_at.get(uid, 0.0) + SENTENCE_SECONDS for uid in self._sentences)
            times.append(max(free, now + 1.0))
        return min((at for at in times if at > now), default=None)

    def step_back(self, now: float) -> None:
        """The clock went back: no pause is to last as long as its step."""
        self._pauses.clear()
        self._sentence_at.clear()
        self._owners = {key: owner._replace(due_at=min(owner.due_at, now)) for key, owner in self._owners.items()}
        self._owner_told = {key: (min(at, now), count) for key, (at, count) in self._owner_told.items()}
        self._tokens_at = now
        for written in self._written.values():
            written.at = min(written.at, now)

    # --- how ------------------------------------------------------------------------------------------------

    def _want(self, pod: QuotaPod, told: Told) -> None:
        written = self._written.get(pod.uid)
        said = (pod.said_reason, pod.said) if written is None else (written.condition.reason, written.condition.message)
        if said[0] != told[0]:
            self._reasons[pod.uid] = pod, told
        elif said[1] != told[1]:
            self._sentences[pod.uid] = pod, told

    def _want_owner(self, key: tuple[str, str], count: int, sentence: str, now: float) -> None:
        told = self._owner_told.get(key)
        known = self._owners.pop(key, None)
        if told is not None and told[1] == count:
            return
        due_at = known.due_at if known is not None else now + OWNER_PATIENCE_SECONDS if told is None else told[0] + OWNER_SECONDS
        self._owners[key] = _Owner(due_at, count, sentence)

    def _tell_owners(self, now: float) -> None:
        for key, due in list(self._owners.items()):
            if due.due_at > now:
                continue
            del self._owners[key]
            self._owner_told[key] = now, due.pods
            owner = self._feed.workload_of.get(key[0])
            if owner is not None:
                waits = "waits" if due.pods == 1 else "wait"
                told = f"{due.pods} of {self._feed.pods_of[key[0]]} pods {waits}: {due.sentence}"
                self.event(workload_ref(owner), "QuotaWaiting", told)

    def _next_sentences(self, now: float) -> Iterable[TellAction]:
        self._tokens = min(SENTENCES_PER_SECOND, self._tokens + (now - self._tokens_at) * SENTENCES_PER_SECOND)
        self._tokens_at = now
        for uid, (pod, told) in list(self._sentences.items()):
            if self._tokens < 1 or self._flying >= AT_ONCE:
                return
            if self._may_write(uid, now) and now >= self._sentence_at.get(uid, 0.0) + SENTENCE_SECONDS:
                self._tokens -= 1
                self._sentence_at[uid] = now
                del self._sentences[uid]
                yield self._write(pod, told, now)

    def _may_write(self, uid: str, now: float) -> bool:
        written = self._written.get(uid)
        return (written is None or not written.is_flying) and now >= self._pauses.get(uid, 0.0)

    def _write(self, pod: QuotaPod, told: Told, now: float) -> SetPodCondition:
        """`at` is since when its reason is so, in whole seconds, as the API server keeps it."""
        reason, sentence = told
        is_admitted = reason == ADMITTED
        is_new = self.over(pod).said_reason != reason
        since = float(int(now)) if is_new or pod.said_at is None else pod.said_at
        condition = Condition(QUOTA_CONDITION, "True" if is_admitted else "False", reason, sentence, since)
        event = ("QuotaAdmitted" if is_admitted else "QuotaWaiting") if is_new else ""
        self._written[pod.uid] = _Written(condition, now, event)
        self._flying += 1
        return SetPodCondition(pod_ref(pod), condition)

    def _forget(self, now: float) -> None:
        """What the watch shows by now, or should have shown long ago."""
        known = self._feed.known
        if self._listing != self._feed.listings:  # whoever sent them may have been cut off
            self._listing, self._flying = self._feed.listings, 0
            self._written = {uid: each for uid, each in self._written.items() if not each.is_flying}
        for uid, written in list(self._written.items()):
            pod = known.get(uid)
            said = written.condition
            is_seen = pod is None or (pod.said_reason, pod.said, pod.said_at) == (said.reason, said.message, said.at)
            if not written.is_flying and (is_seen or now >= written.at + SEEN_SECONDS):
                del self._written[uid]
        for uid in [uid for uid, until in self._pauses.items() if now >= until]:
            del self._pauses[uid]
        for uid in [uid for uid, at in self._sentence_at.items() if now >= at + SENTENCE_SECONDS]:
            del self._sentence_at[uid]
        for key in [key for key, (at, _) in self._owner_told.items() if now >= at + OWNER_SECONDS and key not in self._waits]:
            del self._owner_told[key]


def pod_ref(pod: QuotaPod) -> ObjectRef:
    return ObjectRef("v1", "Pod", pod.name, pod.namespace, pod.uid, "pods")


def workload_ref(workload: Workload) -> ObjectRef:
    return ObjectRef(workload.api_version, workload.kind, workload.name, workload.namespace, workload.uid)
