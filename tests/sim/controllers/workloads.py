"""Manifests of workloads for tests of the simulated world's controllers."""

from __future__ import annotations

from typing import Any

from tests.sim.small_world import NAMESPACE, container

Object = dict[str, Any]


def workload(kind: str, image: str = "pause:35", name: str = "app", **spec: Any) -> Object:
    labels = {"app": name}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [container(image)], **spec.pop("pod", {})},
    }
    body = {"selector": {"matchLabels": labels}, "template": template, **spec}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": body,
    }
