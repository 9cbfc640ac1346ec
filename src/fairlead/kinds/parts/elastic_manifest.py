"""How is a TrainingJob written? A launcher with the command and no GPU, and workers, where the operator starts sshd."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from fairlead.kinds.parts.elastic_training import GROUP, KIND
from fairlead.kinds.parts.job_parts import Manifest, Part, job_manifest, pod_template
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.parts.kind_options import ElasticOptions
from fairlead.wire import names

CREATED_VERSIONS: Final = ("v1alpha1",)


def requested_gpus(spec: JobSpec) -> int:
    return spec.worker.replicas * spec.worker.gpus


def chief_labels(spec: JobSpec) -> dict[str, str]:
    return {names.LABEL_ELASTIC_JOB: spec.name, names.LABEL_ELASTIC_ROLE: "launcher"}


def training_job(spec: JobSpec, type_: str, version: str) -> Manifest:
    options = spec.options if isinstance(spec.options, ElasticOptions) else ElasticOptions()
    gpus = requested_gpus(spec)
    body: Manifest = {"backoffLimit": options.backoff}
    if options.restart:
        body["restartPolicy"] = options.restart
    if spec.clean_policy:
        body["cleanPodPolicy"] = spec.clean_policy
    body["etReplicaSpecs"] = {"launcher": _launcher(spec, type_, gpus), "worker": _worker(spec, options, type_, gpus)}
    job = job_manifest(spec, type_, KIND, f"{GROUP}/{version}", gpus, body)
    if options.ssh_secret:
        job["metadata"]["annotations"][names.ANNOTATION_SSH_SECRET] = options.ssh_secret
    return job


def _launcher(spec: JobSpec, type_: str, gpus: int) -> Manifest:
    role = replace(spec.launcher, replicas=1, resources=spec.worker.resources)
    labels = {"master-pod-name": f"{spec.name}-launcher"}
    part = Part(type=type_, container="et", role=role, has_gpus=False, gang_size=_pods(spec), labels=labels)
    return {"replicas": 1, "template": pod_template(spec, KIND, gpus, part)}


def _worker(spec: JobSpec, options: ElasticOptions, type_: str, gpus: int) -> Manifest:
    part = Part(type=type_, container="et", role=spec.worker, has_command=False, gang_size=_pods(spec))
    bounds = {"minReplicas": options.min_workers, "maxReplicas": options.max_workers}
    return {
        **({"restartPolicy": options.worker_restart} if options.worker_restart else {}),
        "replicas": spec.worker.replicas,
        **{key: bound for key, bound in bounds.items() if bound is not None},
        "template": pod_template(spec, KIND, gpus, part),
    }


def _pods(spec: JobSpec) -> int:
    return 1 + spec.worker.replicas
