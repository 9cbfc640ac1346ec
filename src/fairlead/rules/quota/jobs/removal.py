"""Which pods the Job controller removes when a Job has more than may run.

The Job controller alone chooses them: a lower `parallelism` sets their number only. Its order is
`ActivePods` of Kubernetes (pkg/controller/controller_utils.go). Two of its keys are unknown here
and left out: since when a pod is ready, and how often its containers restarted. All pods of a Job
ask for the same, so the freed amount does not depend on them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from fairlead.model.pod import Pod, PodPhase
from fairlead.model.quota.rows import Workload

_PHASES: Final = {PodPhase.PENDING: 0.0, PodPhase.UNKNOWN: 1.0, PodPhase.RUNNING: 2.0}


def removal_turn(pod: Pod) -> tuple[float, ...]:
    """Sort key; the smallest is removed first: pods without a node, pending, not ready, newer."""
    is_ready = pod.phase is PodPhase.RUNNING and all(
        each.type != "Ready" or each.status == "True" for each in pod.conditions
    )
    return (
        float(bool(pod.node)),
        _PHASES.get(pod.phase, 2.0),
        float(is_ready),
        -(pod.created_at or 0.0),
    )


def in_removal_order(pods: Iterable[Pod]) -> list[Pod]:
    """The active pods, neither finished nor stopping, the first to be removed first."""
    active = [pod for pod in pods if pod.deleted_at is None and not pod.is_finished]
    return sorted(active, key=lambda pod: (removal_turn(pod), pod.name))


def surplus_in(pods: Iterable[Pod], job: Workload | None) -> list[Pod]:
    """Pods of one Job that its controller removes now, if it has not done so yet."""
    if job is None or not job.can_lower or job.is_suspended or job.is_finished:
        return []
    active = in_removal_order(pods)
    return active[: max(0, len(active) - job.pods)]


def surplus_of(pods: Iterable[Pod], workloads: Mapping[str, Workload]) -> set[str]:
    """Uids of such pods of all Jobs."""
    by_job: defaultdict[str, list[Pod]] = defaultdict(list)
    for pod in pods:
        owner = pod.controller
        if owner is not None and owner.uid in workloads and workloads[owner.uid].can_lower:
            by_job[owner.uid].append(pod)
    return {pod.uid for uid, its in by_job.items() for pod in surplus_in(its, workloads[uid])}


def left_without(pods: Iterable[Pod], gone: Sequence[str]) -> int | None:
    """How many pods may run so that these (uids) are among those that are removed.

    None: another pod that has a node would be removed before one of them. Between pods that are
    equal to the controller its choice is random; these count as the first.
    """
    order = sorted(in_removal_order(pods), key=lambda pod: (removal_turn(pod), pod.uid not in gone))
    places = [place for place, pod in enumerate(order) if pod.uid in gone]
    if not places:
        return None
    last = max(places)
    if any(pod.node and pod.uid not in gone for pod in order[:last]):
        return None
    return len(order) - last - 1
