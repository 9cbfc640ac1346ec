"""Does `kubectl exec` print the same on the simulated cluster as on a real kubelet? The same
commands, in pods of the same form on both.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.simulated import SimulatedServer, simulated_server
from tests.kube.control_plane import ControlPlane
from tests.kube.kubectl import own_folders
from tests.kube.kubelet import NODE
from tests.kube.node_images import BUSYBOX
from tests.kube.programs import program
from tests.kubelet.jobs import SECONDS
from tests.kubelet.plain_pods import SIMULATED_NODE, container, manifest
from tests.sim.small_world import CPU_POOL, live, small_world
from tests.waiting import wait_until

from fairlead_sim.objects.resources import PODS

pytestmark = pytest.mark.turns(2, 1)

Object = dict[str, Any]
LONG = ["sleep", "100000"]
SPACE = "exec-twins"
PODS_OF_BOTH: dict[str, Object] = {
    "web": {"containers": [container(BUSYBOX, command=LONG)]},
    "two": {"containers": [container(BUSYBOX, name, command=LONG) for name in ("main", "other")]},
    "waits": {"containers": [container("fairlead.test/missing:1", imagePullPolicy="Never")]},
    "half": {
        "restartPolicy": "Never",
        "containers": [
            container(BUSYBOX, command=["true"]),
            container(BUSYBOX, "other", command=LONG),
        ],
    },
    "done": {"restartPolicy": "Never", "containers": [container(BUSYBOX, command=["true"])]},
    "init": {
        "initContainers": [container(BUSYBOX, "setup", command=LONG)],
        "containers": [container(BUSYBOX, command=["true"])],
    },
}
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("web", "--", "hostname"),
    ("web", "hostname"),
    ("web", "--", "nosuch"),
    ("web", "--", "nvidia-smi"),
    ("web", "--", "/no/such"),
    ("web", "--", ""),
    ("web", "--", "false"),
    ("web", "--", "true"),
    ("web", "--", "echo", "-n", "x"),
    ("web", "--", "sh", "-c", "echo hi; exit 3"),
    ("web", "--", "cat", "nosuch"),
    ("web", "--", "cat"),
    ("-i", "web", "--", "cat"),
    ("-i", "web", "--", "hostname"),
    ("-it", "web", "--", "hostname"),
    ("web",),
    ("two", "--", "hostname"),
    ("two", "-c", "other", "--", "hostname"),
    ("two", "-c", "x", "--", "hostname"),
    ("nope", "--", "hostname"),
    ("waits", "--", "hostname"),
    ("half", "--", "hostname"),
    ("half", "-c", "other", "--", "hostname"),
    ("done", "--", "hostname"),
    ("init", "--", "hostname"),
    ("init", "-c", "setup", "--", "hostname"),
)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimulatedServer]:
    world = small_world(CPU_POOL)
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    world.cluster.create(space)
    warm = {"containers": [container(BUSYBOX, command=["true"])], "restartPolicy": "Never"}
    world.cluster.create(manifest("warm", SPACE, warm, SIMULATED_NODE))
    for name, spec in PODS_OF_BOTH.items():
        world.cluster.create(manifest(name, SPACE, spec, SIMULATED_NODE))
    live(world, 300)
    assert world.cluster.get(PODS, SPACE, "done")["status"]["phase"] == "Succeeded"
    with simulated_server(
        tmp_path_factory.mktemp("twins"),
        world.clock,
        cluster=world.cluster,
        programs=world.programs,
    ) as server:
        yield server


@pytest.fixture(scope="module")
def real(node: ControlPlane) -> ControlPlane:
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    made = [manifest(name, SPACE, spec, NODE) for name, spec in PODS_OF_BOTH.items()]
    node.admin.create([space])
    wait_until(
        "the namespace has its account",
        lambda: node.admin.get("serviceaccounts", "-n", SPACE),
        SECONDS,
    )
    node.admin.create(made)

    def have_settled() -> bool:
        found = {pod["metadata"]["name"]: pod for pod in node.admin.get("pods", "-n", SPACE)}
        states = {
            name: [
                next(iter(each["state"]))
                for key in ("initContainerStatuses", "containerStatuses")
                for each in pod["status"].get(key, ())
            ]
            for name, pod in found.items()
        }
        return states == {
            "web": ["running"],
            "two": ["running"] * 2,
            "waits": ["waiting"],
            "half": ["terminated", "running"],
            "done": ["terminated"],
            "init": ["running", "waiting"],
        }

    wait_until("all pods have settled", have_settled, SECONDS, pause_seconds=0.2)
    return node


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_both_print_the_same(
    real: ControlPlane, simulated: SimulatedServer, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert printed(simulated.kubeconfig, tmp_path, words) == printed(
        real.kubeconfig, tmp_path, words
    )


def printed(kubeconfig: Path, scratch: Path, words: tuple[str, ...]) -> tuple[int, bytes, str]:
    ended = subprocess.run(
        [program("kubectl"), "--kubeconfig", kubeconfig, "-n", SPACE, "exec", *words],
        input=b"hello\n",
        capture_output=True,
        timeout=SECONDS,
        env={"PATH": "/usr/bin:/bin", **own_folders(scratch)},
        check=False,
    )
    return ended.returncode, ended.stdout, _plain(ended.stderr.decode())


def _plain(text: str) -> str:
    """Without the number of the execution, and what the simulated cluster adds."""
    text = re.sub(r"[0-9a-f]{63,64}", "NUMBER", text)
    text = re.sub(r" \(this container of a simulated cluster has only [^)]*\)", "", text)
    return text.replace("cat: can't open 'nosuch'", "cat: nosuch")
