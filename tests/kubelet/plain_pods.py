"""Pods for a simulated and a real kubelet."""

from __future__ import annotations

from typing import Any

Object = dict[str, Any]
SIMULATED_NODE = "cpu-1"
PLAIN = {"automountServiceAccountToken": False}
"""With the volume, a late mount would give a warning on the real kubelet only."""


def container(image: str, name: str = "main", **more: Any) -> Object:
    return {"name": name, "image": image, "imagePullPolicy": "IfNotPresent", **more}


def manifest(name: str, namespace: str, spec: Object, node: str) -> Object:
    """`nodeName: NODE` is the only node."""
    spec = {**spec, "nodeName": node} if "nodeName" in spec else spec
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**spec, **PLAIN},
    }
