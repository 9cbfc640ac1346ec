"""The same steps for every kind: an object becomes a job, its pods are found, its chief
is chosen.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from fairlead.kinds.parts.kind import JobKind
from fairlead.kinds.registry import KINDS, kind_by_type, kind_of
from fairlead.model.jobs.job import Job
from fairlead.model.pod import Owner, Pod
from fairlead.model.snapshot import ClusterSnapshot

KUBEFLOW = [kind for kind in KINDS if kind.GROUP == "kubeflow.org"]
"""RayJob has another shape: `tests/sim/operators/test_ray_job.py` tests it."""
SPEC_KEY = {
    "mpijob": "mpiReplicaSpecs",
    "tfjob": "tfReplicaSpecs",
    "pytorchjob": "pytorchReplicaSpecs",
}
ROLES = {
    "mpijob": ("Launcher", "Worker"),
    "tfjob": ("Chief", "Worker"),
    "pytorchjob": ("Master", "Worker"),
}
OPERATOR = {
    "mpijob": "mpi-operator",
    "tfjob": "tfjob-controller",
    "pytorchjob": "pytorchjob-controller",
}


def template(gpus: int) -> dict[str, Any]:
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {"spec": {"containers": [{"name": "c", "resources": {"limits": limits}}]}}


def read_job(kind: JobKind, **status: Any) -> Job:
    chief, worker = ROLES[kind.TYPE]
    body = {
        "apiVersion": f"kubeflow.org/{kind.VERSIONS[0]}",
        "metadata": {
            "name": "train",
            "namespace": "ns",
            "uid": "job-uid",
            "creationTimestamp": "2026-01-05T08:00:00Z",
        },
        "spec": {
            SPEC_KEY[kind.TYPE]: {
                chief: {"template": template(0)},
                worker: {"replicas": 3, "template": template(2)},
            },
            "runPolicy": {"suspend": False, "schedulingPolicy": {"priorityClass": "high"}},
        },
        "status": status,
    }
    return kind.parse(msgspec.json.decode(json.dumps(body), type=kind.WIRE), kind.VERSIONS[0])


def member(kind: JobKind, name: str, role: str, **fields: Any) -> Pod:
    labels = {
        "training.kubeflow.org/job-name": "train",
        "training.kubeflow.org/operator-name": OPERATOR[kind.TYPE],
        "training.kubeflow.org/replica-type": role.lower(),
        "training.kubeflow.org/replica-index": "0",
        "training.kubeflow.org/job-role": role.lower(),
    }
    return Pod("ns", name, uid=name, labels=labels, **fields)


@pytest.mark.parametrize("kind", KUBEFLOW, ids=lambda kind: kind.TYPE)
def test_the_spec_gives_roles_and_gpus_before_any_pod_exists(kind: JobKind) -> None:
    job = read_job(kind)
    assert [
        (role.name, role.replicas, role.limits.get("nvidia.com/gpu", 0)) for role in job.roles
    ] == [
        (ROLES[kind.TYPE][0].lower(), 1, 0),
        ("worker", 3, 2),
    ]
    assert (job.type, job.kind, job.priority_class) == (kind.TYPE, kind.KIND, "high")
    assert kind_of(job) is kind
    assert kind_by_type(kind.TYPE) is kind


@pytest.mark.parametrize("kind", KUBEFLOW, ids=lambda kind: kind.TYPE)
def test_pods_belong_by_owner_first_then_by_label(kind: JobKind) -> None:
    job = read_job(kind)
    owned = member(kind, "owned", "Worker", owners=(Owner(kind.KIND, "train", "job-uid", True),))
    predecessor = member(
        kind, "old", "Worker", owners=(Owner(kind.KIND, "train", "earlier-uid", True),)
    )
    through_launcher_job = member(
        kind, "launched", ROLES[kind.TYPE][0], owners=(Owner("Job", "train-launcher", "x", True),)
    )
    foreign = Pod(
        "ns",
        "foreign",
        labels={
            "training.kubeflow.org/job-name": "train",
            "training.kubeflow.org/operator-name": "other",
        },
    )
    elsewhere = Pod("other", "p", labels=owned.labels)
    snapshot = ClusterSnapshot(pods=(owned, predecessor, through_launcher_job, foreign, elsewhere))
    assert [pod.name for pod in kind.pods_of(job, snapshot)] == ["launched", "owned"]


@pytest.mark.parametrize("kind", KUBEFLOW, ids=lambda kind: kind.TYPE)
def test_the_chief_is_the_newest_that_is_past_pending(kind: JobKind) -> None:
    job = read_job(kind)
    role = ROLES[kind.TYPE][0]
    pods = [
        member(kind, "first", role, phase="Failed", created_at=1.0),
        member(kind, "second", role, phase="Running", created_at=2.0),
        member(kind, "third", role, phase="Pending", created_at=3.0),
        member(kind, "worker", "Worker", phase="Running", created_at=9.0),
    ]
    chief = kind.chief_of(job, pods)
    assert chief is not None
    assert chief.name == "second"


def test_a_tfjob_without_chief_is_led_by_its_first_worker() -> None:
    kind = kind_by_type("tfjob")
    assert kind is not None
    chief = kind.chief_of(read_job(kind), [member(kind, "w0", "Worker"), member(kind, "ps", "PS")])
    assert chief is not None
    assert chief.name == "w0"


@pytest.mark.parametrize("kind", KUBEFLOW, ids=lambda kind: kind.TYPE)
def test_the_end_is_the_completion_time_or_when_the_condition_turned_true(kind: JobKind) -> None:
    failed = {"type": "Failed", "status": "True", "lastTransitionTime": "2026-01-05T09:00:00Z"}
    assert read_job(kind, conditions=[failed]).finished_at == 1767603600.0
    assert (
        read_job(kind, conditions=[failed], completionTime="2026-01-05T08:30:00Z").finished_at
        == 1767601800.0
    )
    assert read_job(kind, conditions=[{**failed, "status": "False"}]).finished_at is None
    assert read_job(kind, conditions=None).finished_at is None
