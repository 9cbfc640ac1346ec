"""What a replay plays: the pods, nodes and trees of a time, from the kept states of the ledger.

Specification: docs/spec/usage.md#replay. A pod that was deleted while it could go on, and the pod
that its controller created instead, are one `PastPod`: the work that had to be done, whatever quota
did with it. So a replay may evict at other times than the past did.

Times are epoch seconds, those of the ledger's records milliseconds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from statistics import median
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.model.keys import LABEL_MANAGED, QUOTA_CONDITION, QUOTA_GATE
from fairlead.model.node import Node
from fairlead.model.pod import Owner, Pod, PodPhase
from fairlead.model.quota.rows import Budget, Workload, scaled
from fairlead.model.quota.state import NodeRoom, QuotaPod
from fairlead.model.quota.tree import QuotaTree
from fairlead.model.resources import NVIDIA_GPU, Amounts
from fairlead.model.usage.ledger import (
    GPU,
    OPEN,
    Gap,
    NodeInterval,
    PodHour,
    PodInterval,
    PriceClass,
    StateKind,
)
from fairlead.rules.quota.managed import PROTECTED, is_exempt
from fairlead.rules.quota.room import SILENT_SECONDS, holes_of, is_schedulable
from fairlead.rules.quota.sight import PodContext, quota_pod

SERVICES: Final = ("ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController")
"""Controllers whose pods serve until they are deleted; pods of all others run for a time."""
SUCCESSOR_SECONDS: Final = 60.0
"""For this time after a pod of a service has gone, a new one of its controller replaces it."""
LATE_SECONDS: Final = 10.0
"""A recorder sees a change so soon, unless it was away."""
SAME_SECONDS: Final = 1.0
"""A controller reacts to the end of a pod so soon."""
STOP_SECONDS: Final = 30.0
"""How long a victim stops if the history has no pod that stopped: the grace period that Kubernetes
gives a pod without its own.
"""
_WORKS_ALONE: Final = "Job"
"""The kind of job whose pods do not end because another one of it has ended."""
KINDS: Final = (
    StateKind.WORKLOAD,
    StateKind.BUDGET,
    StateKind.TREE,
    StateKind.NODE,
    StateKind.POD,
)
"""The kept states that a replay reads, in the order in which those of one moment are taken."""
_ORDER: Final = {kind: place for place, kind in enumerate(KINDS)}
_CLASS: Final = PriceClass()


class PastRow(Struct, frozen=True, gc=False):
    """A kept state with its body as a row. Times are milliseconds."""

    kind: StateKind
    uid: str
    started_at: int
    ended_at: int
    row: object


class PastPod(Struct, frozen=True, gc=False):
    """A place of a workload, taken by a pod, or by several, one after the other.

    `pod`: as quota saw the first one when it waited. `arrived_at`: when it was created, and no
    other controller's gate held it. `admitted_at`, `bound_at`: of the first pod, None = never.
    `ended_at`: when the last one finished or was deleted; None = not within the history.
    `run_seconds`: how long the last one ran, from its admission; None = it serves, has not ended,
    or never ran: it ends at `ended_at`, whenever it begins. `node`: of the first pod. `is_counted`:
    quota counts it in a namespace of the tree. `is_gated`: it had the gate. `spells`: (from, to)
    when a pod of it waited. `replaced`: how often a new pod took the place of a deleted one. `gpu`:
    millionths; `held` and `idle`: GPUs × milliseconds, as the ledger has them. `follows`: seconds
    after the first admission of its owner, for a pod that is created when the others run; None =
    for others. `after`: the uid of the pod that had finished when its controller created this one,
    "" = none. `ends_job`: its job had finished when it ended. `after_job`: seconds after the end of
    the pod that ran longest of its job, at which it ends, however long it ran itself; None = it
    ends by itself. `stops`: for how many seconds the last one stopped after it ended; `stopped`:
    the same of each that was replaced.
    """

    pod: QuotaPod
    arrived_at: float
    admitted_at: float | None = None
    bound_at: float | None = None
    ended_at: float | None = None
    run_seconds: float | None = None
    node: str = ""
    is_counted: bool = True
    is_gated: bool = True
    spells: tuple[tuple[float, float | None], ...] = ()
    replaced: int = 0
    gpu: int = 0
    held: int = 0
    idle: int = 0
    follows: float | None = None
    after: str = ""
    ends_job: bool = False
    after_job: float | None = None
    stops: float = 0.0
    stopped: tuple[float, ...] = ()


class NodeSpan(Struct, frozen=True, gc=False):
    """A node with unchanged room. `room`: nothing is taken, and all cards are free."""

    started_at: float
    ended_at: float | None
    room: NodeRoom


class TreeSpan(Struct, frozen=True):
    """A quota tree, in force from `started_at` on. None: there was none."""

    started_at: float
    tree: QuotaTree | None


class ReplayInput(Struct, frozen=True):
    """`pods` by arrival. `classes`: the price class of each node. `budgets`: the most that each
    PodDisruptionBudget allowed. `workloads`: owners by uid, as they were before quota changed them.
    `stop_seconds`: how long deleted pods stopped, the median.
    """

    start: float
    end: float
    pods: tuple[PastPod, ...] = ()
    nodes: tuple[NodeSpan, ...] = ()
    trees: tuple[TreeSpan, ...] = ()
    classes: Mapping[str, PriceClass] = {}
    budgets: Mapping[str, int] = {}
    workloads: Mapping[str, Workload] = {}
    gaps: tuple[Gap, ...] = ()
    stop_seconds: float = STOP_SECONDS


class _Trace(Struct):
    """One pod, as far as its states have been read."""

    pod: QuotaPod
    controller: Owner | None
    arrived_at: float
    is_counted: bool
    is_gated: bool
    is_held_back: bool
    admitted_at: float | None = None
    bound_at: float | None = None
    stopped_at: float | None = None
    finished_at: float | None = None
    gone_at: float | None = None
    node: str = ""

    @property
    def ended_at(self) -> float | None:
        """When it was done; a deleted pod then stops until it is gone."""
        if self.finished_at is not None:
            return self.finished_at
        return self.stopped_at if self.stopped_at is not None else self.gone_at

    @property
    def stop_seconds(self) -> float:
        if self.finished_at is not None or self.bound_at is None:
            return 0.0
        return max(0.0, (self.gone_at or 0.0) - (self.stopped_at or inf))


class ReplayReader:
    """Takes the states of a time in their order, then makes the history of them."""

    def __init__(self, start: int, end: int) -> None:
        """`start`, `end`: milliseconds."""
        self._start, self._end = start / 1000, end / 1000
        self._around = PodContext()
        self._workloads: dict[str, Workload] = {}
        self._finished: dict[str, float] = {}
        """When jobs had finished, by uid."""
        self._budgets: dict[str, int] = {}
        self._traces: dict[str, _Trace] = {}
        self._nodes: list[NodeSpan] = []
        self._trees: list[TreeSpan] = []
        self._requests: dict[tuple[tuple[str, int], ...], Amounts] = {}
        self._held: defaultdict[str, int] = defaultdict(int)
        self._idle: defaultdict[str, int] = defaultdict(int)
        self._gpu: dict[str, int] = {}
        self._classes: dict[str, PriceClass] = {}

    def observe(self, rows: Iterable[PastRow]) -> None:
        """Take states; each call has later ones than the call before."""
        for each in sorted(rows, key=lambda row: (row.started_at, _ORDER.get(row.kind, 0))):
            self._observe(each)

    def observe_usage(
        self,
        pods: Iterable[PodInterval],
        nodes: Iterable[NodeInterval],
        hours: Iterable[PodHour] = (),
    ) -> None:
        """Take intervals of pods and nodes and rows of hours, each once and in any order."""
        start, end = round(self._start * 1000), round(self._end * 1000)
        for pod in pods:
            self._gpu[pod.pod_uid] = pod.amount.gpu
            held = max(0, min(pod.ended_at, end) - max(pod.started_at, start))
            self._held[pod.pod_uid] += pod.amount.gpu * held
            self._classes.setdefault(pod.node, pod.price_class)
        for node in nodes:
            self._classes[node.node] = node.price_class
        for hour in hours:
            self._idle[hour.pod_uid] += hour.idle

    def replay_input(self, gaps: Sequence[Gap] = ()) -> ReplayInput:
        chains = _chains(self._traces.values())
        after = _successors(chains)
        pods = [self._past_pod(chain, after.get(chain[0].pod.uid, "")) for chain in chains]
        pods = _with_jobs(_with_late(pods, self._workloads), self._workloads)
        return ReplayInput(
            self._start,
            self._end,
            tuple(sorted(pods, key=_by_arrival)),
            tuple(self._nodes),
            tuple(self._trees),
            self._classes,
            self._budgets,
            self._workloads,
            tuple(gaps),
            self._stop_seconds(),
        )

    def _stop_seconds(self) -> float:
        times = [each.stop_seconds for each in self._traces.values() if each.stop_seconds]
        return median(times) if times else STOP_SECONDS

    # --- states -----------------------------------------------------------------------------------

    def _observe(self, state: PastRow) -> None:
        row, at = state.row, state.started_at / 1000
        if isinstance(row, Pod):
            self._observe_pod(row, state)
        elif isinstance(row, Node):
            self._observe_node(row, at, _seconds(state.ended_at))
        elif isinstance(row, Workload):
            self._observe_workload(row)
            if row.is_finished:
                self._finished.setdefault(row.uid, at)
        elif isinstance(row, Budget):
            self._around.put_budget(row)
            self._budgets[row.key] = max(row.allowed, self._budgets.get(row.key, 0))
        elif isinstance(row, QuotaTree):
            self._trees.append(TreeSpan(at, row))
            ended = _seconds(state.ended_at)
            if ended is not None:
                self._trees.append(TreeSpan(ended, None))
            self._around.settings = row.settings
            self._trees.sort(key=lambda span: (span.started_at, span.tree is not None))

    def _observe_workload(self, row: Workload) -> None:
        """Keep the first row of an owner: what quota suspended or lowered later is undone."""
        if row.uid not in self._workloads:
            job = replace(row, is_suspended=False, suspended_for="", is_finished=False, stale=())
            if job.own_parallelism:
                job = scaled(job, job.own_parallelism)
            self._workloads[row.uid] = job
            self._around.put(job)

    def _observe_node(self, node: Node, at: float, until: float | None) -> None:
        holes = holes_of(node, ())
        turns = [at]
        if not node.unschedulable:
            ready = next((each for each in node.conditions if each.type == "Ready"), None)
            if ready is not None and ready.status != "True" and ready.at is not None:
                silent = ready.at + SILENT_SECONDS
                turns += [silent] if at < silent and (until is None or silent < until) else []
        for number, since in enumerate(turns):
            room = NodeRoom(
                node.name,
                node.allocatable,
                labels=node.labels,
                taints=node.taints,
                is_schedulable=is_schedulable(node, since),
                holes=holes,
            )
            ended = turns[number + 1] if number + 1 < len(turns) else until
            self._nodes.append(NodeSpan(since, ended, room))

    def _observe_pod(self, row: Pod, state: PastRow) -> None:
        at = state.started_at / 1000
        trace = self._traces.get(state.uid)
        if trace is None:
            trace = self._begun(row, at)
            if trace is None:
                return
            self._traces[state.uid] = trace
        is_held_back = any(gate != QUOTA_GATE for gate in row.gates)
        if trace.is_held_back and not is_held_back:
            trace.is_held_back, trace.arrived_at = False, at
        if trace.admitted_at is None and QUOTA_GATE not in row.gates:
            trace.admitted_at = _admitted_at(row, at, is_gated=trace.is_gated)
        if row.node and trace.bound_at is None:
            trace.node, trace.bound_at = row.node, _seen(row.held_since, at)
        if row.deleted_at is not None and trace.stopped_at is None:
            trace.stopped_at = min(at, row.deleted_at)  # deletionTimestamp includes the grace
        if row.is_finished and trace.finished_at is None and trace.stopped_at is None:
            ends = [each.finished_at for each in row.statuses if each.finished_at is not None]
            trace.finished_at = _seen(max(ends, default=at), at)
        trace.gone_at = _seconds(state.ended_at)

    def _begun(self, row: Pod, at: float) -> _Trace | None:
        """None: the pod had finished, or never becomes one that holds or waits for something."""
        if row.is_finished:
            return None
        is_counted = not is_exempt(row) and row.namespace not in PROTECTED
        waiting = replace(
            row,
            gates=(QUOTA_GATE,),
            node="",
            phase=PodPhase.PENDING,
            deleted_at=None,
            conditions=(),
            statuses=(),
        )
        pod = quota_pod(waiting, self._around)
        if pod is None:
            return None
        alike = tuple(sorted(pod.request.items()))
        budgets = self._around.budgets_of(replace(waiting, phase=PodPhase.RUNNING))
        pod = replace(
            pod,
            request=self._requests.setdefault(alike, dict(alike)),
            budgets=budgets,
            removal=(),
            created_at=row.created_at or at,
        )
        return _Trace(
            pod,
            row.controller,
            _seen(row.created_at, at),
            is_counted,
            QUOTA_GATE in row.gates
            or LABEL_MANAGED in row.labels
            or any(each.type == QUOTA_CONDITION for each in row.conditions),
            any(gate != QUOTA_GATE for gate in row.gates),
        )

    # --- pods -------------------------------------------------------------------------------------

    def _past_pod(self, chain: Sequence[_Trace], after: str) -> PastPod:
        first, last = chain[0], chain[-1]
        ended = last.ended_at
        if ended is not None and ended > self._end:
            ended = None
        runs = (
            None
            if ended is None or last.bound_at is None or _serves(last.controller)
            else max(0.0, ended - _began_at(last))
        )
        uids = [trace.pod.uid for trace in chain]
        gpu = self._gpu.get(first.pod.uid, first.pod.request.get(NVIDIA_GPU, 0) * GPU)
        return PastPod(
            first.pod,
            first.arrived_at,
            first.admitted_at,
            first.bound_at,
            ended,
            runs,
            first.node,
            first.is_counted,
            first.is_gated,
            _spells(chain),
            len(chain) - 1,
            gpu,
            sum(self._held[uid] for uid in uids),
            sum(self._idle[uid] for uid in uids),
            after=after,
            stops=last.stop_seconds,
            stopped=tuple(trace.stop_seconds for trace in chain[:-1]),
            ends_job=self._finished.get(first.pod.owner, inf) - SAME_SECONDS <= (ended or -inf),
        )


def _began_at(trace: _Trace) -> float:
    """When the pod began to run: at its admission, if it was bound soon after it."""
    bound, admitted = trace.bound_at or 0.0, trace.admitted_at
    return admitted if admitted is not None and 0 <= bound - admitted < LATE_SECONDS else bound


def _seconds(at: int) -> float | None:
    return None if at >= OPEN else at / 1000


def _by_arrival(past: PastPod) -> tuple[float, str, str]:
    return past.arrived_at, past.pod.key, past.pod.uid


def _serves(controller: Owner | None) -> bool:
    return controller is not None and controller.kind in SERVICES


def _admitted_at(row: Pod, at: float, *, is_gated: bool) -> float:
    """When the pod lost the gate: its condition has the time; a pod without the gate at once."""
    if not is_gated:
        return _seen(row.created_at, at)
    condition = next((each for each in row.conditions if each.type == QUOTA_CONDITION), None)
    known = condition.at if condition is not None and condition.status == "True" else None
    return _seen(known or row.held_since, at)


def _seen(written: float | None, at: float) -> float:
    """A time that an object has, which is cut to seconds, or else when its state began; the latter
    if the recorder saw it within `LATE_SECONDS`.
    """
    return at if written is None or 0 <= at - written < LATE_SECONDS else written


def _spells(chain: Sequence[_Trace]) -> tuple[tuple[float, float | None], ...]:
    """When a pod of the chain, or the chain between two pods, waited."""
    found: list[tuple[float, float | None]] = []
    since = chain[0].arrived_at
    for trace in chain:
        until = trace.admitted_at if trace.admitted_at is not None else trace.ended_at
        found.append((since, until))
        since = trace.gone_at or since
    return tuple(found)


def _chains(traces: Iterable[_Trace]) -> list[list[_Trace]]:
    """Pods with those that replaced them: of one controller, and with the same request."""
    chains: list[list[_Trace]] = []
    alike: defaultdict[tuple[str, tuple[tuple[str, int], ...]], list[_Trace]] = defaultdict(list)
    for trace in traces:
        if trace.controller is None:
            chains.append([trace])
        else:
            shape = tuple(sorted(trace.pod.request.items()))
            alike[trace.controller.uid, shape].append(trace)
    for members in alike.values():
        ended: list[list[_Trace]] = []
        members.sort(key=lambda trace: (trace.pod.created_at, trace.pod.name))
        mine: list[list[_Trace]] = []
        for trace in members:
            if _serves(trace.controller):
                ended = [chain for chain in ended if _may_replace(chain[-1], trace)]
            before = _predecessor(ended, trace)
            if before is None:
                before = []
                mine.append(before)
            else:
                ended.remove(before)
            before.append(trace)
            if trace.finished_at is None and (trace.stopped_at or trace.gone_at) is not None:
                ended.append(before)
        chains += mine
    return chains


def _successors(chains: Iterable[Sequence[_Trace]]) -> dict[str, str]:
    """By the first uid of a chain: that of the chain that finished when its controller created it.

    A job retries so, or goes on with its next piece of work.
    """
    found: dict[str, str] = {}
    of_controller: defaultdict[str, list[Sequence[_Trace]]] = defaultdict(list)
    for chain in chains:
        if chain[0].controller is not None:
            of_controller[chain[0].controller.uid].append(chain)
    for members in of_controller.values():
        finished: list[Sequence[_Trace]] = []
        for chain in sorted(
            members, key=lambda chain: (chain[0].pod.created_at, chain[0].pod.name)
        ):
            created, name = chain[0].pod.created_at, chain[0].pod.name
            finished = [
                each
                for each in finished
                if created <= (each[-1].finished_at or 0.0) + SUCCESSOR_SECONDS
            ]
            before = min(
                (
                    each
                    for each in finished
                    if (each[-1].finished_at or 0.0) <= created + SAME_SECONDS
                ),
                key=lambda each: (each[0].pod.name != name, each[-1].finished_at or 0.0),
                default=None,
            )
            if before is not None:
                finished.remove(before)
                found[chain[0].pod.uid] = before[0].pod.uid
            if chain[-1].finished_at is not None:
                finished.append(chain)
    return found


def _predecessor(ended: Iterable[list[_Trace]], trace: _Trace) -> list[_Trace] | None:
    """The chain that the pod goes on with: one with its name if there is one, else the oldest."""
    found = [chain for chain in ended if _replaces(chain[-1], trace)]
    return min(
        found,
        key=lambda chain: (chain[-1].pod.name != trace.pod.name, _stop_of(chain[-1])),
        default=None,
    )


def _replaces(gone: _Trace, trace: _Trace) -> bool:
    return trace.pod.created_at >= _stop_of(gone) - SAME_SECONDS and _may_replace(gone, trace)


def _may_replace(gone: _Trace, trace: _Trace) -> bool:
    """Whether it is not too late: a service that is scaled up again has new places."""
    last = gone.gone_at
    return (
        last is None
        or not _serves(trace.controller)
        or (trace.pod.created_at <= last + SUCCESSOR_SECONDS)
    )


def _stop_of(trace: _Trace) -> float:
    return trace.stopped_at or trace.gone_at or 0.0


def _with_late(pods: Iterable[PastPod], workloads: Mapping[str, Workload]) -> list[PastPod]:
    """The pods; those that their job creates only when its others run have their `follows`."""
    found, late = list[PastPod](), defaultdict[str, list[PastPod]](list)
    for past in pods:
        job = workloads.get(past.pod.owner)
        if job is not None and job.late_pods and past.pod.gang:
            late[past.pod.owner].append(past)
        else:
            found.append(past)
    for members in late.values():
        first = min((each.admitted_at for each in members if each.admitted_at), default=None)
        for each in members:
            is_late = first is not None and each.arrived_at > first
            found.append(
                replace(each, follows=each.arrived_at - first)
                if is_late and first is not None
                else each
            )
    return found


def _with_jobs(pods: Iterable[PastPod], workloads: Mapping[str, Workload]) -> list[PastPod]:
    """The pods; of those that ended with their job, all but one have `after_job`.

    A job of several roles ends when its launcher or master ends; the others end then, though one
    that was admitted later ran for a shorter time. The pods of a Job work each for itself.
    """
    found = list[PastPod]()
    ending: defaultdict[str, list[PastPod]] = defaultdict(list)
    for past in pods:
        job = workloads.get(past.pod.owner)
        has_roles = job is not None and job.kind != _WORKS_ALONE
        if has_roles and past.ends_job and past.run_seconds is not None:
            ending[past.pod.owner].append(past)
        else:
            found.append(past)
    for members in ending.values():
        longest = max(
            (each for each in members if not each.stops),
            key=lambda each: (each.run_seconds or 0.0, each.pod.uid),
            default=None,
        )
        for each in members:
            if longest is None or each is longest:
                found.append(each)
            else:
                lag = (each.ended_at or 0.0) - (longest.ended_at or 0.0)
                found.append(replace(each, after_job=max(0.0, lag)))
    return found
