"""KubeDL's Crons: their scheduled times, the effect of their policies, and their history. EPOCH is
2026-01-05T08:00:00Z.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.small_world import EPOCH, NAMESPACE, container, get, live, pods, reasons, small_world

from fairlead_sim.objects.resources import CRONS, TF_JOBS
from fairlead_sim.world.world import World

Object = dict[str, Any]


def cron(image: str = "train:10s", metadata: Object | None = None, **spec: Any) -> Object:
    roles = {
        "Chief": {
            "replicas": 1,
            "template": {"spec": {"containers": [container(image, name="tensorflow")]}},
        }
    }
    workload = {
        "metadata": {"labels": {"team": "x"}} if metadata is None else metadata,
        "spec": {"tfReplicaSpecs": roles},
    }
    template = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "workload": workload}
    return {
        "apiVersion": "apps.kubedl.io/v1alpha1",
        "kind": "Cron",
        "metadata": {"name": "tick", "namespace": NAMESPACE},
        "spec": {"schedule": "*/5 * * * *", "template": template, **spec},
    }


def world_with(obj: Object) -> World:
    world = small_world()
    world.cluster.create(obj)
    return world


def jobs(world: World) -> list[str]:
    return [job["metadata"]["name"] for job in world.cluster.list(TF_JOBS, NAMESPACE)]


def name(strike: int) -> str:
    return f"tick-{int(EPOCH) + 300 * strike}"


def test_a_job_at_every_strike_and_a_memory_of_each() -> None:
    world = world_with(cron())
    live(world, 299)
    assert jobs(world) == []
    live(world, 11 * 60)
    assert jobs(world) == [name(1), name(2), name(3)]
    job, status = get(world, TF_JOBS, name(1)), get(world, CRONS, "tick")["status"]
    assert job["metadata"]["labels"] == {"team": "x", "kubedl.io/cron-name": "tick"}
    assert [owner["kind"] for owner in job["metadata"]["ownerReferences"]] == ["Cron"]
    assert status["lastScheduleTime"] == "2026-01-05T08:15:00Z" and "active" not in status
    assert [(each["object"]["name"], each["status"]) for each in status["history"]] == [
        (name(n), "Succeeded") for n in (1, 2, 3)
    ]
    assert all(each["created"] < each["finished"] for each in status["history"])
    assert status["history"][0]["object"]["apiGroup"] == "kubeflow.org/v1"
    assert {"SuccessfulCreate", "SawCompletedWorkload"} <= set(reasons(world, "tick"))


def test_only_this_number_of_jobs_is_remembered_and_all_jobs_stay() -> None:
    world = world_with(cron(historyLimit=2))
    live(world, 26 * 60)
    assert [each["object"]["name"] for each in get(world, CRONS, "tick")["status"]["history"]] == [
        name(4),
        name(5),
    ]
    assert len(jobs(world)) == 5


@pytest.mark.parametrize(
    ("policy", "made", "at_work"), [("Allow", 3, 3), ("Forbid", 1, 1), ("Replace", 1, 1)]
)
def test_what_happens_while_one_is_at_work(policy: str, made: int, at_work: int) -> None:
    world = world_with(cron("train:1h", concurrencyPolicy=policy))
    live(world, 16 * 60)
    assert len(jobs(world)) == made
    assert [pod["status"]["phase"] for pod in pods(world)] == ["Running"] * at_work
    assert len(get(world, CRONS, "tick")["status"]["active"]) == at_work
    assert jobs(world)[-1] == (name(1) if policy == "Forbid" else name(3))


def test_a_job_with_a_name_of_its_own_is_never_there_twice() -> None:
    world = world_with(cron("train:1h", metadata={"name": "mine"}))
    live(world, 16 * 60)
    assert jobs(world) == ["mine"] and "AlreadyActive" in reasons(world, "tick")


def test_suspended_and_resumed() -> None:
    world = world_with(cron(suspend=True))
    live(world, 11 * 60)
    assert jobs(world) == []
    world.cluster.mutate(
        CRONS, NAMESPACE, "tick", lambda obj: {**obj, "spec": {**obj["spec"], "suspend": False}}
    )
    live(world, 60)
    assert jobs(world) == [name(2)], "of what it missed, the last"


def test_no_job_after_the_deadline() -> None:
    world = world_with(cron(deadline="2026-01-05T08:12:00Z"))
    live(world, 3600)
    assert jobs(world) == [name(1), name(2)] and "Deadline" in reasons(world, "tick")


def test_an_invalid_schedule_is_reported() -> None:
    world = world_with(cron(schedule="often"))
    live(world, 600)
    assert jobs(world) == [] and "InvalidSchedule" in reasons(world, "tick")


def test_its_jobs_go_with_it() -> None:
    world = world_with(cron("train:1h"))
    live(world, 6 * 60)
    world.cluster.delete(CRONS, NAMESPACE, "tick")
    live(world, 120)
    assert jobs(world) == [] and pods(world) == []


def test_every_ninety_seconds_from_its_creation_on() -> None:
    world = world_with(cron(schedule="@every 90s"))
    live(world, 280)
    assert jobs(world) == [f"tick-{int(EPOCH) + late}" for late in (90, 180, 270)]
    assert reasons(world, "tick").count("InvalidSchedule") == 0


def test_a_schedule_may_name_its_time_zone() -> None:
    world = world_with(cron(schedule="TZ=Asia/Shanghai 5 16 * * *"))
    live(world, 301)
    assert jobs(world) == [name(1)]
