"""A real API server with objects that no controller changes, and a watch that notes changes."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import ssl
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.kube.addresses import address_beyond_loopback
from tests.kube.control_plane import ControlPlane
from tests.kube.crds import install_job_kinds

from bench.support.bytes_alone import Stages
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.api_request import ApiRequest, encode_body
from fairlead.edge.kube.kube_api import KubeApi

GPUS_PER_NODE = 8
AT_ONCE = 24
STARTED = "2026-01-05T08:00:00Z"


@contextlib.contextmanager
def api_server() -> Iterator[ControlPlane]:
    """etcd and kube-apiserver alone, so that no other client writes."""
    with (
        tempfile.TemporaryDirectory(prefix="fairlead-bench-") as directory,
        address_beyond_loopback() as address,
    ):
        folder = Path(directory)
        (folder / "logs").mkdir()
        plane = ControlPlane(folder, folder / "logs", address)
        try:
            for name in ("etcd", "kube-apiserver"):
                plane.start_component(name)
            yield plane
        finally:
            plane.stop()


@contextlib.contextmanager
def filled_cluster(nodes: int, pods: int, jobs: int = 0) -> Iterator[ControlPlane]:
    """`pods` are spread over `nodes`.

    With `jobs` they are the workers of that many running MPIJobs, else of jobs that are not
    listed.
    """
    with api_server() as plane:
        if jobs:
            install_job_kinds(plane.admin)
        started = time.perf_counter()
        asyncio.run(_fill(plane.kubeconfig, nodes, pods, jobs))
        print(
            (
                f"made {nodes:,} nodes, {pods:,} pods, {jobs:,} jobs in "
                f"{time.perf_counter() - started:.0f} s"
            ),
            flush=True,
        )
        yield plane


def write_plan(plane: ControlPlane, stages: Stages, target: Path) -> str:
    """A plan for `bytes_alone`; its path."""
    pair = plane.admin_pair
    connection = {
        "server": plane.server,
        "authority": str(plane.authority),
        "certificate": str(pair.certificate),
        "key": str(pair.key),
    }
    target.write_text(json.dumps({**connection, "stages": stages}))
    return str(target)


async def _fill(kubeconfig: Path, nodes: int, pods: int, jobs: int) -> None:
    connection = find_connection(str(kubeconfig))
    assert connection is not None
    per_job = pods // jobs if jobs else 8
    async with KubeApi(connection) as api:
        await create(
            api, "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}}
        )
        await at_once(lambda number: _create_node(api, number), range(nodes))
        await at_once(lambda number: _create_job(api, number, per_job), range(jobs))
        await at_once(lambda number: _create_pod(api, number, nodes, per_job), range(pods))


async def at_once(make: Callable[[int], Awaitable[None]], numbers: Iterable[int]) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with gate:
            await make(number)

    await asyncio.gather(*(one(number) for number in numbers))


async def create(api: KubeApi, path: str, manifest: Any) -> None:
    await api.send(ApiRequest("create", "POST", path, encode_body(manifest)))


async def _set_status(api: KubeApi, path: str, status: Any) -> None:
    body = json.dumps({"status": status}).encode()
    await api.send(
        ApiRequest("patch", "PATCH", f"{path}/status", body, "application/merge-patch+json")
    )


async def _create_node(api: KubeApi, number: int) -> None:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(GPUS_PER_NODE)}
    conditions = [
        {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
    ]
    status = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": conditions,
        "addresses": [
            {"type": "InternalIP", "address": f"10.0.{number // 250}.{number % 250 + 1}"}
        ],
    }
    labels = {
        "kubernetes.io/hostname": f"gpu-{number:04d}",
        "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB",
    }
    await create(
        api,
        "/api/v1/nodes",
        {"metadata": {"name": f"gpu-{number:04d}", "labels": labels}, "status": status},
    )


async def _create_job(api: KubeApi, number: int, workers: int) -> None:
    name, path = f"train-{number:05d}", "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs"
    template = {
        "spec": {
            "containers": [
                {"name": "mpi", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
            ]
        }
    }
    replicas = {
        "Launcher": {
            "replicas": 1,
            "template": {
                "spec": {
                    "containers": [{"name": "mpi", "image": "i", "command": ["mpirun", "train"]}]
                }
            },
        },
        "Worker": {"replicas": workers - 1, "template": template},
    }
    manifest = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name},
        "spec": {"mpiReplicaSpecs": replicas},
    }
    await create(api, path, manifest)
    conditions = [
        {"type": kind, "status": "True", "lastTransitionTime": STARTED, "lastUpdateTime": STARTED}
        for kind in ("Created", "Running")
    ]
    await _set_status(api, f"{path}/{name}", {"conditions": conditions, "startTime": STARTED})


async def _create_pod(api: KubeApi, number: int, nodes: int, per_job: int) -> None:
    """A pod of a job, with what such pods carry: labels, environment, volumes.

    Then it is Running, as its kubelet would report.
    """
    job, index = f"train-{number // per_job:05d}", number % per_job
    role, name = (
        ("launcher", f"{job}-launcher-x7x7x")
        if index == per_job - 1
        else ("worker", f"{job}-worker-{index}")
    )
    limits = (
        {"nvidia.com/gpu": "1", "cpu": "4", "memory": "16Gi"}
        if number % 10 < 8
        else {"cpu": "1", "memory": "1Gi"}
    )
    container = {
        "name": "mpi",
        "image": "registry.example.com/team/train:2026-01-05",
        "command": ["python", "train.py", "--epochs", "90", "--data", "/data/imagenet"],
        "env": [
            {"name": f"SETTING_{index}", "value": f"value-{index}-of-{job}"} for index in range(12)
        ],
        "resources": {"limits": limits},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    labels = {
        "training.kubeflow.org/job-name": job,
        "training.kubeflow.org/job-role": role,
        "training.kubeflow.org/operator-name": "mpi-operator",
        "training.kubeflow.org/replica-index": str(index),
    }
    spec = {
        "nodeName": f"gpu-{number % nodes:04d}",
        "containers": [container],
        "volumes": [{"name": "data", "emptyDir": {}}],
    }
    await create(
        api,
        "/api/v1/namespaces/default/pods",
        {"metadata": {"name": name, "labels": labels}, "spec": spec},
    )
    running = {
        "name": "mpi",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": container["image"],
        "imageID": "",
        "state": {"running": {}},
    }
    status = {
        "phase": "Running",
        "podIP": "10.244.0.9",
        "hostIP": "10.0.0.1",
        "containerStatuses": [running],
    }
    await _set_status(api, f"/api/v1/namespaces/default/pods/{name}", status)


Object = dict[str, Any]


class FirstSeen:
    """When `is_so` first held for each object.

    `at`: by key (namespace/name), the time (`time.monotonic`). `made`: the time of creation.

    `within`: how the keys begin that count. A watch that ends is begun again.
    """

    def __init__(
        self, cluster: ControlPlane, path: str, is_so: Callable[[Object], bool], within: str = ""
    ) -> None:
        self.at: dict[str, float] = {}
        self.made: dict[str, float] = {}
        self._cluster = cluster
        self._path = path
        self._is_so = is_so
        self._within = within
        self._context = ssl.create_default_context(cafile=str(cluster.authority))
        self._context.load_cert_chain(*cluster.admin_pair)
        threading.Thread(target=self._follow, daemon=True).start()

    def _follow(self) -> None:
        while True:
            try:
                self._watch()
            except (OSError, http.client.HTTPException, ValueError):
                time.sleep(0.05)

    def _watch(self) -> None:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self._cluster.port, timeout=600, context=self._context
        )
        try:
            connection.request("GET", f"{self._path}?watch=1&timeoutSeconds=3000")
            answer = connection.getresponse()
            while answer.status == 200 and (line := answer.readline()):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                self._see(event["object"])
        finally:
            connection.close()

    def _see(self, obj: Object) -> None:
        now = time.monotonic()
        key = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        if not key.startswith(self._within):
            return
        self.made.setdefault(key, now)
        if key not in self.at and self._is_so(obj):
            self.at[key] = now
