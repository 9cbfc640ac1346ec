"""A simulated cluster continues from a snapshot of a real one: does it show the same as the real
one, and can a change be tried in it?
"""

from __future__ import annotations

import gzip
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kube.company import NAMESPACES, SICK, WAITING_PODS
from tests.kube.control_plane import ControlPlane
from tests.kube.kubectl import Kubectl
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.objects import Object, job, pod
from tests.kube.servers import Server, fairlead_answer, run_arena
from tests.waiting import wait_until

SECRET = "correct-horse-battery-staple"
MEASURED = {
    "driverVersion",
    "gpusReporting",
    "gpuUtilPercent",
    "gpuMemoryUsedMiB",
    "gpuMemoryUsedOfMiB",
}
"""Columns whose values come from devices only: here some exist."""

pytestmark = pytest.mark.turns(2, 0)


@pytest.fixture(scope="module")
def launchers(company: ControlPlane) -> Iterator[None]:
    """The launchers of the MPIJobs that have not ended: Jobs that start no pod.

    The company has no operator that creates them. The simulated operator creates what is missing
    after 0.05 s of its time, which are 5 s here: on a busy machine, before the tests have looked.
    """
    owners = {each["metadata"]["name"]: each for each in company.admin.get("mpijobs")}
    jobs = [_launcher(owners[name]) for name in ("bert", "waits")]
    company.admin.create(jobs)
    yield
    names = [f"job/{each['metadata']['name']}" for each in jobs]
    company.admin.run("delete", *names, "-n", "research")


def _launcher(owner: Object) -> Object:
    name, uid = owner["metadata"]["name"], owner["metadata"]["uid"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": name, "uid": uid}
    made = job(f"{name}-launcher", namespace="research", parallelism=0, gpus=0)
    made["metadata"]["ownerReferences"] = [{**reference, "controller": True}]
    made["spec"]["completions"] = 1
    return made


@pytest.fixture(scope="module")
def snapshot(
    company: ControlPlane, launchers: None, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A snapshot of the company, with secrets planted wherever users put them."""
    admin = company.admin
    metadata = {"name": "planted", "namespace": "vision"}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "stringData": {"password": SECRET},
    }
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata,
        "data": {"password": SECRET},
    }
    admin.create([secret, config])
    taints = ("get", "node", SICK, "-o=jsonpath={.spec.taints}")
    wait_until("the unhealthy node has its taints", lambda: "NoExecute" in admin.run(*taints), 60)
    path = tmp_path_factory.mktemp("snapshot") / "company.snapshot"
    fairlead_answer(company.kubeconfig, "snapshot", "save", str(path)).check_returncode()
    return path


@pytest.fixture(scope="module")
def twin(snapshot: Path, company: ControlPlane) -> Iterator[Laptop]:
    """The simulated cluster. Its time hardly passes, so what tests see is the moment of the
    snapshot.
    """
    with running_laptop(
        company.logs / "from-snapshot.log", f"--from-snapshot={snapshot}", "--speed=0.01"
    ) as laptop:
        yield laptop


def pods(kubectl: Kubectl) -> dict[str, tuple[str, str, str, str]]:
    """Node, phase, the reason for waiting, and labels by namespace and name."""
    return {
        f"{item['metadata']['namespace']}/{item['metadata']['name']}": (
            item["spec"].get("nodeName", ""),
            item["status"]["phase"],
            _why(item),
            str(sorted(item["metadata"].get("labels", {}).items())),
        )
        for item in kubectl.get("pods")
    }


def _why(item: Object) -> str:
    return "".join(
        each.get("message", "")
        for each in item["status"].get("conditions", [])
        if each["type"] == "PodScheduled"
    )


def rows(server: Server, board: str) -> dict[str, dict[str, Any]]:
    """A board's rows without values that come from devices only."""
    items = server.api(f"/{board}", size="500")["items"]
    return {
        row["name"]: {key: value for key, value in row.items() if key not in MEASURED}
        for row in items
    }


def test_no_planted_secret_is_in_the_file(snapshot: Path) -> None:
    text = gzip.decompress(snapshot.read_bytes()).decode()
    assert SECRET not in text
    assert '"env' not in text and '"kind":"Secret"' not in text and '"kind":"ConfigMap"' not in text


def test_kubectl_shows_the_same_nodes_and_pods(twin: Laptop, company: ControlPlane) -> None:
    assert pods(twin.kubectl) == pods(company.admin)
    assert sum(phase == "Pending" for _, phase, _, _ in pods(twin.kubectl).values()) == WAITING_PODS
    for path in (
        "{.metadata.labels}",
        "{.spec.taints}",
        "{.status.capacity}",
        "{.status.allocatable}",
        "{.metadata.uid}",
    ):
        message = f'-o=jsonpath={{range .items[*]}}{{.metadata.name}} {path}{{"\\n"}}{{end}}'
        assert twin.kubectl.run("get", "nodes", message) == company.admin.run(
            "get", "nodes", message
        ), path


def test_arena_prints_the_same_table(twin: Laptop, company: ControlPlane) -> None:
    assert run_arena("top", "node", kubeconfig=twin.kubeconfig) == run_arena(
        "top", "node", kubeconfig=company.kubeconfig
    )


@pytest.mark.parametrize("board", ["nodes", "jobs"])
def test_the_boards_have_the_same_rows(board: str, twin: Laptop, console: Server) -> None:
    real, here = rows(console, board), rows(twin.console, board)
    assert real, "the real board is empty"
    for name in real:
        assert steady(here[name]) == steady(real[name]), name
    assert here.keys() == real.keys()


def steady(row: dict[str, Any]) -> dict[str, Any]:
    """The row without values that grow with time, and without the start that a simulated operator
    notes for a waiting job (the real cluster had no operator).
    """
    grows = "(?i)seconds|age|duration" + ("|startedAt" if row.get("status") == "Pending" else "")
    return {key: value for key, value in row.items() if not re.search(grows, key)}


# --- another twin, in which time passes -----------------------------------------------------------


@pytest.fixture(scope="module")
def bundle(snapshot: Path, company: ControlPlane) -> Path:
    """An archive of `fairlead doctor` about the same moment: nothing runs in this cluster."""
    path = snapshot.with_name("bundle.zip")
    fairlead_answer(company.kubeconfig, "doctor", f"--bundle={path}")
    return path


def test_no_planted_secret_is_in_the_bundle(bundle: Path) -> None:
    with zipfile.ZipFile(bundle) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["cluster.snapshot"] = gzip.decompress(files["cluster.snapshot"])
    assert [name for name, data in files.items() if SECRET.encode() in data] == []
    assert SICK.encode() in files["cluster.snapshot"]


@pytest.fixture(scope="module")
def alive(bundle: Path, company: ControlPlane) -> Iterator[Laptop]:
    with running_laptop(
        company.logs / "from-snapshot-alive.log", f"--from-snapshot={bundle}", "--speed=20"
    ) as laptop:
        yield laptop


def test_waiting_pods_wait_on_for_the_same_reason(alive: Laptop, company: ControlPlane) -> None:
    """The simulated scheduler has tried them by now, and would have written other messages."""
    real = {
        name: why for name, (_, phase, why, _) in pods(company.admin).items() if phase == "Pending"
    }
    assert {
        name: why for name, (_, phase, why, _) in pods(alive.kubectl).items() if phase == "Pending"
    } == real


def test_new_pods_get_the_room_that_is_left(alive: Laptop) -> None:
    alive.kubectl.create(
        [
            pod("fits", namespace=NAMESPACES[0], gpus=1),
            pod("huge", namespace=NAMESPACES[0], gpus=64),
        ]
    )
    wait_until(
        "the small one runs", lambda: pods(alive.kubectl)["research/fits"][1] == "Running", 30
    )
    wait_until(
        "the huge one has its answer",
        lambda: "Insufficient nvidia.com/gpu" in pods(alive.kubectl)["research/huge"][2],
        10,
    )


def test_a_node_that_was_unhealthy_stays_unhealthy(alive: Laptop) -> None:
    state = alive.kubectl.run(
        "get", "node", SICK, "-o=jsonpath={.status.conditions[?(@.type=='Ready')].status}"
    )
    assert state in ("False", "Unknown")


def test_a_drain_shows_what_would_happen(alive: Laptop) -> None:
    """Pods are evicted, and Jobs that allow no retry fail: an evicted pod counts as failed, as on
    the real cluster.
    """
    before = pods(alive.kubectl)
    node = next(
        node
        for name, (node, phase, _, _) in before.items()
        if "/train-" in name and phase == "Running"
    )
    leaving = {
        name for name, (on, phase, _, _) in before.items() if on == node and phase == "Running"
    }
    alive.kubectl.run(
        "drain", node, "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=60s"
    )
    assert not [
        name
        for name, (on, phase, _, _) in pods(alive.kubectl).items()
        if on == node and phase == "Running"
    ]
    jobs = {name.partition("/")[2].rpartition("-")[0] for name in leaving if "/train-" in name}
    assert jobs
    failed = "-o=jsonpath={.status.conditions[?(@.type=='Failed')].status}"
    for name in jobs:
        wait_until(
            f"{name} has failed",
            lambda name=name: (
                alive.kubectl.run("get", "job", name, "-n", "research", failed) == "True"
            ),
            30,
        )
