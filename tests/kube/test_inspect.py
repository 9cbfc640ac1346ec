"""Three users on one card, in both worlds. What document 003 applies is placed by a stock
kube-scheduler beside Fairlead's extender, and by the laptop; `kubectl inspect cgpu`, typed into a
real kubectl, `arena top node -s` and `kubectl describe` print the same in both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.kube.control_plane import running_control_plane
from tests.kube.extender import Extender, extended_scheduler
from tests.kube.kubectl import Kubectl
from tests.kube.laptop import running_laptop
from tests.kube.programs import program
from tests.kube.servers import environment
from tests.kube.sharing_words import POLICIES, as_real, is_refused, sends
from tests.programs import run_program
from tests.waiting import wait_until

from fairlead.cli.nodes.inspect_tables import trimmed
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.file import load_scenario

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "examples"
SCRIPTS = Path(sys.executable).parent
SCENARIO = "documents-003"
NODE = "cn-zhangjiakou.192.168.3.184"

COMMANDS = tomllib.loads(
    (ROOT / "tests" / "documents" / "commands.toml").read_text(encoding="utf-8")
)["command"]
SUM_OF_SHARES = "Allocated/Total GPU Memory In GPUShare Node:\n12/14 (GiB) (85%)\n"
SENTENCE = "Insufficient aliyun.com/gpu-mem on one GPU: need 4 GiB, largest free 2 GiB"
SUMMARY = """\
NAME                          IPADDRESS      GPU0(Allocated/Total)  GPU Memory(GiB)
cn-zhangjiakou.192.168.3.184  192.168.3.184  12/14                  12/14
---------------------------------------------------------------------------
Allocated/Total GPU Memory In Cluster:
12/14 (85%)
"""

pytestmark = pytest.mark.turns(2, 0)


def block(names: list[str]) -> str:
    """Document 003's block, adapted: each cluster generates the ends of the pods' names, and
    columns and dashes follow their length.
    """
    width = max(len(name) for name in names) + 2
    rows = "".join(f"{name:{width}}default    4\n" for name in sorted(names))
    return (
        "NAME:       cn-zhangjiakou.192.168.3.184\nIPADDRESS:  192.168.3.184\n\n"
        f"{'NAME':{width}}NAMESPACE  GPU0(Allocated)\n{rows}{'Allocated :':{width}}12 (85%)\n"
        f"{'Total :':{width}}14\n"
        + "-" * (sum(len(name) + len("\tdefault\t4\t\n") for name in names) + 10)
        + "\n"
    )


def test_the_block_is_the_documents() -> None:
    printed = next(each["exact"] for each in COMMANDS if each["line"] == "arena top node -s -d")
    names = [
        "tf-notebook-2-7b4d68d8f7-wxlff",
        "tf-notebook-3-86c48d4c7d-lk9h8",
        "tf-notebook-7cf4575d78-9gxzd",
    ]
    assert printed == f"\n{block(names)}\n\n{SUM_OF_SHARES}"


class Room:
    """A world with document 003's nodes. `extender` is set in the real world only."""

    def __init__(self, kubectl: Kubectl, extender: Extender | None = None) -> None:
        self.kubectl = kubectl
        self.extender = extender

    def type(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a command as a user types it, with Fairlead's scripts on PATH and this world's
        KUBECONFIG.
        """
        known = {**environment(), **self.kubectl.folders}
        known |= {
            "KUBECONFIG": str(self.kubectl.kubeconfig),
            "PATH": f"{SCRIPTS}:{os.environ['PATH']}",
        }
        first = str(program("kubectl")) if argv[0] == "kubectl" else str(SCRIPTS / argv[0])
        return run_program([first, *argv[1:]], env=known)

    def print(self, line: str) -> str:
        ended = self.type(*line.split())
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def pods(self, app: str = "") -> list[dict[str, Any]]:
        return self.kubectl.get("pods", "-n", "default", *(("-l", f"app={app}") if app else ()))

    def sharers(self) -> list[str]:
        """Names of the pods that are on a node."""
        return [each["metadata"]["name"] for each in self.pods() if each["spec"].get("nodeName")]


@pytest.fixture(scope="module", params=["real", "laptop"])
def room(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Room]:
    """Document 003's three notebooks, on their card, and a fourth that waits."""
    with (
        real_room()
        if request.param == "real"
        else laptop_room(tmp_path_factory.mktemp("logs")) as world
    ):
        for manifest in ("mem_deployment.yaml", "mem_deployment-2.yaml", "mem_deployment-3.yaml"):
            world.kubectl.run("apply", "-f", str(MANIFESTS / manifest))
        wait_until("three notebooks have a card", lambda: len(world.sharers()) == 3)
        text = (MANIFESTS / "mem_deployment-2.yaml").read_text(encoding="utf-8")
        world.kubectl.run("apply", "-f", "-", stdin=text.replace("tf-notebook-2", "tf-notebook-4"))
        wait_until(
            "the fourth gets the reason",
            lambda: SENTENCE in world.kubectl.run("describe", "pod", "-l", "app=tf-notebook-4"),
        )
        yield world


@contextmanager
def real_room() -> Iterator[Room]:
    with running_control_plane() as cluster:
        nodes = sharing_world(load_scenario(SCENARIO), 1, 1_767_600_000.0).cluster.list(NODES)
        cluster.admin.create([with_addresses(as_real(node), node) for node in nodes])
        wait_until(
            "the nodes are ready",
            lambda: (
                cluster.admin.run("get", "nodes", "--no-headers").count(" Ready ") == len(nodes)
            ),
        )
        cluster.admin.run("apply", "--server-side", "-f", str(POLICIES))
        wait_until("the policies are in force", lambda: is_refused(cluster) and sends(cluster))
        with extended_scheduler(cluster) as extender:
            yield Room(cluster.admin, extender)


def with_addresses(made: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    return {**made, "status": {**made["status"], "addresses": node["status"]["addresses"]}}


@contextmanager
def laptop_room(logs: Path) -> Iterator[Room]:
    with running_laptop(logs / "laptop.log", f"--scenario={SCENARIO}") as laptop:
        yield Room(laptop.kubectl)


def test_kubectl_finds_the_plug_in_and_prints_the_documents_tables(room: Room) -> None:
    assert room.print("kubectl inspect cgpu") == SUMMARY
    assert (
        room.print("kubectl inspect cgpu -d")
        == f"{block(room.sharers())}\nAllocated/Total GPU Memory In Cluster:  12/14 (85%)\n"
    )
    assert (
        room.print("kubectl inspect cgpu -d")
        == room.print("kubectl inspect gpushare -d")
        == room.print("fairlead inspect gpu -d")
    )
    assert room.print(f"kubectl inspect cgpu {NODE}") == SUMMARY


def test_arena_prints_the_documents_tables(room: Room) -> None:
    assert (
        trimmed(room.print("arena top node -s -d"))
        == f"\n{block(room.sharers())}\n\n{SUM_OF_SHARES}"
    )
    assert room.print("arena top node -m share").splitlines()[1].split()[4:7] == [
        "0.9/1",
        "12.0/14.0",
        "GiB",
    ]


def test_the_fourth_gets_the_memory_it_needs_and_the_memory_that_is_left(room: Room) -> None:
    (fourth,) = (str(each["metadata"]["name"]) for each in room.pods("tf-notebook-4"))
    assert SENTENCE in room.print(f"kubectl describe pod {fourth}")
    assert SENTENCE in room.print(f"fairlead why default/{fourth}")


def test_a_node_that_does_not_exist(room: Room) -> None:
    ended = room.type("kubectl", "inspect", "cgpu", "nowhere")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert 'Error: node "nowhere" not found\n' in ended.stderr


def test_a_card_that_an_operator_takes_out_is_unhealthy(room: Room) -> None:
    name = f"unhealthy-gpu-{NODE}"
    room.kubectl.run("create", "configmap", name, "-n", "kube-system", "--from-literal=gpus=0")
    try:
        assert room.print("kubectl inspect cgpu -o wide").splitlines()[1].split()[-3:] == [
            "guard(cooperative)",
            "shared",
            "1",
        ]
        if room.extender is not None:
            wait_until(
                "the extender knows", lambda: '"Unhealthy"' in json.dumps(room.extender.inspect())
            )  # type: ignore[union-attr]
    finally:
        room.kubectl.run("delete", "configmap", name, "-n", "kube-system")


def test_json_is_the_extenders_answer_and_needs_no_extender(room: Room) -> None:
    """Memory in use is left out, because the extender does not receive it. Runs last: it stops the
    extender.
    """
    (reported,) = json.loads(room.print("kubectl inspect cgpu -o json"))["nodes"]
    pods = reported["devs"][0]["pods"]
    assert [pod["containers"]["tf-notebook"] for pod in pods] == [
        {"units": 4, "mib": 4308, "core": 0}
    ] * 3
    if room.extender is None:
        return
    asked = room.extender.inspect()[NODE]
    for pod in [*pods, *asked["devs"][0]["pods"]]:
        pod.pop("usedMiB")
    assert asked == reported
    room.extender.component.stop()
    assert room.print("kubectl inspect cgpu") == SUMMARY
