"""VolcanoJob, as arena says: a Job of Volcano, a list of tasks of which the first is the driver and leads."""

from __future__ import annotations

from typing import Final

from fairlead.kinds.parts.kind import is_named_member, newest_not_pending, select_named_pods
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names
from fairlead.wire.jobs.volcano import WireVolcanoJob, parse_volcano_job

TYPE: Final = "volcanojob"
KIND: Final = "Job"
GROUP: Final = "batch.volcano.sh"
PLURAL: Final = "jobs"
VERSIONS: Final = ("v1alpha1",)
TITLE: Final = "VOLCANOJOB"
WORDS: Final = ("Volcano", "volcano")
WIRE: Final = WireVolcanoJob
POD_LABELS: Final = (names.LABEL_VOLCANO_JOB,)
OLDER_POD_LABELS: Final = ()


def parse(wire: WireVolcanoJob, version: str) -> Job:
    return parse_volcano_job(wire, TYPE, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    """The name of its task."""
    return pod.labels.get(names.LABEL_VOLCANO_TASK, "")


def is_member(pod: Pod, job: Job) -> bool:
    return is_named_member(pod, job, names.LABEL_VOLCANO_JOB)


def pods_of(job: Job, snapshot: ClusterSnapshot) -> list[Pod]:
    return select_named_pods(job, snapshot, names.LABEL_VOLCANO_JOB)


def pod_selectors(job: Job) -> tuple[str, ...]:
    return (f"{names.LABEL_VOLCANO_JOB}={job.name}",)


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    """The driver, which arena labels; of a job that somebody else wrote a pod of the first task."""
    drivers = [pod for pod in pods if pod.labels.get(names.LABEL_VOLCANO_ROLE) == "driver"]
    first = job.roles[0].name if job.roles else ""
    return newest_not_pending(drivers or [pod for pod in pods if role_of(pod) == first])
