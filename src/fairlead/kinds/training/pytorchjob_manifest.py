"""How is a PyTorchJob written? `--workers N` are N processes: one master, which trains as well, and N-1 workers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from fairlead.kinds.parts.job_parts import Manifest, Part, has_field, job_manifest, replica, run_policy
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.training.pytorchjob import GROUP, KIND, TYPE
from fairlead.wire import names

CREATED_VERSIONS: Final = ("v1",)
READS_SCHEMA: Final = True
DEFAULT_CLEAN_POLICY: Final = "Running"


def requested_gpus(spec: JobSpec) -> int:
    return spec.worker.replicas * spec.worker.gpus


def chief_labels(spec: JobSpec) -> dict[str, str]:
    return {names.LABEL_JOB_NAME: spec.name, names.LABEL_REPLICA_TYPE: "master"}


def manifest(spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest:
    """`spec_fields`: what the served schema has in `spec` (None: nobody knows). Without `runPolicy` its fields stand in `spec` itself."""
    gpus = requested_gpus(spec)
    roles = {"Master": _role(spec, gpus, "Master", 1, "Never")}
    if spec.worker.replicas > 1:
        roles["Worker"] = _role(spec, gpus, "Worker", spec.worker.replicas - 1, "OnFailure")
    policy = run_policy(spec, DEFAULT_CLEAN_POLICY, has_retry=True)
    body: Manifest = {"runPolicy": policy} if has_field(spec_fields, "runPolicy") else policy
    if spec.nproc_per_node and has_field(spec_fields, "nprocPerNode"):
        body["nprocPerNode"] = spec.nproc_per_node
    return job_manifest(spec, TYPE, KIND, f"{GROUP}/{version}", gpus, {**body, "pytorchReplicaSpecs": roles})


def _role(spec: JobSpec, gpus: int, title: str, replicas: int, restart: str) -> Manifest:
    env = {}
    if spec.has_rdma:
        env["MASTER_ADDR"] = f"{spec.name}-master-0"
    if spec.nproc_per_node:
        env["PET_NPROC_PER_NODE"] = spec.nproc_per_node
    labels = {"master-pod-name": f"{spec.name}-master-0"} if title == "Master" else {}
    part = Part(
        type=TYPE, container="pytorch", role=spec.worker, title=title.lower(), gang_size=spec.worker.replicas, env=env, labels=labels
    )
    return replica(spec, KIND, gpus, replicas, restart, part)
