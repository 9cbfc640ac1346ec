"""The status word of a pod equals the STATUS column of `kubectl get pods`."""

from __future__ import annotations

import pytest

from fairlead.model.node import Condition
from fairlead.model.pod import Container, ContainerStatus, Pod
from fairlead.rules.pods.status import ended_at, node_wait, pod_status

RUNNING = ContainerStatus("main", ready=True, state="running")
READY = (Condition("Ready", "True"),)


def a_pod(phase: str = "Running", *statuses: ContainerStatus, **more: object) -> Pod:
    return Pod(
        "default", "p", phase=phase, statuses=statuses, containers=(Container("main"),), **more
    )  # type: ignore[arg-type]


def ended(reason: str = "", exit_code: int = 0, signal: int | None = None) -> ContainerStatus:
    return ContainerStatus(
        "main", state="terminated", reason=reason, exit_code=exit_code, signal=signal
    )


def waiting(reason: str) -> ContainerStatus:
    return ContainerStatus("main", state="waiting", reason=reason)


@pytest.mark.parametrize(
    ("pod", "word"),
    [
        pytest.param(
            a_pod("Running", RUNNING), "Running", id="the phase, when no container shows more"
        ),
        pytest.param(
            a_pod("Pending", waiting("ContainerCreating")),
            "ContainerCreating",
            id="what a container waits for",
        ),
        pytest.param(
            a_pod("Running", waiting("CrashLoopBackOff")),
            "CrashLoopBackOff",
            id="a crashing pod is not Running",
        ),
        pytest.param(a_pod("Failed", ended("OOMKilled", 137)), "OOMKilled", id="why it ended"),
        pytest.param(
            a_pod("Failed", ended(exit_code=3)), "ExitCode:3", id="a status without a reason"
        ),
        pytest.param(
            a_pod("Failed", ended(exit_code=137, signal=9)),
            "Signal:9",
            id="a signal without a reason",
        ),
        pytest.param(a_pod("Failed", reason="Evicted"), "Evicted", id="the pod's own reason"),
        pytest.param(a_pod("Succeeded", ended("Completed")), "Completed", id="all ended well"),
        pytest.param(
            a_pod("Running", RUNNING, ended("Completed"), conditions=READY),
            "Running",
            id="one of two ended well, the other is ready",
        ),
        pytest.param(
            a_pod("Running", RUNNING, ended("Completed")),
            "NotReady",
            id="one of two ended well, the pod is not ready",
        ),
        pytest.param(a_pod("Running", RUNNING, deleted_at=1.0), "Terminating", id="being deleted"),
        pytest.param(
            a_pod("Succeeded", ended("Completed"), deleted_at=1.0),
            "Completed",
            id="being deleted after its end",
        ),
        pytest.param(
            a_pod("Running", RUNNING, deleted_at=1.0, reason="NodeLost"),
            "Unknown",
            id="on a lost node",
        ),
        pytest.param(
            a_pod("Pending", gates=("fairlead.io/quota",)),
            "SchedulingGated",
            id="held back by a gate",
        ),
    ],
)
def test_the_word(pod: Pod, word: str) -> None:
    assert pod_status(pod) == word


def with_init(*statuses: ContainerStatus, restartable: bool = False) -> Pod:
    inits = tuple(Container(status.name, restartable=restartable) for status in statuses)
    return a_pod(
        "Pending", waiting("PodInitializing"), init_containers=inits, init_statuses=statuses
    )


@pytest.mark.parametrize(
    ("pod", "word"),
    [
        pytest.param(
            with_init(ContainerStatus("a", state="running"), ContainerStatus("b")),
            "Init:0/2",
            id="the first of two runs",
        ),
        pytest.param(
            with_init(ContainerStatus("a", state="waiting", reason="ErrImagePull")),
            "Init:ErrImagePull",
            id="it cannot start",
        ),
        pytest.param(
            with_init(ContainerStatus("a", state="terminated", exit_code=2)),
            "Init:ExitCode:2",
            id="it failed",
        ),
        pytest.param(
            with_init(ContainerStatus("a", state="terminated", exit_code=0, reason="Completed")),
            "PodInitializing",
            id="it is through",
        ),
        pytest.param(
            with_init(ContainerStatus("a", state="running", started=True), restartable=True),
            "PodInitializing",
            id="a sidecar has started",
        ),
    ],
)
def test_init_containers_speak_first(pod: Pod, word: str) -> None:
    assert pod_status(pod) == word


BOUND = Condition("PodScheduled", "True", at=130.0)


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [
        pytest.param(a_pod("Pending", created_at=100.0), 900.0, id="it waits still"),
        pytest.param(
            a_pod("Pending", created_at=100.0, node="n", conditions=(BOUND,)),
            30.0,
            id="its image is fetched",
        ),
        pytest.param(
            a_pod(
                "Running",
                RUNNING,
                created_at=100.0,
                started_at=140.0,
                node="n",
                conditions=(BOUND,),
            ),
            30.0,
            id="it runs",
        ),
        pytest.param(
            a_pod("Running", RUNNING, created_at=100.0, started_at=140.0, node="n"),
            40.0,
            id="no condition has the time",
        ),
        pytest.param(
            a_pod("Running", RUNNING, created_at=100.0, node="n"), None, id="without a time"
        ),
        pytest.param(
            a_pod("Failed", reason="Evicted", created_at=100.0),
            None,
            id="it ended without a node",
        ),
        pytest.param(a_pod("Pending"), None, id="without a start"),
    ],
)
def test_how_long_a_pod_waited_for_its_node(pod: Pod, seconds: float | None) -> None:
    assert node_wait(pod, 1000.0) == seconds


def test_a_pod_ends_with_its_last_container() -> None:
    ends = [
        ContainerStatus(name, state="terminated", finished_at=at)
        for name, at in (("main", 500.0), ("proxy", 520.0))
    ]
    assert ended_at(a_pod("Succeeded", *ends)) == 520.0
    assert ended_at(a_pod("Running", *ends)) is None, "a container that is started again"
    assert ended_at(a_pod("Failed", reason="Evicted")) is None
