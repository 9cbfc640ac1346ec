"""What people are told: the condition of every waiting pod, and Events.

A changed reason is written at once; a changed sentence alone at most once a minute per pod, and at a tenth of
the rate of calls. Only a few of these calls are on their way at a time, so that admissions and evictions,
which share the rate with them, do not wait in their line.
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

TellAction = SetPodCondition | RecordObjectEvent
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
    """`want` takes what the plan says; `next` gives the calls for it, `done` hears how each ended, and `more`
    what may be told because of that.

    What waits for its time stands in a line by that time, so that an answer costs the same however many wait.
    """

    def __init__(self, feed: QuotaFeed) -> None:
        self._feed = feed
        self._listing = feed.listings
        self._written: dict[str, _Written] = {}
        self._pauses: dict[str, float] = {}
        self._reasons: dict[str, tuple[QuotaPod, Told]] = {}
        self._sentences: dict[str, tuple[QuotaPod, Told]] = {}
        self._sentence_at: dict[str, float] = {}
        self._sentence_line: list[tuple[float, int, str]] = []
        self._lined_up: set[str] = set()
        self._number = 0
        self._admitted: dict[str, tuple[QuotaPod, str]] = {}
        self._events: deque[RecordObjectEvent] = deque()
        self._flying = 0
        self._owners: dict[tuple[str, str], _Owner] = {}
        self._owner_line: list[tuple[float, tuple[str, str]]] = []
        self._owner_told: dict[tuple[str, str], tuple[float, int]] = {}
        self._owners_told: deque[tuple[float, tuple[str, str]]] = deque()
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
        return replace(pod, condition_reason=said.reason, condition_message=said.message, condition_since=said.at, claim_since=since)

    @property
    def touched(self) -> Iterable[str]:
        return self._written

    # --- what is to be told ---------------------------------------------------------------------------------

    def want(self, rows: Mapping[str, Iterable[QuotaWaiting]], now: float) -> None:
        """The plan's rows of those that wait, of all leaves."""
        for leaf in [leaf for leaf in self._rows_of if leaf not in rows]:
            for key in self._forget_leaf(leaf):
                self._forget_owner(key, now)
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
            self._forget_owner(key, now)
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
            self._events.append(RecordObjectEvent(target, reason, message, kind))

    def claim(self, pod: QuotaPod, sentence: str, now: float) -> SetPodCondition | None:
        """A claim is written before the first eviction for it, so at once. None: it is being written."""
        self._reasons.pop(pod.uid, None)
        return self._write(pod, (CLAIMS, sentence), now) if self._may_write(pod.uid, now) else None

    def next(self, now: float) -> list[TellAction]:
        """As many calls as may be on their way now: reasons first, then Events, then sentences."""
        self._forget(now)
        return self.more(now)

    def more(self, now: float) -> list[TellAction]:
        """The same after an answer: what the watch shows is looked at again by `next`."""
        actions: list[TellAction] = []
        for uid in self._free(self._admitted, now):
            pod, sentence = self._admitted.pop(uid)
            actions.append(self._write(pod, (ADMITTED, sentence), now))
        for uid in self._free(self._reasons, now):
            pod, told = self._reasons.pop(uid)
            actions.append(self._write(pod, told, now))
        if self._flying >= AT_ONCE:
            return actions
        self._tell_owners(now)
        while self._events and self._flying < AT_ONCE:
            self._flying += 1
            actions.append(self._events.popleft())
        return [*actions, *self._next_sentences(now)]

    def _free(self, wanted: Iterable[str], now: float) -> list[str]:
        """The first of these pods that may be written to now."""
        return list(islice((uid for uid in wanted if self._may_write(uid, now)), max(0, AT_ONCE - self._flying)))

    def done(self, action: TellAction, outcome: Outcome, now: float) -> None:
        self._flying = max(0, self._flying - 1)
        if isinstance(action, RecordObjectEvent):
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
        times = [at for at in self._pauses.values() if at > now]
        if self._owner_line:
            first = self._owner_line[0][0]
            times.append(first if first > now else now + 1.0)
        if self._sentence_line:
            times.append(max(self._sentence_line[0][0], now + 1.0))
        return min(times, default=None)

    def step_back(self, now: float) -> None:
        """The clock went back: no pause is to last as long as its step."""
        self._pauses.clear()
        self._sentence_at.clear()
        self._sentence_line = [(min(at, now), number, uid) for at, number, uid in self._sentence_line]
        heapify(self._sentence_line)
        self._owners = {key: owner._replace(due_at=min(owner.due_at, now)) for key, owner in self._owners.items()}
        self._owner_line = [(owner.due_at, key) for key, owner in self._owners.items()]
        heapify(self._owner_line)
        self._owner_told = {key: (min(at, now), pods) for key, (at, pods) in self._owner_told.items()}
        self._owners_told = deque(sorted((at, key) for key, (at, _) in self._owner_told.items()))
        self._tokens_at = now
        for written in self._written.values():
            written.at = min(written.at, now)

    # --- how ------------------------------------------------------------------------------------------------

    def _want(self, pod: QuotaPod, told: Told) -> None:
        written = self._written.get(pod.uid)
        said = (pod.condition_reason, pod.condition_message) if written is None else (written.condition.reason, written.condition.message)
        if said[0] != told[0]:
            self._reasons[pod.uid] = pod, told
        elif said[1] != told[1]:
            self._sentences[pod.uid] = pod, told
            self._line_up(pod.uid, self._sentence_at.get(pod.uid, 0.0) + SENTENCE_SECONDS)

    def _line_up(self, uid: str, at: float) -> None:
        """Its sentence may be written from then on. A pod stands in the line once."""
        if uid not in self._lined_up:
            self._lined_up.add(uid)
            self._number += 1
            heappush(self._sentence_line, (at, self._number, uid))

    def _want_owner(self, key: tuple[str, str], pods: int, sentence: str, now: float) -> None:
        told = self._owner_told.get(key)
        known = self._owners.pop(key, None)
        if told is not None and told[1] == pods:
            return
        due_at = known.due_at if known is not None else now + OWNER_PATIENCE_SECONDS if told is None else told[0] + OWNER_SECONDS
        self._owners[key] = _Owner(due_at, pods, sentence)
        if known is None:
            heappush(self._owner_line, (due_at, key))

    def _tell_owners(self, now: float) -> None:
        while self._owner_line and self._owner_line[0][0] <= now:
            _, key = heappop(self._owner_line)
            due = self._owners.get(key)
            if due is None or due.due_at > now:  # it stands in the line for another time, or not any more
                continue
            del self._owners[key]
            self._owner_told[key] = now, due.pods
            self._owners_told.append((now, key))
            owner = self._feed.workload_of.get(key[0])
            if owner is not None:
                waits = "waits" if due.pods == 1 else "wait"
                told = f"{due.pods} of {self._feed.pods_of[key[0]]} pods {waits}: {due.sentence}"
                self.event(workload_ref(owner), "QuotaWaiting", told)

    def _next_sentences(self, now: float) -> Iterable[TellAction]:
        self._tokens = min(SENTENCES_PER_SECOND, self._tokens + (now - self._tokens_at) * SENTENCES_PER_SECOND)
        self._tokens_at = now
        line = self._sentence_line
        while line and line[0][0] <= now and self._tokens >= 1 and self._flying < AT_ONCE:
            _, _, uid = heappop(line)
            self._lined_up.discard(uid)
            if uid not in self._sentences:
                continue
            free_at = self._sentence_at.get(uid, 0.0) + SENTENCE_SECONDS
            if now < free_at or not self._may_write(uid, now):
                self._line_up(uid, max(free_at, now + AGAIN_SECONDS))
                continue
            self._tokens -= 1
            self._sentence_at.pop(uid, None)
            self._sentence_at[uid] = now
            pod, told = self._sentences.pop(uid)
            yield self._write(pod, told, now)

    def _may_write(self, uid: str, now: float) -> bool:
        written = self._written.get(uid)
        return (written is None or not written.is_flying) and now >= self._pauses.get(uid, 0.0)

    def _write(self, pod: QuotaPod, told: Told, now: float) -> SetPodCondition:
        """`at` is since when its reason is so, in whole seconds, as the API server keeps it."""
        reason, sentence = told
        is_admitted = reason == ADMITTED
        is_new = self.over(pod).condition_reason != reason
        since = float(int(now)) if is_new or pod.condition_since is None else pod.condition_since
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
            is_seen = pod is None or (pod.condition_reason, pod.condition_message, pod.condition_since) == (
                said.reason,
                said.message,
                said.at,
            )
            if not written.is_flying and (is_seen or now >= written.at + SEEN_SECONDS):
                del self._written[uid]
        for uid in [uid for uid, until in self._pauses.items() if now >= until]:
            del self._pauses[uid]
        while (uid := next(iter(self._sentence_at), "")) and now >= self._sentence_at[uid] + SENTENCE_SECONDS:  # the oldest first
            del self._sentence_at[uid]
        while self._owners_told and now >= self._owners_told[0][0] + OWNER_SECONDS:
            _, key = self._owners_told.popleft()
            if key not in self._waits:
                self._forget_owner(key, now)

    def _forget_owner(self, key: tuple[str, str], now: float) -> None:
        """It waits no more for that. What was told is kept for its time: it is not to be told again soon."""
        told = self._owner_told.get(key)
        if told is not None and now >= told[0] + OWNER_SECONDS:
            del self._owner_told[key]


def pod_ref(pod: QuotaPod) -> ObjectRef:
    return ObjectRef("v1", "Pod", pod.name, pod.namespace, pod.uid, "pods")


def workload_ref(workload: Workload) -> ObjectRef:
    return ObjectRef(workload.api_version, workload.kind, workload.name, workload.namespace, workload.uid)
