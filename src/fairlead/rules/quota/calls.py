"""Calls of the quota controller that the watch does not show yet, laid over what it shows.

The life of a call is that of `rules/control/pending`; here stands what it means for quota. A pod is
charged from the moment at which its admission is sent, and counts as stopping from the moment at
which its eviction is sent. A call whose outcome is unknown counts as done. So the controller never
admits more than the tree allows, and never evicts more than it needs, however late the watch is.

A pod has at most one call in `admitting` and one in `stopping`, a workload at most one in
`turning`. Three more facts follow from finished calls and from the watch, and each has an end: a
resumed workload keeps the room of its missing pods for `RESUME_SECONDS` (`awaited`), a gang keeps
that of a failed pod for `LOST_SECONDS` (`ghosts`), and a pod whose eviction was refused is no
victim for the tree's refusal time (`refused_at`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from fairlead.model.actions import (
    AdmitPod,
    DeleteObject,
    EvictPod,
    Outcome,
    PatchObject,
    Result,
    ScaleJob,
)
from fairlead.model.keys import QUOTA_GATE
from fairlead.model.quota.rows import Workload, scaled, suspended_priority
from fairlead.model.quota.state import QuotaPod
from fairlead.rules.control.pending import Pauses, PendingCall, PendingCalls
from fairlead.rules.quota.feed import QuotaFeed

RESUME_SECONDS: Final = 60.0
"""How long the room of a resumed job is kept for pods that its operator has not created yet."""
LOST_SECONDS: Final = 5.0
"""The same for the pod that replaces a failed one.

Otherwise a borrower gets its room and is evicted at once.
"""
CallAction = AdmitPod | EvictPod | DeleteObject | PatchObject | ScaleJob


class QuotaCall(PendingCall, kw_only=True):
    """`for_unit`: the unit that gets the room. `victims`: uids of the pods that a lowered Job
    loses. `pod`: the pod that is admitted.
    """

    action: CallAction
    for_unit: str = ""
    victims: frozenset[str] = frozenset()
    pod: QuotaPod | None = None


class Calls:
    """Calls under way.

    By uid: `admitting` and `stopping` pods, `turning` workloads (suspended or resumed, lowered or
    raised).

    `refused_at`: victims whose eviction was refused, and when. `pauses`: objects that are left
    alone after a refusal. `awaited`: resumed jobs whose pods do not exist yet, and until when their
    room is kept. `ghosts`: pods of gangs that have ended while the gang goes on, and until when
    each counts as stopping.
    """

    def __init__(self, feed: QuotaFeed) -> None:
        self._feed = feed
        self._listing = feed.listings
        # refused also when the gate is gone
        self.admitting: PendingCalls[QuotaCall] = PendingCalls(refusal_is_final=False)
        self.stopping: PendingCalls[QuotaCall] = PendingCalls()
        self.turning: PendingCalls[QuotaCall] = PendingCalls()
        self.awaited: dict[str, float] = {}
        self.ghosts: dict[str, tuple[QuotaPod, float]] = {}
        self.refused_at: dict[str, float] = {}
        self.pauses = Pauses()

    # --- the cluster as it is with them -----------------------------------------------------------

    def over(self, pod: QuotaPod) -> QuotaPod:
        """The pod, as it is when these calls are done."""
        admitting, stopping = self.admitting.get(pod.uid), self.stopping.get(pod.uid)
        if admitting is not None and not pod.is_admitted:
            pod = replace(pod, is_admitted=True, admitted_at=admitting.sent_at, claim_since=None)
        if stopping is not None and not pod.is_stopping:
            pod = replace(pod, is_stopping=True, stopping_at=stopping.sent_at)
        turning = self.turning.get(pod.owner)
        if turning is not None and not pod.is_stopping and pod.is_admitted:
            is_going = (
                pod.uid in turning.victims
                if isinstance(turning.action, ScaleJob)
                else bool(turning.for_unit)
            )
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
        if job.parallelism != action.before:  # it is done, or another client has changed it
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
        of_jobs = (
            [uid for uid, pod in self._feed.known.items() if pod.owner in self.turning]
            if self.turning
            else ()
        )
        return {*self.admitting, *self.stopping, *self.refused_at, *self.ghosts, *of_jobs}

    # --- their lives ------------------------------------------------------------------------------

    def send(
        self,
        action: CallAction,
        now: float,
        for_unit: str = "",
        victims: frozenset[str] = frozenset(),
    ) -> CallAction:
        pod = self._feed.known.get(action.target.uid) if isinstance(action, AdmitPod) else None
        self._book(action)[action.target.uid] = QuotaCall(
            now, action=action, for_unit=for_unit, victims=victims, pod=pod
        )
        return action

    def going_though_admitted(self, uid: str) -> QuotaPod | None:
        """A pod that its job gave up while it waited, and that a pending call may have admitted.

        It is charged until the watch shows what happened to it.
        """
        call = self.admitting.get(uid)
        if (
            call is None
            or call.pod is None
            or uid in self._feed.known
            or uid not in self._feed.rows
        ):
            return None
        return replace(
            call.pod, is_admitted=True, is_stopping=True, admitted_at=call.sent_at, claim_since=None
        )

    def ended(self, action: CallAction, outcome: Outcome, now: float) -> QuotaCall | None:
        """The call, if it is one of these.

        A call that was certainly not carried out is forgotten, and its object is paused.
        """
        book, uid = self._book(action), action.target.uid
        call = book.get(uid)
        if call is None:
            return None
        if book.ended(uid, outcome, now, self._feed.listings):
            self._refuse(action, now)
        elif outcome.result not in (Result.UNKNOWN, Result.REFUSED):
            self.pauses.end(uid)
        return call

    def again(self, now: float) -> Iterator[CallAction]:
        """The calls whose outcome is unknown, when their pause is over."""
        for book in self._books():
            yield from (call.action for call in book.repeats(now))

    def forget(self, now: float) -> None:
        """Forget calls that the watch shows or a later list disproves, and pauses that are over."""
        feed, known, listing = self._feed, self._feed.known, self._feed.listings
        if self._listing != listing:
            self._listing = listing
            for book in self._books():
                book.cut_off(now)
        self.admitting.forget(now, listing, self._is_admission_shown)
        self.stopping.forget(
            now, listing, lambda uid, _: uid not in known or known[uid].is_stopping
        )
        for uid, call in self.turning.forget(now, listing, self._is_turn_shown):
            if uid in feed.workload_of and _brings_pods(call):
                self.awaited[uid] = now + RESUME_SECONDS
        self.ghosts |= {
            pod.uid: (replace(pod, is_stopping=True), now + LOST_SECONDS) for pod in feed.fallen
        }
        feed.fallen.clear()
        for uid in [
            uid
            for uid, (pod, until) in self.ghosts.items()
            if now >= until or not self._is_awaited(pod.owner)
        ]:
            del self.ghosts[uid]
        for uid in [
            uid for uid, until in self.awaited.items() if now >= until or not self._is_awaited(uid)
        ]:
            del self.awaited[uid]
        for uid in [
            uid
            for uid, at in self.refused_at.items()
            if now >= at + feed.settings.refusal_seconds or uid not in known
        ]:
            del self.refused_at[uid]
        self.pauses.forget(now)

    def _is_admission_shown(self, uid: str, _: QuotaCall) -> bool:
        row = self._feed.rows.get(uid)
        return row is None or QUOTA_GATE not in row.gates

    def _is_turn_shown(self, uid: str, call: QuotaCall) -> bool:
        workload = self._feed.workload_of.get(uid)
        return workload is None or _is_turned(workload, call)

    def step_back(self, now: float) -> None:
        """The clock was set back: no pause lasts longer because of it."""
        self.pauses.step_back()
        self.refused_at.clear()
        self.awaited.clear()
        self.ghosts.clear()
        for book in self._books():
            book.step_back(now)

    def next_after(self, now: float) -> float | None:
        """When the clock alone calls for a look at them."""
        times = [at for book in self._books() for at in book.times()]
        times += [at + self._feed.settings.refusal_seconds for at in self.refused_at.values()]
        times += self.pauses.times()
        times += (*self.awaited.values(), *(until for _, until in self.ghosts.values()))
        return min((at for at in times if at > now), default=None)

    def _is_awaited(self, uid: str) -> bool:
        """Whether pods of this job are missing that its operator will make."""
        job = self._feed.workload_of.get(uid)
        if job is None or job.is_suspended or job.is_finished:
            return False
        there = len(self._feed.active_of(uid)) if job.can_lower else self._feed.pods_of[uid]
        return there < job.pods - job.late_pods

    def _books(self) -> tuple[PendingCalls[QuotaCall], ...]:
        return self.stopping, self.admitting, self.turning

    def _book(self, action: CallAction) -> PendingCalls[QuotaCall]:
        if isinstance(action, AdmitPod):
            return self.admitting
        return self.turning if isinstance(action, PatchObject | ScaleJob) else self.stopping

    def _refuse(self, action: CallAction, now: float) -> None:
        uid = action.target.uid
        if isinstance(action, EvictPod | DeleteObject):
            self.refused_at[uid] = now
        elif isinstance(action, PatchObject) or (
            isinstance(action, ScaleJob) and action.count < action.before
        ):
            self.refused_at.update(
                {pod.uid: now for pod in self._feed.known.values() if pod.owner == uid}
            )
        self.pauses.pause(uid, now)


def _is_turned(job: Workload, call: QuotaCall) -> bool:
    """Whether the watch shows the effect of the call, or what another client did instead."""
    action = call.action
    if isinstance(action, ScaleJob):
        return (job.parallelism, job.is_suspended and action.is_resumed) != (
            action.before,
            action.is_resumed,
        )
    return job.is_suspended == bool(call.for_unit)


def _brings_pods(call: QuotaCall) -> bool:
    action = call.action
    return (
        action.is_resumed or action.count > action.before
        if isinstance(action, ScaleJob)
        else not call.for_unit
    )
