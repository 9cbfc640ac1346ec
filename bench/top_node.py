"""`arena top node` on 1,000 nodes and 10,000 pods of a real API server, against `kubectl get pods -A` on the same one.

    .venv/bin/python bench/top_node.py [--nodes 1000] [--pods 10000] [--runs 5]

Needs the programs that `tools/build_kube.py` builds (etcd, kube-apiserver, kubectl). Nodes and pods are objects only, without KWOK or
controllers, so that nothing else works on the machine while the two are measured. Runs alternate; medians are compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.kube.addresses import address_beyond_loopback  # noqa: E402
from tests.kube.control_plane import ControlPlane  # noqa: E402
from tests.kube.programs import program  # noqa: E402

from fairlead.edge.api_request import ApiRequest, encode_body  # noqa: E402
from fairlead.edge.kube_api import KubeApi  # noqa: E402
from fairlead.edge.kubeconfig import find_connection  # noqa: E402

GPUS_PER_NODE = 8
AT_ONCE = 24
AIM_REQUESTS, AIM_RATIO = 60, 1.2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as directory, address_beyond_loopback() as address:
        folder = Path(directory)
        (folder / "logs").mkdir()
        plane = ControlPlane(folder, folder / "logs", address)
        try:
            for name in ("etcd", "kube-apiserver"):
                plane.start_component(name)
            started = time.perf_counter()
            asyncio.run(fill(plane.kubeconfig, arguments.nodes, arguments.pods))
            print(f"made {arguments.nodes:,} nodes and {arguments.pods:,} pods in {time.perf_counter() - started:.0f} s", flush=True)
            compare(plane.kubeconfig, arguments.runs)
        finally:
            plane.stop()


def compare(kubeconfig: Path, runs: int) -> None:
    commands = {
        "kubectl get pods -A": [str(program("kubectl")), "get", "pods", "-A", f"--kubeconfig={kubeconfig}"],
        "arena top node": [str(Path(sys.executable).parent / "arena"), "top", "node", f"--kubeconfig={kubeconfig}"],
        "arena top node -d": [str(Path(sys.executable).parent / "arena"), "top", "node", "-d", f"--kubeconfig={kubeconfig}"],
    }
    rows: dict[str, list[tuple[float, float, float]]] = {name: [] for name in commands}
    for number in range(runs + 1):
        for name, command in commands.items():
            row = run(command)
            if number:
                rows[name].append(row)
    base = statistics.median(wall for wall, _, _ in rows["kubectl get pods -A"])
    print(f"\nmedian of {runs} alternating runs\n{'command':24}{'wall s':>8}{'CPU s':>8}{'MiB':>8}{'x kubectl':>12}")
    for name, values in rows.items():
        wall, cpu, mib = (statistics.median(column) for column in zip(*values, strict=True))
        print(f"{name:24}{wall:>8.2f}{cpu:>8.2f}{mib:>8.0f}{wall / base:>12.2f}")
    ratio = statistics.median(wall for wall, _, _ in rows["arena top node"]) / base
    print(f"\nrequests of `arena top node`: {requests(kubeconfig)} (aim <= {AIM_REQUESTS}); wall {ratio:.2f} x (aim <= {AIM_RATIO})")


def run(command: list[str]) -> tuple[float, float, float]:
    """Wall seconds, CPU seconds and peak MiB of one fresh process."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return time.perf_counter() - started, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def requests(kubeconfig: Path) -> int:
    """How many the reader behind the command sends."""
    from fairlead.edge.cluster_query import ClusterQuery
    from fairlead.edge.kube_blocking import KubeBlocking

    connection = find_connection(str(kubeconfig))
    assert connection is not None
    with KubeBlocking(connection) as api:
        ClusterQuery(api).read_nodes()
        return api.requests_total


async def fill(kubeconfig: Path, nodes: int, pods: int) -> None:
    connection = find_connection(str(kubeconfig))
    assert connection is not None
    async with KubeApi(connection) as api:
        await create(api, "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "default"}})
        await at_once(lambda number: create_node(api, number), range(nodes))
        await at_once(lambda number: create_pod(api, number, nodes), range(pods))


async def at_once(make: Callable[[int], Awaitable[None]], numbers: Iterable[int]) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with gate:
            await make(number)

    await asyncio.gather(*(one(number) for number in numbers))


async def create(api: KubeApi, path: str, manifest: Any) -> None:
    await api.send(ApiRequest("create", "POST", path, encode_body(manifest)))


async def create_node(api: KubeApi, number: int) -> None:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", "nvidia.com/gpu": str(GPUS_PER_NODE)}
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}]
    status = {
        "capacity": amounts,
        "allocatable": amounts,
        "conditions": conditions,
        "addresses": [{"type": "InternalIP", "address": f"10.0.{number // 250}.{number % 250 + 1}"}],
    }
    labels = {"kubernetes.io/hostname": f"gpu-{number:04d}", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB"}
    await create(api, "/api/v1/nodes", {"metadata": {"name": f"gpu-{number:04d}", "labels": labels}, "status": status})


async def create_pod(api: KubeApi, number: int, nodes: int) -> None:
    """A worker of a job, with what such pods carry: labels, environment, volumes; then Running, as its kubelet would say."""
    name, job = f"train-{number // 8:05d}-worker-{number % 8}", f"train-{number // 8:05d}"
    limits = {"nvidia.com/gpu": "1", "cpu": "4", "memory": "16Gi"} if number % 10 < 8 else {"cpu": "1", "memory": "1Gi"}
    container = {
        "name": "pytorch",
        "image": "registry.example.com/team/train:2026-01-05",
        "command": ["python", "train.py", "--epochs", "90", "--data", "/data/imagenet"],
        "env": [{"name": f"SETTING_{index}", "value": f"value-{index}-of-{job}"} for index in range(12)],
        "resources": {"limits": limits},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    labels = {
        "training.kubeflow.org/job-name": job,
        "training.kubeflow.org/job-role": "worker",
        "training.kubeflow.org/replica-index": str(number % 8),
    }
    spec = {"nodeName": f"gpu-{number % nodes:04d}", "containers": [container], "volumes": [{"name": "data", "emptyDir": {}}]}
    await create(api, "/api/v1/namespaces/default/pods", {"metadata": {"name": name, "labels": labels}, "spec": spec})
    state = {
        "name": "pytorch",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": container["image"],
        "imageID": "",
        "state": {"running": {}},
    }
    status = {"phase": "Running", "podIP": "10.244.0.9", "hostIP": "10.0.0.1", "containerStatuses": [state]}
    path = f"/api/v1/namespaces/default/pods/{name}/status"
    await api.send(ApiRequest("patch", "PATCH", path, json.dumps({"status": status}).encode(), "application/merge-patch+json"))


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    main()
