"""Pods with a shared GPU on real nodes; which version of Fairlead runs there, and what its doctor
finds.
"""

from __future__ import annotations

import json
from typing import Any

from tests.kube.kubectl import Kubectl
from tests.kube.node_images import PRINTS
from tests.nodes.cluster import Cluster
from tests.waiting import wait_until

Object = dict[str, Any]
MEMORY = "aliyun.com/gpu-mem"
SECONDS = 180.0
EXPECTED = {("prometheus", "warn"), ("store", "warn")}
"""What the doctor finds: these nodes have no Prometheus, and the store has no volume."""
OF_A_BUSY_MACHINE = {("restarts", "warn"), ("node-clocks", "warn")}
"""On a machine that runs all tests a probe or a Lease may be late."""


def shared_pod(name: str, image: str = PRINTS) -> Object:
    """A pod that takes more than half of a card's memory."""
    container = {
        "name": "app",
        "image": image,
        "imagePullPolicy": "Never",
        "resources": {"limits": {MEMORY: "8"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"fairlead-test": "shared"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }


def running(admin: Kubectl) -> list[Object]:
    pods = admin.get("pods", "-n", "default", "-l", "fairlead-test=shared")
    return [pod for pod in pods if pod["status"]["phase"] == "Running"]


def is_running(admin: Kubectl, name: str) -> bool:
    return name in {pod["metadata"]["name"] for pod in running(admin)}


def visible_card(admin: Kubectl, name: str) -> str:
    """The card that the container sees."""
    wait_until(
        f"{name} has printed everything",
        lambda: admin.run("logs", name, "-n", "default").endswith("end\n"),
        SECONDS,
    )
    lines = dict(
        line.partition("=")[::2] for line in admin.run("logs", name, "-n", "default").splitlines()
    )
    return lines["NVIDIA_VISIBLE_DEVICES"]


def still_shared(admin: Kubectl) -> None:
    """A pod with a shared GPU is placed, and sees its card."""
    admin.create([shared_pod("still")])
    wait_until(
        lambda: admin.run("describe", "pod", "still", "-n", "default"),
        lambda: is_running(admin, "still"),
        SECONDS,
    )
    assert visible_card(admin, "still").startswith("GPU-")
    admin.delete("pod", "still", "-n", "default")


def running_versions(cluster: Cluster) -> set[str]:
    """Of the images of Fairlead's containers."""
    images = [
        each["image"]
        for pod in cluster.own_pods()
        if not pod["metadata"].get("deletionTimestamp")
        for each in pod["spec"]["containers"]
    ]
    return {image.rpartition(":")[2] for image in images if "/fairlead:" in image}


def complaints(cluster: Cluster) -> list[Object]:
    """Findings of `fairlead doctor` that nothing here explains; no check is BAD."""
    rows: list[Object] = json.loads(cluster.fairlead("doctor", "-o", "json"))["items"]
    found = {(each["check"], each["state"]): each for each in rows if each["state"] != "ok"}
    assert found.keys() >= EXPECTED
    return [found[key] for key in found.keys() - EXPECTED - OF_A_BUSY_MACHINE]
