"""TFJob (training-operator): chief, workers, parameter servers, evaluator. The chief is the chief role, else worker 0."""

from __future__ import annotations

from typing import Final

from fairlead.kinds.parts.kind import first_label, is_labelled_member, label_selectors, newest_not_pending, select_pods
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names
from fairlead.wire.jobs.kubeflow import WireJob, parse_kubeflow_job

TYPE: Final = "tfjob"
KIND: Final = "TFJob"
GROUP: Final = "kubeflow.org"
PLURAL: Final = "tfjobs"
VERSIONS: Final = ("v1",)
TITLE: Final = "TFJOB"
WORDS: Final = ("Tensorflow", "tf")
WIRE: Final = WireJob
POD_LABELS: Final = (names.LABEL_JOB_NAME,)
OLDER_POD_LABELS: Final = (names.LABEL_OLD_TF_JOB,)
_OPERATORS: Final = ("tfjob-controller",)


def parse(wire: WireJob, version: str) -> Job:
    return parse_kubeflow_job(wire, TYPE, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    return first_label(pod, names.LABEL_REPLICA_TYPE, names.LABEL_OLD_TF_ROLE)


def is_member(pod: Pod, job: Job) -> bool:
    return is_labelled_member(pod, job, _OPERATORS, OLDER_POD_LABELS)


def pods_of(job: Job, snapshot: ClusterSnapshot) -> list[Pod]:
    return select_pods(job, snapshot, _OPERATORS, OLDER_POD_LABELS)


def pod_selectors(job: Job) -> tuple[str, ...]:
    return label_selectors(job)


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    chiefs = [pod for pod in pods if role_of(pod) in ("chief", "master") or pod.labels.get(names.LABEL_JOB_ROLE) == "master"]
    workers = [
        pod for pod in pods if role_of(pod) == "worker" and first_label(pod, names.LABEL_REPLICA_INDEX, names.LABEL_OLD_TF_INDEX) == "0"
    ]
    return newest_not_pending(chiefs or workers)
