"""MPIJob (mpi-operator): one launcher, which is the chief and holds no GPU, and N workers.

The launcher's pod belongs to a batch Job that the MPIJob owns, so its owner chain has one link more than a worker's.
"""

from __future__ import annotations

from typing import Final

from fairlead.kinds.kind import is_labelled_member, label_selectors, newest_not_pending, select_pods
from fairlead.model.job import Job
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names
from fairlead.wire.kubeflow import WireJob, parse_kubeflow_job

TYPE: Final = "mpijob"
KIND: Final = "MPIJob"
GROUP: Final = "kubeflow.org"
PLURAL: Final = "mpijobs"
VERSIONS: Final = ("v2beta1", "v1")
TITLE: Final = "MPIJOB"
WORDS: Final = ("MPI", "mpi")
WIRE: Final = WireJob
POD_LABELS: Final = (names.LABEL_JOB_NAME,)
_OPERATORS: Final = ("mpi-operator", "mpijob-controller")


def parse(wire: WireJob, version: str) -> Job:
    return parse_kubeflow_job(wire, TYPE, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    return pod.labels.get(names.LABEL_JOB_ROLE, "") or pod.labels.get(names.LABEL_REPLICA_TYPE, "")


def is_member(pod: Pod, job: Job) -> bool:
    return is_labelled_member(pod, job, _OPERATORS)


def pods_of(job: Job, snapshot: ClusterSnapshot) -> list[Pod]:
    return select_pods(job, snapshot, _OPERATORS)


def pod_selectors(job: Job) -> tuple[str, ...]:
    return label_selectors(job)


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    return newest_not_pending([pod for pod in pods if role_of(pod) == "launcher"])
