"""Small objects and a clock that moves only by hand, for tests of the simulated cluster."""

from __future__ import annotations

from typing import Any

EPOCH = 1_767_600_000.0  # 2026-01-05T08:00:00Z


class StillClock:
    """A clock that moves only when a test moves it."""

    def __init__(self, at: float = EPOCH) -> None:
        self.at = at

    def now(self) -> float:
        return self.at


def pod(
    name: str = "a",
    namespace: str = "default",
    node: str = "",
    owners: list[dict[str, Any]] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "train:1"}]}
    if node:
        spec["nodeName"] = node
    if owners:
        metadata["ownerReferences"] = owners
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": spec,
    }


def config_map(
    name: str = "a", data: dict[str, str] | None = None, **metadata: Any
) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "data": data or {},
    }


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def job(name: str = "a", **metadata: Any) -> dict[str, Any]:
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"template": template},
    }


def deployment(name: str = "web", replicas: int = 1) -> dict[str, Any]:
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "web:1"}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def owner(obj: dict[str, Any]) -> dict[str, Any]:
    """The owner reference that makes an object a dependant of `obj`."""
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
    }
