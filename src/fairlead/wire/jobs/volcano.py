"""Jobs of Volcano (`batch.volcano.sh`): the fields that Fairlead reads.

Their kind is `Job`, as that of Kubernetes' own Jobs: only the group distinguishes them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec import Struct

from fairlead.model.jobs.job import Job, JobStatus
from fairlead.wire.jobs.job_object import make_job
from fairlead.wire.jobs.kubeflow import WireReplica, WireTemplate, parse_roles
from fairlead.wire.kube.objects import WireMeta, epoch


class WireVolcanoTask(Struct, gc=False, rename="camel"):
    name: str | None = None
    replicas: int | None = None
    template: WireTemplate | None = None


class WireVolcanoSpec(Struct, gc=False, rename="camel"):
    tasks: list[WireVolcanoTask] | None = None
    priority_class_name: str | None = None


class WireVolcanoState(Struct, gc=False, rename="camel"):
    phase: str | None = None
    last_transition_time: datetime | None = None


class WireVolcanoStatus(Struct, gc=False):
    state: WireVolcanoState | None = None


class WireVolcanoJob(Struct, gc=False, rename="camel"):
    metadata: WireMeta
    api_version: str | None = None
    spec: WireVolcanoSpec | None = None
    status: WireVolcanoStatus | None = None


_WORDS: Final = {
    "": JobStatus.PENDING,
    "Pending": JobStatus.PENDING,
    "Inqueue": "SUBMITTED",
    "Running": JobStatus.RUNNING,
    "Completed": JobStatus.SUCCEEDED,
    "Failed": JobStatus.FAILED,
}
"""Other phases are shown as Volcano writes them."""
_ENDED: Final = ("Completed", "Failed", "Terminated", "Aborted")


def parse_volcano_job(wire: WireVolcanoJob, type_: str, kind: str, api_version: str) -> Job:
    """The job. The object has no start time, so its creation counts as its start.

    It ends when its phase became one of `_ENDED`.
    """
    meta, spec = wire.metadata, wire.spec or WireVolcanoSpec()
    state = (wire.status and wire.status.state) or WireVolcanoState()
    phase = state.phase or ""
    tasks = {
        task.name or f"task{i}": WireReplica(task.replicas, task.template)
        for i, task in enumerate(spec.tasks or ())
    }
    return make_job(
        wire,
        type_,
        kind,
        api_version,
        roles=parse_roles(tasks),
        word=_WORDS.get(phase, phase),
        suspended=phase == "Aborted",
        priority_class=spec.priority_class_name or "",
        started_at=epoch(meta.creation_timestamp),
        finished_at=epoch(state.last_transition_time) if phase in _ENDED else None,
    )
