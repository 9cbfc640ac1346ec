"""The quota controller beside a large cluster in which nothing happens, on the real API server.

    .venv/bin/python -m bench.quota_controller_idle [--waiting 10000] [--running 40000] [--seconds 60]

etcd and kube-apiserver alone, so that nobody else writes: pods that hold all quota, and pods that wait. When
all of these have their condition, the controller is started again (its Events, ten a second, would go on for
a quarter of an hour) and left alone until it writes no more. Then its CPU, its memory and its writes over so
many seconds are told. Its Lease is renewed meanwhile, and does not count as a write.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from collections.abc import Iterable
from typing import Any

from bench.filled_cluster import api_server, at_once, create
from bench.laptop_start import cpu_seconds, memory
from tests.kube.control_plane import ControlPlane
from tests.kube.quota_line import QuotaController, enforce, install

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.model.keys import QUOTA_CONDITION

Object = dict[str, Any]
LEAVES = 100
PODS_PER_NODE = 100
EVENTS = "events"
QUIET_SECONDS = 35
"""Longer than the controller rests between two plans."""
WRITE = re.compile(r'^apiserver_request_total\{(.*verb="(?:POST|PUT|PATCH|DELETE|APPLY)".*)\} (\S+)$')


def main(waiting: int, running: int, seconds: int) -> None:
    spaces = [f"team-{number}" for number in range(LEAVES)]
    with api_server() as cluster:
        began = time.monotonic()
        asyncio.run(_fill(cluster, spaces, running))
        print(f"{running} pods made in {time.monotonic() - began:.0f} s", flush=True)
        install(cluster)
        controller = QuotaController(cluster)
        controller.start(120)
        try:
            enforce(cluster, _root(spaces, running))
            began = time.monotonic()
            asyncio.run(_make(cluster, (_pod(f"waits-{number}", spaces[number % LEAVES]) for number in range(waiting)), waiting))
            print(f"{waiting} that wait made in {time.monotonic() - began:.0f} s", flush=True)
            _rest(cluster, 5, EVENTS)
            pid = controller.component.pid
            print(f"all have a condition: {cpu_seconds(pid):.1f} CPU s since its start, {_memory(pid)}; one of them:\n    {_told(cluster)}")
            controller.stop()
            began = time.monotonic()
            controller.start(120)
            pid = controller.component.pid
            print(f"started again: ready in {time.monotonic() - began:.1f} s, {cpu_seconds(pid):.1f} CPU s, {_memory(pid)}", flush=True)
            _rest(cluster, QUIET_SECONDS)
            cpu, written, began = cpu_seconds(pid), _writes(cluster), time.monotonic()
            time.sleep(seconds)
            share = (cpu_seconds(pid) - cpu) / (time.monotonic() - began)
            print(f"idle for {seconds} s: {share:.2%} of a core, {_writes(cluster) - written:.0f} writes, {_memory(pid)}")
        finally:
            controller.stop()


def _memory(pid: int) -> str:
    return f"{memory(pid, 'VmRSS'):.0f} MiB, at most {memory(pid, 'VmHWM'):.0f}"


def _told(cluster: ControlPlane) -> str:
    """What somebody who waits is told; an error when it is nothing."""
    pod = json.loads(cluster.admin.run("get", "pod", "waits-0", "-n", "team-0", "-o", "json"))
    return next(str(each["message"]) for each in pod["status"]["conditions"] if each["type"] == QUOTA_CONDITION)


async def _fill(cluster: ControlPlane, spaces: list[str], running: int) -> None:
    connection = find_connection(str(cluster.kubeconfig))
    assert connection is not None
    async with KubeApi(connection) as api:
        for space in spaces:
            await create(api, "/api/v1/namespaces", {"metadata": {"name": space}})
            await create(api, f"/api/v1/namespaces/{space}/serviceaccounts", {"metadata": {"name": "default"}})
        await at_once(lambda number: create(api, "/api/v1/nodes", _node(number)), range(_nodes(running)))
    pods = (_pod(f"runs-{number}", spaces[number % LEAVES], f"node-{number % _nodes(running)}") for number in range(running))
    await _make(cluster, pods, running)


async def _make(cluster: ControlPlane, pods: Iterable[Object], count: int) -> None:
    connection = find_connection(str(cluster.kubeconfig))
    assert connection is not None
    left = iter(pods)

    async with KubeApi(connection) as api:

        async def one(_: int) -> None:
            pod = next(left)
            await create(api, f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)

        await at_once(one, range(count))


def _nodes(running: int) -> int:
    return max(1, running // PODS_PER_NODE)


def _node(number: int) -> Object:
    amounts = {"cpu": "1000", "memory": "1Ti", "pods": "1000"}
    conditions = [{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "kubelet is posting ready status"}]
    status = {"capacity": amounts, "allocatable": amounts, "conditions": conditions}
    return {"metadata": {"name": f"node-{number}", "labels": {"kubernetes.io/hostname": f"node-{number}"}}, "status": status}


def _pod(name: str, space: str, node: str = "") -> Object:
    """With what pods of jobs carry: labels, environment, volumes."""
    container = {
        "name": "main",
        "image": "registry.example.com/team/train:2026-01-05",
        "command": ["python", "train.py", "--epochs", "90", "--data", "/data/imagenet"],
        "env": [{"name": f"SETTING_{index}", "value": f"value-{index}-of-{name}"} for index in range(12)],
        "resources": {"limits": {"cpu": "1", "memory": "4Gi"}},
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    labels = {"app": name, "quota.scheduling.alibabacloud.com/preemptible": "true"}
    spec: Object = {"containers": [container], "volumes": [{"name": "data", "emptyDir": {}}], "automountServiceAccountToken": False}
    return {"metadata": {"name": name, "namespace": space, "labels": labels}, "spec": {**spec, **({"nodeName": node} if node else {})}}


def _root(spaces: list[str], running: int) -> Object:
    """Full with what runs: who wants more waits for idle quota."""
    least, most = {"cpu": str(running // LEAVES)}, {"cpu": str(running)}
    children = [{"name": f"root.{name}", "min": least, "max": most, "namespaces": [name]} for name in spaces]
    return {"name": "root", "min": most, "max": most, "children": children}


def _writes(cluster: ControlPlane, but: str = "") -> float:
    """`but`: a resource whose writes are not counted; Leases are not, either."""
    page = cluster.admin.run("get", "--raw", "/metrics")
    found = [each for line in page.splitlines() if (each := WRITE.match(line)) is not None]
    return sum(float(each[2]) for each in found if not any(f'resource="{name}"' in each[1] for name in ("leases", but)))


def _rest(cluster: ControlPlane, seconds: float, but: str = "") -> None:
    """Wait until nobody has written anything for so long."""
    before, since = _writes(cluster, but), time.monotonic()
    while time.monotonic() < since + seconds:
        time.sleep(1)
        if (now := _writes(cluster, but)) != before:
            before, since = now, time.monotonic()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--waiting", type=int, default=10_000)
    parser.add_argument("--running", type=int, default=40_000)
    parser.add_argument("--seconds", type=int, default=60)
    chosen = parser.parse_args()
    main(chosen.waiting, chosen.running, chosen.seconds)
