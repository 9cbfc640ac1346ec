"""CronJobs: when they strike, what their policies do, what they keep."""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.small_world import CPU_POOL, EPOCH, NAMESPACE, container, get, live, reasons, small_world

from fairlead.sim.cron_schedule import parse_schedule
from fairlead.sim.resources import CRON_JOBS, JOBS
from fairlead.sim.world import World
from fairlead.wire.kube_time import parse_time

Object = dict[str, Any]
# EPOCH is 2026-01-05T08:00:00Z, a Monday.


def cron_job(image: str = "train:10s", schedule: str = "*/5 * * * *", **spec: Any) -> Object:
    template = {"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [container(image)]}}, "backoffLimit": 0}}
    metadata = {"name": "tick", "namespace": NAMESPACE}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata,
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


def jobs(world: World) -> list[str]:
    return [job["metadata"]["name"] for job in world.cluster.list(JOBS, NAMESPACE)]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("*/5 * * * *", "2026-01-05T08:05:00Z"),
        ("0 * * * *", "2026-01-05T09:00:00Z"),
        ("30 4 * * *", "2026-01-06T04:30:00Z"),
        ("0 0 * * 0", "2026-01-11T00:00:00Z"),
        ("0 0 * * 7", "2026-01-11T00:00:00Z"),
        ("15 10 * * tue-thu", "2026-01-06T10:15:00Z"),
        ("0 12 1 feb *", "2026-02-01T12:00:00Z"),
        ("0 0 29 2 *", "2028-02-29T00:00:00Z"),
        ("0 0 13 * fri", "2026-01-09T00:00:00Z"),
        ("5,10-12,50/5 8 * * *", "2026-01-05T08:05:00Z"),
        ("@daily", "2026-01-06T00:00:00Z"),
    ],
)
def test_the_next_strike(text: str, at: str) -> None:
    assert parse_schedule(text).next_after(EPOCH) == parse_time(at)


def test_the_31st_of_february_never_comes() -> None:
    assert parse_schedule("0 0 31 2 *").next_after(EPOCH) is None


@pytest.mark.parametrize("text", ["", "* * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "*/0 * * * *", "x * * * *", "5-3 * * * *"])
def test_what_is_no_schedule(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected exactly 5 fields|is not within|failed to parse int"):
        parse_schedule(text)


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


def test_a_suspended_one_rests_and_a_bad_schedule_is_told() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(cron_job(suspend=True))
    bad = cron_job(schedule="often")
    bad["metadata"]["name"] = "bad"
    world.cluster.load(bad)  # the API would refuse it; a saved world may hold one
    live(world, 700)
    assert jobs(world) == []
    assert reasons(world, "bad") == ["UnparseableSchedule"]
