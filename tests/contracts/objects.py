"""Bodies for the contract suite. Pods name a scheduler that does not run, so that only the test
changes them.
"""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]


def pod(name: str = "a", *, spec: Object | None = None, **metadata: Any) -> Object:
    base = {"schedulerName": "nobody", "containers": [{"name": "main", "image": "train:1"}]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {**base, **(spec or {})},
    }


def config_map(name: str = "a", data: dict[str, str] | None = None, **metadata: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": data or {},
    }


def deployment(name: str = "web", replicas: int = 0) -> Object:
    """Without replicas by default: a real controller would create pods."""
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec}


def job(name: str = "a", *, suspend: bool = True) -> Object:
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"suspend": suspend, "template": template},
    }


def pods(space: str, name: str = "", subresource: str = "") -> str:
    """The path of a namespace's pods, of one pod, or of its subresource."""
    return "/".join(
        part for part in (f"/api/v1/namespaces/{space}/pods", name, subresource) if part
    )


def config_maps(space: str, name: str = "") -> str:
    return "/".join(part for part in (f"/api/v1/namespaces/{space}/configmaps", name) if part)


def deployments(space: str, name: str = "", subresource: str = "") -> str:
    return "/".join(
        part
        for part in (f"/apis/apps/v1/namespaces/{space}/deployments", name, subresource)
        if part
    )
