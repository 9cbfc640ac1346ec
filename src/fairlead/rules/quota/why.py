"""Why a pod or a job waits for quota, and what it has of it when it does not wait.

The sentence is the plan's. Where the controller has told the same reason already, it is what the pod's
condition says, word for word. Of an admitted pod the condition tells how it was then; here stands how it is.

A place is one in the order in which units are tried (docs/spec/quota.md#order-of-candidates), at this moment.
It promises no turn: a unit that does not fit is passed over, and the order is made anew at each plan.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.errors import UserError
from fairlead.model.moment import Moment
from fairlead.model.pod import Pod
from fairlead.model.quota.plan import Lacking, QuotaEviction, QuotaNodeUse, QuotaPlan, QuotaWaiting
from fairlead.model.quota.rows import Workload
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.quota.tree import QuotaNode
from fairlead.model.resources import amount_of, amount_text
from fairlead.model.snapshot import ClusterSnapshot

ADMITTED: Final = "Admitted"
HAS_ROOM: Final = "HasRoom"
RECLAIMED: Final = "Reclaimed"
STOPPING: Final = "Stopping"
FINISHED: Final = "Finished"
NOT_COUNTED: Final = "NotCounted"
AHEAD_MAX: Final = 20
"""So many of those before a unit are named; the others are counted."""
_NAMES_TOLD: Final = 5
_EVENTS: Final = "events"
_TAKEN: Final = ("QuotaReclaimed", "QuotaSuspended")
"""Events about a pod or its owner that quota has taken it back."""
_OF_WHOLE: Final = "makes room for "
"""How the Event begins that is about a job of which each pod taken has an Event of its own."""


class PlaceInLine(Struct, frozen=True, gc=False):
    """The `number`th, from 1, of `count`."""

    number: int
    count: int


class Standing(Struct, frozen=True):
    """A unit that waits, and its places in the order in which units are tried: in its leaf, and over all.

    `ahead`: those before it in its leaf, the first AHEAD_MAX of them. `ahead_elsewhere`: how many of other
    leaves are before it, by leaf. `lacks`: what would have to be free, as far as it is an amount.
    """

    row: QuotaWaiting
    in_leaf: PlaceInLine
    overall: PlaceInLine
    ahead: tuple[QuotaWaiting, ...] = ()
    ahead_elsewhere: Mapping[str, int] = {}
    lacks: tuple[Lacking, ...] = ()


class Evicted(Struct, frozen=True, gc=False):
    """How often quota took back a pod, or pods of its owner, or the job, as far as Events are kept.

    `at`: the last time, None = never, or nobody knows when.
    """

    count: int
    at: Moment | None = None


class QuotaAnswer(Struct, frozen=True):
    """What quota says of a pod or of a job (`kind`).

    `leaf` is "" where quota does not count it, and `use` None where nobody knows what the leaf uses. `reason`
    is that of its unit that waits, else one of this module. `units`: its units that wait, as they are
    tried. `since`: since when the first of it waits; None = nothing of it does. `reason_since`: since when
    the condition gives the reason, None = it does not. `priority`: the highest of its pods. `evicted`: None =
    Events could not be read.
    """

    kind: str
    key: str
    reason: str
    sentence: str
    leaf: str = ""
    pods: int = 0
    admitted: int = 0
    units: tuple[Standing, ...] = ()
    node: QuotaNode | None = None
    use: QuotaNodeUse | None = None
    since: Moment | None = None
    reason_since: Moment | None = None
    priority: int = 0
    evicted: Evicted | None = None

    @property
    def resources(self) -> list[str]:
        """Those that its leaf bounds or uses, in the order of its table."""
        if self.node is None or self.use is None:
            return []
        return sorted({*self.use.used, *self.node.min, *self.node.max})


def why_quota(snapshot: ClusterSnapshot, state: QuotaState, plan: QuotaPlan, namespace: str, name: str) -> list[QuotaAnswer]:
    """Of the pod and of each job called so. Raises UserError, with names that are there, for none."""
    asked = _Asked(snapshot, state, plan, namespace)
    answers = [asked.of_pod(pod) for pod in snapshot.pods_in(namespace) if pod.name == name]
    answers += [asked.of_job(kind, name, uids) for kind, uids in _jobs(snapshot, state, namespace, name)]
    if not answers:
        raise UserError(f"there is no pod and no job `{namespace}/{name}`", _what_is_there(snapshot, state, namespace, name))
    return answers


def why_pod(snapshot: ClusterSnapshot, state: QuotaState, plan: QuotaPlan, pod: Pod) -> QuotaAnswer:
    return _Asked(snapshot, state, plan, pod.namespace).of_pod(pod)


def admitted_sentence(node: QuotaNode, use: QuotaNodeUse, resources: Iterable[str]) -> str:
    """What the leaf has and borrows, of the resources that the tree names.

    >>> node = QuotaNode("b", "root.b", min={"cpu": 10_000})
    >>> admitted_sentence(node, QuotaNodeUse("b", used={"cpu": 15_000}), ["cpu", "memory"])
    'b uses 15 of guaranteed 10 cpu, borrows 5'
    """
    told = []
    for resource in resources:
        if resource in node.min or resource in node.max or resource in use.used:
            used, least = use.used.get(resource, 0), use.counted_min.get(resource, node.min.get(resource, 0))
            over = amount_text(resource, max(0, used - least))
            told.append(f"uses {amount_text(resource, used)} of guaranteed {amount_text(resource, least)} {resource}, borrows {over}")
    return f"{node.name} {'; '.join(told)}" if told else f"{node.name} limits nothing that it asks for"


def what_must_be_free(row: QuotaWaiting) -> tuple[Lacking, ...]:
    """Room below quota nodes; else what the plan's clauses name as lacking, on nodes or of a cap or a min.

    >>> from fairlead.model.quota.plan import Reason
    >>> from fairlead.model.quota.clauses import clause
    >>> asks = clause("asks-on-one", resource="nvidia.com/gpu", asks=4)
    >>> room = clause("freest", nodes=3, node="gpu-1", free=2)
    >>> what_must_be_free(QuotaWaiting("ns/web", "a", (), Reason.NO_FIT_ON_NODES, "", clauses=(asks, room)))
    (Lacking(kind='node', at='gpu-1', resource='nvidia.com/gpu', amount=2),)
    """
    if row.lacks:
        return row.lacks
    told = {each.code: each.values for each in row.clauses}
    asked = told.get("asks") or told.get("asks-on-one")
    for code, (kind, at, has) in _SAID_LACKING.items():
        if asked is None or code not in told:
            continue
        values, resource = told[code], asked["resource"]
        amounts = {key: amount_of(resource, text) for key, text in {**asked, **values}.items() if key in _AMOUNTS}
        more = amounts["asks"] + amounts.get("used", 0) - amounts[has]
        return (Lacking(kind, values.get(at, ""), resource, more),) if more > 0 else ()
    return ()


_AMOUNTS: Final = ("asks", "used", "cap", "min", "free", "there")
_SAID_LACKING: Final[Mapping[str, tuple[str, str, str]]] = {
    "freest": ("node", "node", "free"),
    "only-node": ("node", "node", "free"),
    "in-all": ("nodes", "", "there"),
    "cap": ("cap", "user", "cap"),
    "firm": ("min", "leaf", "min"),
}
"""Clauses that say what there is of what is asked: whose room it is, the value that names it, and the value
that says how much.
"""


class _Asked:
    """The plan, looked up by pod."""

    def __init__(self, snapshot: ClusterSnapshot, state: QuotaState, plan: QuotaPlan, namespace: str) -> None:
        self._snapshot = snapshot
        self._plan = plan
        self._pods = {pod.key: pod for pod in state.pods if pod.namespace == namespace}
        self._leaf = next((leaf for leaf in state.tree.leaves() if namespace in leaf.namespaces), None)
        self._use = next((use for use in plan.nodes if self._leaf is not None and use.name == self._leaf.name), None)
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
            return QuotaAnswer("pod", pod.key, FINISHED, "it has ended, so it costs no quota", self._leaf.name)
        counted = self._pods.get(pod.key)
        if counted is None:
            return QuotaAnswer("pod", pod.key, NOT_COUNTED, f"{_maker(pod)}, which quota does not count", self._leaf.name)
        reason, sentence = self._standing(counted)
        waiting = self._waiting.get(pod.key)
        uids = (pod.uid, counted.owner)
        return self._answer("pod", pod.key, (reason, sentence), uids, [counted], [waiting] if waiting else [])

    def of_job(self, kind: str, name: str, uids: Sequence[str]) -> QuotaAnswer:
        key = f"{self._namespace}/{name}"
        if self._leaf is None:
            return QuotaAnswer(kind, key, NOT_COUNTED, self._stranger())
        made = {pod.key for uid in uids for pod in self._snapshot.pods_owned_by(uid)}
        pods = [pod for pod in self._pods.values() if pod.owner in uids or pod.key in made]
        mine = {pod.key for pod in pods}
        waiting = [each for each in self._plan.waiting if _is_of(each.workload, uids) or any(pod.key in mine for pod in each.pods)]
        if waiting:
            first = waiting[0]
            total = max(len(pods), first.workload.pods if first.workload else 0)
            missing = sum(not pod.is_admitted for pod in pods) or total
            sentence = f"{missing} of {total} pods wait: {_said(first, pods)}"
            return self._answer(kind, key, (str(first.reason), sentence), uids, pods, waiting)
        if not pods:
            return QuotaAnswer(kind, key, FINISHED, "it has no unfinished pods, so it costs no quota", self._leaf.name)
        eldest = min(pods, key=lambda pod: (pod.is_admitted, pod.created_at, pod.name))
        return self._answer(kind, key, self._standing(eldest), uids, pods, [])

    def _answer(
        self,
        kind: str,
        key: str,
        told: tuple[str, str],
        uids: Iterable[str],
        pods: Sequence[QuotaPod],
        waiting: Sequence[QuotaWaiting],
    ) -> QuotaAnswer:
        """`told`: reason and sentence; `uids`: of it and of its owner."""
        assert self._leaf is not None
        reason, sentence = told
        said = [pod.condition_since for pod in pods if pod.condition_reason == reason and pod.condition_since is not None]
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
            reason_since=min(said, default=None),
            priority=max([*(row.priority for row in waiting), *(pod.priority for pod in pods)], default=0),
            evicted=self._taken(set(uids) - {""}, waiting),
        )

    def _place(self, row: QuotaWaiting) -> Standing:
        line = self._lines[row.leaf]
        elsewhere = {
            leaf: count
            for leaf, rows in self._lines.items()
            if leaf != row.leaf and (count := bisect_left(rows, row.overall, key=lambda each: each.overall))
        }
        before = line[: min(row.position - 1, AHEAD_MAX)]
        overall = PlaceInLine(row.overall, len(self._plan.waiting))
        return Standing(row, PlaceInLine(row.position, len(line)), overall, tuple(before), elsewhere, what_must_be_free(row))

    def _taken(self, uids: set[str], waiting: Iterable[QuotaWaiting]) -> Evicted | None:
        """From Events about it and about its owner. A job that we suspended was taken back at least once."""
        if not self._snapshot.was_read(_EVENTS):
            return None
        found = [event for event in self._snapshot.events if event.object_uid in uids and event.reason in _TAKEN]
        counts = Counter[str]()  # by what it is about: a pod's owner hears of it, too
        for event in found:
            if event.reason != _TAKEN[0] or not event.message.startswith(_OF_WHOLE):
                counts[event.object_uid] += max(1, event.count)
        is_suspended = any(row.workload is not None and row.workload.suspended_for for row in waiting)
        last = max((event.at for event in found if event.at is not None), default=None)
        return Evicted(max((int(is_suspended), *counts.values())), last)

    def _standing(self, pod: QuotaPod) -> tuple[str, str]:
        """Reason and sentence of a pod that quota counts."""
        assert self._leaf is not None
        if waiting := self._waiting.get(pod.key):
            return str(waiting.reason), _said(waiting, [pod])
        if admission := self._new.get(pod.key):
            by = "guaranteed by" if admission.is_guaranteed else "with idle quota in"
            return HAS_ROOM, f"it has room, {by} {admission.leaf}: the quota controller admits it next"
        if pod.is_stopping:
            return STOPPING, f"it stops; until it is gone it counts in {self._leaf.name}"
        if eviction := self._evicted.get(pod.key):
            return RECLAIMED, _taken_back(eviction)
        if self._use is None:
            return ADMITTED, f"it is admitted in {self._leaf.name}"
        return ADMITTED, admitted_sentence(self._leaf, self._use, [each for each, amount in pod.request.items() if amount])

    def _stranger(self) -> str:
        return f"namespace {self._namespace} is on no leaf of the quota tree, so quota does not count its pods"


def _said(waiting: QuotaWaiting, pods: Iterable[QuotaPod]) -> str:
    """As the controller has said it of these pods, if for the same reason; else as the plan says it."""
    mine = {pod.key for pod in waiting.pods}
    return next(
        (pod.condition_message for pod in pods if pod.key in mine and pod.condition_message and pod.condition_reason == waiting.reason),
        waiting.message,
    )


def _taken_back(eviction: QuotaEviction) -> str:
    told = f": {eviction.message}" if eviction.message else ""
    return f"it is to make room for {eviction.for_unit}{told}"


def _is_of(job: Workload | None, uids: Sequence[str]) -> bool:
    return job is not None and job.uid in uids


def _maker(pod: Pod) -> str:
    owner = pod.controller
    if owner is not None and owner.kind == "DaemonSet":
        return f"it is a pod of DaemonSet {owner.name}"
    return "it is a static pod of its node" if owner is not None and owner.kind == "Node" else "it is a pod"


def _jobs(snapshot: ClusterSnapshot, state: QuotaState, namespace: str, name: str) -> list[tuple[str, list[str]]]:
    """Kind and uids of the jobs called so: what the topmost owner of a pod may be."""
    found: dict[str, list[str]] = {}
    rows = [row for row in state.workloads.values() if row.namespace == namespace]
    owners = [owner for pod in snapshot.pods_in(namespace) if (owner := pod.controller) is not None]
    named = [(row.kind, row.uid) for row in rows if row.name == name]
    named += [(row.owner_kind, row.owner) for row in rows if row.owner_kind == "Deployment" and row.name.rpartition("-")[0] == name]
    named += [(job.kind, job.uid) for job in snapshot.jobs if job.namespace == namespace and job.name == name]
    named += [(owner.kind, owner.uid) for owner in owners if owner.name == name]
    if not named:  # a Deployment calls its ReplicaSets NAME-HASH
        named = [("Deployment", owner.uid) for owner in owners if owner.kind == "ReplicaSet" and owner.name.rpartition("-")[0] == name]
    for kind, uid in named:
        found.setdefault(kind, []).append(uid)
    return sorted(found.items())


def _what_is_there(snapshot: ClusterSnapshot, state: QuotaState, namespace: str, name: str) -> str:
    elsewhere = sorted(pod.key for pod in snapshot.pods if pod.name == name)
    elsewhere += sorted({row.key for row in state.workloads.values() if row.name == name})
    if elsewhere:
        return f"there is {', '.join(elsewhere[:_NAMES_TOLD])}"
    here = sorted(pod.name for pod in snapshot.pods_in(namespace))
    if here:
        more = f" and {len(here) - _NAMES_TOLD} more" if len(here) > _NAMES_TOLD else ""
        return f"namespace {namespace} has {', '.join(here[:_NAMES_TOLD])}{more}"
    spaces = sorted(space for leaf in state.tree.leaves() for space in leaf.namespaces)
    return f"namespace {namespace} has no pods; the quota tree has the namespaces {', '.join(spaces[:_NAMES_TOLD]) or '(none)'}"
