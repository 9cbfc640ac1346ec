"""Does a job of `arena submit` live as its operator wants, and do `list`, `get` and `top job` agree
with kubectl at every step?

mpi-operator and training-operator are real; their pods run on nodes that KWOK plays.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
from tests.cli.submit.document_000 import DOCUMENT_000
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.job_truth import JobObjects
from tests.kube.kwok_stages import RUN_TIME
from tests.kube.operators import running_operators
from tests.kube.training_lives import Life, pool_node
from tests.turns import in_turn
from tests.waiting import wait_until

pytestmark = pytest.mark.turns(4, 2)

NODES = ("gpu-1", "gpu-2")
FLAGS = {
    "mpijobs": ("--workers=2", "--gpus=2"),
    "tfjobs": ("--workers=2", "--gpus=1", "--ps=1", "--ps-gpus=1", "--chief", "--evaluator"),
    "pytorchjobs": ("--workers=3", "--gpus=1"),
}
PODS = {"mpijobs": 3, "tfjobs": 5, "pytorchjobs": 3}
GPUS = {"mpijobs": 4, "tfjobs": 5, "pytorchjobs": 3}
"""The launcher has none; the chief and the evaluator of a TFJob
have the same number as a worker.
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as started, running_operators(started):
        started.admin.create([pool_node(number) for number in (1, 2)])
        wait_until(
            "the nodes are Ready",
            lambda: started.admin.run("get", "nodes", "--no-headers").count(" Ready ") == 2,
        )
        yield started


def begun(cluster: ControlPlane, resource: str, title: str, *flags: str) -> Life:
    """A job of the kind with all its pods running."""
    life = Life(cluster, resource, f"{title}-{resource}", "train")
    life.submit(*FLAGS[resource], *flags)
    life.give_node("gpu-1")
    life.until_pods(PODS[resource], "Running")
    life.until_condition("Running")
    return life


@pytest.mark.parametrize("resource", in_turn(sorted(FLAGS), 2))
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
    resumed = life.agreed("RUNNING")
    assert (
        resumed.started is not None
        and running.started is not None
        and resumed.started > running.started
    )
    life.end_pod(life.chief, 0)
    life.until(
        "only its chief is left",
        lambda objects: objects.has("Succeeded") and len(objects.pods) == 1,
    )
    life.agreed("SUCCEEDED")
    life.arena("delete", life.name)
    life.until_gone()


@pytest.mark.parametrize("resource", in_turn(sorted(FLAGS), 2))
def test_a_job_fails_with_its_chief(cluster: ControlPlane, resource: str) -> None:
    # Without retries training-operator removes every pod of a failed PyTorchJob: see below.
    life = begun(
        cluster, resource, "failing", *(["--retry=1"] if resource == "pytorchjobs" else [])
    )
    life.end_pod(life.chief, 3)
    life.until(
        "only its chief is left", lambda objects: objects.has("Failed") and len(objects.pods) == 1
    )
    truth = life.agreed("FAILED")
    assert [pod.status for pod in truth.pods.values()] == ["Error"]
    life.arena("delete", life.name)
    life.until_gone()


@pytest.mark.parametrize("resource", in_turn(sorted(FLAGS), 2))
def test_a_job_that_runs_is_deleted_with_all_it_has(cluster: ControlPlane, resource: str) -> None:
    life = begun(cluster, resource, "deleted")
    life.arena("delete", life.name)
    life.until_gone()


def test_an_mpi_launcher_is_tried_again_and_the_newest_is_the_chief(cluster: ControlPlane) -> None:
    life = begun(cluster, "mpijobs", "again", "--retry=1")
    first = life.chief
    life.end_pod(first, 3)
    life.until("another launcher runs", lambda objects: _is_another_at_work(objects, first))
    assert {pod.status for pod in life.agreed("RUNNING").pods.values()} == {"Running", "Error"}
    life.end_pod(life.chief, 3)
    life.until_condition("Failed")
    assert life.objects.condition("Failed")["reason"] == "BackoffLimitExceeded/"
    life.until("the workers are removed", lambda objects: len(objects.pods) == 2)
    life.agreed("FAILED")


def _is_another_at_work(objects: JobObjects, first: str) -> bool:
    chief = objects.chief
    return (
        chief is not None
        and chief["metadata"]["name"] != first
        and chief["status"]["phase"] == "Running"
    )


def test_a_pytorch_worker_that_fails_is_made_anew_while_there_are_retries(
    cluster: ControlPlane,
) -> None:
    life = begun(cluster, "pytorchjobs", "anew", "--retry=3")
    [uid] = _uids(life.objects, "train-worker-0")
    life.end_pod("train-worker-0", 3)
    life.until(
        "another worker is there", lambda objects: bool(_uids(objects, "train-worker-0") - {uid})
    )
    life.until_pods(3, "Running")
    life.agreed("RUNNING")


def test_a_pytorch_worker_that_fails_without_retries_takes_all_pods_with_it(
    cluster: ControlPlane,
) -> None:
    life = begun(cluster, "pytorchjobs", "alone")
    life.end_pod("train-worker-0", 3)
    life.until(
        "it has failed and has no pods",
        lambda objects: objects.has("Failed") and not objects.pods,
    )
    assert life.objects.condition("Failed")["message"] == (
        "Job train has failed because it has reached the specified backoff limit"
    )
    life.agreed("FAILED")


def _uids(objects: JobObjects, name: str) -> set[str]:
    return {pod["metadata"]["uid"] for pod in objects.pods if pod["metadata"]["name"] == name}


@pytest.mark.parametrize("resource", in_turn(sorted(FLAGS), 2))
def test_a_job_that_takes_too_long_fails(cluster: ControlPlane, resource: str) -> None:
    """training-operator notices that only when something else makes it look at the job."""
    life = Life(cluster, resource, f"late-{resource}", "train")
    life.submit(*FLAGS[resource], "--running-timeout=2s")
    life.give_node("gpu-1")
    wait_until("its operator has seen it fail", lambda: life.nudged().has("Failed"))
    life.until("no pod runs", lambda objects: not objects.pods)
    life.agreed("FAILED")


def test_a_finished_job_that_may_not_stay(cluster: ControlPlane) -> None:
    """training-operator removes the job; mpi-operator keeps it and removes its pods."""
    lives = [Life(cluster, resource, f"brief-{resource}", "train") for resource in FLAGS]
    for life in lives:
        life.submit(
            *FLAGS[life.resource],
            "--ttl-after-finished=5s",
            f"--annotation={RUN_TIME}=0s",
            waits=False,
        )
    mpi, *others = lives
    for life in others:
        life.until_gone()
    mpi.until(
        "it has succeeded and has no pods",
        lambda objects: objects.has("Succeeded") and not objects.pods,
    )
    mpi.agreed("SUCCEEDED")


def test_the_command_of_document_000(cluster: ControlPlane) -> None:
    """The command as it is printed there, but for the namespace; then the document's next step,
    which reads the job.
    """
    life = Life(cluster, "mpijobs", "document-000", "mpi-test")
    cluster.admin.run("create", "namespace", life.namespace)
    printed = life.arena("submit", *shlex.split(DOCUMENT_000.replace("\\\n", " ")))
    assert printed == "mpijob.kubeflow.org/mpi-test created\n"
    life.until_pods(2, "Running")
    truth = life.agreed("RUNNING")
    assert (truth.requested, truth.allocated) == (1, 1)
    top = life.arena("top", "job")
    assert top.endswith("\n\nTotal Allocated/Requested GPUs of Training Jobs: 1/1\n")
    events = re.compile(rf"^  pod/{life.chief} +Normal +\S+ +\[Scheduled\] ", re.MULTILINE)
    wait_until(
        "`get -e` shows where its chief was put",
        lambda: events.search(life.arena("get", "mpi-test", "-e")) is not None,
    )
    life.arena("delete", "mpi-test")
    life.until_gone()
