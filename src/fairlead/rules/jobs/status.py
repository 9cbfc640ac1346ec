"""The state of a training job: status word, state on boards, durations, what it asks for.

Specification: docs/spec/arena-cli.md#status-of-a-job.

The newest condition is not the status: Failed has precedence over Running in any order. A RUNNING
job with a pod that is still Pending is PENDING, everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.model.jobs.job import Job, JobStatus
from fairlead.model.keys import ANNOTATION_REQUESTED_GPUS, ANNOTATION_SUSPEND
from fairlead.model.pod import ContainerState, Pod, PodPhase
from fairlead.model.resources import Amounts, sum_of
from fairlead.rules.pods.devices import memory_units, whole_gpus

PENDING: Final = JobStatus.PENDING
RUNNING: Final = JobStatus.RUNNING
SUCCEEDED: Final = JobStatus.SUCCEEDED
FAILED: Final = JobStatus.FAILED
SUSPENDED: Final = JobStatus.SUSPENDED
QUEUING: Final = JobStatus.QUEUING
RESTARTING: Final = JobStatus.RESTARTING
SCALING: Final = JobStatus.SCALING
_POD_PENDING: Final = PodPhase.PENDING
_TERMINATED: Final = ContainerState.TERMINATED
BOARD_STATES: Final = (PENDING, RUNNING, SUCCEEDED, FAILED)
_IN_ORDER: Final = (
    ("Failed", FAILED),
    ("Succeeded", SUCCEEDED),
    ("Complete", SUCCEEDED),
    ("Suspended", SUSPENDED),
    ("Restarting", RESTARTING),
    ("Running", RUNNING),
    ("Queuing", QUEUING),
    ("Created", PENDING),
)
_RAW_AT_WORK: Final = (
    "SUCCEEDING",
    "FAILING",
    "Restarting",
    "Completing",
    "Aborting",
    "Terminating",
)
_RAW_ENDED: Final = ("MAX_WAIT_TIME_EXCEEDED", "STOPPED", "SUBMISSION_FAILED", "Terminated")
"""Words of controllers that are shown as they are: of Ray, Spark (capitals) and Volcano.

An `Aborted` job of Volcano may continue.
"""
_BOARD: Final = {
    SUCCEEDED: SUCCEEDED,
    **dict.fromkeys((FAILED, *_RAW_ENDED), FAILED),
    **dict.fromkeys((RUNNING, RESTARTING, SCALING, *_RAW_AT_WORK), RUNNING),
}


def job_status(job: Job, pods: Iterable[Pod]) -> str:
    """The exact status word; PENDING if the job runs and one of its pods is still Pending."""
    word, pods = _word_of(job), tuple(pods)
    if word in (RUNNING, SCALING) and job.lead is not None and not _is_led(job.lead, pods):
        return PENDING
    if word == RUNNING and any(
        pod.phase == _POD_PENDING and pod.deleted_at is None for pod in pods
    ):
        return PENDING
    return word


def _is_led(lead: tuple[str, str], pods: Iterable[Pod]) -> bool:
    label, value = lead
    return any(pod.labels.get(label) == value and pod.phase != _POD_PENDING for pod in pods)


def _word_of(job: Job) -> str:
    """The word of the controller: its one word, else from its conditions."""
    if job.word:
        return job.word
    true = {condition.type for condition in job.conditions if condition.status == "True"}
    for type_, word in _IN_ORDER:
        if type_ in true:
            return (
                QUEUING
                if word == SUSPENDED and job.annotations.get(ANNOTATION_SUSPEND) == "true"
                else word
            )
    return PENDING


def board_state(status: str) -> JobStatus:
    """PENDING, RUNNING, SUCCEEDED or FAILED: what boards and `arena_*` count (decision 3).

    >>> print(*(board_state(word) for word in ("QUEUING", "SUSPENDED", "RESTARTING", "FAILED")))
    PENDING PENDING RUNNING FAILED
    >>> print(*(board_state(word) for word in ("Aborted", "Terminated")))
    PENDING FAILED
    """
    return _BOARD.get(status, PENDING)


def native_state(status: str) -> str:
    """The lower-case word of Fairlead's own metrics, which distinguish queuing and suspended.

    >>> native_state("SUSPENDED"), native_state("RESTARTING")
    ('suspended', 'running')
    """
    return (status if status in (QUEUING, SUSPENDED) else board_state(status)).lower()


def is_over(job: Job) -> bool:
    """Whether the job has ended, successfully or not."""
    return board_state(_word_of(job)) in (SUCCEEDED, FAILED)


def job_duration(job: Job, now: float) -> float:
    """Seconds from its start to its end, or to now while it runs; 0 for a job that has not started.

    >>> job = Job("mpijob", "MPIJob", "v1", "ns", "j", started_at=100.0, finished_at=160.0)
    >>> job_duration(job, 1000.0)
    60.0
    """
    if job.started_at is None:
        return 0.0
    end = job.finished_at if job.finished_at is not None else now
    return max(0.0, end - job.started_at)


def queue_wait(job: Job, pods: Iterable[Pod], now: float) -> float | None:
    """Seconds from creation until it ran (its last pod was bound), or until now while it waits.

    None if that is no longer known.
    """
    if job.created_at is None:
        return None
    pods = tuple(pods)
    if not is_over(job) and board_state(job_status(job, pods)) == PENDING:
        return max(0.0, now - job.created_at)
    starts = [pod.started_at for pod in pods if pod.started_at is not None]
    running = [
        c.at
        for c in job.conditions
        if c.type == "Running" and c.status == "True" and c.at is not None
    ]
    began = min(running, default=None) if running else max(starts, default=None)
    return None if began is None else max(0.0, began - job.created_at)


def requested_gpus(job: Job) -> int:
    """Whole GPUs over all roles, from the spec, so they are known before any pod exists.

    The annotation counts only if the spec could not be read.
    """
    if job.roles:
        return sum(role.replicas * whole_gpus(role.limits) for role in job.roles)
    text = job.annotations.get(ANNOTATION_REQUESTED_GPUS, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0


def requested_memory_units(job: Job) -> int:
    """Units of shared GPU memory over all roles."""
    return sum(role.replicas * memory_units(role.limits) for role in job.roles)


def requested_resources(job: Job) -> Amounts:
    """What its pods ask for together, over all roles, from the spec."""
    return sum_of(
        {name: amount * role.replicas for name, amount in role.requests.items()}
        for role in job.roles
    )


def held_requests(pods: Iterable[Pod]) -> Amounts:
    """What the bound ones of these pods request."""
    return sum_of(pod.requests for pod in pods if pod.is_holding)


def allocated_gpus(pods: Iterable[Pod]) -> int:
    """Whole GPUs of pods that are bound and not finished; a terminating pod still has them."""
    return sum(whole_gpus(pod.limits) for pod in pods if pod.is_holding)


def instance_age(pod: Pod, now: float) -> float:
    """The pod's age in seconds.

    While it is Pending, since creation; otherwise from its first container's start to its last
    one's end.
    """
    if pod.phase == _POD_PENDING:
        return max(0.0, now - pod.created_at) if pod.created_at is not None else 0.0
    starts = [status.started_at for status in pod.statuses if status.started_at is not None]
    start = (
        min(starts) if starts else pod.started_at if pod.started_at is not None else pod.created_at
    )
    ends = [
        status.finished_at
        for status in pod.statuses
        if status.state == _TERMINATED and status.finished_at is not None
    ]
    has_ended = bool(pod.statuses) and len(ends) == len(pod.statuses)
    end = max(ends) if has_ended else now
    return max(0.0, end - start) if start is not None else 0.0
