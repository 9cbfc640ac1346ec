"""Jobs and pods as older operators wrote them: tf-operator 1, pytorch-operator 0.7, mpi-operator
0.2 (docs/spec/arena-cli.md#pods-of-a-job).

The labels come from their sources; an MPIJob of v1alpha1 has the workers of a StatefulSet and the
launcher of a batch Job.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from fairlead.kinds.instances import instances_of
from fairlead.kinds.parts.kind import JobKind
from fairlead.kinds.training import mpijob, pytorchjob, tfjob
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Owner, Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.jobs.status import job_duration, job_status, requested_gpus

LABELS: dict[str, tuple[JobKind, str, str, str, str]] = {
    "tf-operator 1": (tfjob, "tf-job-name", "tf-replica-type", "tf-replica-index", "worker"),
    "pytorch-operator 0.7": (
        pytorchjob,
        "pytorch-job-name",
        "pytorch-replica-type",
        "pytorch-replica-index",
        "master",
    ),
    "mpi-operator 0.2, v1alpha1": (mpijob, "mpi_job_name", "mpi_role_type", "", "launcher"),
    "mpi-operator 0.2.3, v1": (mpijob, "mpi-job-name", "mpi-job-role", "", "launcher"),
}


def old_pod(
    name: str,
    job_label: str,
    role_label: str,
    role: str,
    index_label: str = "",
    index: str = "0",
    of: str = "train",
) -> Pod:
    labels = {
        "group-name": "kubeflow.org",
        job_label: of,
        role_label: role,
        **({index_label: index} if index_label else {}),
    }
    return Pod("ns", name, uid=name, labels=labels, phase="Running")


@pytest.mark.parametrize("who", LABELS)
def test_pods_roles_and_the_chief_are_found_by_the_labels_of_their_time(who: str) -> None:
    kind, job_label, role_label, index_label, chief_role = LABELS[who]
    job = Job(kind.TYPE, kind.KIND, "kubeflow.org/v1", "ns", "train", uid="u1")
    pods = (
        old_pod("chief", job_label, role_label, chief_role, index_label),
        old_pod("other", job_label, role_label, "worker", index_label, "1"),
        old_pod("foreign", job_label, role_label, "worker", index_label, of="another"),
    )
    found = instances_of(job, ClusterSnapshot(pods=pods))
    assert [pod.name for pod in found.pods] == ["chief", "other"]
    assert found.roles == (chief_role, "worker")
    assert found.chief is pods[0]
    assert job_label in kind.OLDER_POD_LABELS


def test_a_label_of_today_wins_over_one_of_earlier_years() -> None:
    labels = {
        "training.kubeflow.org/job-name": "new",
        "training.kubeflow.org/replica-type": "ps",
        "tf-job-name": "train",
        "tf-replica-type": "worker",
    }
    pod = Pod("ns", "p", labels=labels)
    assert tfjob.role_of(pod) == "ps"
    assert not tfjob.is_member(pod, Job("tfjob", "TFJob", "kubeflow.org/v1", "ns", "train"))


def test_a_pod_that_another_job_of_that_name_owns_is_not_taken() -> None:
    job = Job("tfjob", "TFJob", "kubeflow.org/v1", "ns", "train", uid="u2")
    before = Pod(
        "ns",
        "train-worker-0",
        labels={"tf-job-name": "train"},
        owners=(Owner("TFJob", "train", "u1", True),),
    )
    assert instances_of(job, ClusterSnapshot(pods=(before,))).pods == ()


def oldest(status: dict[str, Any] | None = None, **spec: Any) -> Job:
    container = {"name": "mpi", "resources": {"limits": {"nvidia.com/gpu": "2"}}}
    body = {
        "metadata": {
            "name": "train",
            "namespace": "ns",
            "uid": "u1",
            "creationTimestamp": "2026-01-05T08:00:00Z",
        },
        "spec": {
            "replicas": 3,
            "template": {"spec": {"priorityClassName": "high", "containers": [container]}},
            **spec,
        },
        "status": status,
    }
    return mpijob.parse(msgspec.json.decode(json.dumps(body), type=mpijob.WIRE), "v1alpha1")


def test_the_oldest_mpi_job_has_a_launcher_without_gpus() -> None:
    job = oldest()
    assert [
        (role.name, role.replicas, role.limits.get("nvidia.com/gpu", 0)) for role in job.roles
    ] == [
        ("launcher", 1, 0),
        ("worker", 3, 2),
    ]
    assert (requested_gpus(job), job.api_version, job.priority_class) == (
        6,
        "kubeflow.org/v1alpha1",
        "high",
    )


def test_the_oldest_mpi_job_that_counts_gpus_is_believed_by_its_annotation() -> None:
    assert requested_gpus(oldest(replicas=None, gpus=16)) == 0


@pytest.mark.parametrize(
    ("status", "launcher", "word"),
    [
        (None, None, "PENDING"),
        ({"workerReplicas": 3}, "Pending", "PENDING"),
        ({"launcherStatus": "Active"}, "Running", "RUNNING"),
        ({"launcherStatus": "Succeeded"}, "Succeeded", "SUCCEEDED"),
        ({"launcherStatus": "Failed"}, None, "FAILED"),
    ],
)
def test_the_oldest_mpi_job_has_one_word_and_runs_with_its_launcher(
    status: Any, launcher: str | None, word: str
) -> None:
    pods = (
        [
            Pod(
                "ns",
                "train-launcher-x",
                labels={"mpi_job_name": "train", "mpi_role_type": "launcher"},
                phase=launcher,
            )
        ]
        if launcher
        else []
    )
    assert job_status(oldest(status), pods) == word


def test_the_oldest_mpi_job_ends_at_its_completion() -> None:
    status = {
        "launcherStatus": "Succeeded",
        "startTime": "2026-01-05T08:00:10Z",
        "completionTime": "2026-01-05T08:01:10Z",
    }
    assert job_duration(oldest(status), 1e10) == 60.0
    assert job_duration(oldest(), 1767600000.0 + 5) == 5.0, "without a start, since its creation"
