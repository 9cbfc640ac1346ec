"""SparkApplications of spark-operator: the fields that Fairlead reads.

Sizes are Java's (`500m` means 500 MiB, not half a byte), and cores are whole numbers.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from msgspec import Struct

from fairlead.model.jobs.job import Job, JobStatus, Role
from fairlead.model.resources import CPU, MEMORY, Amounts
from fairlead.wire.jobs.job_object import make_job
from fairlead.wire.kube.objects import WireMeta, epoch


class WireSparkGpu(Struct, gc=False):
    name: str | None = None
    quantity: int | None = None


class WireSparkPod(Struct, gc=False, rename="camel"):
    """The driver or the executors; `instances` is of executors only."""

    instances: int | None = None
    cores: int | None = None
    memory: str | None = None
    gpu: WireSparkGpu | None = None
    priority_class_name: str | None = None


class WireSparkSpec(Struct, gc=False):
    driver: WireSparkPod | None = None
    executor: WireSparkPod | None = None


class WireSparkState(Struct, gc=False):
    state: str | None = None


class WireSparkStatus(Struct, gc=False, rename="camel"):
    application_state: WireSparkState | None = None
    last_submission_attempt_time: datetime | None = None
    termination_time: datetime | None = None


class WireSparkApplication(Struct, gc=False, rename="camel"):
    metadata: WireMeta
    api_version: str | None = None
    spec: WireSparkSpec | None = None
    status: WireSparkStatus | None = None


_WORDS: Final = {
    "": JobStatus.PENDING,
    "COMPLETED": JobStatus.SUCCEEDED,
    "PENDING_RERUN": JobStatus.PENDING,
}
"""Status words of the operator's states.

Other states are shown as the operator writes them: SUBMITTED, RUNNING, FAILED, SUBMISSION_FAILED, …
"""
_FAILED: Final = ("FAILED", "SUBMISSION_FAILED")
_SIZE: Final = re.compile(r"(\d{1,15})([kmgtp]?)b?")
# a bare number of these settings counts MiB
_POWERS: Final = {"": 20, "k": 10, "m": 20, "g": 30, "t": 40, "p": 50}


def parse_spark_application(
    wire: WireSparkApplication, type_: str, kind: str, api_version: str
) -> Job:
    """The job. The object has no start time, so its creation counts as its start.

    A job that could not be submitted ended with its last attempt.
    """
    meta, spec, status = (
        wire.metadata,
        wire.spec or WireSparkSpec(),
        wire.status or WireSparkStatus(),
    )
    state = (status.application_state and status.application_state.state) or ""
    driver, executor = spec.driver or WireSparkPod(), spec.executor or WireSparkPod()
    gave_up = status.last_submission_attempt_time if state in _FAILED else None
    return make_job(
        wire,
        type_,
        kind,
        api_version,
        roles=(
            _parse_role("driver", 1, driver),
            _parse_role(
                "executor", 1 if executor.instances is None else executor.instances, executor
            ),
        ),
        word=_WORDS.get(state, state),
        priority_class=driver.priority_class_name or "",
        started_at=epoch(meta.creation_timestamp),
        finished_at=epoch(status.termination_time) or epoch(gave_up),
    )


def _parse_role(name: str, replicas: int, pod: WireSparkPod) -> Role:
    gpus: Amounts = {pod.gpu.name: pod.gpu.quantity or 0} if pod.gpu and pod.gpu.name else {}
    memory = parse_spark_size(pod.memory or "")
    requests = {
        CPU: 1000 * (1 if pod.cores is None else max(0, pod.cores)),
        **({} if memory is None else {MEMORY: memory}),
        **gpus,
    }
    return Role(name, max(0, replicas), limits=gpus, requests=requests)


def parse_spark_size(text: str) -> int | None:
    """Bytes of a size in Spark's spelling; None for a malformed size.

    >>> parse_spark_size("500m"), parse_spark_size("2g"), parse_spark_size("lots")
    (524288000, 2147483648, None)
    """
    found = _SIZE.fullmatch(text.strip().lower())
    return None if found is None else int(found[1]) << _POWERS[found[2]]
