"""Creates objects while a page is open."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.browser.sight import Sight


def pytorch_job(name: str) -> dict[str, Any]:
    container = {
        "name": "pytorch",
        "image": "train",
        "resources": {"limits": {"nvidia.com/gpu": 1}},
    }
    replicas = {
        "Master": {
            "replicas": 1,
            "restartPolicy": "Never",
            "template": {"spec": {"containers": [container]}},
        }
    }
    metadata = {"name": name, "namespace": "vision"}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": metadata,
        "spec": {"pytorchReplicaSpecs": replicas},
    }


@contextmanager
def warning(sight: Sight, name: str, reason: str, message: str) -> Iterator[None]:
    """A Warning about a pod, for the block."""
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": name},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "count": 1,
        **times(sight),
    }
    sight.kubectl.create([event])
    try:
        yield
    finally:
        sight.kubectl.delete("event", f"{name}.1", "-n", "default")


def times(sight: Sight) -> dict[str, str]:
    """The current time by the cluster's clock, as an event has it."""
    with urllib.request.urlopen(f"{sight.url}/api/v1/me") as answer:
        now = json.load(answer)["clock"]["now"]
    return {"firstTimestamp": now[:19] + "Z", "lastTimestamp": now[:19] + "Z"}
