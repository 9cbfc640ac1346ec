"""Does a job of `arena submit` live as its operator wants, and do `list`, `get` and `top job` say at every step what kubectl says?

mpi-operator and training-operator are the real ones; their pods run on nodes that KWOK plays.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.kubectl import wait_until
from tests.kube.operators import running_operators
from tests.kube.training_lives import Life, pool_node

NODES = ("gpu-1", "gpu-2")
FLAGS = {
    "mpijobs": ("--workers=2", "--gpus=2"),
    "tfjobs": ("--workers=2", "--gpus=1", "--ps=1", "--ps-gpus=1", "--chief", "--evaluator"),
    "pytorchjobs": ("--workers=3", "--gpus=1"),
}
PODS = {"mpijobs": 3, "tfjobs": 5, "pytorchjobs": 3}
GPUS = {"mpijobs": 4, "tfjobs": 5, "pytorchjobs": 3}
"""The launcher has none; the chief and the evaluator of a TFJob have as many as a worker."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as started, running_operators(started):
        started.admin.create([pool_node(number) for number in (1, 2)])
        wait_until("the nodes are Ready", lambda: started.admin.run("get", "nodes", "--no-headers").count(" Ready ") == 2)
        yield started


def begun(cluster: ControlPlane, resource: str, title: str, *flags: str) -> Life:
    """A job of the kind with all its pods running."""
    life = Life(cluster, resource, f"{title}-{resource}", "train")
    life.submit(*FLAGS[resource], *flags)
    life.until_pods(PODS[resource], "Pending")
    life.give_node("gpu-1")
    life.until_pods(PODS[resource], "Running")
    life.until_condition("Running")
    return life


@pytest.mark.parametrize("resource", FLAGS)
def test_a_job_waits_runs_pauses_and_succeeds(cluster: ControlPlane, resource: str) -> None:
    life = Life(cluster, resource, f"whole-{resource}", "train")
    life.submit(*FLAGS[resource])
    life.until_pods(PODS[resource], "Pending")
    waiting = life.agreed("PENDING")
    assert (waiting.requested, waiting.allocated, waiting.node) == (GPUS[resource], 0, "")
    life.give_node("gpu-1")
    running = life.agreed("RUNNING")
    assert (running.allocated, running.node) == (GPUS[resource], "10.1.0.1")
    life.patch({"runPolicy": {"suspend": True}})
    life.until("its pods are gone", lambda objects: not objects.pods)
    assert life.agreed("SUSPENDED").allocated == 0
    life.patch({"runPolicy": {"suspend": False}})
    life.until_pods(PODS[resource], "Running")
    resumed = life.agreed("RUNNING")
    assert resumed.started is not None and running.started is not None and resumed.started > running.started
    life.end_pod(life.chief, 0)
    life.until_condition("Succeeded")
    life.until("what still ran has been removed", lambda objects: len(objects.pods) == 1)
    assert life.agreed("SUCCEEDED").seconds is not None
    life.arena("delete", life.name)
    life.until_gone()
