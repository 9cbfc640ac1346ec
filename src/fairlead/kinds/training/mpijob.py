"""MPIJob (mpi-operator): one launcher, which is the chief and holds no GPU, and N workers.

The launcher's pod belongs to a batch Job that the MPIJob owns, so its owner chain has one link more than a worker's.
"""

from __future__ import annotations

from typing import Final

from fairlead.kinds.parts.kind import first_label, is_labelled_member, label_selectors, newest_not_pending, select_pods
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names
from fairlead.wire.jobs.kubeflow import WireJob, parse_kubeflow_job, parse_oldest_mpi_job

TYPE: Final = "mpijob"
KIND: Final = "MPIJob"
GROUP: Final = "kubeflow.org"
PLURAL: Final = "mpijobs"
VERSIONS: Final = ("v2beta1", "v1", "v1alpha2", "v1alpha1")
TITLE: Final = "MPIJOB"
WORDS: Final = ("MPI", "mpi")
WIRE: Final = WireJob
POD_LABELS: Final = (names.LABEL_JOB_NAME,)
OLDER_POD_LABELS: Final = (names.LABEL_EARLY_MPI_JOB, names.LABEL_OLD_MPI_JOB)
_OPERATORS: Final = ("mpi-operator", "mpijob-controller")


def parse(wire: WireJob, version: str) -> Job:
    parse_version = parse_oldest_mpi_job if version == "v1alpha1" else parse_kubeflow_job
    return parse_version(wire, TYPE, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    return first_label(pod, names.LABEL_JOB_ROLE, names.LABEL_REPLICA_TYPE, names.LABEL_EARLY_MPI_ROLE, names.LABEL_OLD_MPI_ROLE)


def is_member(pod: Pod, job: Job) -> bool:
    return is_labelled_member(pod, job, _OPERATORS, OLDER_POD_LABELS)


def pods_of(job: Job, snapshot: ClusterSnapshot) -> list[Pod]:
    return select_pods(job, snapshot, _OPERATORS, OLDER_POD_LABELS)


def pod_selectors(job: Job) -> tuple[str, ...]:
    return label_selectors(job)


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    return newest_not_pending([pod for pod in pods if role_of(pod) == "launcher"])
