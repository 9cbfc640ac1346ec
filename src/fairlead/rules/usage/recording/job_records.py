"""What is kept of a job after it was deleted (docs/spec/usage.md#recorder)."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.model.usage.ledger import GPU, JobRecord, UsedBy
from fairlead.rules.jobs.status import FAILED, board_state, job_status, requested_gpus
from fairlead.rules.usage.recording.intervals import milliseconds


def job_record(
    uid: str, job: Job, by: UsedBy, pods: Collection[Pod], before: JobRecord | None
) -> JobRecord:
    """The record of a job that exists, without its manifest. `before`: an earlier one, whose image
    stays.
    """
    status = job_status(job, pods)
    images = sorted({part.image for pod in pods for part in pod.containers[:1] if part.image})
    return JobRecord(
        uid,
        by,
        job.name,
        job.type,
        api_version=job.api_version,
        created_at=milliseconds(job.created_at),
        started_at=milliseconds(job.started_at),
        finished_at=milliseconds(job.finished_at),
        status=status,
        reason=_reason(job) if board_state(status) == FAILED else "",
        gpu=GPU * requested_gpus(job),
        instances=sum(role.replicas for role in job.roles),
        image=images[0] if images else before.image if before is not None else "",
    )


def deleted(record: JobRecord, at: int) -> JobRecord:
    return replace(record, deleted_at=max(at, record.created_at))


def _reason(job: Job) -> str:
    """The message of the condition that ended it."""
    failed = [each for each in job.conditions if each.type == "Failed" and each.status == "True"]
    return (failed[-1].message or failed[-1].reason) if failed else ""
