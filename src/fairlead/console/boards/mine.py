"""My work: what one user or namespace holds, may use, could start now, and waits for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from fairlead.console.boards.gpu_pools import whole_cards_free
from fairlead.console.boards.holders import user_of
from fairlead.console.boards.jobs_rows import Explainer, paths_by_namespace
from fairlead.console.boards.quota.usage_rows import shown_amount
from fairlead.console.boards.quota.waiting import clause_sentences
from fairlead.console.boards.rows import choices
from fairlead.console.pages.envelope import (
    Scalar,
    Sentence,
    counted,
    gpu_count,
    neat,
    neat_or_null,
    timestamp,
)
from fairlead.console.pages.holders import Holder
from fairlead.console.pages.jobs import JobRow, Waiting
from fairlead.console.pages.mine import LeafResource, MyHold, MyLeaf, MyWait, QueuedBefore, Start
from fairlead.console.pages.quota import QuotaRow
from fairlead.model.keys import QUOTA_GATE
from fairlead.model.pod import Pod
from fairlead.model.quota.plan import QuotaPlan, QuotaWaiting
from fairlead.model.quota.state import QuotaPod, QuotaState
from fairlead.model.resources import CPU, NOTHING, NVIDIA_GPU, Amounts, is_gpu_resource
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.holding.occupancy import ClusterOccupancy, granted_mib
from fairlead.rules.jobs.waiting import why_pod_waits
from fairlead.rules.nodes.room import NodeRooms
from fairlead.rules.pods.devices import has_gpu, memory_units, whole_gpus
from fairlead.rules.sharing.ledger import ledger_of
from fairlead.rules.sharing.startable import NodeOffer, Startable, node_offers, startable

SHOWN_BEFORE_MAX: Final = 3
"""Jobs and pods before mine in a queue that are named; the others are counted."""
QUOTA_LINE: Final = "quota"
SCHEDULER_LINE: Final = "scheduler"


class WorkScope(Struct, frozen=True):
    """The work of a user, or all work of a namespace; both "" = none was chosen.

    `namespaces`: its places.
    """

    user: str
    namespace: str
    namespaces: tuple[str, ...]

    def owns(self, namespace: str, user: str) -> bool:
        return (
            namespace == self.namespace if self.namespace else bool(self.user) and user == self.user
        )


class WorkChoices(Struct, frozen=True):
    """Users and namespaces to choose from, and where each user has work.

    `existing`: all namespaces, None = not read.
    """

    users: list[str]
    namespaces: list[str]
    of_user: Mapping[str, tuple[str, ...]]
    existing: Collection[str] | None = None

    def me(self, user: str, namespace: str, own: Collection[str] = ()) -> WorkScope:
        """A namespace overrides the user; in one that does not exist nothing can start. `own`: the
        namespaces of the user's groups, where the user may have no work yet.
        """
        if not namespace:
            there = [each for each in own if self.existing is None or each in self.existing]
            places = sorted({*self.of_user.get(user, ()), *there})
            return WorkScope(user, "", tuple(places))
        is_there = self.existing is None or namespace in self.existing
        return WorkScope("", namespace, (namespace,) if is_there else ())


def places_of_work(snapshot: ClusterSnapshot, jobs: Iterable[JobRow]) -> WorkChoices:
    """Users that jobs and pods name; namespaces with work, or on a leaf of the quota tree."""
    found: dict[str, set[str]] = {}
    spaces = set(paths_by_namespace(snapshot.quota))
    for row in jobs:
        spaces.add(row.namespace)
        found.setdefault(row.user, set()).add(row.namespace)
    for pod in snapshot.pods:
        user = user_of(pod, {}, "")
        if user or has_gpu(pod):
            spaces.add(pod.namespace)
            found.setdefault(user, set()).add(pod.namespace)
    found.pop("", None)
    return WorkChoices(
        choices(found),
        sorted(spaces),
        {user: tuple(sorted(where)) for user, where in found.items()},
        snapshot.namespace_names,
    )


class WaitingLines:
    """The queues in which pods wait, computed once per board state."""

    def __init__(self, snapshot: ClusterSnapshot, plan: QuotaPlan) -> None:
        self._snapshot = snapshot
        self._plan = plan

    def of(self, pods: Iterable[Pod]) -> tuple[str, list[Pod]] | None:
        """The queue of the first of these pods that is in one,
        and the pods before it, nearest first.
        """
        for pod in pods:
            if (
                QUOTA_GATE in pod.gates
                and (row := self._units.get(pod.uid)) is not None
                and row.position
            ):
                before = [
                    each for each in self._by_leaf[row.leaf] if 0 < each.position < row.position
                ]
                ahead = [
                    self._pods[of.uid]
                    for each in reversed(before)
                    for of in each.pods[:1]
                    if of.uid in self._pods
                ]
                return QUOTA_LINE, ahead
            if (
                not pod.node
                and not pod.gates
                and not pod.is_finished
                and (wanted := _gpu_resource(pod))
            ):
                queue = self._queues.get(wanted, [])
                place = next((place for place, each in enumerate(queue) if each.uid == pod.uid), 0)
                return SCHEDULER_LINE, queue[:place][::-1]
        return None

    @cached_property
    def _units(self) -> dict[str, QuotaWaiting]:
        return {pod.uid: row for row in self._plan.waiting for pod in row.pods}

    @cached_property
    def _by_leaf(self) -> dict[str, list[QuotaWaiting]]:
        found: dict[str, list[QuotaWaiting]] = {}
        for row in sorted(self._plan.waiting, key=lambda row: row.position):
            found.setdefault(row.leaf, []).append(row)
        return found

    @cached_property
    def _pods(self) -> dict[str, Pod]:
        return {pod.uid: pod for pod in self._snapshot.pods if not pod.node}

    @cached_property
    def _queues(self) -> dict[str, list[Pod]]:
        """GPU resource -> unbound pods that ask for it,
        in kube-scheduler's order: priority, then age.
        """
        found: dict[str, list[Pod]] = {}
        for pod in self._snapshot.pods:
            if (
                not pod.node
                and not pod.gates
                and not pod.is_finished
                and (wanted := _gpu_resource(pod))
            ):
                found.setdefault(wanted, []).append(pod)
        for queue in found.values():
            queue.sort(key=lambda pod: (-pod.priority, pod.created_at or 0.0, pod.key))
        return found


def offers_of(
    snapshot: ClusterSnapshot, occupancy: ClusterOccupancy, rooms: NodeRooms
) -> list[NodeOffer]:
    """The most that a pod could get from the nodes now, by model, regardless of quota."""
    free = {each.node.name: whole_cards_free(each) for each in occupancy.nodes}
    return node_offers(snapshot, rooms, ledger_of(snapshot), free)


def my_starts(
    me: WorkScope,
    offers: Sequence[NodeOffer],
    quota: QuotaState | None,
    occupancy: ClusterOccupancy,
    leaf_of: Mapping[str, str],
    shown: Callable[[QuotaWaiting], QuotaWaiting],
) -> list[Start]:
    """By namespace of mine and model of GPU, whole ones first. `shown`: what the reader may see of
    a reason.
    """
    found = [
        (namespace, each)
        for namespace in me.namespaces
        for each in startable(offers, quota, namespace, me.user)
    ]
    return [
        _start(each, namespace, leaf_of.get(namespace, ""), occupancy, shown)
        for namespace, each in found
    ]


def my_use(
    me: WorkScope,
    pods: Iterable[QuotaPod],
    leaf_of: Mapping[str, str],
    job_by_pod: Mapping[str, str],
    user_of_job: Mapping[tuple[str, str], str],
) -> dict[tuple[str, str], float]:
    """Path of a leaf and resource -> what admitted pods of mine use there, in the unit shown."""
    found: Counter[tuple[str, str]] = Counter()
    for pod in pods:
        user = pod.user or user_of_job.get((pod.namespace, job_by_pod.get(pod.key, "")), "")
        if pod.is_admitted and me.owns(pod.namespace, user):
            found.update(
                {
                    (leaf_of.get(pod.namespace, ""), name): amount
                    for name, amount in pod.request.items()
                }
            )
    return {(path, name): shown_amount(name, amount) for (path, name), amount in found.items()}


def my_leaves(
    me: WorkScope,
    rows: Sequence[QuotaRow],
    used: Mapping[tuple[str, str], float],
    left: Mapping[str, Amounts],
) -> list[MyLeaf]:
    """The leaves of my namespaces.

    `rows`: of the whole tree; `used`: by me; `left`: by name of a leaf, what it could be given
    above its min.
    """
    mine = {
        row.path: row
        for row in rows
        if row.is_leaf and any(each in row.namespaces for each in me.namespaces)
    }
    return [
        MyLeaf(
            path,
            leaf.name,
            leaf.namespaces,
            _leaf_resources(path, rows, used, left.get(leaf.name, NOTHING)),
        )
        for path, leaf in mine.items()
    ]


def my_waits(
    me: WorkScope,
    snapshot: ClusterSnapshot,
    jobs: Iterable[tuple[JobRow, float | None]],
    pods_of_job: Mapping[tuple[str, str], Sequence[Pod]],
    job_by_pod: Mapping[str, str],
    user_of_job: Mapping[tuple[str, str], str],
    explainer: Explainer,
    lines: WaitingLines,
) -> list[MyWait]:
    """Jobs of mine that wait, and pods of mine that are of no training job, the longest waiting
    first.

    `jobs`: those that wait, and since when.
    """

    def ahead_of(pods: Sequence[Pod]) -> tuple[str | None, list[QueuedBefore]]:
        found = lines.of(pods)
        if found is None:
            return None, []
        mine = {pod.uid for pod in pods}
        others = [_ahead(pod, job_by_pod, user_of_job) for pod in found[1] if pod.uid not in mine]
        return found[0], list(dict.fromkeys(others))

    waits = []
    for row, since in jobs:
        if row.waiting is not None and me.owns(row.namespace, row.user):
            job = f"{row.type}/{row.name}"
            pods = pods_of_job.get((row.namespace, job), ())
            found = ahead_of(pods)
            units = sum(memory_units(pod.limits) for pod in pods)
            waits.append(
                _wait(
                    (row.namespace, row.name, job),
                    timestamp(since),
                    (row.gpus_requested, units),
                    row.waiting,
                    found,
                )
            )
    for pod in snapshot.pods:
        if (
            pod.node
            or pod.is_finished
            or pod.key in job_by_pod
            or not me.owns(pod.namespace, user_of(pod, {}, ""))
        ):
            continue
        if (why := why_pod_waits(pod)) is not None:
            asked = whole_gpus(pod.limits), memory_units(pod.limits)
            reason = explainer.explain(why, (pod,))
            waits.append(
                _wait(
                    (pod.namespace, pod.name, ""),
                    timestamp(pod.created_at),
                    asked,
                    reason,
                    ahead_of((pod,)),
                )
            )
    return sorted(waits, key=lambda wait: (wait.since or "", wait.namespace, wait.name))


def my_hold(me: WorkScope, holders: Iterable[Holder], jobs: Iterable[JobRow]) -> MyHold:
    mine = [row for row in holders if me.owns(row.namespace, row.user)]
    states = [row.status for row in jobs if me.owns(row.namespace, row.user)]
    return MyHold(
        pods=len(mine),
        gpus=neat(sum(row.gpus for row in mine)),
        gpus_idle=neat(sum(row.gpus_idle for row in mine)),
        running=states.count("Running"),
        pending=states.count("Pending"),
    )


def mine_sentence(
    me: WorkScope, held: MyHold, waits: Collection[MyWait], users: Collection[str]
) -> Sentence:
    """Numbers of held GPUs and waiting things, or a request to choose a user or namespace."""
    if not me.user and not me.namespace:
        if not users:
            return Sentence(
                "mine-unnamed", {}, "Jobs in this cluster name no user; choose a namespace."
            )
        return Sentence("mine-nobody", {"users": len(users)}, "Choose a user or a namespace.")
    who = me.namespace or me.user
    if not me.namespaces:
        return Sentence("mine-unknown", {"who": who}, f"Nothing in this cluster belongs to {who}.")
    pods, gpus, idle = held.pods, gpu_count(held.gpus), gpu_count(held.gpus_idle)
    holds = f"{counted(pods, 'pod')} {'holds' if pods == 1 else 'hold'} {counted(gpus, 'GPU')}"
    rest = f"{len(waits)} {'waits' if len(waits) == 1 else 'wait'}"
    if idle:
        values: dict[str, Scalar] = {
            "pods": pods,
            "gpus": gpus,
            "waiting": len(waits),
            "idle": idle,
        }
        return Sentence(
            "mine-idle", values, f"{holds}, {idle:g} of them idle for over an hour; {rest}."
        )
    return Sentence(
        "mine", {"pods": pods, "gpus": gpus, "waiting": len(waits)}, f"{holds}; {rest}."
    )


def _start(
    found: Startable,
    namespace: str,
    leaf: str,
    occupancy: ClusterOccupancy,
    shown: Callable[[QuotaWaiting], QuotaWaiting],
) -> Start:
    memory, unit = None, ""
    if found.resource != NVIDIA_GPU:
        occupied = occupancy.by_node[found.node]
        unit = str(occupied.unit)
        memory = next(
            (
                mib
                for card in occupied.cards
                if (mib := granted_mib(card, found.amount)) is not None
            ),
            None,
        )
    [(key, value)] = found.selector or (("", ""),)
    waiting = shown(found.waiting) if found.waiting else None
    return Start(
        namespace=namespace,
        leaf=leaf,
        resource=found.resource,
        model=found.model,
        amount=found.amount,
        unit=unit,
        memory_mib=neat_or_null(memory),
        node=found.node,
        nodes=found.nodes,
        selector=f"{key}={value}" if key else "",
        guaranteed=found.is_guaranteed,
        on_nodes=found.on_nodes,
        reason=waiting.reason.value if waiting else None,
        waiting=waiting.message if waiting else "",
        clauses=clause_sentences(waiting.clauses) if waiting else [],
        sentence=_start_sentence(found, unit),
    )


def _start_sentence(found: Startable, unit: str) -> Sentence:
    amount, model = found.amount, found.model or "GPU"
    if not amount:
        return Sentence(
            "start-none",
            {"model": model},
            f"nothing on {model}: a node has room, but the quota is full",
        )
    if found.resource == NVIDIA_GPU:
        return Sentence("start-whole", {"amount": amount, "model": model}, f"{amount} × {model}")
    return Sentence(
        "start-shared",
        {"amount": amount, "unit": unit, "model": model},
        f"{amount} {unit} on a shared {model}",
    )


def _leaf_resources(
    path: str, rows: Sequence[QuotaRow], used: Mapping[tuple[str, str], float], left: Amounts
) -> list[LeafResource]:
    found = [row for row in rows if row.path == path and (row.min_written or row.max or row.used)]
    found.sort(key=lambda row: (not is_gpu_resource(row.resource), row.resource != CPU))
    return [
        LeafResource(
            resource=row.resource,
            unit=row.unit,
            used=row.used,
            mine=used.get((path, row.resource), 0.0),
            guaranteed=row.min,
            guaranteed_written=row.min_written,
            max=row.max,
            borrowable=shown_amount(row.resource, left[row.resource])
            if row.resource in left
            else None,
        )
        for row in found
    ]


def _wait(
    thing: tuple[str, str, str],
    since: str | None,
    asked: tuple[float, int],
    waiting: Waiting,
    found: tuple[str | None, list[QueuedBefore]],
) -> MyWait:
    """`thing`: namespace, name, job; `asked`: GPUs, units;
    `found`: the queue and who is before me in it.
    """
    line, ahead = found
    place = len(ahead) + 1 if line else None
    return MyWait(*thing, since, *asked, waiting, line, place, ahead[:SHOWN_BEFORE_MAX], len(ahead))


def _ahead(
    pod: Pod, job_by_pod: Mapping[str, str], user_of_job: Mapping[tuple[str, str], str]
) -> QueuedBefore:
    """The entry of a pod, or of its job: a job has one entry, for any number of waiting pods."""
    job = job_by_pod.get(pod.key, "")
    return QueuedBefore(
        pod.namespace, job.partition("/")[2] or pod.name, job, user_of(pod, user_of_job, job)
    )


def _gpu_resource(pod: Pod) -> str:
    return next(
        (name for name, amount in pod.requests.items() if amount and is_gpu_resource(name)), ""
    )
