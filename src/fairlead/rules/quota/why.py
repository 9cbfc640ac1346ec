"""Why a pod or a job waits for quota, and what it has of it when it does not wait.

The sentence is the plan's. If the pod's condition has the same reason already, its message is used
word for word. For an admitted pod the condition shows how it was at admission; the answer shows how
it is now.

A place is one in the order in which units are tried (docs/spec/quota.md#order-of-candidates), at
this moment. It promises no turn: a unit that does not fit is passed over, and each plan makes the
order anew.

A reader without the rights to see all pods has no plan. `why_reported` answers from what the quota
controller has written: the conditions of the pods, and the status of the tree.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.errors import UserError
from fairlead.model.moment import Moment
from fairlead.model.pod import Pod
from fairlead.model.quota.plan import (
    MissingAmount,
    QuotaEviction,
    QuotaNodeUse,
    QuotaPlan,
    QuotaWaiting,
)
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.resources import amount_of, amount_text
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.jobs.waiting import why_quota_waits, why_suspended

ADMITTED: Final = "Admitted"
HAS_ROOM: Final = "HasRoom"
RECLAIMED: Final = "Reclaimed"
STOPPING: Final = "Stopping"
FINISHED: Final = "Finished"
NOT_COUNTED: Final = "NotCounted"
UNKNOWN: Final = "Unknown"
LOWERED: Final = "QuotaLowered"
SHOWN_BEFORE_MAX: Final = 20
"""`SHOWN_BEFORE_MAX`: units before the asked one that are named; the others are counted."""
_NAMES_MAX: Final = 5
_EVENTS: Final = "events"
_TAKEN: Final = ("QuotaReclaimed", "QuotaSuspended")
"""Reasons of Events about a pod or its owner: quota took the pod back."""
_OF_WHOLE: Final = "makes room for "
"""The first words of an Event about a whole job.

Each evicted pod has its own Event, too.
"""


class QueuePlace(Struct, frozen=True, gc=False):
    """Place `number` (from 1) of `count`."""

    number: int
    count: int


class QueuedUnit(Struct, frozen=True):
    """A waiting unit and its places in the order of trial: in its leaf, and over all.

    `ahead`: units before it in its leaf, the first `SHOWN_BEFORE_MAX` of them. `ahead_elsewhere`:
    number of units of other leaves before it, by leaf. `lacks`: what must become free,
    where that is an amount.
    """

    row: QuotaWaiting
    in_leaf: QueuePlace
    overall: QueuePlace
    ahead: tuple[QuotaWaiting, ...] = ()
    ahead_elsewhere: Mapping[str, int] = {}
    lacks: tuple[MissingAmount, ...] = ()


class EvictionCount(Struct, frozen=True, gc=False):
    """How often quota took back the pod, its owner's pods, or the job, as far as Events are kept.

    `at`: the last time; None = never, or unknown.
    """

    count: int
    at: Moment | None = None


class QuotaAnswer(Struct, frozen=True):
    """The answer for a pod or a job (`kind`).

    `leaf` is "" if quota does not count it; `use` is None if it is unknown what the leaf uses.
    `reason` is that of its waiting unit, else one of this module. `units`: its waiting units, in
    the order tried. `since`: when the first of them began to wait; None = none waits.
    `reason_since`: since when the condition has the reason; None = it does not. `priority`: the
    highest of its pods. `evicted`: None = Events could not be read. `is_reported`: from what the
    quota controller has written, without a plan; it has no `units` then.
    """

    kind: str
    key: str
    reason: str
    sentence: str
    leaf: str = ""
    pods: int = 0
    admitted: int = 0
    units: tuple[QueuedUnit, ...] = ()
    node: QuotaNode | None = None
    use: QuotaNodeUse | None = None
    since: Moment | None = None
    reason_since: Moment | None = None
    priority: int = 0
    evicted: EvictionCount | None = None
    is_reported: bool = False

    @property
    def resources(self) -> list[str]:
        """Resources that its leaf limits or uses, in the order of its table."""
        if self.node is None or self.use is None:
            return []
        return sorted({*self.use.used, *self.node.min, *self.node.max})


def why_quota(
    snapshot: ClusterSnapshot, state: QuotaState, plan: QuotaPlan, namespace: str, name: str
) -> list[QuotaAnswer]:
    """Answers for the pod and for each job of this name.

    Raises UserError with existing names if there is none.
    """
    return _answers(_Asked(snapshot, state, plan, namespace), namespace, name)


def why_reported(
    snapshot: ClusterSnapshot,
    state: QuotaState,
    uses: Sequence[QuotaNodeUse],
    namespace: str,
    name: str,
) -> list[QuotaAnswer]:
    """The same without a plan, for a reader of this namespace's objects alone.

    `uses`: from the status of the tree. Reasons and sentences are those of the pods' conditions.
    """
    asked = _Reported(snapshot, state, QuotaPlan(nodes=tuple(uses)), namespace)
    return [replace(each, is_reported=True) for each in _answers(asked, namespace, name)]


def _answers(asked: _Asked, namespace: str, name: str) -> list[QuotaAnswer]:
    snapshot, state = asked.snapshot, asked.state
    answers = [asked.of_pod(pod) for pod in snapshot.pods_in(namespace) if pod.name == name]
    answers += [
        asked.of_job(kind, name, uids) for kind, uids in _jobs(snapshot, state, namespace, name)
    ]
    if not answers:
        raise UserError(
            f"there is no pod and no job `{namespace}/{name}`",
            _what_is_there(snapshot, state, namespace, name),
        )
    return answers


def why_pod(snapshot: ClusterSnapshot, state: QuotaState, plan: QuotaPlan, pod: Pod) -> QuotaAnswer:
    return _Asked(snapshot, state, plan, pod.namespace).of_pod(pod)


def admitted_sentence(node: QuotaNode, use: QuotaNodeUse, resources: Iterable[str]) -> str:
    """What the leaf uses and borrows of the resources that the tree names.

    >>> node = QuotaNode("b", "root.b", min={"cpu": 10_000})
    >>> admitted_sentence(node, QuotaNodeUse("b", used={"cpu": 15_000}), ["cpu", "memory"])
    'b uses 15 of guaranteed 10 cpu, borrows 5'
    """
    parts = []
    for resource in resources:
        if resource in node.min or resource in node.max or resource in use.used:
            used, least = (
                use.used.get(resource, 0),
                use.counted_min.get(resource, node.min.get(resource, 0)),
            )
            over = amount_text(resource, max(0, used - least))
            parts.append(
                f"uses {amount_text(resource, used)} of guaranteed "
                f"{amount_text(resource, least)} "
                f"{resource}, borrows {over}"
            )
    return (
        f"{node.name} {'; '.join(parts)}"
        if parts
        else f"{node.name} limits nothing that it asks for"
    )


def what_must_be_free(row: QuotaWaiting) -> tuple[MissingAmount, ...]:
    """What must become free: room below quota nodes; else the amount that the plan's clauses
    contain, on nodes or below a cap or a min.

    >>> from fairlead.model.quota.plan import Reason
    >>> from fairlead.model.quota.clauses import clause
    >>> asks = clause("asks-on-one", resource="nvidia.com/gpu", asks=4)
    >>> room = clause("freest", nodes=3, node="gpu-1", free=2)
    >>> why = Reason.NO_FIT_ON_NODES
    >>> what_must_be_free(QuotaWaiting("ns/web", "a", (), why, "", clauses=(asks, room)))
    (MissingAmount(kind='node', at='gpu-1', resource='nvidia.com/gpu', amount=2),)
    """
    if row.lacks:
        return row.lacks
    clauses = {each.code: each.values for each in row.clauses}
    asked = clauses.get("asks") or clauses.get("asks-on-one")
    for code, (kind, at, has) in _LACKING_CLAUSES.items():
        if asked is None or code not in clauses:
            continue
        values, resource = clauses[code], asked["resource"]
        amounts = {
            key: amount_of(resource, text)
            for key, text in {**asked, **values}.items()
            if key in _AMOUNTS
        }
        more = amounts["asks"] + amounts.get("used", 0) - amounts[has]
        return (MissingAmount(kind, values.get(at, ""), resource, more),) if more > 0 else ()
    return ()


_AMOUNTS: Final = ("asks", "used", "cap", "min", "free", "there")
_LACKING_CLAUSES: Final[Mapping[str, tuple[str, str, str]]] = {
    "freest": ("node", "node", "free"),
    "only-node": ("node", "node", "free"),
    "in-all": ("nodes", "", "there"),
    "cap": ("cap", "user", "cap"),
    "firm": ("min", "leaf", "min"),
}
"""By clause: the kind of room, the value that names it, and the value with the amount that it has.
"""


class _Asked:
    """The plan, indexed by pod."""

    def __init__(
        self, snapshot: ClusterSnapshot, state: QuotaState, plan: QuotaPlan, namespace: str
    ) -> None:
        self.snapshot = snapshot
        self.state = state
        self._plan = plan
        self._pods = {pod.key: pod for pod in state.pods if pod.namespace == namespace}
        self._leaf = next(
            (leaf for leaf in state.tree.leaves() if namespace in leaf.namespaces), None
        )
        self._use = next(
            (use for use in plan.nodes if self._leaf is not None and use.name == self._leaf.name),
            None,
        )
        self._namespace = namespace
        self._waiting = {pod.key: each for each in plan.waiting for pod in each.pods}
        self._evicted = {each.pod.key: each for each in plan.evict}
        self._new = {each.pod.key: each for each in plan.admit}
        self._lines: dict[str, list[QuotaWaiting]] = {}
        for row in plan.waiting:
            self._lines.setdefault(row.leaf, []).append(row)

    def of_pod(self, pod: Pod) -> QuotaAnswer:
        if self._leaf is None:
            return QuotaAnswer("pod", pod.key, NOT_COUNTED, self._stranger())
        if pod.is_finished:
            return QuotaAnswer(
                "pod", pod.key, FINISHED, "it has ended, so it costs no quota", self._leaf.name
            )
        counted = self._pods.get(pod.key)
        if counted is None:
            return QuotaAnswer(
                "pod",
                pod.key,
                NOT_COUNTED,
                f"{_maker(pod)}, which quota does not count",
                self._leaf.name,
            )
        reason, sentence = self._standing(counted)
        waiting = self._waiting.get(pod.key)
        uids = (pod.uid, counted.owner)
        return self._answer(
            "pod", pod.key, (reason, sentence), uids, [counted], [waiting] if waiting else []
        )

    def of_job(self, kind: str, name: str, uids: Sequence[str]) -> QuotaAnswer:
        key = f"{self._namespace}/{name}"
        if self._leaf is None:
            return QuotaAnswer(kind, key, NOT_COUNTED, self._stranger())
        pods = self._pods_of(uids)
        mine = {pod.key for pod in pods}
        waiting = [
            each
            for each in self._plan.waiting
            if _is_of(each.workload, uids) or any(pod.key in mine for pod in each.pods)
        ]
        if waiting:
            first = waiting[0]
            total = max(len(pods), first.workload.pods if first.workload else 0)
            missing = sum(not pod.is_admitted for pod in pods) or total
            sentence = f"{missing} of {total} pods wait: {_condition_sentence(first, pods)}"
            return self._answer(kind, key, (str(first.reason), sentence), uids, pods, waiting)
        if not pods:
            return QuotaAnswer(
                kind,
                key,
                FINISHED,
                "it has no unfinished pods, so it costs no quota",
                self._leaf.name,
            )
        eldest = min(pods, key=lambda pod: (pod.is_admitted, pod.created_at, pod.name))
        return self._answer(kind, key, self._standing(eldest), uids, pods, [])

    def _pods_of(self, uids: Sequence[str]) -> list[QuotaPod]:
        made = {pod.key for uid in uids for pod in self.snapshot.pods_owned_by(uid)}
        return [pod for pod in self._pods.values() if pod.owner in uids or pod.key in made]

    def _answer(
        self,
        kind: str,
        key: str,
        outcome: tuple[str, str],
        uids: Iterable[str],
        pods: Sequence[QuotaPod],
        waiting: Sequence[QuotaWaiting],
    ) -> QuotaAnswer:
        """`outcome`: reason and sentence; `uids`: of the object and of its owner."""
        assert self._leaf is not None
        reason, sentence = outcome
        changed_at = [
            pod.condition_since
            for pod in pods
            if pod.condition_reason == reason and pod.condition_since is not None
        ]
        return QuotaAnswer(
            kind,
            key,
            reason,
            sentence,
            self._leaf.name,
            len(pods),
            sum(pod.is_admitted for pod in pods),
            tuple(self._place(row) for row in waiting),
            self._leaf,
            self._use,
            since=min((row.since for row in waiting if row.since is not None), default=None),
            reason_since=min(changed_at, default=None),
            priority=max(
                [*(row.priority for row in waiting), *(pod.priority for pod in pods)], default=0
            ),
            evicted=self._taken(
                set(uids) - {""},
                is_suspended=any(
                    row.workload is not None and row.workload.suspended_for for row in waiting
                ),
            ),
        )

    def _place(self, row: QuotaWaiting) -> QueuedUnit:
        line = self._lines[row.leaf]
        elsewhere = {
            leaf: count
            for leaf, rows in self._lines.items()
            if leaf != row.leaf
            and (count := bisect_left(rows, row.overall, key=lambda each: each.overall))
        }
        before = line[: min(row.position - 1, SHOWN_BEFORE_MAX)]
        overall = QueuePlace(row.overall, len(self._plan.waiting))
        return QueuedUnit(
            row,
            QueuePlace(row.position, len(line)),
            overall,
            tuple(before),
            elsewhere,
            what_must_be_free(row),
        )

    def _taken(self, uids: set[str], *, is_suspended: bool) -> EvictionCount | None:
        """Counts from Events about it and about its owner.

        A job that quota suspended was taken back at least once.
        """
        if not self.snapshot.was_read(_EVENTS):
            return None
        found = [
            event
            for event in self.snapshot.events
            if event.object_uid in uids and event.reason in _TAKEN
        ]
        counts = Counter[str]()  # by object: the pod's owner has an Event, too
        for event in found:
            if event.reason != _TAKEN[0] or not event.message.startswith(_OF_WHOLE):
                counts[event.object_uid] += max(1, event.count)
        last = max((event.at for event in found if event.at is not None), default=None)
        return EvictionCount(max((int(is_suspended), *counts.values())), last)

    def _standing(self, pod: QuotaPod) -> tuple[str, str]:
        """Reason and sentence of a pod that quota counts."""
        assert self._leaf is not None
        if waiting := self._waiting.get(pod.key):
            return str(waiting.reason), _condition_sentence(waiting, [pod])
        if admission := self._new.get(pod.key):
            by = "guaranteed by" if admission.is_guaranteed else "with idle quota in"
            return HAS_ROOM, (
                f"it has room, {by} {admission.leaf}: the quota controller admits it next"
            )
        if pod.is_stopping:
            return STOPPING, f"it stops; until it is gone it counts in {self._leaf.name}"
        if eviction := self._evicted.get(pod.key):
            return RECLAIMED, _taken_back(eviction)
        if self._use is None:
            return ADMITTED, f"it is admitted in {self._leaf.name}"
        return ADMITTED, admitted_sentence(
            self._leaf, self._use, [each for each, amount in pod.request.items() if amount]
        )

    def _stranger(self) -> str:
        return (
            f"namespace {self._namespace} is on no leaf of the quota tree, so quota does not "
            "count its pods"
        )


class _Reported(_Asked):
    """What the quota controller has written. The plan has only what each node uses: pods and jobs
    themselves show that they wait.
    """

    def of_job(self, kind: str, name: str, uids: Sequence[str]) -> QuotaAnswer:
        pods = self._pods_of(uids)
        jobs = [row for uid in uids if (row := self.state.workloads.get(uid)) is not None]
        taken = next((row for row in jobs if row.is_suspended and row.suspended_for), None)
        lowered = next((row for row in jobs if row.held and not row.is_suspended), None)
        gated = [pod for pod in pods if not pod.is_admitted]
        if self._leaf is None or not (gated or taken or lowered):
            return super().of_job(kind, name, uids)
        key = f"{self._namespace}/{name}"
        if gated:
            eldest = min(gated, key=lambda pod: (pod.created_at, pod.name))
            reason, sentence = self._standing(eldest)
            sentence = f"{len(gated)} of {len(pods)} pods wait: {sentence}"
            return self._answer(kind, key, (reason, sentence), uids, pods, [])
        if taken is not None:
            wait, total = why_suspended(taken.suspended_for), max(len(pods), taken.pods)
            sentence = f"{total} of {total} pods wait: {wait.message}"
            answer = self._answer(kind, key, (wait.reason, sentence), uids, pods, [])
            evicted = self._taken(set(uids), is_suspended=True)
            priority = answer.priority if pods else taken.priority
            return replace(
                answer, since=taken.created_at or None, priority=priority, evicted=evicted
            )
        assert lowered is not None
        sentence = (
            f"{lowered.held} of {lowered.pods + lowered.held} pods wait: its parallelism is "
            "lowered until there is room again"
        )
        answer = self._answer(kind, key, (LOWERED, sentence), uids, pods, [])
        return replace(answer, since=lowered.created_at or None)

    def _answer(
        self,
        kind: str,
        key: str,
        outcome: tuple[str, str],
        uids: Iterable[str],
        pods: Sequence[QuotaPod],
        waiting: Sequence[QuotaWaiting],
    ) -> QuotaAnswer:
        answer = super()._answer(kind, key, outcome, uids, pods, waiting)
        since = [pod.created_at for pod in pods if not pod.is_admitted and pod.created_at]
        return replace(answer, since=min(since, default=None))

    def _standing(self, pod: QuotaPod) -> tuple[str, str]:
        if pod.is_admitted:
            return super()._standing(pod)
        wait = why_quota_waits(self.snapshot.pod_by_key[pod.key])
        if wait is None:
            return UNKNOWN, "it waits for quota; the quota controller has not written why"
        return wait.reason, wait.message


def _condition_sentence(waiting: QuotaWaiting, pods: Iterable[QuotaPod]) -> str:
    """The message of these pods' condition if it has the same reason; else the plan's sentence."""
    mine = {pod.key for pod in waiting.pods}
    return next(
        (
            pod.condition_message
            for pod in pods
            if pod.key in mine and pod.condition_message and pod.condition_reason == waiting.reason
        ),
        waiting.message,
    )


def _taken_back(eviction: QuotaEviction) -> str:
    sentence = f": {eviction.message}" if eviction.message else ""
    if eviction.is_drain:
        return f"it is to be evicted{sentence}"
    return f"it is to make room for {eviction.for_unit}{sentence}"


def _is_of(job: Workload | None, uids: Sequence[str]) -> bool:
    return job is not None and job.uid in uids


def _maker(pod: Pod) -> str:
    owner = pod.controller
    if owner is not None and owner.kind == "DaemonSet":
        return f"it is a pod of DaemonSet {owner.name}"
    return (
        "it is a static pod of its node"
        if owner is not None and owner.kind == "Node"
        else "it is a pod"
    )


def _jobs(
    snapshot: ClusterSnapshot, state: QuotaState, namespace: str, name: str
) -> list[tuple[str, list[str]]]:
    """Kind and uids of the jobs of this name: the possible topmost owners of a pod."""
    found: dict[str, list[str]] = {}
    rows = [row for row in state.workloads.values() if row.namespace == namespace]
    owners = [owner for pod in snapshot.pods_in(namespace) if (owner := pod.controller) is not None]
    named = [(row.kind, row.uid) for row in rows if row.name == name]
    named += [
        (row.owner_kind, row.owner)
        for row in rows
        if row.owner_kind == "Deployment" and row.name.rpartition("-")[0] == name
    ]
    named += [
        (job.kind, job.uid)
        for job in snapshot.jobs
        if job.namespace == namespace and job.name == name
    ]
    named += [(owner.kind, owner.uid) for owner in owners if owner.name == name]
    if not named:  # a Deployment calls its ReplicaSets NAME-HASH
        named = [
            ("Deployment", owner.uid)
            for owner in owners
            if owner.kind == "ReplicaSet" and owner.name.rpartition("-")[0] == name
        ]
    for kind, uid in named:
        found.setdefault(kind, []).append(uid)
    return sorted(found.items())


def _what_is_there(snapshot: ClusterSnapshot, state: QuotaState, namespace: str, name: str) -> str:
    elsewhere = sorted(pod.key for pod in snapshot.pods if pod.name == name)
    elsewhere += sorted({row.key for row in state.workloads.values() if row.name == name})
    if elsewhere:
        return f"there is {', '.join(elsewhere[:_NAMES_MAX])}"
    here = sorted(pod.name for pod in snapshot.pods_in(namespace))
    if here:
        more = f" and {len(here) - _NAMES_MAX} more" if len(here) > _NAMES_MAX else ""
        return f"namespace {namespace} has {', '.join(here[:_NAMES_MAX])}{more}"
    spaces = sorted(space for leaf in state.tree.leaves() for space in leaf.namespaces)
    return (
        f"namespace {namespace} has no pods; the quota tree has the namespaces "
        f"{', '.join(spaces[:_NAMES_MAX]) or '(none)'}"
    )
