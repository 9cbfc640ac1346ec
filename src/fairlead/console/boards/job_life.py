"""A job's life in steps: created, admitted, scheduled, images there, running, restarted, ended.

Only what somebody tells: conditions, container statuses, events. A step whose time nobody tells is left out
and never guessed; events are kept for an hour or so, so that of an old job the images are often missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

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
ADMITTED: Final = "admitted"
SCHEDULED: Final = "scheduled"
IMAGES: Final = "images"
RUNNING: Final = "running"
RESTARTED: Final = "restarted"
ENDED: Final = "ended"
_PULLED: Final = "Pulled"


class _Known(Struct, frozen=True):
    step: str
    at: float
    count: int | None = None
    of: int | None = None
    status: str = ""


def job_life(each: JobInstances, events: Iterable[Event], now: float) -> list[LifeStep]:
    """In order of time; steps of the same second in the order in which they must have been."""
    known = sorted((step for step in _steps(each, events) if step is not None), key=lambda step: step.at)
    ends = [*(step.at for step in known[1:]), now][: len(known)]
    return [_row(step, end) for step, end in zip(known, ends, strict=True)]


def _row(known: _Known, end: float) -> LifeStep:
    seconds = None if known.step == ENDED else max(0, int(end - known.at))
    return LifeStep(known.step, exact_timestamp(known.at), seconds, known.count, known.of, known.status)


def _steps(each: JobInstances, events: Iterable[Event]) -> Iterable[_Known | None]:
    job, pods = each.job, each.pods
    yield _Known(CREATED, job.created_at) if job.created_at is not None else None
    yield _admitted(pods)
    yield _scheduled(pods)
    is_about = about_job(each)
    pulled = [event.at for event in events if event.reason == _PULLED and event.at is not None and is_about(event)]
    yield _Known(IMAGES, min(pulled)) if pulled else None
    yield _running(each)
    restarts = sum(status.restarts for pod in pods for status in pod.statuses)
    last = [status.last_finished_at for pod in pods for status in pod.statuses if status.last_finished_at is not None]
    yield _Known(RESTARTED, max(last), count=restarts) if restarts and last else None
    yield _Known(ENDED, job.finished_at, status=STATUSES[board_state(job_status(job, pods))]) if job.finished_at is not None else None


def _admitted(pods: tuple[Pod, ...]) -> _Known | None:
    """When the last pod got room in its quota; None while one waits for it, and where none asked."""
    if any(QUOTA_GATE in pod.gates for pod in pods):
        return None
    at = [condition.at for pod in pods for condition in pod.conditions if condition.type == QUOTA_CONDITION and condition.status == "True"]
    told = [moment for moment in at if moment is not None]
    return _Known(ADMITTED, max(told)) if told and len(told) == len(at) else None


def _scheduled(pods: tuple[Pod, ...]) -> _Known | None:
    """When the last of those that have a node got it."""
    bound = [pod.held_since for pod in pods if pod.node]
    told = [moment for moment in bound if moment is not None]
    return _Known(SCHEDULED, max(told), len(bound), len(pods)) if told else None


def _running(each: JobInstances) -> _Known | None:
    """When a container of it first ran. Of one that started again only its present run is told."""
    first = [s.started_at for pod in each.pods for s in pod.statuses if s.has_begun and not s.restarts and s.started_at is not None]
    if first:
        return _Known(RUNNING, min(first))
    told = [c.at for c in each.job.conditions if c.type == "Running" and c.status == "True" and c.at is not None]
    return _Known(RUNNING, min(told)) if told else None
