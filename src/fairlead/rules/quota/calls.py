"""Calls of ours that the watch does not show yet, laid over what it shows.

A pod is charged from the moment at which its admission is sent, and counts as stopping from the moment at
which its eviction is. A call of which nobody knows how it ended (UNKNOWN) counts as done and is repeated,
which does no harm, until the API server or the watch has said what became of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.actions import AdmitPod, DeleteObject, EvictPod, Outcome, PatchObject, Result, ScaleJob
from fairlead.model.keys import QUOTA_GATE
from fairlead.model.quota.rows import Workload, scaled, suspended_priority
from fairlead.model.quota.state import QuotaPod
from fairlead.rules.quota.feed import QuotaFeed

SETTLE_SECONDS: Final = 15.0
"""So long after a call without an answer it may yet be carried out."""
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 30.0
RESUME_SECONDS: Final = 60.0
"""So long the room of a resumed job is kept for pods that its operator has not made yet."""
LOST_SECONDS: Final = 5.0
"""The same for the pod that follows one which failed: else a borrower gets its room and has to go at once."""
CallAction = AdmitPod | EvictPod | DeleteObject | PatchObject | ScaleJob


class CallUnderWay(Struct):
    """`is_flying`: its answer has not come. `doubted_at`: when a sending of it ended without an answer, last.

    `again_at`: when it is repeated. `listing`: what was the feed's when its answer came, a later listing
    tells the truth. `for_unit`: for whom it is made. `victims`: uids of the pods that go by it, of a Job that
    is lowered. `pod`: who is admitted by it.
    """

    action: CallAction
    sent_at: float
    for_unit: str = ""
    victims: frozenset[str] = frozenset()
    pod: QuotaPod | None = None
    is_flying: bool = True
    doubted_at: float | None = None
    again_at: float | None = None
    pause: float = FIRST_PAUSE_SECONDS
    listing: int | None = None


class Calls:
    """By uid: `admitting` and `stopping` pods, `turning` workloads (suspended or resumed, lowered or raised).

    `refused_at`: victims that were refused. `pauses`: what was refused is left alone until then. `awaited`:
    jobs that we resumed and whose pods are still to come, and until when their room is kept. `ghosts`: pods
    of gangs that have ended while the gang goes on, and until when each counts as one that stops.
    """

    def __init__(self, feed: QuotaFeed) -> None:
        self._feed = feed
        self._listing = feed.listings
        self.admitting: dict[str, CallUnderWay] = {}
        self.stopping: dict[str, CallUnderWay] = {}
        self.turning: dict[str, CallUnderWay] = {}
        self.awaited: dict[str, float] = {}
        self.ghosts: dict[str, tuple[QuotaPod, float]] = {}
        self.refused_at: dict[str, float] = {}
        self.pauses: dict[str, tuple[float, float]] = {}

    # --- the cluster as it is with them ---------------------------------------------------------------------

    def over(self, pod: QuotaPod) -> QuotaPod:
        """The pod, as it is when these calls are done."""
        admitting, stopping = self.admitting.get(pod.uid), self.stopping.get(pod.uid)
        if admitting is not None and not pod.is_admitted:
            pod = replace(pod, is_admitted=True, admitted_at=admitting.sent_at, claim_since=None)
        if stopping is not None and not pod.is_stopping:
            pod = replace(pod, is_stopping=True, stopping_at=stopping.sent_at)
        turning = self.turning.get(pod.owner)
        if turning is not None and not pod.is_stopping and pod.is_admitted:
            is_going = pod.uid in turning.victims if isinstance(turning.action, ScaleJob) else bool(turning.for_unit)
            pod = replace(pod, is_stopping=True) if is_going else pod
        if pod.uid in self.refused_at:
            pod = replace(pod, refused_at=self.refused_at[pod.uid])
        return pod

    def over_workload(self, workload: Workload) -> Workload:
        call = self.turning.get(workload.uid)
        if call is not None and isinstance(call.action, ScaleJob):
            return self._over_scaled(workload, call.action)
        if call is None or not isinstance(call.action, PatchObject):
            return replace(workload, is_awaited=True) if workload.uid in self.awaited else workload
        is_suspended = bool(call.for_unit)
        priority = suspended_priority(call.action.patch["metadata"]["annotations"])
        return replace(
            workload,
            is_suspended=is_suspended,
            suspended_for=call.for_unit,
            is_awaited=not is_suspended,
            priority=workload.priority or priority,
        )

    @staticmethod
    def _over_scaled(job: Workload, action: ScaleJob) -> Workload:
        if job.parallelism != action.before:  # it has been done, or somebody else has changed it
            return job
        own = action.own if action.own != action.count else 0
        is_raised = action.is_resumed or action.count > action.before
        job = scaled(job, action.count, own)
        if action.is_resumed:
            job = replace(job, is_suspended=False, suspended_for="")
        return replace(job, is_awaited=is_raised, priority=job.priority or action.priority)

    @property
    def touched(self) -> set[str]:
        """Uids of the pods that look different with them."""
        of_jobs = [uid for uid, pod in self._feed.known.items() if pod.owner in self.turning] if self.turning else ()
        return {*self.admitting, *self.stopping, *self.refused_at, *self.ghosts, *of_jobs}

    # --- their lives ----------------------------------------------------------------------------------------

    def send(self, action: CallAction, now: float, for_unit: str = "", victims: frozenset[str] = frozenset()) -> CallAction:
        pod = self._feed.known.get(action.target.uid) if isinstance(action, AdmitPod) else None
        self._book(action)[action.target.uid] = CallUnderWay(action, now, for_unit, victims, pod)
        return action

    def going_though_admitted(self, uid: str) -> QuotaPod | None:
        """A pod whose job was to be rid of it while it waited, and which a call of ours may have admitted.

        It is charged until the watch says what became of it.
        """
        call = self.admitting.get(uid)
        if call is None or call.pod is None or uid in self._feed.known or uid not in self._feed.rows:
            return None
        return replace(call.pod, is_admitted=True, is_stopping=True, admitted_at=call.sent_at, claim_since=None)

    def is_paused(self, uid: str, now: float) -> bool:
        return uid in self.pauses and now < self.pauses[uid][0]

    def ended(self, action: CallAction, outcome: Outcome, now: float) -> CallUnderWay | None:
        """The call, if it is one of these. What was certainly not done is forgotten, and left alone for a
        while.
        """
        book, uid = self._book(action), action.target.uid
        call = book.get(uid)
        if call is None:
            return None
        call.is_flying = False
        call.again_at = None
        if outcome.result is Result.UNKNOWN:
            call.doubted_at = now
            call.again_at = now + call.pause
            call.pause = min(2 * call.pause, LONGEST_PAUSE_SECONDS)
        elif outcome.result is Result.REFUSED and call.doubted_at is None:
            del book[uid]
            self._refuse(action, now)
        elif outcome.result is Result.REFUSED:
            self._refuse_again(call, now)
        else:
            call.doubted_at = None
            call.listing = self._feed.listings
            self.pauses.pop(uid, None)
        return call

    def again(self, now: float) -> Iterator[CallAction]:
        """Those whose outcome nobody knows, once more."""
        for call in self._all():
            if call.again_at is not None and call.again_at <= now and not call.is_flying:
                call.is_flying, call.again_at = True, None
                yield call.action

    def forget(self, now: float) -> None:
        """What the watch shows by now, or a later list denies; pauses and refusals that are over."""
        feed, known = self._feed, self._feed.known
        if self._listing != feed.listings:  # whoever sent them may have been cut off, and nobody says how they ended
            self._listing = feed.listings
            for call in self._all():
                if call.is_flying:
                    call.is_flying, call.doubted_at, call.again_at = False, now, now + SETTLE_SECONDS
        for uid, call in list(self.admitting.items()):
            row = feed.rows.get(uid)
            if not call.is_flying and (row is None or QUOTA_GATE not in row.gates or self._is_denied(call, now)):
                del self.admitting[uid]
        for uid, call in list(self.stopping.items()):
            if not call.is_flying and (uid not in known or known[uid].is_stopping or self._is_denied(call, now)):
                del self.stopping[uid]
        for uid, call in list(self.turning.items()):
            workload = feed.workload_of.get(uid)
            is_seen = workload is not None and _is_turned(workload, call)
            if not call.is_flying and (workload is None or is_seen or self._is_denied(call, now)):
                del self.turning[uid]
                if is_seen and _brings_pods(call):
                    self.awaited[uid] = now + RESUME_SECONDS
        self.ghosts |= {pod.uid: (replace(pod, is_stopping=True), now + LOST_SECONDS) for pod in feed.fallen}
        feed.fallen.clear()
        for uid in [uid for uid, (pod, until) in self.ghosts.items() if now >= until or not self._is_awaited(pod.owner)]:
            del self.ghosts[uid]
        for uid in [uid for uid, until in self.awaited.items() if now >= until or not self._is_awaited(uid)]:
            del self.awaited[uid]
        for uid in [uid for uid, at in self.refused_at.items() if now >= at + feed.settings.refusal_seconds or uid not in known]:
            del self.refused_at[uid]
        for uid in [uid for uid, (until, _) in self.pauses.items() if now >= until + LONGEST_PAUSE_SECONDS]:
            del self.pauses[uid]

    def step_back(self, now: float) -> None:
        """The clock went back: no pause is to last as long as its step."""
        self.pauses.clear()
        self.refused_at.clear()
        self.awaited.clear()
        self.ghosts.clear()
        for call in self._all():
            call.sent_at = min(call.sent_at, now)
            call.again_at = None if call.again_at is None else now
            call.doubted_at = None if call.doubted_at is None else now

    def next_after(self, now: float) -> float | None:
        """When the clock alone calls for a look at them."""
        times = [call.again_at for call in self._all() if call.again_at is not None]
        times += [at + self._feed.settings.refusal_seconds for at in self.refused_at.values()]
        times += [until for until, _ in self.pauses.values()]
        times += (*self.awaited.values(), *(until for _, until in self.ghosts.values()))
        return min((at for at in times if at > now), default=None)

    def _is_awaited(self, uid: str) -> bool:
        """Whether pods of this job are missing that its operator will make."""
        job = self._feed.workload_of.get(uid)
        if job is None or job.is_suspended or job.is_finished:
            return False
        there = len(self._feed.active_of(uid)) if job.can_lower else self._feed.pods_of[uid]
        return there < job.pods - job.late_pods

    def _all(self) -> Iterator[CallUnderWay]:
        return chain(self.stopping.values(), self.admitting.values(), self.turning.values())

    def _book(self, action: CallAction) -> dict[str, CallUnderWay]:
        if isinstance(action, AdmitPod):
            return self.admitting
        return self.turning if isinstance(action, PatchObject | ScaleJob) else self.stopping

    def _is_denied(self, call: CallUnderWay, now: float) -> bool:
        """Whether a list that was asked for after it had ended does not show it."""
        if call.listing is None and call.doubted_at is not None and now >= call.doubted_at + SETTLE_SECONDS:
            call.listing = self._feed.listings
        return call.listing is not None and self._feed.listings > call.listing

    def _refuse(self, action: CallAction, now: float) -> None:
        uid = action.target.uid
        if isinstance(action, EvictPod | DeleteObject):
            self.refused_at[uid] = now
        elif isinstance(action, PatchObject) or (isinstance(action, ScaleJob) and action.count < action.before):
            self.refused_at.update({pod.uid: now for pod in self._feed.known.values() if pod.owner == uid})
        self.pause(uid, now)

    def pause(self, uid: str, now: float) -> None:
        pause = min(2 * self.pauses[uid][1], LONGEST_PAUSE_SECONDS) if uid in self.pauses else FIRST_PAUSE_SECONDS
        self.pauses[uid] = now + pause, pause

    def _refuse_again(self, call: CallUnderWay, now: float) -> None:
        """A repeated call is refused: the first may have been done, and may yet be.

        An eviction that can be no more on its way was not done, else it would not have been refused. An
        admission is refused also when the gate is gone: only the watch, or a list, says which it was.
        """
        settled = call.doubted_at is not None and now >= call.doubted_at + SETTLE_SECONDS
        if settled and not isinstance(call.action, AdmitPod):
            del self._book(call.action)[call.action.target.uid]
            self._refuse(call.action, now)
        else:
            call.again_at = now + call.pause
            call.pause = min(2 * call.pause, LONGEST_PAUSE_SECONDS)


def _is_turned(job: Workload, call: CallUnderWay) -> bool:
    """Whether the watch shows what the call did, or what somebody else did instead."""
    action = call.action
    if isinstance(action, ScaleJob):
        return (job.parallelism, job.is_suspended and action.is_resumed) != (action.before, action.is_resumed)
    return job.is_suspended == bool(call.for_unit)


def _brings_pods(call: CallUnderWay) -> bool:
    action = call.action
    return action.is_resumed or action.count > action.before if isinstance(action, ScaleJob) else not call.for_unit
