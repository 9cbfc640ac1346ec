"""Why a training job or a pod waits: the first reason that is found, with numbers and names.

Specification: docs/spec/console.md#training-jobs-page.

A job without pods is not a problem of scheduling: its controller has not created them (or does not
run).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.jobs.job import Job
from fairlead.model.keys import (
    ANNOTATION_SUSPENDED_FOR,
    FIRST_ADMISSION,
    NO_NODE,
    OVER_MAX,
    QUOTA_CONDITION,
    QUOTA_GATE,
)
from fairlead.model.pod import ContainerState, Pod, PodPhase
from fairlead.rules.jobs.status import RUNNING, board_state, is_over, job_status

UNSCHEDULABLE: Final = "Unschedulable"
"""The reason of a scheduler that found no node."""
_QUIET: Final = frozenset(("", "PodInitializing", "ContainerCreating"))


class Wait(Struct, frozen=True, gc=False):
    """`reason` is a word in Kubernetes' style; `message` one sentence.

    `code` and `values`: of Fairlead's own sentences, for translation; "" for another component's
    message.
    """

    reason: str
    message: str
    code: str = ""
    values: Mapping[str, str | int] = {}


def why_job_waits(job: Job, pods: Sequence[Pod]) -> Wait:
    """Why the job waits; call it for jobs that wait."""
    if is_suspended(job):
        return why_suspended(job.annotations.get(ANNOTATION_SUSPENDED_FOR, ""))
    for pod in pods:
        reason = why_pod_waits(pod)
        if reason is not None:
            return reason
    for pod in pods:
        if pod.phase == PodPhase.FAILED:
            return _end_of(pod)
    desired = sum(role.replicas for role in job.roles)
    if len(pods) < desired:
        text = (
            f"{len(pods)} of {desired} pods exist; the job's controller has not created the "
            "others yet"
        )
        return Wait("PodsMissing", text, "pods-missing", {"there": len(pods), "desired": desired})
    running = _count(pods, PodPhase.RUNNING)
    return Wait(
        "Starting",
        f"{running} of {len(pods)} pods run",
        "starting",
        {"running": running, "pods": len(pods)},
    )


def why_suspended(claimant: str) -> Wait:
    """Why a job is suspended. `claimant`: the unit for which Fairlead suspended it; "" = it did
    not.
    """
    if claimant == FIRST_ADMISSION:
        text = "the job is suspended until its quota has room for it, because it has a deadline"
        return Wait("QuotaSuspended", text, "suspended-at-first")
    if claimant == NO_NODE:
        text = "the job is suspended because no node took its pods; it resumes when one has room"
        return Wait("QuotaReturned", text, "suspended-no-node")
    if claimant == OVER_MAX:
        text = (
            "the job is suspended because its part of the quota tree used more than its max; it "
            "resumes when there is room again"
        )
        return Wait("QuotaSuspended", text, "suspended-over-max")
    if claimant:
        text = (
            f"the job is suspended to give quota back to {claimant}; it resumes when there is "
            "room again"
        )
        return Wait("QuotaSuspended", text, "suspended-for", {"claimant": claimant})
    return Wait("Suspended", "the job is suspended", "suspended")


def is_suspended(job: Job) -> bool:
    """Whether it is suspended, by its spec or by its status."""
    return job.suspended or any(
        condition.type == "Suspended" and condition.status == "True" for condition in job.conditions
    )


def why_no_pod(job: Job) -> str:
    """Why a job has no pod; call it for jobs without any."""
    if is_over(job):
        return "the job has ended and its pods are gone"
    return why_job_waits(job, ()).message


def waiting_anew(job: Job, pods: Sequence[Pod]) -> list[Pod]:
    """Pods that replace the ones that ran, of a job that restarts, while none of it runs."""
    is_running = any(pod.phase == PodPhase.RUNNING and pod.deleted_at is None for pod in pods)
    if is_running or board_state(job_status(job, pods)) != RUNNING:
        return []
    return [pod for pod in pods if pod.deleted_at is None and why_pod_waits(pod) is not None]


def why_pod_waits(pod: Pod) -> Wait | None:
    """Why one pod, or one container of a running pod, waits.

    None if it runs, has ended, or is just starting.
    """
    if pod.is_finished:
        return None
    return (
        _before_its_node(pod) if pod.phase == PodPhase.PENDING else None
    ) or _why_container_waits(pod)


def why_quota_waits(pod: Pod) -> Wait | None:
    """What the quota controller wrote about a pod that waits for quota; None = nothing yet."""
    return _condition(pod, QUOTA_CONDITION)


def _before_its_node(pod: Pod) -> Wait | None:
    if QUOTA_GATE in pod.gates:
        text = (
            f"pod {pod.name} waits for its quota to have room; `fairlead quota why {pod.key}` "
            "shows why"
        )
        return why_quota_waits(pod) or Wait(
            "QuotaGated", text, "quota-gated", {"pod": pod.name, "key": pod.key}
        )
    if pod.gates:
        gates = ", ".join(pod.gates)
        return Wait(
            "SchedulingGated",
            f"pod {pod.name} waits for {gates}",
            "gated",
            {"pod": pod.name, "gates": gates},
        )
    return _condition(pod, "PodScheduled")


def _why_container_waits(pod: Pod) -> Wait | None:
    for status in (*pod.init_statuses, *pod.statuses):
        if status.state == ContainerState.WAITING and status.reason not in _QUIET:
            of, where = (
                f"container {status.name} of pod {pod.name}",
                {"container": status.name, "pod": pod.name},
            )
            if status.message:
                return Wait(
                    status.reason,
                    f"{of}: {status.message}",
                    "container-said",
                    {**where, "said": status.message},
                )
            return Wait(
                status.reason,
                f"{of} waits: {status.reason}",
                "container",
                {**where, "reason": status.reason},
            )
    return None


def _end_of(pod: Pod) -> Wait:
    """Why a pod failed whose job has not failed yet.

    The job's controller is late, or waits for the other pods.
    """
    for status in (*pod.init_statuses, *pod.statuses):
        if status.state == ContainerState.TERMINATED and status.exit_code:
            of, where = (
                f"container {status.name} of pod {pod.name}",
                {"container": status.name, "pod": pod.name},
            )
            if status.message:
                return Wait(
                    status.reason or "Error",
                    f"{of}: {status.message}",
                    "container-said",
                    {**where, "said": status.message},
                )
            text = f"{of}: it ended with exit code {status.exit_code}"
            return Wait(
                status.reason or "Error",
                text,
                "container-exit",
                {**where, "exit": status.exit_code},
            )
    return Wait(
        pod.reason or "Failed", f"pod {pod.name} has failed", "pod-failed", {"pod": pod.name}
    )


def _condition(pod: Pod, type_: str) -> Wait | None:
    for condition in pod.conditions:
        if (
            condition.type == type_
            and condition.status == "False"
            and (condition.reason or condition.message)
        ):
            return Wait(condition.reason or type_, condition.message or condition.reason)
    return None


def _count(pods: Iterable[Pod], phase: PodPhase) -> int:
    return sum(pod.phase == phase for pod in pods)
