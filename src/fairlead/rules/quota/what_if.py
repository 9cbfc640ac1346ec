"""What would happen: plans are carried out in a simulation until one changes nothing.

Specification: docs/spec/quota.md#what-if-questions.

As in the controller, the claims of a plan are written first, which gives the claimants another
order: the evictions are those of the plan after that. Victims are gone at the next plan. If a
workload owns a victim, a pod of the same size, called `NAME+1`, waits in its place; a bare pod does
not come back. A suspended job waits without pods, and has them again when it is resumed. Admitted
pods run and are ready at once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.errors import UserError
from fairlead.model.moment import Moment
from fairlead.model.quota.plan import (
    EvictionMethod,
    QuotaAdmission,
    QuotaEviction,
    QuotaPlan,
    QuotaWaiting,
    Reason,
)
from fairlead.model.quota.rows import Workload, scaled
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.resources import Amounts
from fairlead.rules.quota.account import account_of
from fairlead.rules.quota.plan import plan_account, plan_quota

MOST_PLANS: Final = 200
_MOMENT: Final = 0.01
_TURN: Final = re.compile(r"\+(\d+)$")


class AddedPods(Struct, frozen=True, gc=False):
    """Pods to add, as if a Deployment created them.

    `gang`: number of them that must run together; 0 = each alone.
    """

    namespace: str
    count: int
    request: Amounts
    priority: int = 0
    gang: int = 0


class SettledQuota(Struct, frozen=True):
    """The result.

    `plan`: the last one, which does nothing; its `waiting` are the units that wait, with reasons.

    `plans`: how many did something. `admitted` and `evicted`: by all plans, in their order.
    """

    state: QuotaState
    plan: QuotaPlan
    plans: int
    admitted: tuple[QuotaAdmission, ...]
    evicted: tuple[QuotaEviction, ...]


def with_pods(state: QuotaState, added: Iterable[AddedPods]) -> QuotaState:
    """The state with these pods waiting, the youngest of all.

    Raises UserError for a namespace that is on no leaf, since quota would not count its pods.
    """
    spaces = {space for leaf in state.tree.leaves() for space in leaf.namespaces}
    taken = {pod.key for pod in state.pods}
    pods = list(state.pods)
    for number, asked in enumerate(added, start=1):
        if asked.namespace not in spaces:
            sentence = (
                f"the tree has {', '.join(sorted(spaces)[:10])}"
                if spaces
                else "the tree has no namespace at all"
            )
            raise UserError(
                (
                    f"namespace `{asked.namespace}` is on no leaf of the quota tree, so quota does "
                    "not count its pods"
                ),
                sentence,
            )
        gang = f"added-{number}" if asked.gang else ""
        for name in _new_names(asked, taken):
            pod = QuotaPod(
                asked.namespace,
                name,
                f"added/{asked.namespace}/{name}",
                asked.request,
                asked.priority,
                created_at=state.now,
            )
            pods.append(replace(pod, owner=f"added/{number}", gang=gang, gang_size=asked.gang))
            taken.add(pod.key)
    return replace(state, pods=tuple(pods))


def without_pods(state: QuotaState, keys: Collection[str]) -> QuotaState:
    """The state without these pods (`namespace/name`).

    Raises UserError for a pod that quota does not count.
    """
    unknown = sorted(set(keys) - {pod.key for pod in state.pods})
    if unknown:
        raise UserError(
            f"quota counts no pod `{unknown[0]}`",
            "write NAMESPACE/POD of an unfinished pod in a namespace of the quota tree",
        )
    return replace(state, pods=tuple(pod for pod in state.pods if pod.key not in keys))


def outcome_of(state: QuotaState, pod: QuotaPod) -> QuotaAdmission | QuotaWaiting | None:
    """The next plan's row for this pod, as if the pod existed.

    None: there is no row, since the tree stops the plan or quota does not count the pod.
    """
    planned = plan_account(account_of(replace(state, pods=(*state.pods, pod))), state.now)
    admitted = next((each for each in planned.admit if each.pod.uid == pod.uid), None)
    return admitted or next(
        (each for each in planned.waiting() if any(of.uid == pod.uid for of in each.pods)), None
    )


def running_by_leaf(state: QuotaState) -> Mapping[str, int]:
    """How many pods of each leaf are admitted and do not stop."""
    leaf_of = {space: leaf.name for leaf in state.tree.leaves() for space in leaf.namespaces}
    counts = {leaf.name: 0 for leaf in state.tree.leaves()}
    for pod in state.pods:
        if pod.is_admitted and not pod.is_stopping and pod.namespace in leaf_of:
            counts[leaf_of[pod.namespace]] += 1
    return counts


def settle(state: QuotaState, most_plans: int = MOST_PLANS) -> SettledQuota:
    """Plans until nothing changes. Raises UserError if that takes more than `most_plans` plans."""
    imagined = _FutureCluster(state)
    admitted: list[QuotaAdmission] = []
    evicted: list[QuotaEviction] = []
    for plans in range(most_plans + 1):
        plan = imagined.next_plan()
        if _is_idle(plan):
            return SettledQuota(imagined.state(), plan, plans, tuple(admitted), tuple(evicted))
        admitted += plan.admit
        evicted += plan.evict
        imagined.carry_out(plan)
    counts = f"{len(admitted)} admissions and {len(evicted)} evictions"
    raise UserError(
        f"plans do not come to an end: {most_plans} plans with {counts}",
        "save a snapshot and report it as a bug",
    )


def _is_idle(plan: QuotaPlan) -> bool:
    """Whether the plan changes nothing.

    A never bound bare pod is only reported by an Event, in every plan.
    """
    return not (plan.admit or plan.evict or plan.resume) and all(
        each.is_event_only for each in plan.returned
    )


def _new_names(asked: AddedPods, taken: Collection[str]) -> list[str]:
    names: list[str] = []
    number = 0
    while len(names) < asked.count:
        number += 1
        if f"{asked.namespace}/added-{number}" not in taken:
            names.append(f"added-{number}")
    return names


class _FutureCluster:
    """The cluster as it would become."""

    def __init__(self, state: QuotaState) -> None:
        self._state = state
        self._now = state.now
        self._pods = {pod.key: pod for pod in state.pods}
        self._budgets = defaultdict(int, state.budgets)
        self._workloads = dict(state.workloads)
        self._of_suspended: defaultdict[str, list[QuotaPod]] = defaultdict(list)
        self._missed: set[str] = set()
        """Replacements of victims that are not admitted yet; their budgets count one pod less."""

    def state(self) -> QuotaState:
        return replace(
            self._state,
            pods=tuple(self._pods.values()),
            budgets=dict(self._budgets),
            workloads=self._workloads,
            now=self._now,
        )

    def next_plan(self) -> QuotaPlan:
        """The next plan that does something, after the time that
        stopping pods and the clock need.
        """
        plan = plan_quota(self.state())
        while _is_idle(plan):
            if any(pod.is_stopping for pod in self._pods.values()):
                self.carry_out(plan)
            elif (later := self._next_moment(plan)) is not None:
                self._now = later
            else:
                break
            plan = plan_quota(self.state())
        while plan.evict and self._claim(plan):
            plan = plan_quota(self.state())
        return plan

    def _claim(self, plan: QuotaPlan) -> bool:
        """Write the claims of a plan; whether one of them is new."""
        new = [
            pod
            for waiting in plan.waiting
            if waiting.reason == Reason.WAITING_FOR_EVICTIONS
            for pod in waiting.pods
            if pod.claim_since is None
        ]
        for pod in new:
            self._pods[pod.key] = replace(self._pods[pod.key], claim_since=self._now)
        return bool(new)

    def carry_out(self, plan: QuotaPlan) -> None:
        self._now += _MOMENT
        for pod in [pod for pod in self._pods.values() if pod.is_stopping]:
            del self._pods[pod.key]  # its workload has created the replacement already
        for waiting in plan.waiting:
            is_claimant = waiting.reason == Reason.WAITING_FOR_EVICTIONS
            for pod in waiting.pods:
                since = (pod.claim_since or self._now) if is_claimant else None
                self._pods[pod.key] = replace(pod, claim_since=since)
        for admission in plan.admit:
            self._admit(admission.pod)
        for eviction in plan.evict:
            self._evict(eviction)
        for returned in plan.returned:
            if not returned.is_event_only:
                self._come_back(self._pods.pop(returned.pod.key))
        for resume in plan.resume:
            if resume.pods:
                self._raise(resume.workload, resume.pods)
            else:
                self._resume(resume.workload)

    def _next_moment(self, plan: QuotaPlan) -> Moment | None:
        """When all surge pods have waited long enough, or rejected victims may be tried again."""
        settings = self._state.settings
        oldest: dict[str, int] = {}
        moments: list[float] = []
        for pod in self._pods.values():
            if pod.is_admitted and pod.deployment:
                oldest[pod.deployment] = min(pod.revision, oldest.get(pod.deployment, pod.revision))
            if pod.refused_at is not None and plan.waiting:
                moments.append(pod.refused_at + settings.refusal_seconds)
        for waiting in plan.waiting:
            for pod in waiting.pods:
                if oldest.get(pod.deployment, pod.revision) < pod.revision:
                    moments.append(pod.created_at + settings.surge_wait_seconds)
        last = max(moments, default=self._now) + _MOMENT
        return last if last > self._now + _MOMENT else None

    def _admit(self, pod: QuotaPod) -> None:
        self._pods[pod.key] = replace(
            self._pods[pod.key],
            is_admitted=True,
            is_ready=True,
            admitted_at=self._now,
            claim_since=None,
        )
        if pod.key in self._missed:
            self._missed.discard(pod.key)
            for budget in pod.budgets:
                self._budgets[budget] += 1

    def _evict(self, eviction: QuotaEviction) -> None:
        if eviction.method == EvictionMethod.SUSPEND and eviction.workload is not None:
            self._suspend(eviction.workload, eviction.for_unit)
        elif eviction.method == EvictionMethod.LOWER and eviction.workload is not None:
            self._lower(eviction.pod, eviction.workload)
        elif eviction.pod.key in self._pods:
            gone = self._leave(eviction.pod)
            if gone.owner:
                self._missed.add(self._come_back(gone))

    def _leave(self, pod: QuotaPod) -> QuotaPod:
        for budget in pod.budgets:
            self._budgets[budget] -= 1
        return self._pods.pop(pod.key)

    def _come_back(self, gone: QuotaPod) -> str:
        """Add a waiting pod like this one; returns its key."""
        turn = _TURN.search(gone.name)
        name = f"{gone.name[: turn.start()]}+{int(turn[1]) + 1}" if turn else f"{gone.name}+1"
        again = replace(
            gone,
            name=name,
            uid=f"{gone.uid}+",
            is_admitted=False,
            is_stopping=False,
            is_ready=False,
            created_at=self._now,
            admitted_at=0.0,
            claim_since=None,
            stopping_at=None,
            refused_at=None,
            node="",
            condition_reason="",
            condition_message="",
            condition_since=None,
        )
        self._pods[again.key] = again
        return again.key

    def _suspend(self, job: Workload, claimant: str) -> None:
        """Suspend the job once, though each of its pods is a victim."""
        if self._workloads.get(job.uid, job).is_suspended:
            return
        self._workloads[job.uid] = replace(job, is_suspended=True, suspended_for=claimant)
        mine = [pod for pod in self._pods.values() if pod.owner == job.uid]
        self._of_suspended[job.uid] = [self._leave(pod) for pod in mine]

    def _lower(self, pod: QuotaPod, job: Workload) -> None:
        """Remove one pod of a Job.

        Neither it nor its waiting pods come back before the Job is raised.
        """
        job = self._workloads.get(job.uid, job)
        gone = [
            each for each in self._pods.values() if each.owner == job.uid and not each.is_admitted
        ]
        gone += [pod] if pod.key in self._pods else []
        count = max(0, job.pods - len(gone))
        self._workloads[job.uid] = scaled(job, count, job.own_parallelism or job.parallelism)
        self._of_suspended[job.uid] += [
            self._leave(each) if each.is_admitted else self._pods.pop(each.key) for each in gone
        ]

    def _raise(self, job: Workload, more: int) -> None:
        job = self._workloads.get(job.uid, job)
        running = 0 if job.is_suspended else job.pods
        most = job.pods + job.held
        own = job.own_parallelism or job.parallelism
        job = replace(job, is_suspended=False, suspended_for="")
        self._workloads[job.uid] = (
            scaled(job, own) if running + more >= most else scaled(job, running + more, own)
        )
        away = self._of_suspended[job.uid]
        coming, self._of_suspended[job.uid] = away[:more], away[more:]
        for number in range(more - len(coming)):
            name = f"{job.name}-{running + number}"
            coming.append(
                QuotaPod(job.namespace, name, f"{job.uid}/{name}", job.each, job.priority)
            )
        for pod in coming:
            self._missed.add(self._come_back(replace(pod, owner=job.uid)))

    def _resume(self, job: Workload) -> None:
        self._workloads[job.uid] = replace(job, is_suspended=False, suspended_for="")
        for pod in self._of_suspended.pop(job.uid, None) or _pods_of(job):
            self._missed.add(self._come_back(pod))


def _pods_of(job: Workload) -> list[QuotaPod]:
    """Pods of a job with only templates: equal parts of its request, the first has the rest."""
    count = max(1, job.pods)
    gang = f"{job.kind.lower()}/{job.name}" if job.least else ""
    pods = []
    for number in range(count):
        request = {
            each: amount // count + (amount % count if number == 0 else 0)
            for each, amount in job.request.items()
        }
        pod = QuotaPod(
            job.namespace,
            f"{job.name}-{number}",
            f"{job.uid}/{number}",
            request,
            job.priority,
            created_at=job.created_at,
        )
        pods.append(replace(pod, owner=job.uid, user=job.user, gang=gang, gang_size=job.least))
    return pods
