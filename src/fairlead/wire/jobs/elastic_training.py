"""TrainingJobs of et-operator (`kai.alibabacloud.com`): the fields that Fairlead reads.

Elastic and DeepSpeed jobs have the same kind: only the label `app` distinguishes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from msgspec import Struct

from fairlead.model.jobs.job import Job, JobStatus
from fairlead.wire import names
from fairlead.wire.jobs.job_object import ended_at, make_job
from fairlead.wire.jobs.kubeflow import WireReplica, parse_roles, priority_class_of
from fairlead.wire.kube.objects import (
    WireCondition,
    WireMeta,
    epoch,
    parse_conditions,
    parse_labels,
)


class WireElasticSpec(Struct, gc=False, rename={"replica_specs": "etReplicaSpecs"}):
    replica_specs: dict[str, WireReplica | None] | None = None


class WireElasticStatus(Struct, gc=False, rename="camel"):
    phase: str | None = None
    conditions: list[WireCondition] | None = None
    start_time: datetime | None = None
    completion_time: datetime | None = None


class WireTrainingJob(Struct, gc=False, rename="camel"):
    metadata: WireMeta
    api_version: str | None = None
    spec: WireElasticSpec | None = None
    status: WireElasticStatus | None = None


_WORDS: Final = {
    "Succeeded": JobStatus.SUCCEEDED,
    "Failed": JobStatus.FAILED,
    "Scaling": JobStatus.SCALING,
}
_TIMED_OUT: Final = "MAX_WAIT_TIME_EXCEEDED"


def parse_training_job(
    wire: WireTrainingJob, types: Sequence[str], kind: str, api_version: str
) -> Job:
    """The job. Its type is the one among `types` that its label
    names, else the first (no label).
    """
    meta, status = wire.metadata, wire.status or WireElasticStatus()
    labels, replicas = parse_labels(meta.labels), (wire.spec and wire.spec.replica_specs) or {}
    word: str = _WORDS.get(status.phase or "", JobStatus.RUNNING)
    if (
        word == JobStatus.FAILED
        and (meta.annotations or {}).get(names.ANNOTATION_SUPERVISED) == "timeout"
    ):
        word = _TIMED_OUT
    is_over = word in (JobStatus.SUCCEEDED, JobStatus.FAILED, _TIMED_OUT)
    conditions = parse_conditions(status.conditions)
    return make_job(
        wire,
        labels["app"] if labels.get("app") in types else types[0],
        kind,
        api_version,
        labels=labels,
        roles=parse_roles(replicas),
        conditions=conditions,
        word=word,
        priority_class=priority_class_of(replicas),
        lead=(names.LABEL_ELASTIC_ROLE, "launcher"),
        started_at=epoch(status.start_time) or epoch(meta.creation_timestamp),
        finished_at=(epoch(status.completion_time) or ended_at(conditions)) if is_over else None,
    )
