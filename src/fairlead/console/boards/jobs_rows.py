"""The rows of the Training jobs board.

They are built from the jobs with their pods, once per change of the cluster.

A job that holds nothing has 0 GPU memory allocated; what it uses is unknown (null), not 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from fairlead.console.boards.quota.waiting import PlannedQuota, clause_sentences
from fairlead.console.boards.rows import Entry, RowSet, by_count, choices, lowered
from fairlead.console.pages.envelope import (
    Scalar,
    Sentence,
    counted,
    gpu_count,
    neat,
    neat_or_null,
    percent,
    timestamp,
)
from fairlead.console.pages.jobs import InstanceCounts, JobRow, Waiting
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.jobs.job import Job
from fairlead.model.occupancy import PodUse
from fairlead.model.pod import Pod, PodPhase
from fairlead.model.quota.tree import QuotaNode
from fairlead.rules.holding.occupancy import ClusterOccupancy
from fairlead.rules.jobs.status import (
    BOARD_STATES,
    PENDING,
    board_state,
    job_duration,
    job_status,
    requested_gpus,
    requested_memory_units,
)
from fairlead.rules.jobs.waiting import (
    UNSCHEDULABLE,
    Wait,
    waiting_anew,
    why_job_waits,
    why_pod_waits,
)
from fairlead.rules.nodes.room import NodeRooms, NoNodeFits, spoken_amount
from fairlead.rules.sharing.why import ShareShortage, ShareWhy
from fairlead.wire import names

STATUSES: Final = {state: state.capitalize() for state in BOARD_STATES}


def job_rows(
    instances: Iterable[JobInstances],
    occupancy: ClusterOccupancy,
    quota: QuotaNode | None,
    now: float,
    explainer: Explainer,
    silent: Collection[str],
) -> RowSet[JobRow]:
    """All jobs, newest first. `silent`: names of unreachable nodes."""
    leaf_paths = paths_by_namespace(quota)
    found = sorted(
        instances,
        key=lambda each: (
            -(each.job.created_at or 0.0),
            by_count(each.job.name),
            each.job.namespace,
        ),
    )
    return job_row_set(
        [
            job_entry(job_row(each, occupancy, leaf_paths, now, explainer, silent), each.job)
            for each in found
        ]
    )


def job_row_set(entries: Sequence[Entry[JobRow]]) -> RowSet[JobRow]:
    """These rows, with the choices of their filters."""
    rows = [entry.row for entry in entries]
    facets = {
        "job_namespace": choices(row.namespace for row in rows),
        "job_type": choices(row.type for row in rows),
        "job_name": choices(row.name for row in rows),
        "job_status": [
            word for word in STATUSES.values() if any(row.status == word for row in rows)
        ],
        "user": choices(row.user for row in rows),
        "leaf": choices(row.quota_path for row in rows),
    }
    return RowSet(JobRow, entries, facets)


def jobs_sentence(
    rows: Sequence[JobRow], now: float, instances: Sequence[JobInstances]
) -> Sentence:
    """How many run on how many GPUs, how many wait and since when, how many ended."""
    if not rows:
        return Sentence("jobs-none", {}, "There are no training jobs in this cluster.")
    count = {word: sum(row.status == word for row in rows) for word in STATUSES.values()}
    gpus = gpu_count(sum(row.gpus_allocated for row in rows if row.status == "Running"))
    values = {"running": count["Running"], "gpus": gpus, "pending": count["Pending"]}
    values |= {"succeeded": count["Succeeded"], "failed": count["Failed"]}
    text = (
        f"{counted(count['Running'], 'job')} running on {counted(gpus, 'GPU')}, "
        f"{count['Pending']} pending"
    )
    code = "jobs"
    waits = [
        now - each.job.created_at
        for each in instances
        if each.job.created_at and waits_for_room(each)
    ]
    if waits:
        code = "jobs-waiting"
        values["waitSeconds"] = int(max(waits))
        text += f" (the oldest for {spoken_duration(max(waits))})"
    return Sentence(
        code, dict(values), f"{text}, {count['Succeeded']} succeeded, {count['Failed']} failed."
    )


def job_row(
    each: JobInstances,
    occupancy: ClusterOccupancy,
    leaf_paths: Mapping[str, str],
    now: float,
    explainer: Explainer,
    silent: Collection[str],
) -> JobRow:
    job, pods = each.job, each.pods
    state = job_status(job, pods)
    board = board_state(state)
    use = occupancy.use_together(pods)
    units = requested_memory_units(job)
    wait = (
        why_job_waits(job, pods)
        if board == PENDING
        else next(map(why_pod_waits, waiting_anew(job, pods)), None)
    )
    return JobRow(
        namespace=job.namespace,
        name=job.name,
        type=job.type,
        status=STATUSES[board],
        state=state,
        waiting=explainer.explain(wait, pods) if wait else None,
        duration_seconds=int(job_duration(job, now)),
        held_seconds=seconds_since(held_since(pods), now),
        gpus_requested=requested_gpus(job),
        gpus_allocated=neat(use.gpus),
        gpu_memory_requested_mib=units * occupancy.unit_mib if units else None,
        gpu_memory_allocated_mib=neat_or_null(memory_allocated(use)),
        gpu_memory_used_mib=neat_or_null(use.memory_used_mib),
        gpu_memory_used_of_mib=neat_or_null(use.memory_used_of_mib),
        gpu_util_percent=percent(use.utilization_ratio),
        uid=job.uid,
        api_version=job.api_version,
        user=job.labels.get(names.LABEL_CONSOLE_USER)
        or job.annotations.get(names.ANNOTATION_USERNAME, ""),
        quota_path=leaf_paths.get(job.namespace, ""),
        created_at=timestamp(job.created_at),
        started_at=timestamp(job.started_at),
        finished_at=timestamp(job.finished_at),
        deleted_at=None,
        instances=_counts(job, pods, silent),
        nodes=sorted({pod.node for pod in pods if pod.is_holding}),
        gpu_seconds=None,
        core_seconds=None,
        cost=None,
        list_cost=None,
        live=True,
    )


class Explainer:
    """Reasons of waiting pods and jobs for pages.

    `quota`: (namespace, resource) -> leaf's name, used, guaranteed, in the unit shown. `planned`:
    why pods wait for quota.
    """

    def __init__(
        self,
        share_why: ShareWhy,
        rooms: NodeRooms,
        quota: Mapping[tuple[str, str], tuple[str, float, float]],
        planned: PlannedQuota,
    ) -> None:
        self._planned = planned
        self._share_why = share_why
        self._rooms = rooms
        self._quota = quota

    def explain(self, wait: Wait, pods: Sequence[Pod]) -> Waiting:
        """The reason why it waits; for an unschedulable pod with the answers of the nodes."""
        asking = (
            [pod for pod in pods if not pod.node and not pod.is_finished]
            if wait.reason == UNSCHEDULABLE
            else []
        )
        short = next(filter(None, map(self._share_why, asking)), None)
        sentence = (
            _of_shares(short) if short else next(filter(None, map(self._sentence, asking)), None)
        )
        room = short.by_node if short else ""
        clauses = clause_sentences(self._planned.clauses(wait.reason, (pod.uid for pod in pods)))
        return Waiting(
            reason=wait.reason,
            message=wait.message,
            clauses=clauses,
            room=room,
            sentence=sentence or wait_sentence(wait),
        )

    def _sentence(self, pod: Pod) -> Sentence | None:
        found = self._rooms.why(pod)
        if found is None:
            return None
        if found.kind == "barred":
            return _of_barrier(found)
        values: dict[str, Scalar] = {
            "asked": neat(spoken_amount(found.resource, found.asked)),
            "resource": found.resource,
            "nodes": found.nodes,
            "best": found.best,
            "had": neat(spoken_amount(found.resource, found.best_free)),
            "labels": ", ".join(found.labels),
        }
        leaf = self._quota.get((pod.namespace, found.resource))
        if leaf is None:
            return Sentence(f"why-{found.kind}", values, found.text)
        name, used, least = leaf
        values |= {"leaf": name, "used": used, "min": least}
        return Sentence(
            f"why-{found.kind}-leaf",
            values,
            f"{found.text}; {name} uses {used:g} of its guaranteed {least:g}",
        )


def wait_sentence(wait: Wait) -> Sentence | None:
    """Fairlead's own sentence about the wait; None if the message is another component's."""
    return Sentence(f"wait-{wait.code}", dict(wait.values), wait.message) if wait.code else None


def _of_barrier(found: NoNodeFits) -> Sentence:
    values: dict[str, Scalar] = {"nodes": found.nodes}
    if found.labels:
        return Sentence(
            "why-barred-label", {"nodes": found.nodes, "label": found.labels[0]}, found.text
        )
    code = "why-barred"
    if found.taints:
        code += "-taints"
        values["taints"] = ", ".join(found.taints)
    if found.cordoned:
        code += "-cordoned"
        values["cordoned"] = found.cordoned
    return Sentence(code, values, found.text)


def _of_shares(short: ShareShortage) -> Sentence:
    values: dict[str, Scalar] = {
        "units": short.units,
        "unit": short.unit,
        "cards": short.cards,
        "nodes": short.nodes,
    }
    return Sentence(
        f"why-share-{short.kind}",
        {**values, "best": short.best, "free": short.free, "answers": short.by_node},
        short.text,
    )


def memory_allocated(use: PodUse) -> float | None:
    """Who holds no GPU holds no memory of one; who holds one may hold an unknown amount."""
    return 0.0 if not use.gpus and use.memory_allocated_mib is None else use.memory_allocated_mib


def paths_by_namespace(quota: QuotaNode | None) -> dict[str, str]:
    """Namespace -> path of the quota leaf that it belongs to."""
    return {
        name: leaf.path for leaf in (quota.leaves() if quota else ()) for name in leaf.namespaces
    }


def spoken_duration(seconds: float) -> str:
    """A duration as tables print it.

    >>> [spoken_duration(each) for each in (8, 192, 7500, 273600)]
    ['8s', '3m12s', '2h5m', '3d4h']
    """
    whole = int(seconds)
    days, hours, minutes = whole // 86_400, whole // 3600 % 24, whole // 60 % 60
    if days:
        return f"{days}d{hours}h"
    if hours:
        return f"{hours}h{minutes}m"
    return f"{minutes}m{whole % 60}s" if minutes else f"{whole}s"


def waits_for_room(each: JobInstances) -> bool:
    """Pending, and not because its owner suspended it."""
    return not each.job.suspended and board_state(job_status(each.job, each.pods)) == PENDING


def waits_since(each: JobInstances) -> float | None:
    """Of a job that waits: since it was made;
    of one that ran and waits anew, since those pods were.
    """
    anew = waiting_anew(each.job, each.pods)
    return (
        min((pod.created_at for pod in anew if pod.created_at is not None), default=None)
        if anew
        else each.job.created_at
    )


def held_since(pods: Iterable[Pod]) -> float | None:
    """When the first of the pods that hold devices was bound; None = none holds any."""
    bound = (pod.held_since for pod in pods if pod.is_holding)
    return min((at for at in bound if at is not None), default=None)


def seconds_since(at: float | None, now: float) -> int | None:
    return None if at is None else max(0, int(now - at))


def is_on_silent_node(pod: Pod, silent: Collection[str]) -> bool:
    """Whether it was running when its node became unreachable."""
    return pod.phase == PodPhase.RUNNING and pod.node in silent


def _counts(job: Job, pods: Sequence[Pod], silent: Collection[str]) -> InstanceCounts:
    phases = [pod.phase for pod in pods]
    unknown = sum(is_on_silent_node(pod, silent) for pod in pods)
    return InstanceCounts(
        desired=sum(role.replicas for role in job.roles),
        running=phases.count(PodPhase.RUNNING) - unknown,
        unknown=unknown,
        pending=phases.count(PodPhase.PENDING),
        succeeded=phases.count(PodPhase.SUCCEEDED),
        failed=phases.count(PodPhase.FAILED),
    )


def job_entry(row: JobRow, job: Job) -> Entry[JobRow]:
    return job_entry_of(row, job.labels)


def job_entry_of(row: JobRow, job_labels: Mapping[str, str]) -> Entry[JobRow]:
    """What finds this row: its words, the labels of its object, and the values of its filters."""
    words = [
        row.namespace,
        row.name,
        row.type,
        row.status,
        row.state,
        row.user,
        row.quota_path,
        *row.nodes,
    ]
    labels = [f"{key}:{value}" for key, value in job_labels.items()]
    answers = {
        "job_namespace": lowered(row.namespace),
        "job_type": lowered(row.type),
        "job_name": lowered(row.name),
        "job_status": lowered(row.status, row.state),
        "user": lowered(row.user),
        "leaf": lowered(row.quota_path),
        "deleted": ("no" if row.live else "yes",),
    }
    return Entry(row, "\n".join((*words, *labels)).lower(), answers)
