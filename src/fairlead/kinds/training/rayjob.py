"""RayJob (kuberay-operator): head and workers of its own Ray cluster, and the submitting pod.

The submitting pod is the chief.

Its pods have the name of the Ray cluster as a label, not the job's; the submitter belongs to a
batch Job with the RayJob's name. No container has the command: it is the `entrypoint`, which the
submitter passes to the head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from fairlead.kinds.parts.job_parts import Part, job_manifest, pod_template
from fairlead.kinds.parts.kind import newest_not_pending
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.wire import names
from fairlead.wire.jobs.ray import WireRayJob, parse_ray_job

if TYPE_CHECKING:
    from collections.abc import Collection

    from fairlead.kinds.parts.job_spec import JobSpec
    from fairlead.model.actions import Manifest

TYPE: Final = "rayjob"
KIND: Final = "RayJob"
GROUP: Final = "ray.io"
PLURAL: Final = "rayjobs"
VERSIONS: Final = ("v1",)
CREATED_VERSIONS: Final = ("v1",)
READS_SCHEMA: Final = False
TITLE: Final = "RAYJOB"
WORDS: Final = ("RayJob", "rj")
WIRE: Final = WireRayJob
POD_LABELS: Final = (names.LABEL_RAY_CLUSTER, names.LABEL_BATCH_JOB)
OLDER_POD_LABELS: Final = ()
_SUBMITTER: Final = "submitter"
_WORKER_GROUP: Final = "default-group"
_INT_MAX: Final = 2**31 - 1
_PORTS: Final = (("gcs-server", 6379), ("dashboard", 8265), ("client", 10001))


class RayAutoscaler(Struct, frozen=True, kw_only=True):
    """The container beside the head that adds and removes workers.

    An empty `image` means Ray's own.
    """

    cpu: str = "500m"
    memory: str = "512Mi"
    image: str = ""
    pull_policy: str = "IfNotPresent"
    idle_seconds: int = 60
    mode: str = "Default"


class RayOptions(Struct, frozen=True, kw_only=True):
    """A Ray cluster for one program.

    `hosts`: pods of each worker; a bound of None leaves the autoscaler's bound to the operator.
    `is_shut_down`: whether the cluster is deleted `JobSpec.ttl_seconds` after the program has
    ended.
    """

    version: str = ""
    head_service: str = "ClusterIP"
    min_workers: int = 0
    max_workers: int | None = None
    hosts: int = 1
    autoscaler: RayAutoscaler | None = None
    pre_stop: str = "ray stop"
    is_shut_down: bool = True
    is_suspended: bool = False


def parse(wire: WireRayJob, version: str) -> Job:
    return parse_ray_job(wire, TYPE, KIND, f"{GROUP}/{version}")


def role_of(pod: Pod) -> str:
    """`head`, a worker's group name, or `submitter`."""
    if pod.labels.get(names.LABEL_RAY_NODE_TYPE) == "worker":
        return pod.labels.get(names.LABEL_RAY_GROUP, "worker")
    return pod.labels.get(names.LABEL_RAY_NODE_TYPE, "") or _SUBMITTER


def is_member(pod: Pod, job: Job) -> bool:
    if pod.namespace != job.namespace:
        return False
    cluster = job.labels.get(names.LABEL_RAY_CLUSTER)
    if cluster and pod.labels.get(names.LABEL_RAY_CLUSTER) == cluster:
        return True
    return any(owner.kind == "Job" and owner.name == job.name for owner in pod.owners)


def pods_of(job: Job, snapshot: ClusterSnapshot) -> list[Pod]:
    cluster = job.labels.get(names.LABEL_RAY_CLUSTER, "")
    candidates = (
        snapshot.pods_labelled(job.namespace, names.LABEL_RAY_CLUSTER, cluster) if cluster else []
    )
    candidates = candidates + snapshot.pods_labelled(job.namespace, names.LABEL_BATCH_JOB, job.name)
    members = {pod.key: pod for pod in candidates if is_member(pod, job)}
    return [members[key] for key in sorted(members)]


def pod_selectors(job: Job) -> tuple[str, ...]:
    cluster = job.labels.get(names.LABEL_RAY_CLUSTER, "")
    return (
        *((f"{names.LABEL_RAY_CLUSTER}={cluster}",) if cluster else ()),
        f"{names.LABEL_BATCH_JOB}={job.name}",
    )


def chief_of(job: Job, pods: list[Pod]) -> Pod | None:
    submitters = [pod for pod in pods if role_of(pod) == _SUBMITTER]
    return newest_not_pending(submitters or [pod for pod in pods if role_of(pod) == "head"])


def requested_gpus(spec: JobSpec) -> int:
    return spec.chief.gpus + spec.worker.replicas * _options(spec).hosts * spec.worker.gpus


def chief_labels(spec: JobSpec) -> dict[str, str]:
    """Labels of the head, where the program runs and writes logs.

    The submitter only waits for it.
    """
    return {"app": TYPE, "release": spec.name, names.LABEL_RAY_NODE_TYPE: "head"}


def manifest(spec: JobSpec, version: str, spec_fields: Collection[str] | None = None) -> Manifest:
    options, gpus = _options(spec), requested_gpus(spec)
    body: Manifest = {"entrypoint": spec.command, "shutdownAfterJobFinishes": options.is_shut_down}
    if options.is_shut_down and spec.ttl_seconds:
        body["ttlSecondsAfterFinished"] = spec.ttl_seconds
    if spec.running_seconds:
        body["activeDeadlineSeconds"] = spec.running_seconds
    if spec.retry:
        body["backoffLimit"] = spec.retry
    if options.is_suspended:
        body["suspend"] = True
    body["rayClusterSpec"] = _cluster(spec, options, gpus)
    return job_manifest(spec, TYPE, KIND, f"{GROUP}/{version}", gpus, body)


def _options(spec: JobSpec) -> RayOptions:
    return spec.options if isinstance(spec.options, RayOptions) else RayOptions()


def _cluster(spec: JobSpec, options: RayOptions, gpus: int) -> Manifest:
    cluster: Manifest = {"rayVersion": options.version} if options.version else {}
    if options.autoscaler is not None:
        cluster |= {
            "enableInTreeAutoscaling": True,
            "autoscalerOptions": _autoscaler(options.autoscaler),
        }
    size = _pods(spec, options)
    head = Part(
        type=TYPE,
        container="ray-head",
        role=spec.chief,
        has_command=False,
        has_gpus=spec.chief.gpus > 0,
        has_counts=False,
        gang_size=size,
    )
    worker = Part(
        type=TYPE,
        container="ray-worker",
        role=spec.worker,
        has_command=False,
        has_counts=False,
        gang_size=size,
    )
    head_template = _template(spec, gpus, head, options, "Never")
    head_template["spec"]["containers"][0]["ports"] = [
        {"name": name, "containerPort": port} for name, port in _PORTS
    ]
    group = {
        "groupName": _WORKER_GROUP,
        "replicas": spec.worker.replicas,
        "minReplicas": options.min_workers,
        "maxReplicas": _INT_MAX if options.max_workers is None else options.max_workers,
        "numOfHosts": options.hosts,
        "rayStartParams": {},
        "template": _template(spec, gpus, worker, options, "OnFailure"),
    }
    start = {"dashboard-host": "0.0.0.0"}
    return {
        **cluster,
        "headGroupSpec": {
            "serviceType": options.head_service,
            "rayStartParams": start,
            "template": head_template,
        },
        "workerGroupSpecs": [group],
    }


def _template(spec: JobSpec, gpus: int, part: Part, options: RayOptions, restart: str) -> Manifest:
    """A pod template with its own restart policy: the operator uses pod specs unchanged."""
    template = pod_template(spec, KIND, gpus, part)
    template["spec"]["restartPolicy"] = spec.restart or restart
    if options.pre_stop:
        stop = {"exec": {"command": ["/bin/sh", "-c", options.pre_stop]}}
        template["spec"]["containers"][0]["lifecycle"] = {"preStop": stop}
    return template


def _pods(spec: JobSpec, options: RayOptions) -> int:
    return 1 + spec.worker.replicas * options.hosts


def _autoscaler(options: RayAutoscaler) -> Manifest:
    sizes = {"cpu": options.cpu, "memory": options.memory}
    sizes = {resource: amount for resource, amount in sizes.items() if amount}
    return {
        "upscalingMode": options.mode,
        "idleTimeoutSeconds": options.idle_seconds,
        "imagePullPolicy": options.pull_policy,
        **({"image": options.image} if options.image else {}),
        **({"resources": {"requests": sizes, "limits": sizes}} if sizes else {}),
    }
