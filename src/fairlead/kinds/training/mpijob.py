"""MPIJob (mpi-operator): one launcher, which is the chief and has no GPU, and N workers.

The launcher runs the command; the workers have none, and the operator starts sshd in them. The
launcher's pod belongs to a batch Job that the MPIJob owns, so its chain of owners is one longer
than a worker's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from fairlead.kinds.parts.job_parts import Part, job_manifest, pod_template, replica, run_policy
from fairlead.kinds.parts.kind import LabelledPods, first_label, newest_not_pending
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.wire import names
from fairlead.wire.jobs.kubeflow import WireJob, parse_kubeflow_job, parse_oldest_mpi_job

if TYPE_CHECKING:
    from collections.abc import Collection

    from fairlead.kinds.parts.job_spec import JobSpec
    from fairlead.model.actions import Manifest

TYPE: Final = "mpijob"
KIND: Final = "MPIJob"
GROUP: Final = "kubeflow.org"
PLURAL: Final = "mpijobs"
VERSIONS: Final = ("v2beta1", "v1", "v1alpha2", "v1alpha1")
CREATED_VERSIONS: Final = ("v2beta1", "v1", "v1alpha1")
READS_SCHEMA: Final = False
TITLE: Final = "MPIJOB"
WORDS: Final = ("MPI", "mpi")
WIRE: Final = WireJob
POD_LABELS: Final = (names.LABEL_JOB_NAME,)
OLDER_POD_LABELS: Final = (names.LABEL_EARLY_MPI_JOB, names.LABEL_OLD_MPI_JOB)
_PODS: Final = LabelledPods(("mpi-operator", "mpijob-controller"), OLDER_POD_LABELS)
_CLEAN_POLICY: Final = "All"
_GROUP_NAME: Final = {"group_name": GROUP}  # arena 0.15 finds the pods of MPIJobs by this label


def parse(wire: WireJob, version: str) -> Job:
    parse_version = parse_oldest_mpi_job if version == "v1alpha1" else parse_kubeflow_job
    return parse_version(wire, TYPE, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    return first_label(
        pod,
        names.LABEL_JOB_ROLE,
        names.LABEL_REPLICA_TYPE,
        names.LABEL_EARLY_MPI_ROLE,
        names.LABEL_OLD_MPI_ROLE,
    )


is_member = _PODS.is_member
pods_of = _PODS.pods_of
pod_selectors = _PODS.selectors


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    return newest_not_pending([pod for pod in pods if role_of(pod) == "launcher"])


def requested_gpus(spec: JobSpec) -> int:
    return spec.worker.replicas * spec.worker.gpus


def chief_labels(spec: JobSpec) -> dict[str, str]:
    return {names.LABEL_JOB_NAME: spec.name, names.LABEL_JOB_ROLE: "launcher"}


def manifest(spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest:
    gpus = requested_gpus(spec)
    body = _v1alpha1(spec, gpus) if version == "v1alpha1" else _replicas(spec, gpus)
    return job_manifest(spec, TYPE, KIND, f"{GROUP}/{version}", gpus, body)


def _replicas(spec: JobSpec, gpus: int) -> Manifest:
    launcher = Part(
        type=TYPE,
        container="mpi",
        role=replace(spec.launcher, replicas=1, resources=spec.worker.resources),
        has_gpus=False,
        has_data=spec.mounts_on_launcher,
        is_in_gang=False,
        labels=_GROUP_NAME,
    )
    worker = Part(
        type=TYPE,
        container="mpi",
        role=spec.worker,
        has_command=False,
        gang_size=spec.worker.replicas,
        labels=_worker_labels(spec),
    )
    return {
        "slotsPerWorker": max(1, spec.worker.gpus),
        "runPolicy": run_policy(spec, _CLEAN_POLICY, has_retry=True),
        "mpiReplicaSpecs": {
            "Launcher": replica(spec, KIND, gpus, 1, "Never", launcher),
            "Worker": replica(spec, KIND, gpus, spec.worker.replicas, "Never", worker),
        },
    }


def _v1alpha1(spec: JobSpec, gpus: int) -> Manifest:
    """The oldest version: one template for both roles; the operator removes the GPUs from the
    launcher and the command from the workers.
    """
    both = Part(
        type=TYPE,
        container="mpi",
        role=spec.worker,
        gang_size=spec.worker.replicas,
        labels=_worker_labels(spec),
    )
    policy = run_policy(spec, _CLEAN_POLICY, has_retry=True)
    return {
        "replicas": spec.worker.replicas,
        "cleanPodPolicy": policy["cleanPodPolicy"],
        "backoffLimit": spec.retry,
        **(
            {"activeDeadlineSeconds": spec.running_seconds}
            if spec.running_seconds is not None
            else {}
        ),
        "mountsOnLauncher": spec.mounts_on_launcher,
        "template": pod_template(spec, KIND, gpus, both),
    }


def _worker_labels(spec: JobSpec) -> dict[str, str]:
    if not spec.has_gpu_topology:
        return _GROUP_NAME
    return {
        **_GROUP_NAME,
        "gpu-topology": spec.name,
        "gpu-topology-replica": str(spec.worker.replicas),
    }
