"""What there is to know about one job: its instances, and the events of the job and of its pods."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from fairlead.console.boards.gpu_map_cells import cards_of
from fairlead.console.boards.jobs_rows import Explainer, is_unheard, memory_allocated
from fairlead.console.boards.rows import by_count
from fairlead.console.pages.envelope import neat, neat_or_null, percent
from fairlead.console.pages.events import EventRow, event_rows
from fairlead.console.pages.jobs import Instance
from fairlead.model.event import Event
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.pod import Pod
from fairlead.rules.holding.occupancy import ClusterOccupancy
from fairlead.rules.jobs.status import instance_age
from fairlead.rules.jobs.waiting import why_pod_waits
from fairlead.rules.pods.status import pod_status

UNHEARD: Final = "Unknown"
"""In the place of `Running`; one that is to go is `Terminating` all the same."""


def instance_rows(
    each: JobInstances,
    occupancy: ClusterOccupancy,
    now: float,
    explainer: Explainer,
    silent: Collection[str],
) -> list[Instance]:
    """The job's pods, the chief first, then by name. `silent`: see `job_rows`."""
    rows = [
        _instance(pod, role, pod is each.chief, occupancy, now, explainer, silent)
        for pod, role in zip(each.pods, each.roles, strict=True)
    ]
    return sorted(rows, key=lambda row: (not row.is_chief, by_count(row.name)))


def job_events(each: JobInstances, events: Iterable[Event]) -> list[EventRow]:
    """Events of the job and of its pods only, newest first."""
    return event_rows(events, about_job(each))


def about_job(each: JobInstances) -> Callable[[Event], bool]:
    """Whether an event is about the job or one of its pods.

    By uid; by name only where the event carries none, because names come back with the next job.
    """
    uids = {each.job.uid, *(pod.uid for pod in each.pods)} - {""}
    named = {(each.job.kind, each.job.name), *(("Pod", pod.name) for pod in each.pods)}

    def is_about(event: Event) -> bool:
        if event.object_uid:
            return event.object_uid in uids
        return (
            event.object_namespace == each.job.namespace
            and (event.object_kind, event.object_name) in named
        )

    return is_about


def _instance(
    pod: Pod,
    role: str,
    is_chief: bool,
    occupancy: ClusterOccupancy,
    now: float,
    explainer: Explainer,
    silent: Collection[str],
) -> Instance:
    use, wait = occupancy.use(pod), why_pod_waits(pod)
    cards = cards_of(pod, occupancy)
    return Instance(
        name=pod.name,
        role=role,
        status=UNHEARD if is_unheard(pod, silent) and pod.deleted_at is None else pod_status(pod),
        node=pod.node,
        ip=pod.pod_ip,
        gpus=neat(use.gpus),
        gpu_indexes=sorted({card.index for card in cards}),
        gpu_uuids=[card.uuid for card in cards if card.uuid],
        gpu_memory_allocated_mib=neat_or_null(memory_allocated(use)),
        gpu_memory_used_mib=neat_or_null(use.memory_used_mib),
        gpu_memory_used_of_mib=neat_or_null(use.memory_used_of_mib),
        gpu_util_percent=percent(use.utilization_ratio),
        restarts=sum(status.restarts for status in pod.statuses),
        age_seconds=int(instance_age(pod, now)),
        is_chief=is_chief,
        waiting=explainer.explain(wait, [pod]) if wait else None,
    )
