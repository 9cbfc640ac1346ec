"""Kinds whose controllers write one status word instead of conditions: Volcano, et-operator,
spark-operator, kuberay (docs/spec/arena-cli.md#status-of-a-job).
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from fairlead.kinds.parts.kind import JobKind, source_of
from fairlead.kinds.registry import KINDS, kind_of, one_per_resource
from fairlead.kinds.training import deepspeedjob, etjob, rayjob, sparkjob, volcanojob
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Owner, Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.jobs.status import (
    board_state,
    is_over,
    job_duration,
    job_status,
    requested_gpus,
)

CREATED, ENDED = 1767600000.0, 1767603600.0
TIMES = {"creationTimestamp": "2026-01-05T08:00:00Z"}
LATER = "2026-01-05T09:00:00Z"


def template(gpus: int) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "spec": {
            "priorityClassName": "high",
            "containers": [{"name": "c", "resources": {"limits": limits}}],
        }
    }


SPECS: dict[str, dict[str, Any]] = {
    "volcanojob": {
        "priorityClassName": "high",
        "tasks": [
            {"name": "task-0", "template": template(0)},
            {"name": "task-1", "replicas": 3, "template": template(2)},
        ],
    },
    "etjob": {
        "etReplicaSpecs": {
            "launcher": {"replicas": 1, "template": template(0)},
            "worker": {"replicas": 3, "template": template(2)},
        }
    },
    "sparkjob": {
        "driver": {"cores": 2, "memory": "1g", "priorityClassName": "high"},
        "executor": {"instances": 3, "gpu": {"name": "nvidia.com/gpu", "quantity": 2}},
    },
    "rayjob": {
        "rayClusterSpec": {
            "headGroupSpec": {"template": template(0)},
            "workerGroupSpecs": [
                {"groupName": "g", "replicas": 1, "numOfHosts": 3, "template": template(2)}
            ],
        }
    },
}
SPECS["deepspeedjob"] = SPECS["etjob"]


def read(kind: JobKind, status: dict[str, Any] | None = None, **metadata: Any) -> Job:
    meta = {
        "name": "train",
        "namespace": "ns",
        "uid": "u1",
        **TIMES,
        "labels": {"app": kind.TYPE},
        **metadata,
    }
    body = {"metadata": meta, "spec": SPECS[kind.TYPE], "status": status}
    return kind.parse(msgspec.json.decode(json.dumps(body), type=kind.WIRE), kind.VERSIONS[0])


WITH_WORDS = (volcanojob, etjob, deepspeedjob, sparkjob, rayjob)


@pytest.mark.parametrize("kind", WITH_WORDS, ids=lambda kind: kind.TYPE)
def test_the_spec_gives_gpus_and_roles_before_any_pod_exists(kind: JobKind) -> None:
    job = read(kind)
    assert (requested_gpus(job), len(job.roles), job.type, job.kind) == (6, 2, kind.TYPE, kind.KIND)
    assert job_status(job, []) == "PENDING" and kind_of(job) is kind
    assert job.api_version == f"{kind.GROUP}/{kind.VERSIONS[0]}" and job.created_at == CREATED
    assert job.priority_class == "high"


@pytest.mark.parametrize(
    ("phase", "word", "board"),
    [
        ("Pending", "PENDING", "PENDING"),
        ("Inqueue", "SUBMITTED", "PENDING"),
        ("Running", "RUNNING", "RUNNING"),
        ("Completed", "SUCCEEDED", "SUCCEEDED"),
        ("Failed", "FAILED", "FAILED"),
        ("Aborted", "Aborted", "PENDING"),
        ("Terminating", "Terminating", "RUNNING"),
        ("Terminated", "Terminated", "FAILED"),
    ],
)
def test_phases_of_volcano(phase: str, word: str, board: str) -> None:
    job = read(volcanojob, {"state": {"phase": phase, "lastTransitionTime": LATER}})
    assert (job_status(job, []), board_state(word)) == (word, board)
    assert is_over(job) == (board in ("SUCCEEDED", "FAILED"))
    assert job.suspended == (phase == "Aborted")
    has_ended = phase in ("Completed", "Failed", "Aborted", "Terminated")
    assert job_duration(job, ENDED + 86400) == (3600.0 if has_ended else 90000.0)


@pytest.mark.parametrize(
    ("state", "word", "board"),
    [
        ("SUBMITTED", "SUBMITTED", "PENDING"),
        ("RUNNING", "RUNNING", "RUNNING"),
        ("SUCCEEDING", "SUCCEEDING", "RUNNING"),
        ("COMPLETED", "SUCCEEDED", "SUCCEEDED"),
        ("FAILED", "FAILED", "FAILED"),
        ("SUBMISSION_FAILED", "SUBMISSION_FAILED", "FAILED"),
        ("PENDING_RERUN", "PENDING", "PENDING"),
    ],
)
def test_states_of_spark(state: str, word: str, board: str) -> None:
    job = read(sparkjob, {"applicationState": {"state": state}})
    assert (job_status(job, []), board_state(word)) == (word, board)


def test_a_spark_application_ends_when_it_terminates_or_when_no_attempt_follows() -> None:
    done = read(sparkjob, {"applicationState": {"state": "COMPLETED"}, "terminationTime": LATER})
    unsubmitted = read(
        sparkjob,
        {"applicationState": {"state": "SUBMISSION_FAILED"}, "lastSubmissionAttemptTime": LATER},
    )
    running = read(
        sparkjob, {"applicationState": {"state": "RUNNING"}, "lastSubmissionAttemptTime": LATER}
    )
    assert [job.finished_at for job in (done, unsubmitted, running)] == [ENDED, ENDED, None]
    assert job_duration(done, ENDED + 86400) == 3600.0


def test_cores_and_sizes_of_spark_are_java_s() -> None:
    driver, executor = read(sparkjob).roles
    assert driver.requests == {"cpu": 2000, "memory": 1 << 30} and executor.requests == {
        "cpu": 1000,
        "nvidia.com/gpu": 2,
    }


def launcher(phase: str) -> Pod:
    return Pod(
        "ns",
        "train-launcher",
        uid="p",
        phase=phase,
        labels={"training-job-name": "train", "training-job-role": "launcher"},
    )


def worker(phase: str = "Running") -> Pod:
    return Pod(
        "ns",
        "train-worker-0",
        uid="w",
        phase=phase,
        labels={"training-job-name": "train", "training-job-role": "worker"},
    )


@pytest.mark.parametrize(
    ("phase", "pods", "word"),
    [
        ("", [], "PENDING"),
        ("Running", [worker()], "PENDING"),
        ("Running", [worker(), launcher("Pending")], "PENDING"),
        ("Running", [worker(), launcher("Running")], "RUNNING"),
        ("Running", [worker("Pending"), launcher("Running")], "PENDING"),
        ("Scaling", [worker("Pending"), launcher("Running")], "SCALING"),
        ("Scaling", [], "PENDING"),
        ("Succeeded", [], "SUCCEEDED"),
        ("Failed", [], "FAILED"),
    ],
)
def test_a_training_job_runs_with_its_launcher(phase: str, pods: list[Pod], word: str) -> None:
    assert job_status(read(etjob, {"phase": phase}), pods) == word


def test_a_training_job_that_waited_too_long_for_spot_instances() -> None:
    asked = {"job-supervisor.kube-ai.io/job-status": "timeout"}
    late = read(etjob, {"phase": "Failed", "completionTime": LATER}, annotations=asked)
    assert (
        job_status(late, []) == "MAX_WAIT_TIME_EXCEEDED"
        and board_state("MAX_WAIT_TIME_EXCEEDED") == "FAILED"
    )
    assert is_over(late) and job_duration(late, ENDED + 5) == 3600.0


def test_a_training_job_ends_with_its_condition_where_no_time_was_written() -> None:
    ended = {
        "phase": "Succeeded",
        "conditions": [{"type": "Succeeded", "status": "True", "lastTransitionTime": LATER}],
    }
    assert read(etjob, ended).finished_at == ENDED
    assert read(etjob, {**ended, "phase": "Running"}).finished_at is None


def test_one_resource_holds_two_types_and_its_label_names_the_type() -> None:
    assert [
        read(etjob, labels=labels).type
        for labels in ({}, {"app": "etjob"}, {"app": "deepspeedjob"}, {"app": "x"})
    ] == [
        *("etjob", "etjob", "deepspeedjob", "etjob"),
    ]
    assert [kind.TYPE for kind in one_per_resource((deepspeedjob, etjob, volcanojob))] == [
        "deepspeedjob",
        "volcanojob",
    ]
    assert len(one_per_resource(KINDS)) == len(KINDS) - 1
    assert len({source_of(kind) for kind in one_per_resource(KINDS)}) == len(KINDS) - 1


@pytest.mark.parametrize(
    ("word", "status"), [("STOPPED", "STOPPED"), ("SUCCEEDED", "SUCCEEDED"), ("FAILED", "FAILED")]
)
def test_a_ray_job_that_its_user_stopped_is_over(word: str, status: str) -> None:
    job = read(
        rayjob,
        {
            "jobStatus": word,
            "jobDeploymentStatus": "Complete",
            "startTime": TIMES["creationTimestamp"],
            "endTime": LATER,
        },
    )
    assert job_status(job, []) == status and is_over(job)
    assert board_state(status) == ("SUCCEEDED" if word == "SUCCEEDED" else "FAILED")


LABELS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "volcanojob": (
        {
            "volcano.sh/job-name": "train",
            "volcano.sh/task-spec": "task-0",
            "volcano-role": "driver",
        },
        {"volcano.sh/job-name": "train", "volcano.sh/task-spec": "task-1"},
    ),
    "etjob": (launcher("").labels, worker().labels),  # type: ignore[dict-item]
    "sparkjob": (
        {"sparkoperator.k8s.io/app-name": "train", "spark-role": "driver"},
        {"sparkoperator.k8s.io/app-name": "train", "spark-role": "executor"},
    ),
}


ROLES = {
    "volcanojob": ["task-1", "task-0"],
    "etjob": ["worker", "launcher"],
    "sparkjob": ["executor", "driver"],
}


@pytest.mark.parametrize("kind", [volcanojob, etjob, sparkjob], ids=lambda kind: kind.TYPE)
def test_pods_are_found_by_label_and_distinguished_from_those_of_an_earlier_job(
    kind: JobKind,
) -> None:
    job = read(kind)
    lead, other = LABELS[kind.TYPE]
    mine = Pod(
        "ns",
        "b-lead",
        uid="1",
        labels=lead,
        phase="Running",
        owners=(Owner(kind.KIND, "train", "u1", True),),
    )
    second = Pod("ns", "a-other", uid="2", labels=other, phase="Running")
    earlier = Pod(
        "ns",
        "c-old",
        uid="3",
        labels=lead,
        phase="Running",
        owners=(Owner(kind.KIND, "train", "u0", True),),
    )
    elsewhere = Pod("other", "d", uid="4", labels=lead)
    stranger = Pod("ns", "e", uid="5", labels=dict.fromkeys(lead, "another"))
    snapshot = ClusterSnapshot(pods=(mine, second, earlier, elsewhere, stranger))
    pods = kind.pods_of(job, snapshot)
    assert [pod.name for pod in pods] == ["a-other", "b-lead"]
    assert [kind.role_of(pod) for pod in pods] == ROLES[kind.TYPE]
    assert kind.chief_of(job, pods) is mine
    [selector] = kind.pod_selectors(job)
    assert selector.partition("=")[0] in kind.POD_LABELS and all(
        pod.labels.get(selector.partition("=")[0]) == "train" for pod in pods
    )


def test_the_first_task_leads_a_job_of_volcano_that_another_client_wrote() -> None:
    pods = [
        Pod(
            "ns",
            f"p{i}",
            labels={"volcano.sh/job-name": "train", "volcano.sh/task-spec": f"task-{i}"},
        )
        for i in (1, 0)
    ]
    assert volcanojob.chief_of(read(volcanojob), pods) is pods[1]
