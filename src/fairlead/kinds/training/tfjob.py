"""TFJob (training-operator): chief, workers, parameter servers, evaluator.

Each has its own resources.

The chief is the chief role, else worker 0. A single worker without parameter server is no
distributed job: it is written as the chief, with an annotation by which the operator leaves
TF_CONFIG out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from fairlead.kinds.parts.job_parts import (
    Part,
    has_field,
    job_manifest,
    replica,
    run_policy,
    uses_host_network,
)
from fairlead.kinds.parts.job_volumes import md5
from fairlead.kinds.parts.kind import LabelledPods, first_label, newest_not_pending
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.wire import names
from fairlead.wire.jobs.kubeflow import WireJob, parse_kubeflow_job

if TYPE_CHECKING:
    from collections.abc import Collection

    from fairlead.kinds.parts.job_spec import JobSpec, RoleSpec
    from fairlead.model.actions import Manifest

TYPE: Final = "tfjob"
KIND: Final = "TFJob"
GROUP: Final = "kubeflow.org"
PLURAL: Final = "tfjobs"
VERSIONS: Final = ("v1",)
CREATED_VERSIONS: Final = ("v1",)
READS_SCHEMA: Final = True
TITLE: Final = "TFJOB"
WORDS: Final = ("Tensorflow", "tf")
WIRE: Final = WireJob
POD_LABELS: Final = (names.LABEL_JOB_NAME,)
OLDER_POD_LABELS: Final = (names.LABEL_OLD_TF_JOB,)
_PODS: Final = LabelledPods(("tfjob-controller",), OLDER_POD_LABELS)
_CLEAN_POLICY: Final = "Running"
_PORT: Final = 2222


def parse(wire: WireJob, version: str) -> Job:
    return parse_kubeflow_job(wire, TYPE, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    return first_label(pod, names.LABEL_REPLICA_TYPE, names.LABEL_OLD_TF_ROLE)


is_member = _PODS.is_member
pods_of = _PODS.pods_of
pod_selectors = _PODS.selectors


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    chiefs = [
        pod
        for pod in pods
        if role_of(pod) in ("chief", "master") or pod.labels.get(names.LABEL_JOB_ROLE) == "master"
    ]
    workers = [
        pod
        for pod in pods
        if role_of(pod) == "worker"
        and first_label(pod, names.LABEL_REPLICA_INDEX, names.LABEL_OLD_TF_INDEX) == "0"
    ]
    return newest_not_pending(chiefs or workers)


def roles_of(spec: JobSpec) -> dict[str, RoleSpec]:
    """The roles that have pods, by their names in the API."""
    if _is_alone(spec):
        alone = spec.worker
        resources = {**alone.resources, **spec.chief.resources}
        limits = {**alone.limits, **spec.chief.limits}
        chief = msgspec.structs.replace(
            alone,
            resources=resources,
            limits=limits,
            port=spec.chief.port or alone.port,
            selector=spec.chief.selector or alone.selector,
        )
        return {"Chief": chief, **_present(Evaluator=spec.evaluator)}
    return _present(PS=spec.ps, Worker=spec.worker, Chief=spec.chief, Evaluator=spec.evaluator)


def requested_gpus(spec: JobSpec) -> int:
    return sum(role.replicas * role.gpus for role in roles_of(spec).values())


def chief_labels(spec: JobSpec) -> dict[str, str]:
    found = {names.LABEL_JOB_NAME: spec.name}
    if "Chief" in roles_of(spec):
        return {**found, names.LABEL_REPLICA_TYPE: "chief"}
    return {**found, names.LABEL_REPLICA_TYPE: "worker", names.LABEL_REPLICA_INDEX: "0"}


def manifest(spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest:
    """If the served schema has no `runPolicy`, its fields are in `spec` itself."""
    gpus, roles = requested_gpus(spec), roles_of(spec)
    policy = run_policy(spec, _CLEAN_POLICY, has_retry=spec.retry > 0)
    body: Manifest = {"runPolicy": policy} if has_field(spec_fields, "runPolicy") else policy
    if spec.starting_seconds is not None and has_field(spec_fields, "startingDeadlineSeconds"):
        body["startingDeadlineSeconds"] = spec.starting_seconds
    if spec.success_policy == "AllWorkers":
        body["successPolicy"] = "AllWorkers"
    size = sum(role.replicas for role in roles.values())
    body["tfReplicaSpecs"] = {
        title: _role(spec, gpus, title, role, size, has_chief="Chief" in roles)
        for title, role in roles.items()
    }
    job = job_manifest(spec, TYPE, KIND, f"{GROUP}/{version}", gpus, body)
    annotations = job["metadata"]["annotations"]
    if _is_alone(spec):
        annotations["arena.kubeflow.org/disable-tf-config"] = "true"
    if spec.role_sequence:
        annotations["job-role-sequence"] = spec.role_sequence
    return job


def _is_alone(spec: JobSpec) -> bool:
    return spec.worker.replicas == 1 and not spec.ps.replicas and not spec.chief.replicas


def _present(**roles: RoleSpec) -> dict[str, RoleSpec]:
    return {title: role for title, role in roles.items() if role.replicas}


def _role(
    spec: JobSpec, gpus: int, title: str, role: RoleSpec, size: int, *, has_chief: bool
) -> Manifest:
    part = Part(
        type=TYPE,
        container="tensorflow",
        role=role,
        title=title.lower(),
        has_gpus=title != "PS" or role.gpus > 0,
        gang_size=size,
        port=role.port or _port(spec, title),
    )
    restart = "OnFailure" if title == "Worker" and has_chief else "Never"
    return replica(spec, KIND, gpus, role.replicas, restart, part)


def _port(spec: JobSpec, title: str) -> int:
    """The port; on the node's network a number computed from the job, so that two jobs hardly
    ever collide and the cluster need not be asked for used ports.
    """
    if not uses_host_network(spec):
        return _PORT
    return 20000 + int(md5(f"{spec.namespace}/{spec.name}/{title.lower()}")[:8], 16) % 10000
