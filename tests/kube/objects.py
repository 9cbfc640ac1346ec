"""Builders of Kubernetes objects for the real cluster: plain dicts, as a person would write them in YAML."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]

GPU = "nvidia.com/gpu"


def gpu_node(name: str, gpus: int = 8, *, model: str = "NVIDIA-A100-SXM4-80GB", memory_mib: int = 81920, **labels: str) -> Object:
    """A node that KWOK plays, with the labels that gpu-feature-discovery would set."""
    resources = {"cpu": "64", "memory": "512Gi", "pods": "110", GPU: str(gpus)}
    described = {"nvidia.com/gpu.product": model, "nvidia.com/gpu.memory": str(memory_mib), "nvidia.com/gpu.count": str(gpus)}
    return _node(name, resources, {**described, **labels})


def cpu_node(name: str, **labels: str) -> Object:
    return _node(name, {"cpu": "32", "memory": "128Gi", "pods": "110"}, labels)


def _node(name: str, resources: dict[str, str], labels: dict[str, str]) -> Object:
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    status = {"capacity": resources, "allocatable": resources}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod(name: str, *, namespace: str = "default", gpus: int = 0, **metadata: Any) -> Object:
    """A pod of one container; `metadata` takes labels and annotations."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": pod_spec(gpus=gpus),
    }


def pod_spec(*, gpus: int = 0, restart_policy: str = "Never") -> Object:
    requests = {"cpu": "100m", "memory": "64Mi"}
    limits = {GPU: str(gpus)} if gpus else {}
    container = {"name": "main", "image": "example.com/train:1", "resources": {"requests": requests, "limits": limits}}
    return {"containers": [container], "restartPolicy": restart_policy, "terminationGracePeriodSeconds": 0}


def job(name: str, *, namespace: str = "default", parallelism: int = 1, gpus: int = 0, annotations: Object | None = None) -> Object:
    """A batch/v1 Job without retries; `annotations` go to its pods (see kwok_stages)."""
    template = {"metadata": {"annotations": annotations or {}}, "spec": pod_spec(gpus=gpus)}
    spec = {"parallelism": parallelism, "completions": parallelism, "backoffLimit": 0, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": namespace}, "spec": spec}


def namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
