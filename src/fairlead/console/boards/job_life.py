"""A job's life in steps, from its creation to its end.

The steps: created, late pods, admitted, scheduled, images there, running, restarted, ended.

The sources are conditions, container statuses and events. A step with an unknown time is omitted
and never guessed; events are kept for about an hour, so the images of an old job are often missing.
The steps are in the order of their meaning, and each applies to all pods: the last pod is bound,
has its image, runs. If pods are at different steps, one may run before the last is bound; "1 of 2
run" then begins when the step before it was done, so that no step begins before its predecessor.
Pods that were created long after the job, such as replacements, are a step of their own: they did
not wait before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.console.boards.job_detail import about_job
from fairlead.console.boards.jobs_rows import STATUSES
from fairlead.console.pages.envelope import exact_timestamp
from fairlead.console.pages.jobs import LifeStep
from fairlead.model.event import Event
from fairlead.model.jobs.instances import JobInstances
from fairlead.model.keys import QUOTA_CONDITION, QUOTA_GATE
from fairlead.model.pod import Pod
from fairlead.rules.jobs.status import board_state, job_status

CREATED: Final = "created"
PODS: Final = "pods"
ADMITTED: Final = "admitted"
SCHEDULED: Final = "scheduled"
IMAGES: Final = "images"
RUNNING: Final = "running"
RESTARTED: Final = "restarted"
ENDED: Final = "ended"
LATE_SECONDS: Final = 60.0
"""Time after the creation of a job from which a new pod counts as created later."""
_PULLED: Final = "Pulled"


class _Known(Struct, frozen=True):
    step: str
    at: float
    count: int | None = None
    of: int | None = None
    status: str = ""


def job_life(each: JobInstances, events: Iterable[Event], now: float) -> list[LifeStep]:
    """In the order of their meaning; no step begins before the one that it follows."""
    known: list[_Known] = []
    for step in _with_pods(
        [step for step in _steps(each, events) if step is not None], _late_pods(each)
    ):
        known.append(replace(step, at=max(step.at, known[-1].at)) if known else step)
    ends = [*(step.at for step in known[1:]), now][: len(known)]
    return [_row(step, end) for step, end in zip(known, ends, strict=True)]


def _row(known: _Known, end: float) -> LifeStep:
    seconds = None if known.step == ENDED else max(0, int(end - known.at))
    return LifeStep(
        known.step, exact_timestamp(known.at), seconds, known.count, known.of, known.status
    )


def _steps(each: JobInstances, events: Iterable[Event]) -> Iterable[_Known | None]:
    job, pods = each.job, each.pods
    yield _Known(CREATED, job.created_at) if job.created_at is not None else None
    yield _admitted(pods)
    yield _scheduled(pods)
    running = _running(each)
    images = _images(each, events)
    yield (
        images
        if images and not (running and images.at > running.at and running.count == running.of)
        else None
    )
    yield running
    yield _restarted(pods, running)
    yield (
        _Known(ENDED, job.finished_at, status=STATUSES[board_state(job_status(job, pods))])
        if job.finished_at is not None
        else None
    )


def _late_pods(each: JobInstances) -> _Known | None:
    """When the last of the pods that did not come with the job was made."""
    since = each.job.created_at
    late = [
        pod.created_at
        for pod in each.pods
        if since is not None
        and pod.created_at is not None
        and pod.created_at - since > LATE_SECONDS
    ]
    return _Known(PODS, max(late), len(late), len(each.pods)) if late else None


def _with_pods(steps: list[_Known], pods: _Known | None) -> list[_Known]:
    """What was before those pods stays before them."""
    if pods is None:
        return steps
    place = next(
        (place for place, step in enumerate(steps) if step.step != CREATED and step.at >= pods.at),
        len(steps),
    )
    return [*steps[:place], pods, *steps[place:]]


def _admitted(pods: tuple[Pod, ...]) -> _Known | None:
    """When the last pod was admitted by quota; None while one waits for it, or if none needs it."""
    if any(QUOTA_GATE in pod.gates for pod in pods):
        return None
    at = [
        condition.at
        for pod in pods
        for condition in pod.conditions
        if condition.type == QUOTA_CONDITION and condition.status == "True"
    ]
    times = [moment for moment in at if moment is not None]
    return _Known(ADMITTED, max(times)) if times and len(times) == len(at) else None


def _scheduled(pods: tuple[Pod, ...]) -> _Known | None:
    """When the last bound pod was bound."""
    bound = [pod.held_since for pod in pods if pod.node]
    times = [moment for moment in bound if moment is not None]
    return _Known(SCHEDULED, max(times), len(bound), len(pods)) if times else None


def _images(each: JobInstances, events: Iterable[Event]) -> _Known | None:
    """When the last bound pod had its first image; None if that is unknown for one of them.

    A pull after all pods ran belongs to a restart: the caller omits it.
    """
    is_about = about_job(each)
    first: dict[str, float] = {}
    for event in events:
        if event.reason == _PULLED and event.at is not None and is_about(event):
            pod = event.object_name
            first[pod] = min(event.at, first.get(pod, event.at))
    bound = [pod.name for pod in each.pods if pod.node]
    return (
        _Known(IMAGES, max(first[pod] for pod in bound))
        if bound and first.keys() >= set(bound)
        else None
    )


def _running(each: JobInstances) -> _Known | None:
    """When the last of its pods first ran; while not all have run, with the number of those that
    have.

    A container that restarted reports only its current run, so the first start of its pod is
    unknown. If that applies to all of them, or no pod is left, the job's own condition has the
    time.
    """
    begun = [pod for pod in each.pods if any(status.has_begun for status in pod.statuses)]
    times = [at for at in map(_first_start, begun) if at is not None]
    times = (
        times
        or [
            c.at
            for c in each.job.conditions
            if c.type == "Running" and c.status == "True" and c.at is not None
        ][:1]
    )
    if not times:
        return None
    return (
        _Known(RUNNING, max(times), len(begun), len(each.pods))
        if begun
        else _Known(RUNNING, max(times))
    )


def _first_start(pod: Pod) -> float | None:
    return min(
        (
            s.started_at
            for s in pod.statuses
            if s.has_begun and not s.restarts and s.started_at is not None
        ),
        default=None,
    )


def _restarted(pods: tuple[Pod, ...], running: _Known | None) -> _Known | None:
    """The last restart, unless the last pod first ran after it."""
    restarts = sum(status.restarts for pod in pods for status in pod.statuses)
    last = max(
        (
            status.last_finished_at
            for pod in pods
            for status in pod.statuses
            if status.last_finished_at is not None
        ),
        default=None,
    )
    if not restarts or last is None or (running is not None and last < running.at):
        return None
    return _Known(RESTARTED, last, count=restarts)
