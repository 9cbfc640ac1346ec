"""The status word of a job: the order of conditions, the effect of a pending pod, durations that
stop, GPUs from the spec.
"""

from __future__ import annotations

import itertools

import pytest
from msgspec import structs
from tests.rules.builders import asking, gpu_pod, job, pod

from fairlead.model.jobs.job import Role
from fairlead.model.node import Condition
from fairlead.model.pod import ContainerStatus
from fairlead.rules.jobs.status import (
    allocated_gpus,
    board_state,
    instance_age,
    job_duration,
    job_status,
    native_state,
    queue_wait,
    requested_gpus,
)

NOW = 1000.0
WORDS = {
    "Failed": "FAILED",
    "Succeeded": "SUCCEEDED",
    "Complete": "SUCCEEDED",
    "Suspended": "SUSPENDED",
    "Restarting": "RESTARTING",
    "Running": "RUNNING",
    "Queuing": "QUEUING",
    "Created": "PENDING",
}


@pytest.mark.parametrize(("stronger", "weaker"), list(itertools.combinations(WORDS, 2)))
def test_the_stronger_condition_wins_wherever_it_stands(stronger: str, weaker: str) -> None:
    assert job_status(job("j", stronger, weaker), []) == WORDS[stronger]
    assert job_status(job("j", weaker, stronger), []) == WORDS[stronger]


def test_conditions_that_are_not_true_count_as_nothing() -> None:
    assert job_status(job("j", "Created", "-Running", "-Failed"), []) == "PENDING"
    assert job_status(job("j"), []) == "PENDING"


def test_a_suspended_job_that_kueue_holds_back_is_queuing() -> None:
    held = job("j", "Suspended", annotations={"scheduling.x-k8s.io/suspend": "true"})
    assert job_status(held, []) == "QUEUING"
    assert (
        job_status(job("j", "Suspended", annotations={"scheduling.x-k8s.io/suspend": "false"}), [])
        == "SUSPENDED"
    )


def test_a_running_job_with_a_pending_pod_is_pending_unless_the_pod_is_being_deleted() -> None:
    running = job("j", "Created", "Running")
    assert job_status(running, [pod("a", "n"), pod("b", phase="Pending")]) == "PENDING"
    assert (
        job_status(running, [pod("a", "n"), pod("b", phase="Pending", deleted_at=1.0)]) == "RUNNING"
    )
    assert job_status(job("j", "Failed"), [pod("b", phase="Pending")]) == "FAILED"


def test_boards_know_four_states_and_our_metrics_six() -> None:
    words = [
        "PENDING",
        "QUEUING",
        "SUSPENDED",
        "SUBMITTED",
        "CREATED",
        "RUNNING",
        "SCALING",
        "RESTARTING",
        "SUCCEEDED",
        "FAILED",
    ]
    assert [board_state(word) for word in words] == ["PENDING"] * 5 + ["RUNNING"] * 3 + [
        "SUCCEEDED",
        "FAILED",
    ]
    assert [native_state(word) for word in words[:4]] == [
        "pending",
        "queuing",
        "suspended",
        "pending",
    ]


def test_duration_stops_when_the_job_ends_and_starts_when_it_starts() -> None:
    assert job_duration(job(), NOW) == 0
    assert job_duration(job(started_at=400.0), NOW) == 600
    assert job_duration(job(started_at=400.0, finished_at=500.0), NOW) == 100
    assert job_duration(job(started_at=NOW + 5), NOW) == 0, (
        "a clock that runs behind never makes a negative duration"
    )


def test_a_waiting_job_waits_until_now_and_a_running_one_until_it_ran() -> None:
    waiting = job("j", "Created", created_at=100.0)
    assert queue_wait(waiting, [pod("a", phase="Pending")], NOW) == 900
    conditions = (Condition("Created", "True", at=100.0), Condition("Running", "True", at=160.0))
    ran = structs.replace(job("j", created_at=100.0), conditions=conditions)
    assert queue_wait(ran, [pod("a", "n", started_at=150.0)], NOW) == 60


def test_a_finished_job_waited_until_its_last_pod_had_a_place() -> None:
    done = job("j", "Succeeded", "-Running", created_at=100.0)
    pods = [
        pod("a", "n", phase="Succeeded", started_at=130.0),
        pod("b", "n", phase="Succeeded", started_at=170.0),
    ]
    assert queue_wait(done, pods, NOW) == 70
    assert queue_wait(done, [], NOW) is None


def test_requested_gpus_are_right_before_any_pod_exists() -> None:
    roles = [
        Role("launcher", 1),
        Role("worker", 3, limits=asking(nvidia_gpu=2)),
        Role("ps", 2, limits=asking(gpu_mem=4)),
    ]
    assert requested_gpus(job(roles=roles, annotations={"requestGPUsOfJobOwner": "99"})) == 6
    assert requested_gpus(job(annotations={"requestGPUsOfJobOwner": "4"})) == 4
    assert requested_gpus(job(annotations={"requestGPUsOfJobOwner": "four"})) == 0


def test_allocated_gpus_are_those_of_pods_on_a_node_terminating_ones_too() -> None:
    pods = [
        gpu_pod("a", gpus=2),
        gpu_pod("b", gpus=1, deleted_at=1.0),
        gpu_pod("c", node="", phase="Pending"),
        gpu_pod("d", phase="Failed"),
    ]
    assert allocated_gpus(pods) == 3


def test_an_instances_age_is_its_own() -> None:
    running = ContainerStatus("main", state="running", started_at=400.0)
    ended = ContainerStatus("main", state="terminated", started_at=400.0, finished_at=450.0)
    assert instance_age(pod("a", phase="Pending", created_at=700.0), NOW) == 300
    assert instance_age(pod("a", "n", created_at=100.0, statuses=(running,)), NOW) == 600
    assert (
        instance_age(pod("a", "n", phase="Succeeded", created_at=100.0, statuses=(ended,)), NOW)
        == 50
    )
    assert instance_age(pod("a", "n", created_at=100.0, statuses=(ended, running)), NOW) == 600
