"""What elastic and DeepSpeed jobs have in common: both are TrainingJobs of et-operator, one launcher and N workers.

What a newcomer gets wrong: one list of objects has the jobs of both types, so whoever reads one of the two kinds is told of the other's.
"""

from __future__ import annotations

from typing import Final

from fairlead.kinds.parts.kind import newest_not_pending
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names
from fairlead.wire.jobs.elastic_training import WireTrainingJob, parse_training_job

TYPES: Final = ("etjob", "deepspeedjob")
KIND: Final = "TrainingJob"
GROUP: Final = "kai.alibabacloud.com"
PLURAL: Final = "trainingjobs"
VERSIONS: Final = ("v1alpha1",)
WIRE: Final = WireTrainingJob
POD_LABELS: Final = (names.LABEL_ELASTIC_JOB,)
OLDER_POD_LABELS: Final = ()


def parse(wire: WireTrainingJob, version: str) -> Job:
    return parse_training_job(wire, TYPES, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    return pod.labels.get(names.LABEL_ELASTIC_ROLE, "")


def is_member(pod: Pod, job: Job) -> bool:
    for owner in pod.owners:
        if owner.kind == KIND:
            return owner.uid == job.uid if job.uid else owner.name == job.name
    return pod.namespace == job.namespace and pod.labels.get(names.LABEL_ELASTIC_JOB) == job.name


def pods_of(job: Job, snapshot: ClusterSnapshot) -> list[Pod]:
    found = snapshot.pods_labelled(job.namespace, names.LABEL_ELASTIC_JOB, job.name) + snapshot.pods_owned_by(job.uid)
    members = {pod.key: pod for pod in found if is_member(pod, job)}
    return [members[key] for key in sorted(members)]


def pod_selectors(job: Job) -> tuple[str, ...]:
    return (f"{names.LABEL_ELASTIC_JOB}={job.name}",)


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    return newest_not_pending([pod for pod in pods if role_of(pod) == "launcher"])
