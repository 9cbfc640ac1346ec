"""Why a training job or a pod waits: the first reason that is found, with numbers and names.

Console contract 3.3. A job without pods is not scheduled badly: its controller has not made them (or does not
exist), and the sentence says that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.jobs.job import Job
from fairlead.model.keys import ANNOTATION_SUSPENDED_FOR, QUOTA_CONDITION, QUOTA_GATE
from fairlead.model.pod import ContainerState, ContainerStatus, Pod, PodPhase

UNSCHEDULABLE: Final = "Unschedulable"
"""The reason of a scheduler that found no node."""
_QUIET: Final = frozenset(("", "PodInitializing", "ContainerCreating"))


class Wait(Struct, frozen=True, gc=False):
    """`reason` is a word in Kubernetes' style; `message` one sentence."""

    reason: str
    message: str


def why_job_waits(job: Job, pods: Sequence[Pod]) -> Wait:
    """The reason that holds the job now; call it for jobs that wait."""
    if job.suspended or any(condition.type == "Suspended" and condition.status == "True" for condition in job.conditions):
        claimant = job.annotations.get(ANNOTATION_SUSPENDED_FOR)
        if claimant:
            return Wait("QuotaSuspended", f"the job is suspended to give quota back to {claimant}; it resumes when there is room again")
        return Wait("Suspended", "the job is suspended")
    for pod in pods:
        reason = why_pod_waits(pod)
        if reason is not None:
            return reason
    for pod in pods:
        if pod.phase == PodPhase.FAILED:
            return _end_of(pod)
    desired = sum(role.replicas for role in job.roles)
    if len(pods) < desired:
        return Wait("PodsMissing", f"{len(pods)} of {desired} pods exist; the job's controller has yet to make the others")
    return Wait("Starting", f"{_count(pods, PodPhase.RUNNING)} of {len(pods)} pods run")


def why_pod_waits(pod: Pod) -> Wait | None:
    """What holds one pod, or one container of a pod that runs.

    None when it runs, has ended, or just starts.
    """
    if pod.is_finished:
        return None
    return (_before_its_node(pod) if pod.phase == PodPhase.PENDING else None) or _why_container_waits(pod)


def _before_its_node(pod: Pod) -> Wait | None:
    if QUOTA_GATE in pod.gates:
        told = f"pod {pod.name} waits for its quota to have room; `fairlead quota why {pod.key}` says why"
        return _condition(pod, QUOTA_CONDITION) or Wait("QuotaGated", told)
    if pod.gates:
        return Wait("SchedulingGated", f"pod {pod.name} waits for {', '.join(pod.gates)}")
    return _condition(pod, "PodScheduled")


def _why_container_waits(pod: Pod) -> Wait | None:
    for status in (*pod.init_statuses, *pod.statuses):
        if status.state == ContainerState.WAITING and status.reason not in _QUIET:
            return Wait(status.reason, _container_text(pod, status))
    return None


def _end_of(pod: Pod) -> Wait:
    """Of a failed pod whose job's controller has yet to draw its conclusion, or waits for the others."""
    for status in (*pod.init_statuses, *pod.statuses):
        if status.state == ContainerState.TERMINATED and status.exit_code:
            ended = status.message or f"it ended with exit code {status.exit_code}"
            return Wait(status.reason or "Error", f"container {status.name} of pod {pod.name}: {ended}")
    return Wait(pod.reason or "Failed", f"pod {pod.name} has failed")


def _condition(pod: Pod, type_: str) -> Wait | None:
    for condition in pod.conditions:
        if condition.type == type_ and condition.status == "False" and (condition.reason or condition.message):
            return Wait(condition.reason or type_, condition.message or condition.reason)
    return None


def _container_text(pod: Pod, status: ContainerStatus) -> str:
    text = f"container {status.name} of pod {pod.name}"
    return f"{text}: {status.message}" if status.message else f"{text} waits: {status.reason}"


def _count(pods: Iterable[Pod], phase: PodPhase) -> int:
    return sum(pod.phase == phase for pod in pods)
