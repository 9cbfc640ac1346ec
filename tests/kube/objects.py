"""Builders of Kubernetes objects for the real cluster: plain dicts, as a person would write them in
YAML.
"""

from __future__ import annotations

import json
from typing import Any

Object = dict[str, Any]

GPU = "nvidia.com/gpu"
GPU_MEMORY = "aliyun.com/gpu-mem"
GPU_COUNT = "aliyun.com/gpu-count"


def gpu_node(
    name: str,
    gpus: int = 8,
    *,
    model: str = "NVIDIA-A100-SXM4-80GB",
    memory_mib: int = 81920,
    healthy: int | None = None,
) -> Object:
    """A node with whole GPUs, labelled as gpu-feature-discovery does; `healthy` of them are
    allocatable, by default all.
    """
    labels = {
        "nvidia.com/gpu.product": model,
        "nvidia.com/gpu.memory": str(memory_mib),
        "nvidia.com/gpu.count": str(gpus),
    }
    return _node(name, {GPU: str(gpus)}, {GPU: str(gpus if healthy is None else healthy)}, labels)


def share_node(name: str, gpus: int = 4, gib_per_gpu: int = 15) -> Object:
    """A node that hands out its GPU memory in GiB, as a device
    plugin for shared GPUs reports it.
    """
    resources = {GPU_MEMORY: str(gpus * gib_per_gpu), GPU_COUNT: str(gpus)}
    return _node(
        name, resources, resources, {"cgpu": "true", "aliyun.accelerator/nvidia_name": "Tesla-T4"}
    )


def cpu_node(name: str) -> Object:
    return _node(name, {}, {}, {})


def _node(
    name: str, capacity: dict[str, str], allocatable: dict[str, str], labels: dict[str, str]
) -> Object:
    """A node that KWOK plays: the annotation makes it Ready."""
    metadata = {
        "name": name,
        "labels": {"kubernetes.io/hostname": name, **labels},
        "annotations": {"kwok.x-k8s.io/node": "fake"},
    }
    host = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    status = {"capacity": {**host, **capacity}, "allocatable": {**host, **allocatable}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod(
    name: str, *, namespace: str = "default", gpus: int = 0, gpu_memory: int = 0, **metadata: Any
) -> Object:
    """A pod of one container; `metadata` may have labels, annotations and ownerReferences."""
    described = {"name": name, "namespace": namespace, **metadata}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": described,
        "spec": pod_spec(gpus=gpus, gpu_memory=gpu_memory),
    }


def shared_pod(name: str, gpu_index: int, units: int, *, namespace: str = "default") -> Object:
    """A pod with a part of one shared GPU, granted as the reference's scheduler writes it."""
    grant = {"scheduler.framework.gpushare.allocation": json.dumps({"0": {str(gpu_index): units}})}
    return pod(name, namespace=namespace, gpu_memory=units, annotations=grant)


def pod_spec(*, gpus: int = 0, gpu_memory: int = 0) -> Object:
    limits = {
        name: str(amount) for name, amount in ((GPU, gpus), (GPU_MEMORY, gpu_memory)) if amount
    }
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": limits}
    container = {"name": "main", "image": "example.com/train:1", "resources": resources}
    return {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}


def job(
    name: str,
    *,
    namespace: str = "default",
    parallelism: int = 1,
    gpus: int = 0,
    annotations: Object | None = None,
) -> Object:
    """A batch/v1 Job without retries; `annotations` go to its pods (see kwok_stages)."""
    template = {"metadata": {"annotations": annotations or {}}, "spec": pod_spec(gpus=gpus)}
    spec = {
        "parallelism": parallelism,
        "completions": parallelism,
        "backoffLimit": 0,
        "template": template,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
