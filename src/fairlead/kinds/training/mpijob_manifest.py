"""How is an MPIJob written? One launcher with the command and no GPU, N workers without a command: the operator starts sshd there."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from msgspec.structs import replace

from fairlead.kinds.parts.job_parts import Manifest, Part, job_manifest, pod_template, replica, run_policy
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.training.mpijob import GROUP, KIND, TYPE
from fairlead.wire import names

CREATED_VERSIONS: Final = ("v2beta1", "v1", "v1alpha1")
READS_SCHEMA: Final = False
DEFAULT_CLEAN_POLICY: Final = "All"
_GROUP_NAME: Final = {"group_name": GROUP}  # arena 0.15 finds the pods of MPIJobs by it


def requested_gpus(spec: JobSpec) -> int:
    return spec.worker.replicas * spec.worker.gpus


def chief_labels(spec: JobSpec) -> dict[str, str]:
    return {names.LABEL_JOB_NAME: spec.name, names.LABEL_JOB_ROLE: "launcher"}


def manifest(spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest:
    """`spec_fields` matters to the other kinds: each version of this one is known."""
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
        type=TYPE, container="mpi", role=spec.worker, has_command=False, gang_size=spec.worker.replicas, labels=_worker_labels(spec)
    )
    return {
        "slotsPerWorker": max(1, spec.worker.gpus),
        "runPolicy": run_policy(spec, DEFAULT_CLEAN_POLICY, has_retry=True),
        "mpiReplicaSpecs": {
            "Launcher": replica(spec, KIND, gpus, 1, "Never", launcher),
            "Worker": replica(spec, KIND, gpus, spec.worker.replicas, "Never", worker),
        },
    }


def _v1alpha1(spec: JobSpec, gpus: int) -> Manifest:
    """The oldest form has one template for both roles; its operator takes the GPUs off the launcher and the command off the workers."""
    both = Part(type=TYPE, container="mpi", role=spec.worker, gang_size=spec.worker.replicas, labels=_worker_labels(spec))
    policy = run_policy(spec, DEFAULT_CLEAN_POLICY, has_retry=True)
    return {
        "replicas": spec.worker.replicas,
        "cleanPodPolicy": policy["cleanPodPolicy"],
        "backoffLimit": spec.retry,
        **({"activeDeadlineSeconds": spec.running_seconds} if spec.running_seconds is not None else {}),
        "mountsOnLauncher": spec.mounts_on_launcher,
        "template": pod_template(spec, KIND, gpus, both),
    }


def _worker_labels(spec: JobSpec) -> dict[str, str]:
    if not spec.has_gpu_topology:
        return _GROUP_NAME
    return {**_GROUP_NAME, "gpu-topology": spec.name, "gpu-topology-replica": str(spec.worker.replicas)}
