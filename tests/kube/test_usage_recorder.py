"""The usage recorder on a real control plane, with the rights of its manifest: its rows against
what the API server shows of pods that come and go.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane
from tests.kube.deployed import of_file
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.objects import gpu_node, namespace, pod
from tests.kube.servers import Server, running
from tests.waiting import wait_until

from fairlead.edge.store.address import store_address
from fairlead.edge.store.opened import open_store
from fairlead.model.usage.ledger import GPU, OPEN, PodInterval

Object = dict[str, Any]
SYSTEM, SPACE, ACCOUNT = "fairlead-system", "usage", "fairlead-usage-recorder"
LATEST_MS = 3000
"""A deletion is recorded at most this long after kubectl has returned."""


@pytest.fixture(scope="module")
def kubeconfig(control_plane: ControlPlane) -> Path:
    """Of the recorder's account, with the rights of its manifest alone."""
    admin = control_plane.admin
    rights = [each for each in of_file("usage-recorder.yaml") if each["kind"] != "Deployment"]
    admin.apply([namespace(SYSTEM), namespace(SPACE), *rights])
    token = admin.run("create", "token", ACCOUNT, "-n", SYSTEM, "--duration=1h").strip()
    path = control_plane.folder / "usage-recorder.kubeconfig"
    return write_kubeconfig(path, control_plane.server, control_plane.authority, token_user(token))


@contextmanager
def recorder(kubeconfig: Path, store: Path, log: Path) -> Iterator[Server]:
    words = (f"--kubeconfig={kubeconfig}", f"--store=sqlite:///{store}", "--gpu-source=none")
    with running("usage-recorder", *words, log=log) as server:
        yield server


def rows(store: Path) -> dict[str, PodInterval]:
    """By name, of the namespace of this test; each pod has one interval."""

    async def read() -> tuple[PodInterval, ...]:
        opened = await open_store(store_address(f"sqlite:///{store}"))
        try:
            return await opened.ledger.pod_intervals(0, OPEN, [SPACE])
        finally:
            await opened.close()

    found = asyncio.run(read())
    assert len({row.pod for row in found}) == len(found)
    return {row.pod: row for row in found}


def milliseconds(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def bound_at(shown: Object) -> int:
    (condition,) = (
        each for each in shown["status"]["conditions"] if each["type"] == "PodScheduled"
    )
    return milliseconds(condition["lastTransitionTime"])


def running_pods(cluster: ControlPlane, count: int) -> dict[str, Object]:
    def found() -> dict[str, Object]:
        pods = cluster.admin.get("pods", "-n", SPACE)
        return {
            each["metadata"]["name"]: each
            for each in pods
            if each.get("status", {}).get("phase") == "Running"
        }

    wait_until("the pods run", lambda: len(found()) >= count)
    return found()


def finish(cluster: ControlPlane, name: str) -> int:
    """End its container now; the time at which it ended."""
    ended = int(time.time())
    stamp = datetime.fromtimestamp(ended).astimezone().isoformat()
    terminated = {"exitCode": 0, "startedAt": stamp, "finishedAt": stamp}
    status = {
        "phase": "Succeeded",
        "containerStatuses": [
            {
                "name": "main",
                "image": "x",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": terminated},
            }
        ],
    }
    words = ("patch", "pod", name, "-n", SPACE, "--subresource=status", "--type=merge", "-p")
    cluster.admin.run(*words, json.dumps({"status": status}))
    return ended * 1000


def delete(cluster: ControlPlane, name: str) -> tuple[int, int]:
    """Between which times its object went."""
    before = round(time.time() * 1000)
    cluster.admin.run("delete", "pod", name, "-n", SPACE, "--now")
    return before, round(time.time() * 1000)


def test_rows_are_what_the_api_server_showed(
    control_plane: ControlPlane, kubeconfig: Path, tmp_path: Path
) -> None:
    cluster, store = control_plane, tmp_path / "store.sqlite"
    cluster.admin.apply([gpu_node("usage-1"), gpu_node("usage-2")])
    try:
        with recorder(kubeconfig, store, tmp_path / "1.log") as server:
            cluster.admin.create([pod(f"p{n}", namespace=SPACE, gpus=1 + n % 2) for n in range(8)])
            shown = running_pods(cluster, 8)
            last = max(map(bound_at, shown.values())) / 1000
            wait_until("the second of the last bind is over", lambda: time.time() > last + 2)
            ended = {name: finish(cluster, name) for name in ("p0", "p1")}
            gone = {name: delete(cluster, name) for name in ("p2", "p3")}
            figure = "fairlead_usage_recorder_open_intervals"
            held = len(cluster.admin.get("pods", "-A", "--field-selector=spec.nodeName!="))
            wait_until("all is seen", lambda: server.metrics().value(figure) <= held - 2)
        found = rows(store)
        for name, row in found.items():
            # The stamp has whole seconds, and the class of a new node changes when KWOK plays it.
            assert 0 <= row.started_at - bound_at(shown[name]) < 1000, name
            assert row.node == shown[name]["spec"]["nodeName"]
            assert row.amount.gpu == (1 + int(name[1:]) % 2) * GPU
            assert (row.amount.cpu_milli, row.amount.memory_mib) == (100, 64)
        for name, at in ended.items():
            assert (found[name].ended_at, found[name].closed_by) == (at, "finished")
        for name, (before, after) in gone.items():
            assert before <= found[name].ended_at <= after + LATEST_MS
            assert found[name].closed_by == "deleted"
        away = round(time.time() * 1000)
        delete(cluster, "p4")
        cluster.admin.create([pod("late", namespace=SPACE, gpus=1)])
        shown |= running_pods(cluster, 4)
        with recorder(kubeconfig, store, tmp_path / "2.log") as server:
            beat = "fairlead_usage_recorder_heartbeat_timestamp_seconds"
            wait_until("it writes", lambda: server.metrics().value(beat) > away / 1000)
        found = rows(store)
        assert (found["p4"].closed_by, found["p4"].ended_at <= away) == ("inferred", True)
        assert (found["late"].started_at, found["late"].ended_at) == (bound_at(shown["late"]), OPEN)
        assert {name: found[name].ended_at for name in ended} == ended
        assert all(found[name].ended_at == OPEN for name in ("p5", "p6", "p7"))
    finally:
        cluster.admin.run("delete", "pods", "--all", "-n", SPACE, "--now")
        cluster.admin.run("delete", "node", "usage-1", "usage-2")
