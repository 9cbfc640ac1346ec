"""CronJobs: their scheduled times, the effect of their policies, and the Jobs that they keep."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.small_world import (
    CPU_POOL,
    EPOCH,
    NAMESPACE,
    container,
    get,
    live,
    reasons,
    small_world,
)

from fairlead.wire.kube.time import parse_time, render_time
from fairlead.wire.text.cron_schedule import parse_schedule
from fairlead_sim.controllers.cron_job import latest_strike
from fairlead_sim.objects.resources import CRON_JOBS, JOBS
from fairlead_sim.world.world import World

Object = dict[str, Any]
# EPOCH is 2026-01-05T08:00:00Z, a Monday.


def cron_job(image: str = "train:10s", schedule: str = "*/5 * * * *", **spec: Any) -> Object:
    template = {
        "spec": {
            "template": {"spec": {"restartPolicy": "Never", "containers": [container(image)]}},
            "backoffLimit": 0,
        }
    }
    metadata = {"name": "tick", "namespace": NAMESPACE}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata,
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


def jobs(world: World) -> list[str]:
    return [job["metadata"]["name"] for job in world.cluster.list(JOBS, NAMESPACE)]


def test_a_job_at_every_strike_and_three_are_remembered() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(cron_job())
    live(world, 290)
    assert jobs(world) == []
    live(world, 11)
    minute = int(EPOCH) // 60 + 5
    assert jobs(world) == [f"tick-{minute}"]
    assert get(world, CRON_JOBS, "tick")["status"]["active"][0]["name"] == f"tick-{minute}"
    live(world, 1440)
    assert jobs(world) == [f"tick-{minute + late}" for late in (10, 15, 20)]
    status = get(world, CRON_JOBS, "tick")["status"]
    assert status["lastScheduleTime"] == "2026-01-05T08:25:00Z"
    assert status["lastSuccessfulTime"].startswith("2026-01-05T08:2")
    assert {"SuccessfulCreate", "SawCompletedJob"} <= set(reasons(world, "tick"))


def test_one_failed_job_is_remembered() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(cron_job("fail:5s"))
    live(world, 1700)
    assert len(jobs(world)) == 1


@pytest.mark.parametrize(("policy", "alive"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
def test_what_happens_when_the_last_one_still_runs(policy: str, alive: int) -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(cron_job("train:2h", concurrencyPolicy=policy))
    live(world, 302)
    first = jobs(world)
    live(world, 600)
    assert len(jobs(world)) == alive
    assert (first[0] in jobs(world)) is (policy != "Replace")
    assert ("JobAlreadyActive" in reasons(world, "tick")) is (policy == "Forbid")


def test_a_suspended_one_rests_and_a_bad_schedule_is_reported() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(cron_job(suspend=True))
    bad = cron_job(schedule="often")
    bad["metadata"]["name"] = "bad"
    world.cluster.load(bad)  # the API would refuse it; a saved world may hold one
    live(world, 700)
    assert jobs(world) == []
    assert reasons(world, "bad") == ["UnparseableSchedule"]


def test_every_ninety_seconds_from_its_creation_on() -> None:
    world = small_world(CPU_POOL)
    live(world, 7)
    world.cluster.create(cron_job("train:1s", schedule="@every 90s", successfulJobsHistoryLimit=9))
    live(world, 280)
    assert jobs(world) == [f"tick-{int(EPOCH + 7 + late) // 60}" for late in (90, 180, 270)]
    assert get(world, CRON_JOBS, "tick")["status"]["lastScheduleTime"] == render_time(EPOCH + 277)


def test_one_job_a_minute_where_it_strikes_more_often() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(cron_job("train:1s", schedule="@every 20s", successfulJobsHistoryLimit=9))
    live(world, 125)
    assert jobs(world) == [f"tick-{int(EPOCH) // 60 + minute}" for minute in (0, 1, 2)]
    assert reasons(world, "tick").count("SuccessfulCreate") == 3
    assert get(world, CRON_JOBS, "tick")["status"]["lastScheduleTime"] == "2026-01-05T08:02:00Z"


def test_a_deadline_shorter_than_its_pace_lets_it_never_strike() -> None:
    """As on a real cluster: the controller looks only at scheduled times within the deadline, and
    `@every` counts from the beginning of that time.
    """
    world = small_world(CPU_POOL)
    world.cluster.create(cron_job(schedule="@every 5m", startingDeadlineSeconds=60))
    live(world, 1000)
    assert jobs(world) == []


def test_it_strikes_in_its_time_zone() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(cron_job(schedule="30 16 * * *", timeZone="Asia/Shanghai"))
    live(world, 1801)
    [job] = world.cluster.list(JOBS, NAMESPACE)
    assert job["metadata"]["name"] == f"tick-{int(EPOCH + 1800) // 60}"
    assert job["metadata"]["annotations"] == {
        "batch.kubernetes.io/cronjob-scheduled-timestamp": "2026-01-05T16:30:00+08:00"
    }


@pytest.mark.parametrize(
    ("schedule", "since", "due", "following"),
    [
        ("*/5 * * * *", "2026-01-05T08:00:00Z", "2026-01-05T12:30:00Z", "2026-01-05T12:35:00Z"),
        ("@every 7m", "2026-01-05T08:00:00Z", "2026-01-05T12:33:00Z", "2026-01-05T12:40:00Z"),
        ("@every 7m", "2026-01-05T12:30:00Z", "", "2026-01-05T12:37:00Z"),
        ("0 8 * * 1-5", "2026-01-02T08:00:00Z", "2026-01-05T08:00:00Z", "2026-01-06T08:00:00Z"),
        ("@every 1s", "2016-01-05T12:33:10Z", "2026-01-05T12:33:10Z", "2026-01-05T12:33:11Z"),
        ("0 0 31 2 *", "2026-01-05T08:00:00Z", "", ""),
    ],
)
def test_the_latest_strike_up_to_now(schedule: str, since: str, due: str, following: str) -> None:
    found = latest_strike(
        parse_schedule(schedule), parse_time(since), parse_time("2026-01-05T12:33:10.5Z")
    )
    assert [render_time(moment) if moment else "" for moment in found] == [due, following]
