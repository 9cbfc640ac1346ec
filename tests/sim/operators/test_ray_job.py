"""A RayJob's life: a cluster of its own, a submitter, the end, and the objects that stay."""

from __future__ import annotations

from typing import Any

import pytest
from tests.cli.submitting import dry_run
from tests.sim.small_world import NAMESPACE, container, get, live, phase, pods, small_world

from fairlead.kinds.instances import all_instances
from fairlead.kinds.registry import kind_by_type
from fairlead.rules.jobs.status import job_status
from fairlead.rules.reports.job import report_jobs
from fairlead_sim.objects.resources import EVENTS, JOBS, MPI_JOBS, RAY_CLUSTERS, RAY_JOBS, TF_JOBS
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.world.snapshot import take_snapshot
from fairlead_sim.world.world import World

Object = dict[str, Any]


def ray_job(image: str = "train:2m", workers: int = 2, **spec: Any) -> Object:
    head = {"template": {"spec": {"containers": [container(image, name="ray-head")]}}}
    group = {
        "groupName": "gpu",
        "replicas": workers,
        "template": {"spec": {"containers": [container(image, gpus=1, name="ray-worker")]}},
    }
    cluster = {"headGroupSpec": head, "workerGroupSpecs": [group]}
    metadata = {"name": "r", "namespace": NAMESPACE}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": metadata,
        "spec": {"entrypoint": "python train.py", "rayClusterSpec": cluster, **spec},
    }


def world_with(job: Object) -> World:
    world = small_world()
    world.cluster.create(job)
    return world


def test_a_ray_job_from_creation_to_its_end() -> None:
    world = world_with(ray_job())
    live(world, 1)
    assert get(world, RAY_JOBS, "r")["status"]["jobDeploymentStatus"] == "Initializing"
    live(world, 120)
    status = get(world, RAY_JOBS, "r")["status"]
    assert (status["jobDeploymentStatus"], status["jobStatus"]) == ("Running", "RUNNING")
    cluster = get(world, RAY_CLUSTERS, status["rayClusterName"])
    assert (cluster["status"]["state"], cluster["status"]["readyWorkerReplicas"]) == ("ready", 2)
    live(world, 200)
    status = get(world, RAY_JOBS, "r")["status"]
    assert (status["jobDeploymentStatus"], status["jobStatus"]) == ("Complete", "SUCCEEDED")
    assert status["endTime"] > status["startTime"]
    assert len(pods(world)) == 4, "the cluster stays unless it shall go"


def test_the_cluster_goes_when_it_shall() -> None:
    world = world_with(ray_job(shutdownAfterJobFinishes=True, ttlSecondsAfterFinished=60))
    live(world, 600)
    assert world.cluster.list(RAY_CLUSTERS, NAMESPACE) == []
    assert [item["metadata"]["labels"].get("job-name") for item in pods(world)] == ["r"], (
        "what the submitter wrote stays"
    )


def test_a_program_that_fails_is_tried_three_times() -> None:
    world = world_with(ray_job("fail:5s"))
    live(world, 600)
    status = get(world, RAY_JOBS, "r")["status"]
    assert (status["jobDeploymentStatus"], status["jobStatus"], status["reason"]) == (
        "Failed",
        "FAILED",
        "AppFailed",
    )
    assert get(world, JOBS, "r")["status"]["failed"] == 3


def test_a_lost_worker_is_made_anew() -> None:
    world = world_with(ray_job("train:1h"))
    live(world, 120)
    worker = next(item for item in pods(world) if "worker" in item["metadata"]["name"])
    world.cluster.delete(world.cluster.kind_of(worker), NAMESPACE, worker["metadata"]["name"])
    live(world, 90)
    workers = [item for item in pods(world) if "worker" in item["metadata"]["name"]]
    assert len(workers) == 2
    assert worker["metadata"]["name"] not in [item["metadata"]["name"] for item in workers]


def test_a_suspended_one_has_nothing_and_goes_on_later() -> None:
    world = world_with(ray_job(suspend=True, shutdownAfterJobFinishes=True))
    live(world, 60)
    assert (get(world, RAY_JOBS, "r")["status"]["jobDeploymentStatus"], pods(world)) == (
        "Suspended",
        [],
    )
    world.cluster.merge_patch(RAY_JOBS, NAMESPACE, "r", {"spec": {"suspend": False}})
    live(world, 400)
    assert get(world, RAY_JOBS, "r")["status"]["jobStatus"] == "SUCCEEDED"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({}, "a RayJob with shutdownAfterJobFinishes set to false is not allowed to be suspended"),
        (
            {"shutdownAfterJobFinishes": True, "clusterSelector": {"ray.io/cluster": "shared"}},
            "the ClusterSelector mode doesn't support the suspend operation",
        ),
    ],
)
def test_one_that_may_not_be_suspended_is_left_as_it_is(spec: Object, message: str) -> None:
    """The words are those of kuberay-operator 1.4.2."""
    world = world_with(ray_job("train:1h", **spec))
    live(world, 120)
    running = [item["metadata"]["name"] for item in pods(world)]
    world.cluster.merge_patch(RAY_JOBS, NAMESPACE, "r", {"spec": {"suspend": True}})
    live(world, 120)
    assert [item["metadata"]["name"] for item in pods(world)] == running
    reported = [
        item
        for item in world.cluster.list(EVENTS, NAMESPACE)
        if item["reason"] == "InvalidRayJobSpec"
    ]
    assert {item["message"] for item in reported} == {
        f"The RayJob spec is invalid {NAMESPACE}/r: {message}"
    }


def test_a_deadline_ends_it() -> None:
    world = world_with(ray_job("train:1h", activeDeadlineSeconds=100))
    live(world, 150)
    assert get(world, RAY_JOBS, "r")["status"]["reason"] == "DeadlineExceeded"


def test_boards_read_it_as_any_job() -> None:
    world = world_with(ray_job())
    live(world, 120)
    snapshot = take_snapshot(world)
    job, kind = next(job for job in snapshot.jobs if job.type == "rayjob"), kind_by_type("rayjob")
    assert kind is not None
    assert [(role.name, role.replicas) for role in job.roles] == [("head", 1), ("gpu", 2)]
    assert [condition.type for condition in job.conditions] == ["Running"]
    members = kind.pods_of(job, snapshot)
    assert sorted(kind.role_of(pod) for pod in members) == ["gpu", "gpu", "head", "submitter"]
    chief = kind.chief_of(job, members)
    assert chief is not None and kind.role_of(chief) == "submitter"


def test_too_many_workers_are_refused() -> None:
    with pytest.raises(ApiStatus, match=r"workerGroupSpecs\[0\].replicas"):
        world_with(ray_job(workers=10_000))


def test_an_mpi_job_of_version_one_runs_with_its_policy_beside() -> None:
    world = small_world()
    launcher = {"template": {"spec": {"containers": [container("train:1m", name="mpi")]}}}
    worker = {
        "replicas": 2,
        "template": {"spec": {"containers": [container("train:1m", gpus=1, name="mpi")]}},
    }
    spec = {
        "slotsPerWorker": 1,
        "cleanPodPolicy": "All",
        "mpiReplicaSpecs": {"Launcher": launcher, "Worker": worker},
    }
    world.cluster.create(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "MPIJob",
            "metadata": {"name": "old", "namespace": NAMESPACE},
            "spec": spec,
        }
    )
    live(world, 300)
    conditions = {
        item["type"]: item["status"] for item in get(world, MPI_JOBS, "old")["status"]["conditions"]
    }
    assert conditions["Succeeded"] == "True"
    assert [
        item["metadata"]["name"] for item in pods(world) if "worker" in item["metadata"]["name"]
    ] == []


def test_a_training_job_that_is_active_too_long_fails() -> None:
    world = small_world()
    spec = {
        "runPolicy": {"activeDeadlineSeconds": 60, "cleanPodPolicy": "Running"},
        "tfReplicaSpecs": {
            "Worker": {
                "replicas": 1,
                "template": {"spec": {"containers": [container("train:1h", name="tensorflow")]}},
            }
        },
    }
    world.cluster.create(
        {
            "apiVersion": "kubeflow.org/v1",
            "kind": "TFJob",
            "metadata": {"name": "slow", "namespace": NAMESPACE},
            "spec": spec,
        }
    )
    live(world, 40)
    assert phase(world, "slow-worker-0") == "Running"
    live(world, 60)
    failed = next(
        item
        for item in get(world, TF_JOBS, "slow")["status"]["conditions"]
        if item["type"] == "Failed"
    )
    assert failed["message"] == (
        "Job slow has failed because it was active longer than specified deadline"
    )
    assert pods(world) == []


def test_what_arena_submits_runs_on_every_host() -> None:
    flags = (
        "rj --name=r --image=train:2m --worker-replicas=2 --worker-num-of-hosts=2 --worker-gpu=1 "
        "--shutdown-after-finished=false go"
    )
    [job] = dry_run(f"-n {NAMESPACE} {flags}")
    world = world_with(job)
    live(world, 120)
    found = next(each for each in all_instances(take_snapshot(world)) if each.job.type == "rayjob")
    report = report_jobs([found], world.clock.now())[0]
    assert (report.status, report.gpus_requested, report.gpus_allocated) == ("RUNNING", 4, 4)
    assert sorted(found.roles) == [*["default-group"] * 4, "head", "submitter"]
    live(world, 300)
    assert (
        job_status(next(each for each in take_snapshot(world).jobs if each.type == "rayjob"), [])
        == "SUCCEEDED"
    )
