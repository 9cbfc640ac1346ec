"""Common parts of elastic and DeepSpeed jobs: TrainingJobs with one launcher and N workers.

Both types are in one list of objects, so reading one of the two kinds reads the other as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from fairlead.kinds.parts.job_parts import Part, job_manifest, pod_template
from fairlead.kinds.parts.kind import newest_not_pending
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names
from fairlead.wire.jobs.elastic_training import WireTrainingJob, parse_training_job

if TYPE_CHECKING:
    from fairlead.kinds.parts.job_spec import JobSpec
    from fairlead.model.actions import Manifest

TYPES: Final = ("etjob", "deepspeedjob")
KIND: Final = "TrainingJob"
GROUP: Final = "kai.alibabacloud.com"
PLURAL: Final = "trainingjobs"
VERSIONS: Final = ("v1alpha1",)
CREATED_VERSIONS: Final = ("v1alpha1",)
WIRE: Final = WireTrainingJob
POD_LABELS: Final = (names.LABEL_ELASTIC_JOB,)
OLDER_POD_LABELS: Final = ()


class SshKeys(Struct, frozen=True):
    """The job's own pair of ssh keys, in OpenSSH's format."""

    private: str
    public: str


class ElasticOptions(Struct, frozen=True, kw_only=True):
    """Options of a job whose launcher reaches its workers by ssh.

    `min_workers`, `max_workers` None: the number of workers is fixed. `restart`, `worker_restart`:
    restart policies, "" = the operator's default; `backoff`: how often the operator starts the job
    again. `keys`: None if an existing Secret (`ssh_secret`) has them.
    """

    min_workers: int | None = None
    max_workers: int | None = None
    restart: str = ""
    backoff: int = 6
    worker_restart: str = ""
    ssh_secret: str = ""
    keys: SshKeys | None = None


def parse(wire: WireTrainingJob, version: str) -> Job:
    return parse_training_job(wire, TYPES, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    return pod.labels.get(names.LABEL_ELASTIC_ROLE, "")


def is_member(pod: Pod, job: Job) -> bool:
    for owner in pod.owners:
        if owner.kind == KIND:
            return owner.uid == job.uid if job.uid else owner.name == job.name
    return pod.namespace == job.namespace and pod.labels.get(names.LABEL_ELASTIC_JOB) == job.name


def pods_of(job: Job, snapshot: ClusterSnapshot) -> list[Pod]:
    found = snapshot.pods_labelled(
        job.namespace, names.LABEL_ELASTIC_JOB, job.name
    ) + snapshot.pods_owned_by(job.uid)
    members = {pod.key: pod for pod in found if is_member(pod, job)}
    return [members[key] for key in sorted(members)]


def pod_selectors(job: Job) -> tuple[str, ...]:
    return (f"{names.LABEL_ELASTIC_JOB}={job.name}",)


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    return newest_not_pending([pod for pod in pods if role_of(pod) == "launcher"])


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
    body["etReplicaSpecs"] = {
        "launcher": _launcher(spec, type_, gpus),
        "worker": _worker(spec, options, type_, gpus),
    }
    job = job_manifest(spec, type_, KIND, f"{GROUP}/{version}", gpus, body)
    if options.ssh_secret:
        job["metadata"]["annotations"][names.ANNOTATION_SSH_SECRET] = options.ssh_secret
    return job


def _launcher(spec: JobSpec, type_: str, gpus: int) -> Manifest:
    role = replace(spec.launcher, replicas=1, resources=spec.worker.resources)
    labels = {"master-pod-name": f"{spec.name}-launcher"}
    part = Part(
        type=type_, container="et", role=role, has_gpus=False, gang_size=_pods(spec), labels=labels
    )
    return {"replicas": 1, "template": pod_template(spec, KIND, gpus, part)}


def _worker(spec: JobSpec, options: ElasticOptions, type_: str, gpus: int) -> Manifest:
    part = Part(
        type=type_, container="et", role=spec.worker, has_command=False, gang_size=_pods(spec)
    )
    bounds = {"minReplicas": options.min_workers, "maxReplicas": options.max_workers}
    return {
        **({"restartPolicy": options.worker_restart} if options.worker_restart else {}),
        "replicas": spec.worker.replicas,
        **{key: bound for key, bound in bounds.items() if bound is not None},
        "template": pod_template(spec, KIND, gpus, part),
    }


def _pods(spec: JobSpec) -> int:
    return 1 + spec.worker.replicas
