"""How is a RayJob written? A Ray cluster of its own (a head and one group of workers), and the program that is sent to it.

What a newcomer gets wrong: no container has the command. It is the `entrypoint`, which the operator's submitter hands to the head.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from fairlead.kinds.parts.job_parts import Manifest, Part, job_manifest, pod_template
from fairlead.kinds.parts.job_spec import JobSpec
from fairlead.kinds.parts.kind_options import RayAutoscaler, RayOptions
from fairlead.kinds.training.rayjob import GROUP, KIND, TYPE
from fairlead.wire import names

CREATED_VERSIONS: Final = ("v1",)
READS_SCHEMA: Final = False
WORKER_GROUP: Final = "default-group"
_INT_MAX: Final = 2**31 - 1
_PORTS: Final = (("gcs-server", 6379), ("dashboard", 8265), ("client", 10001))


def requested_gpus(spec: JobSpec) -> int:
    return spec.chief.gpus + spec.worker.replicas * _options(spec).hosts * spec.worker.gpus


def chief_labels(spec: JobSpec) -> dict[str, str]:
    """Of the head, where the program runs and writes its logs; the submitter only waits for it."""
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
        cluster |= {"enableInTreeAutoscaling": True, "autoscalerOptions": _autoscaler(options.autoscaler)}
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
    worker = Part(type=TYPE, container="ray-worker", role=spec.worker, has_command=False, has_counts=False, gang_size=size)
    head_template = _template(spec, gpus, head, options, "Never")
    head_template["spec"]["containers"][0]["ports"] = [{"name": name, "containerPort": port} for name, port in _PORTS]
    group = {
        "groupName": WORKER_GROUP,
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
        "headGroupSpec": {"serviceType": options.head_service, "rayStartParams": start, "template": head_template},
        "workerGroupSpecs": [group],
    }


def _template(spec: JobSpec, gpus: int, part: Part, options: RayOptions, restart: str) -> Manifest:
    """Ray's pods say themselves when they are started again: the operator takes their specs as they are."""
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
