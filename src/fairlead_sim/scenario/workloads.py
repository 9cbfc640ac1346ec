"""The jobs and services of a scenario as objects, as `arena submit` and manifests write them.

The functions are pure.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import md5
from random import Random
from typing import Any

from fairlead.model.resources import GPU_MEMORY, MIG_PREFIX, NVIDIA_GPU
from fairlead.wire import names
from fairlead_sim.kubelet.behaviour import LOAD_ANNOTATION
from fairlead_sim.objects.resources import JOBS, MPI_JOBS, PYTORCH_JOBS, TF_JOBS
from fairlead_sim.scenario.scenario import (
    ContainerRequests,
    JobKind,
    PriorityClass,
    Quota,
    ScenarioService,
    StandingPod,
    Stream,
)
from fairlead_sim.schema.resource import ResourceKind

Object = dict[str, Any]

REGISTRY = "registry.example.com"
CRASHING_SECONDS_MAX = 43_200
"""Deadline of jobs in a stream of which some crash, in seconds: twelve hours, several times the
longest run.
"""

JOB_RESOURCES: dict[JobKind, ResourceKind] = {
    "mpijob": MPI_JOBS,
    "tfjob": TF_JOBS,
    "pytorchjob": PYTORCH_JOBS,
    "job": JOBS,
}


def render_service(service: ScenarioService) -> Object:
    """A Deployment of the scenario."""
    labels = {"app": service.name, **service.labels}
    spec: Object = {"containers": [_container("main", service.image, service)]}
    if service.priority_class:
        spec["priorityClassName"] = service.priority_class
    if service.node_selector:
        spec["nodeSelector"] = dict(service.node_selector)
    metadata: Object = {"labels": labels}
    if service.load:
        metadata["annotations"] = {LOAD_ANNOTATION: service.load}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": service.name, "namespace": service.namespace, "labels": labels},
        "spec": {
            "replicas": service.replicas,
            "selector": {"matchLabels": {"app": service.name}},
            "template": {"metadata": metadata, "spec": spec},
        },
    }


def render_pod(pod: StandingPod) -> Object:
    names_of = ["main", *(f"sidecar-{number}" for number in range(1, pod.containers))]
    spec: Object = {"containers": [{"name": name, "image": pod.image} for name in names_of]}
    if pod.host_network:
        spec["hostNetwork"] = True
    metadata = {"name": pod.name, "namespace": pod.namespace, "labels": {"app": pod.name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def render_job(stream: Stream, number: int, random: Random) -> Object:
    """The `number`-th job of a stream: its size, run time and fate are drawn from `random`."""
    workers = random.choice(stream.workers)
    seconds = round(random.uniform(stream.runs[0].seconds, stream.runs[1].seconds))
    image = _image(stream, seconds, random.random())
    return _RENDER[stream.kind](stream, f"{stream.name}-{number}", workers, image)


def _image(stream: Stream, seconds: int, fate: float) -> str:
    """The scripted image: most finish, some fail some time after their start, some crash again."""
    if fate < stream.failing:
        return f"{REGISTRY}/{stream.namespace}/fail:{max(20, seconds // 4)}s"
    if fate < stream.failing + stream.crashing:
        return f"{REGISTRY}/{stream.namespace}/crash:{max(20, seconds // 12)}s"
    return f"{REGISTRY}/{stream.namespace}/{stream.image}:{seconds}s"


def _job(stream: Stream, name: str, workers: int, image: str) -> Object:
    template = _template(stream, name, "main", image, gpus=True)
    template["spec"]["restartPolicy"] = "Never"
    spec = {
        "parallelism": workers,
        "completions": workers,
        "backoffLimit": stream.backoff_limit,
        "ttlSecondsAfterFinished": int(stream.ttl.seconds),
        "template": template,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(stream, name, workers * stream.gpus),
        "spec": spec,
    }


def _mpi_job(stream: Stream, name: str, workers: int, image: str) -> Object:
    launcher = _template(stream, name, "mpi", image, gpus=False)
    launcher["spec"]["containers"][0]["command"] = ["sh", "-c", "mpirun python train.py"]
    spec = {
        "slotsPerWorker": max(1, stream.gpus),
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runPolicy": {"cleanPodPolicy": "Running", **_policy(stream)},
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "restartPolicy": "OnFailure", "template": launcher},
            "Worker": {
                "replicas": workers,
                "restartPolicy": "Never",
                "template": _template(stream, name, "mpi", image, gpus=True),
            },
        },
    }
    return {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": _metadata(stream, name, workers * stream.gpus),
        "spec": spec,
    }


def _tf_job(stream: Stream, name: str, workers: int, image: str) -> Object:
    specs: Object = {}
    if stream.parameter_servers:
        template = _template(
            stream,
            name,
            "tensorflow",
            f"{REGISTRY}/{stream.namespace}/parameter-server:2.18",
            gpus=False,
        )
        specs["PS"] = {
            "replicas": stream.parameter_servers,
            "restartPolicy": "Never",
            "template": template,
        }
    template = _template(stream, name, "tensorflow", image, gpus=True)
    specs["Worker"] = {
        "replicas": workers,
        "restartPolicy": _restart_policy(stream),
        "template": template,
    }
    spec = {"runPolicy": {"cleanPodPolicy": "Running", **_policy(stream)}, "tfReplicaSpecs": specs}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": _metadata(stream, name, workers * stream.gpus),
        "spec": spec,
    }


def _pytorch_job(stream: Stream, name: str, workers: int, image: str) -> Object:
    """As arena writes it: one master and workers - 1 workers."""
    template = _template(stream, name, "pytorch", image, gpus=True)
    specs: Object = {
        "Master": {"replicas": 1, "restartPolicy": _restart_policy(stream), "template": template}
    }
    if workers > 1:
        specs["Worker"] = {
            "replicas": workers - 1,
            "restartPolicy": _restart_policy(stream),
            "template": template,
        }
    spec = {
        "runPolicy": {"cleanPodPolicy": "Running", **_policy(stream)},
        "pytorchReplicaSpecs": specs,
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": _metadata(stream, name, workers * stream.gpus),
        "spec": spec,
    }


_RENDER: dict[JobKind, Callable[[Stream, str, int, str], Object]] = {
    "job": _job,
    "mpijob": _mpi_job,
    "tfjob": _tf_job,
    "pytorchjob": _pytorch_job,
}


def _restart_policy(stream: Stream) -> str:
    """The restart policy.

    Streams that crash need `ExitCode`, so that the operator restarts them.
    """
    return "ExitCode" if stream.crashing else "Never"


def _policy(stream: Stream) -> Object:
    """Jobs that are restarted for ever get a deadline, as careful users give them one: the training
    operator does not count the restarts of `ExitCode` against `backoffLimit`, so jobs that crash
    would otherwise become more with each day.
    """
    found: Object = {
        "backoffLimit": stream.backoff_limit,
        "ttlSecondsAfterFinished": int(stream.ttl.seconds),
    }
    return found | ({"activeDeadlineSeconds": CRASHING_SECONDS_MAX} if stream.crashing else {})


def _metadata(stream: Stream, name: str, gpus: int) -> Object:
    annotations = {names.ANNOTATION_REQUESTED_GPUS: str(gpus)} | (
        {names.ANNOTATION_USERNAME: stream.user} if stream.user else {}
    )
    return {
        "name": name,
        "namespace": stream.namespace,
        "labels": _labels(stream, name),
        "annotations": annotations,
    }


def _labels(stream: Stream, name: str) -> dict[str, str]:
    """The labels that arena puts on a job and its pods."""
    created_by = JOB_RESOURCES[stream.kind].kind
    labels = {"app": stream.kind, "release": name, "createdBy": created_by, "heritage": "fairlead"}
    return labels | (
        {"arena.kubeflow.org/uid": md5(stream.user.encode(), usedforsecurity=False).hexdigest()}
        if stream.user
        else {}
    )


def _template(stream: Stream, name: str, container: str, image: str, *, gpus: bool) -> Object:
    annotations = {LOAD_ANNOTATION: stream.load} | (
        {names.ANNOTATION_USERNAME: stream.user} if stream.user else {}
    )
    asks = stream if gpus else ContainerRequests(cpu="500m", memory="1Gi")
    spec: Object = {"containers": [_container(container, image, asks)]}
    if stream.priority_class:
        spec["priorityClassName"] = stream.priority_class
    if stream.node_selector and gpus:
        spec["nodeSelector"] = dict(stream.node_selector)
    return {"metadata": {"labels": _labels(stream, name), "annotations": annotations}, "spec": spec}


def _container(name: str, image: str, asks: ContainerRequests) -> Object:
    limits = {"cpu": asks.cpu, "memory": asks.memory}
    if asks.gpus:
        limits[NVIDIA_GPU] = str(asks.gpus)
    if asks.gpu_memory:
        limits[GPU_MEMORY] = str(asks.gpu_memory)
    if asks.mig:
        limits[MIG_PREFIX + asks.mig] = "1"
    return {"name": name, "image": image, "resources": {"requests": dict(limits), "limits": limits}}


def render_priority_class(priority: PriorityClass) -> Object:
    rest = {
        "value": priority.value,
        "globalDefault": priority.global_default,
        "preemptionPolicy": priority.preemption_policy,
    }
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": priority.name},
        **rest,
    }


def render_quota_tree(nodes: tuple[Quota, ...]) -> Object:
    """The ElasticQuotaTree; nodes carry their dotted path as name, as ACK writes them."""
    rendered: dict[str, Object] = {}
    for node in nodes:
        spec: Object = {"name": node.path, "min": _texts(node.min), "max": _texts(node.max)}
        if node.namespaces:
            spec["namespaces"] = list(node.namespaces)
        if node.attributes:
            spec["attributes"] = dict(node.attributes)
        rendered[node.path] = spec
        parent = rendered.get(node.path.rpartition(".")[0])
        if parent is not None:
            parent.setdefault("children", []).append(spec)
    return {
        "apiVersion": f"{names.QUOTA_GROUP}/{names.QUOTA_VERSION}",
        "kind": "ElasticQuotaTree",
        "metadata": {"name": names.QUOTA_TREE_NAME, "namespace": names.QUOTA_TREE_NAMESPACE},
        "spec": {"root": rendered[nodes[0].path]},
    }


def _texts(amounts: Any) -> dict[str, str]:
    return {name: str(amount) for name, amount in amounts.items()}
