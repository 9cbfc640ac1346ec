"""PyTorchJob (training-operator): one master, the chief, which also trains, and N-1 workers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.kinds.parts.job_parts import Part, has_field, job_manifest, replica, run_policy
from fairlead.kinds.parts.kind import LabelledPods, first_label, newest_not_pending
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.wire import names
from fairlead.wire.jobs.kubeflow import WireJob, parse_kubeflow_job

if TYPE_CHECKING:
    from collections.abc import Collection

    from fairlead.kinds.parts.job_spec import JobSpec
    from fairlead.model.actions import Manifest

TYPE: Final = "pytorchjob"
KIND: Final = "PyTorchJob"
GROUP: Final = "kubeflow.org"
PLURAL: Final = "pytorchjobs"
VERSIONS: Final = ("v1",)
CREATED_VERSIONS: Final = ("v1",)
READS_SCHEMA: Final = True
TITLE: Final = "PYTORCHJOB"
WORDS: Final = ("Pytorch", "py")
WIRE: Final = WireJob
POD_LABELS: Final = (names.LABEL_JOB_NAME,)
OLDER_POD_LABELS: Final = (names.LABEL_OLD_PYTORCH_JOB,)
_PODS: Final = LabelledPods(("pytorchjob-controller",), OLDER_POD_LABELS)
_CLEAN_POLICY: Final = "Running"


def parse(wire: WireJob, version: str) -> Job:
    return parse_kubeflow_job(wire, TYPE, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    return first_label(pod, names.LABEL_REPLICA_TYPE, names.LABEL_OLD_PYTORCH_ROLE)


is_member = _PODS.is_member
pods_of = _PODS.pods_of
pod_selectors = _PODS.selectors


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    return newest_not_pending([pod for pod in pods if role_of(pod) == "master"])


def requested_gpus(spec: JobSpec) -> int:
    return spec.worker.replicas * spec.worker.gpus


def chief_labels(spec: JobSpec) -> dict[str, str]:
    return {names.LABEL_JOB_NAME: spec.name, names.LABEL_REPLICA_TYPE: "master"}


def manifest(spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest:
    """If the served schema has no `runPolicy`, its fields are in `spec` itself."""
    gpus = requested_gpus(spec)
    roles = {"Master": _role(spec, gpus, "Master", 1, "Never")}
    if spec.worker.replicas > 1:
        roles["Worker"] = _role(spec, gpus, "Worker", spec.worker.replicas - 1, "OnFailure")
    policy = run_policy(spec, _CLEAN_POLICY, has_retry=True)
    body: Manifest = {"runPolicy": policy} if has_field(spec_fields, "runPolicy") else policy
    if spec.nproc_per_node and has_field(spec_fields, "nprocPerNode"):
        body["nprocPerNode"] = spec.nproc_per_node
    return job_manifest(
        spec, TYPE, KIND, f"{GROUP}/{version}", gpus, {**body, "pytorchReplicaSpecs": roles}
    )


def _role(spec: JobSpec, gpus: int, title: str, replicas: int, restart: str) -> Manifest:
    env = {}
    if spec.has_rdma:
        env["MASTER_ADDR"] = f"{spec.name}-master-0"
    if spec.nproc_per_node:
        env["PET_NPROC_PER_NODE"] = spec.nproc_per_node
    labels = {"master-pod-name": f"{spec.name}-master-0"} if title == "Master" else {}
    part = Part(
        type=TYPE,
        container="pytorch",
        role=spec.worker,
        title=title.lower(),
        gang_size=spec.worker.replicas,
        env=env,
        labels=labels,
    )
    return replica(spec, KIND, gpus, replicas, restart, part)
