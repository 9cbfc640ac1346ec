"""What is written to stop pods of a job, and to let them run again.

`suspend` stops all of them, a lower `parallelism` some of a batch Job's. The same request writes
annotations, so that the controller that continues after a crash recognizes Fairlead's change.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead.model.actions import ObjectRef, PatchObject, ScaleJob
from fairlead.model.keys import ANNOTATION_SUSPENDED_FOR, ANNOTATION_SUSPENDED_PRIORITY
from fairlead.model.quota.rows import Workload

RUN_POLICY_KINDS: Final = ("TFJob", "PyTorchJob", "MPIJob")


def suspend_action(job: Workload, for_unit: str, priority: int = 0) -> PatchObject:
    """Suspend a job. `priority`: of its pods."""
    marks = {
        ANNOTATION_SUSPENDED_FOR: for_unit,
        ANNOTATION_SUSPENDED_PRIORITY: str(priority) if priority else None,
    }
    return _turn(job, marks, is_suspended=True)


def resume_action(job: Workload) -> PatchObject:
    """Resume the whole job, as it stands."""
    return _turn(
        job,
        {ANNOTATION_SUSPENDED_FOR: None, ANNOTATION_SUSPENDED_PRIORITY: None},
        is_suspended=False,
    )


def stop_action(job: Workload) -> PatchObject:
    """Suspend a job for its owner: quota does not resume it."""
    return _turn(
        job,
        {ANNOTATION_SUSPENDED_FOR: None, ANNOTATION_SUSPENDED_PRIORITY: None},
        is_suspended=True,
    )


def lower_action(job: Workload, count: int, priority: int = 0) -> ScaleJob:
    """Let at most `count` pods of a batch Job run."""
    own = job.own_parallelism or job.parallelism
    return ScaleJob(
        _ref(job),
        job.parallelism,
        count,
        own,
        priority=priority,
        has_annotations=job.has_annotations,
    )


def raise_action(job: Workload, more: int) -> ScaleJob:
    """Let `more` pods of a batch Job run.

    If that is all of them, the owner's own number is restored.
    """
    own = job.own_parallelism or job.parallelism
    now = 0 if job.is_suspended else job.pods
    count = own if now + more >= job.pods + job.held else now + more
    is_resumed = job.is_suspended
    return ScaleJob(
        _ref(job), job.parallelism, count, own, is_resumed, job.priority, job.has_annotations
    )


def disown_action(job: Workload) -> PatchObject:
    """Remove Fairlead's marks that are no longer valid."""
    return PatchObject(_ref(job), {"metadata": {"annotations": dict.fromkeys(job.stale)}})


def _turn(job: Workload, marks: dict[str, str | None], *, is_suspended: bool) -> PatchObject:
    suspend: dict[str, Any] = {"suspend": is_suspended}
    spec = {"runPolicy": suspend} if job.kind in RUN_POLICY_KINDS else suspend
    return PatchObject(_ref(job), {"metadata": {"annotations": marks}, "spec": spec})


def _ref(job: Workload) -> ObjectRef:
    return ObjectRef(job.api_version, job.kind, job.name, job.namespace, job.uid)
