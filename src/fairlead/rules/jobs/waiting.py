"""Why a training job or a pod waits: the first reason that is found, with numbers and names.

docs/spec/console.md#training-jobs-page. A job without pods is not scheduled badly: its controller has not
made them (or does not exist), and the sentence says that.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.jobs.job import Job
from fairlead.model.keys import ANNOTATION_SUSPENDED_FOR, QUOTA_CONDITION, QUOTA_GATE
from fairlead.model.pod import ContainerState, Pod, PodPhase
from fairlead.rules.jobs.status import RUNNING, board_state, is_over, job_status

UNSCHEDULABLE: Final = "Unschedulable"
"""The reason of a scheduler that found no node."""
_QUIET: Final = frozenset(("", "PodInitializing", "ContainerCreating"))


class Wait(Struct, frozen=True, gc=False):
    """`reason` is a word in Kubernetes' style; `message` one sentence.

    `code`: of the sentence, where it is ours, with its `values`, for other languages; "" of another's words.
    """

    reason: str
    message: str
    code: str = ""
    values: Mapping[str, str | int] = {}


def why_job_waits(job: Job, pods: Sequence[Pod]) -> Wait:
    """The reason that holds the job now; call it for jobs that wait."""
    if is_suspended(job):
        claimant = job.annotations.get(ANNOTATION_SUSPENDED_FOR)
        if claimant:
            told = f"the job is suspended to give quota back to {claimant}; it resumes when there is room again"
            return Wait("QuotaSuspended", told, "suspended-for", {"claimant": claimant})
        return Wait("Suspended", "the job is suspended", "suspended")
    for pod in pods:
        reason = why_pod_waits(pod)
        if reason is not None:
            return reason
    for pod in pods:
        if pod.phase == PodPhase.FAILED:
            return _end_of(pod)
    desired = sum(role.replicas for role in job.roles)
    if len(pods) < desired:
        told = f"{len(pods)} of {desired} pods exist; the job's controller has yet to make the others"
        return Wait("PodsMissing", told, "pods-missing", {"there": len(pods), "desired": desired})
    running = _count(pods, PodPhase.RUNNING)
    return Wait("Starting", f"{running} of {len(pods)} pods run", "starting", {"running": running, "pods": len(pods)})


def is_suspended(job: Job) -> bool:
    """Whether somebody suspended it, by its spec or as its controller says."""
    return job.suspended or any(condition.type == "Suspended" and condition.status == "True" for condition in job.conditions)


def why_no_pod(job: Job) -> str:
    """Why a job has no pod; call it for jobs without any."""
    if is_over(job):
        return "the job has ended and its pods are gone"
    return why_job_waits(job, ()).message


def waiting_anew(job: Job, pods: Sequence[Pod]) -> list[Pod]:
    """Pods that wait in the place of those that ran: of a job that restarts, while none of it runs."""
    is_running = any(pod.phase == PodPhase.RUNNING and pod.deleted_at is None for pod in pods)
    if is_running or board_state(job_status(job, pods)) != RUNNING:
        return []
    return [pod for pod in pods if pod.deleted_at is None and why_pod_waits(pod) is not None]


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
        return _condition(pod, QUOTA_CONDITION) or Wait("QuotaGated", told, "quota-gated", {"pod": pod.name, "key": pod.key})
    if pod.gates:
        gates = ", ".join(pod.gates)
        return Wait("SchedulingGated", f"pod {pod.name} waits for {gates}", "gated", {"pod": pod.name, "gates": gates})
    return _condition(pod, "PodScheduled")


def _why_container_waits(pod: Pod) -> Wait | None:
    for status in (*pod.init_statuses, *pod.statuses):
        if status.state == ContainerState.WAITING and status.reason not in _QUIET:
            of, where = f"container {status.name} of pod {pod.name}", {"container": status.name, "pod": pod.name}
            if status.message:
                return Wait(status.reason, f"{of}: {status.message}", "container-said", {**where, "said": status.message})
            return Wait(status.reason, f"{of} waits: {status.reason}", "container", {**where, "reason": status.reason})
    return None


def _end_of(pod: Pod) -> Wait:
    """Of a failed pod whose job's controller has yet to draw its conclusion, or waits for the others."""
    for status in (*pod.init_statuses, *pod.statuses):
        if status.state == ContainerState.TERMINATED and status.exit_code:
            of, where = f"container {status.name} of pod {pod.name}", {"container": status.name, "pod": pod.name}
            if status.message:
                return Wait(status.reason or "Error", f"{of}: {status.message}", "container-said", {**where, "said": status.message})
            told = f"{of}: it ended with exit code {status.exit_code}"
            return Wait(status.reason or "Error", told, "container-exit", {**where, "exit": status.exit_code})
    return Wait(pod.reason or "Failed", f"pod {pod.name} has failed", "pod-failed", {"pod": pod.name})


def _condition(pod: Pod, type_: str) -> Wait | None:
    for condition in pod.conditions:
        if condition.type == type_ and condition.status == "False" and (condition.reason or condition.message):
            return Wait(condition.reason or type_, condition.message or condition.reason)
    return None


def _count(pods: Iterable[Pod], phase: PodPhase) -> int:
    return sum(pod.phase == phase for pod in pods)
