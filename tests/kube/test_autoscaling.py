"""Do GPU metrics scale a Deployment, with the shipped rules and autoscalers? The test uses the real
Prometheus, adapter, API server and controllers.

The pods of the real cluster run nowhere (KWOK plays the kubelets), so a laptop plays their cards:
each pod of the Deployments also exists there, under its name and with the same GPUs. Its exporter's
page is scraped with labels as in a cluster.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.custom_metrics import pods_metric, running_adapter, wait_for_metric
from tests.kube.deployed import DEPLOY
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.objects import GPU, GPU_MEMORY, gpu_node, share_node
from tests.kube.prometheus import running_prometheus
from tests.kube.servers import environment
from tests.waiting import HANG_SECONDS, wait_until

Object = dict[str, Any]
NAMESPACE = "default"
EXPORTER = {
    "namespace": "fairlead-system",
    "pod": "fairlead-gpu-exporter-x1y2z",
    "container": "fairlead-gpu-exporter",
}
SCENARIO = """
title = "Eight whole cards and eight that are shared"
description = "Nothing comes by itself."
history = "1m"
[[node_pools]]
name = "whole"
cpu = 48
memory = "368Gi"
gpu_model = "Tesla T4"
gpus = 8
[[node_pools]]
name = "shared"
cpu = 48
memory = "368Gi"
gpu_model = "Tesla V100-SXM2-16GB"
gpus = 8
shared = true
"""
UNITS = 12
"""Units of a card's 15. A simulated container also gets this part of its card's compute, which is
above the target of 60 %.
"""
MOST = 4
TAINT = {"key": "test.fairlead.io/autoscaled", "operator": "Exists"}
IDLE = {"image": "pause:35"}
BUSY = {
    "image": "fairlead:0.1.0",
    "command": ["fairlead", "gpu-load"],
    "args": ["--no-dcgm-validation", "-t 1004", "-d 3600"],
}


def deployment(name: str, limits: dict[str, str]) -> Object:
    container = {"name": "main", "image": "example.com/serve:1", "resources": {"limits": limits}}
    spec = {"containers": [container], "tolerations": [TAINT], "terminationGracePeriodSeconds": 0}
    template = {"metadata": {"labels": {"app": name}}, "spec": spec}
    wish = {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": wish,
    }


DEPLOYMENTS = (
    deployment("inference", {GPU: "1"}),
    deployment("inference-shared", {GPU_MEMORY: str(UNITS)}),
)


def autoscalers() -> list[Object]:
    """The shipped autoscalers, with a lower maximum: an autoscaler waits after four new pods in 15
    s.
    """
    found = list(
        yaml.safe_load_all((DEPLOY / "autoscaling" / "hpa.yaml").read_text(encoding="utf-8"))
    )
    return [{**each, "spec": {**each["spec"], "maxReplicas": MOST}} for each in found]


class Mirror:
    """The pods of the real cluster's Deployments, played on the laptop; those that share cards have
    the load `shared`.
    """

    def __init__(self, cluster: ControlPlane, laptop: Laptop) -> None:
        self._cluster, self._laptop = cluster, laptop
        self._played: dict[str, Object] = {}
        self.shared = IDLE

    def keep_up(self) -> None:
        wanted: dict[str, Object] = {}
        for pod in self._cluster.admin.get(
            "pods", "-n", NAMESPACE, "-l", "app in (inference, inference-shared)"
        ):
            if (
                pod["status"].get("phase") == "Running"
                and "deletionTimestamp" not in pod["metadata"]
            ):
                limits = pod["spec"]["containers"][0]["resources"]["limits"]
                wanted[pod["metadata"]["name"]] = {
                    **(self.shared if GPU_MEMORY in limits else IDLE),
                    "resources": {"limits": limits},
                }
        gone = [name for name, container in self._played.items() if wanted.get(name) != container]
        if gone:
            self._laptop.kubectl.run(
                "delete",
                "pod",
                "-n",
                NAMESPACE,
                *gone,
                "--grace-period=0",
                "--force",
                "--ignore-not-found",
            )
        new = {
            name: container
            for name, container in wanted.items()
            if name in gone or name not in self._played
        }
        self._laptop.kubectl.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": NAMESPACE},
                "spec": {"containers": [{"name": "main", **container}]},
            }
            for name, container in new.items()
        )
        self._played = wanted

    def wait_for_replicas(self, replicas: dict[str, int]) -> None:
        """Mirror the pods until the Deployments have this number of replicas."""
        found: dict[str, int] = {}

        def all_there() -> bool:
            self.keep_up()
            for each in self._cluster.admin.get("deployments", "-n", NAMESPACE):
                found[each["metadata"]["name"]] = each["spec"]["replicas"]
            return found == replicas

        wait_until(
            lambda: f"replicas are {replicas}: {found} {self._reported()}", all_there, 120, 0.5
        )

    def _reported(self) -> str:
        scalers = self._cluster.admin.get("hpa", "-n", NAMESPACE)
        return json.dumps([each["status"] for each in scalers])


@contextmanager
def gpu_load(laptop: Laptop) -> Iterator[None]:
    """`fairlead gpu-load --backend sim` beside the laptop, on the whole cards, for the block."""
    argv = [
        sys.executable,
        "-m",
        "fairlead",
        "gpu-load",
        "--backend",
        "sim",
        "--sim-gpus",
        "8xTesla-T4",
        "--no-dcgm-validation",
    ]
    reported = {
        **environment(),
        "XDG_STATE_HOME": str(laptop.state_dir.parent.parent),
        "NODE_NAME": "whole-1",
    }
    generator = subprocess.Popen(
        [*argv, "-t 1004", "-d 3600", "-r", "10"], stdout=subprocess.DEVNULL, env=reported
    )
    try:
        yield
    finally:
        generator.terminate()
        generator.wait(timeout=HANG_SECONDS)


@pytest.fixture
def cluster() -> Iterator[ControlPlane]:
    """A cluster whose API server uses endpoints of aggregated APIs, with a node for each
    Deployment.
    """
    nodes = [gpu_node("whole-1", 8, model="Tesla-T4", memory_mib=15360), share_node("shared-1", 8)]
    for node in nodes:
        node["spec"] = {"taints": [{"key": TAINT["key"], "effect": "NoSchedule"}]}
    with running_control_plane(routes_to_endpoints=True) as made:
        made.admin.create(nodes)
        yield made


@pytest.mark.turns(2, 0)
def test_a_load_scales_deployments_up_and_back(cluster: ControlPlane, tmp_path: Path) -> None:
    """Whole cards scale by DCGM's utilization under `gpu-load --backend sim`, shared cards by
    Fairlead's container family under `fairlead gpu-load`.
    """
    (tmp_path / "cards.toml").write_text(SCENARIO)
    cluster.admin.create(DEPLOYMENTS)
    with running_laptop(
        cluster.logs / "autoscaling-laptop.log",
        "--scenario",
        str(tmp_path / "cards.toml"),
        "--speed",
        "10",
    ) as laptop:
        mirror = Mirror(cluster, laptop)
        mirror.wait_for_replicas({"inference": 1, "inference-shared": 1})
        target = {"gpu": laptop.gpu_exporter.address}
        log = cluster.logs / "autoscaling-prometheus.log"
        with (
            running_prometheus(target, log, labels={"gpu": EXPORTER}) as prometheus,
            running_adapter(cluster, prometheus),
        ):
            wait_until(
                "a pod of each is played",
                lambda: mirror.keep_up() or len(laptop.kubectl.get("pods", "-n", NAMESPACE)) == 2,
            )
            whole, shared = "DCGM_FI_DEV_GPU_UTIL", "fairlead_container_gpu_utilization_ratio"
            assert list(wait_for_metric(cluster, NAMESPACE, whole, 1).values()) == ["0"]
            wait_for_metric(cluster, NAMESPACE, shared, 2)
            cluster.admin.create(autoscalers())
            with gpu_load(laptop):
                mirror.shared = BUSY
                mirror.wait_for_replicas({"inference": MOST, "inference-shared": MOST})
                wait_until(
                    "all pods are under load",
                    lambda: set(pods_metric(cluster, NAMESPACE, whole).values()) == {"98"},
                    60,
                )
            mirror.shared = IDLE
            mirror.wait_for_replicas({"inference": 1, "inference-shared": 1})
            prometheus.configure(target, {"gpu": EXPORTER}, honor_labels=True)
            prometheus.reload()
            wait_until(
                "labels are honored",
                lambda: not prometheus.query('DCGM_FI_DEV_GPU_UTIL{exported_pod!=""}'),
            )
            wait_for_metric(cluster, NAMESPACE, whole, 1)
