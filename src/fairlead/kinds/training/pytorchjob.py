"""PyTorchJob (training-operator): one master, which is the chief, and N-1 workers."""

from __future__ import annotations

from typing import Final

from fairlead.kinds.parts.kind import first_label, is_labelled_member, label_selectors, newest_not_pending, select_pods
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names
from fairlead.wire.jobs.kubeflow import WireJob, parse_kubeflow_job

TYPE: Final = "pytorchjob"
KIND: Final = "PyTorchJob"
GROUP: Final = "kubeflow.org"
PLURAL: Final = "pytorchjobs"
VERSIONS: Final = ("v1",)
TITLE: Final = "PYTORCHJOB"
WORDS: Final = ("Pytorch", "py")
WIRE: Final = WireJob
POD_LABELS: Final = (names.LABEL_JOB_NAME,)
OLDER_POD_LABELS: Final = (names.LABEL_OLD_PYTORCH_JOB,)
_OPERATORS: Final = ("pytorchjob-controller",)


def parse(wire: WireJob, version: str) -> Job:
    return parse_kubeflow_job(wire, TYPE, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    return first_label(pod, names.LABEL_REPLICA_TYPE, names.LABEL_OLD_PYTORCH_ROLE)


def is_member(pod: Pod, job: Job) -> bool:
    return is_labelled_member(pod, job, _OPERATORS, OLDER_POD_LABELS)


def pods_of(job: Job, snapshot: ClusterSnapshot) -> list[Pod]:
    return select_pods(job, snapshot, _OPERATORS, OLDER_POD_LABELS)


def pod_selectors(job: Job) -> tuple[str, ...]:
    return label_selectors(job)


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    return newest_not_pending([pod for pod in pods if role_of(pod) == "master"])
