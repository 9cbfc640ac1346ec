"""The console shows the most that a pod can request to start now. A pod that requests it starts,
and a pod that requests more waits: with the real scheduler, Fairlead's extender and Fairlead's
quota controller.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.extender import Extender, scheduler_for
from tests.kube.quota_line import install, running_controller
from tests.kube.servers import Server, running
from tests.kube.sharing_words import as_real, ready
from tests.waiting import wait_until

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.scenario import NodePool, Scenario

pytestmark = pytest.mark.turns(2, 0)

Object = dict[str, Any]
GPU, MEMORY = "nvidia.com/gpu", "aliyun.com/gpu-mem"
POOLS = (
    NodePool(
        name="shared",
        count=2,
        cpu=64,
        memory="256Gi",
        gpu_model="Tesla V100-SXM2-16GB",
        gpus=2,
        shared=True,
    ),
    NodePool(
        name="whole", count=2, cpu=64, memory="256Gi", gpu_model="NVIDIA A100-SXM4-80GB", gpus=4
    ),
)
"""Four shared cards of 16 GiB and eight whole ones."""
PLACES = ("rich", "poor", "outside")
"""`outside` is on no leaf."""
SEEDS = range(1)


def bounded(name: str, gpus: tuple[int, int], memory: tuple[int, int], **more: object) -> Object:
    low, high = ({GPU: str(gpus[end]), MEMORY: str(memory[end])} for end in (0, 1))
    return {"name": name, "min": low, "max": high, **more}


ROOT = bounded(
    "root",
    (8, 8),
    (60, 60),
    children=[
        bounded("root.rich", (4, 8), (20, 60), namespaces=["rich"]),
        bounded("root.poor", (1, 2), (5, 8), namespaces=["poor"]),
    ],
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install(made)
        nodes = sharing_world(
            Scenario(title="starts", node_pools=POOLS), 1, 1_767_600_000.0
        ).cluster.list(NODES)
        made.admin.create([as_real(node) for node in nodes])
        wait_until("the nodes are ready", lambda: len(ready(made)) == len(nodes))
        made.admin.run("create", "namespace", "outside")
        yield made


@pytest.fixture(scope="module")
def console(cluster: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    extender = Extender(cluster, "starts-extender")
    scheduler = scheduler_for(cluster, extender.port, "starts-scheduler", backoff_seconds=1)
    log: Path = tmp_path_factory.mktemp("starts") / "console.log"
    try:
        extender.component.start()
        extender.start_is_done()
        scheduler.start()
        with (
            running_controller(cluster, ROOT, "starts"),
            running("console", f"--kubeconfig={cluster.kubeconfig}", log=log) as server,
        ):
            yield server
    finally:
        for component in (scheduler, extender.component):
            component.stop()


def pod(name: str, place: str, resource: str, amount: int, selector: str = "") -> Object:
    container = {"name": "main", "image": "app:1", "resources": {"limits": {resource: str(amount)}}}
    spec: Object = {
        "schedulerName": "fairlead-scheduler",
        "containers": [container],
        "terminationGracePeriodSeconds": 1,
    }
    if selector:
        key, _, value = selector.partition("=")
        spec["nodeSelector"] = {key: value}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": place},
        "spec": spec,
    }


def job(name: str, asking: Object) -> Object:
    """A Job of one such pod. Quota may lend to it, because it is
    created again after an eviction.
    """
    spec = {**asking["spec"], "restartPolicy": "Never"}
    metadata = {"name": name, "namespace": asking["metadata"]["namespace"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"backoffLimit": 0, "template": {"spec": spec}},
    }


def answer_to(cluster: ControlPlane, place: str, chosen: str) -> str:
    """`runs`; `waits` and the reason once the controller or the scheduler has refused it; "" before
    that.

    `chosen`: the flag of kubectl that selects the one pod.
    """
    found = cluster.admin.get("pods", "-n", place, chosen)
    if not found:
        return ""
    [seen] = found
    if seen["status"].get("phase") == "Running":
        return "runs"
    printed = {
        each["type"]: each["reason"]
        for each in seen["status"].get("conditions", ())
        if each["status"] == "False"
    }
    if seen["spec"].get("schedulingGates"):
        return (
            f"waits: {printed['fairlead.io/QuotaAdmitted']}"
            if "fairlead.io/QuotaAdmitted" in printed
            else ""
        )
    return "waits: Unschedulable" if printed.get("PodScheduled") == "Unschedulable" else ""


def answers(cluster: ControlPlane, crowd: list[Object]) -> list[str]:
    return [
        answer_to(
            cluster,
            each["metadata"]["namespace"],
            f"--field-selector=metadata.name={each['metadata']['name']}",
        )
        for each in crowd
    ]


def try_out(cluster: ControlPlane, place: str, resource: str, amount: int, selector: str) -> str:
    """The result of such a Job's pod; the Job is deleted afterwards."""
    cluster.admin.create([job("asker", pod("asker", place, resource, amount, selector))])
    try:
        wait_until(
            f"{amount} {resource} in {place} is answered",
            lambda: answer_to(cluster, place, "-ljob-name=asker"),
            60,
        )
        return answer_to(cluster, place, "-ljob-name=asker")
    finally:
        cluster.admin.run(
            "delete", "job", "asker", "-n", place, "--cascade=foreground", "--wait=true"
        )


def starts(console: Server, place: str, holding: int) -> list[Object]:
    """The console's numbers, once it has seen all running pods."""

    def asked(path: str) -> Object:
        return dict(json.loads(console.get(f"/api/v1{path}")))

    wait_until(
        "the console has seen them", lambda: asked("/holders?size=1")["total"] == holding, 30
    )
    return list(asked(f"/mine?namespace={place}")["starts"])


@pytest.mark.parametrize("seed", SEEDS)
def test_it_starts_and_more_waits(cluster: ControlPlane, console: Server, seed: int) -> None:
    chance = random.Random(seed)
    crowd = [
        pod(
            f"p{number}",
            chance.choice(PLACES),
            *chance.choice([(GPU, 1), (GPU, 2), (MEMORY, 3), (MEMORY, 5), (MEMORY, 9)]),
        )
        for number in range(12)
    ]
    cluster.admin.create(crowd)
    try:
        wait_until("everybody was answered", lambda: all(answers(cluster, crowd)), 90)
        running_now = answers(cluster, crowd).count("runs")
        tried = 0
        for place in PLACES:
            for start in starts(console, place, running_now):
                resource, amount, selector = (
                    start["resource"],
                    int(start["amount"]),
                    start["selector"],
                )
                if amount:
                    assert try_out(cluster, place, resource, amount, selector) == "runs", (
                        start,
                        running_now,
                    )
                assert try_out(cluster, place, resource, amount + 1, selector).startswith(
                    "waits"
                ), start
                tried += 1
        assert tried >= 3, "a cluster in which nothing is offered proves little"
    finally:
        for place in PLACES:
            cluster.admin.run("delete", "pods", "--all", "-n", place, "--wait=true")
