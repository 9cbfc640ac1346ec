"""RayJob (kuberay-operator): the head and workers of a Ray cluster of its own, and the pod that submits, which is the chief.

Its pods carry the name of the cluster, not of the job; the submitter belongs to a batch Job with the RayJob's name.
"""

from __future__ import annotations

from typing import Final

from fairlead.kinds.parts.kind import newest_not_pending
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names
from fairlead.wire.jobs.ray import WireRayJob, parse_ray_job

TYPE: Final = "rayjob"
KIND: Final = "RayJob"
GROUP: Final = "ray.io"
PLURAL: Final = "rayjobs"
VERSIONS: Final = ("v1",)
TITLE: Final = "RAYJOB"
WORDS: Final = ("RayJob", "rj")
WIRE: Final = WireRayJob
POD_LABELS: Final = (names.LABEL_RAY_CLUSTER, names.LABEL_BATCH_JOB)
OLDER_POD_LABELS: Final = ()
_SUBMITTER: Final = "submitter"


def parse(wire: WireRayJob, version: str) -> Job:
    return parse_ray_job(wire, TYPE, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    """`head`, the group's name of a worker, or `submitter`."""
    if pod.labels.get(names.LABEL_RAY_NODE_TYPE) == "worker":
        return pod.labels.get(names.LABEL_RAY_GROUP, "worker")
    return pod.labels.get(names.LABEL_RAY_NODE_TYPE, "") or _SUBMITTER


def is_member(pod: Pod, job: Job) -> bool:
    if pod.namespace != job.namespace:
        return False
    cluster = job.labels.get(names.LABEL_RAY_CLUSTER)
    if cluster and pod.labels.get(names.LABEL_RAY_CLUSTER) == cluster:
        return True
    return any(owner.kind == "Job" and owner.name == job.name for owner in pod.owners)


def pods_of(job: Job, snapshot: ClusterSnapshot) -> list[Pod]:
    cluster = job.labels.get(names.LABEL_RAY_CLUSTER, "")
    candidates = snapshot.pods_labelled(job.namespace, names.LABEL_RAY_CLUSTER, cluster) if cluster else []
    candidates = candidates + snapshot.pods_labelled(job.namespace, names.LABEL_BATCH_JOB, job.name)
    members = {pod.key: pod for pod in candidates if is_member(pod, job)}
    return [members[key] for key in sorted(members)]


def pod_selectors(job: Job) -> tuple[str, ...]:
    cluster = job.labels.get(names.LABEL_RAY_CLUSTER, "")
    return (*((f"{names.LABEL_RAY_CLUSTER}={cluster}",) if cluster else ()), f"{names.LABEL_BATCH_JOB}={job.name}")


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    submitters = [pod for pod in pods if role_of(pod) == _SUBMITTER]
    return newest_not_pending(submitters or [pod for pod in pods if role_of(pod) == "head"])
