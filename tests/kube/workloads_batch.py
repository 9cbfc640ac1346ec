"""Workloads of `batch/v1`: Jobs with retries, indexes, deadlines and policies, and CronJobs with
their history limits.
"""

from __future__ import annotations

import time
from typing import Any

from tests.kube.places import Object, Place
from tests.kube.workload_cases import workload
from tests.kube.workload_objects import job, job_spec


def _is(place: Place, condition: str, name: str = "work") -> None:
    def is_so() -> bool:
        conditions = (place.the("jobs", name).get("status") or {}).get("conditions") or ()
        return any(item["type"] == condition and item["status"] == "True" for item in conditions)

    place.until(f"the Job is {condition}", is_so)


@workload
def job_with_parallelism(place: Place) -> None:
    place.create(job("train:1s", completions=5, parallelism=2))
    _is(place, "Complete")


@workload
def indexed_job(place: Place) -> None:
    place.create(job("train:1s", completions=4, parallelism=3, completionMode="Indexed"))
    _is(place, "Complete")


@workload
def job_that_gives_up(place: Place) -> None:
    place.create(job("fail:1s", backoffLimit=1))
    _is(place, "Failed")


@workload
def job_beyond_its_deadline(place: Place) -> None:
    place.create(job("pause:1", parallelism=2, completions=2, activeDeadlineSeconds=3))
    _is(place, "Failed")


@workload
def suspended_job(place: Place) -> None:
    place.create(job("pause:1", parallelism=2, completions=2))
    place.until("two run", lambda: len(place.list("pods")) == 2)
    place.patch("jobs", "work", {"spec": {"suspend": True}})
    _is(place, "Suspended")
    place.until("no pod is left", lambda: not place.list("pods"))


@workload
def resumed_job(place: Place) -> None:
    place.create(job("train:1s", suspend=True))
    _is(place, "Suspended")
    place.patch("jobs", "work", {"spec": {"suspend": False}})
    _is(place, "Complete")


@workload
def job_with_time_to_live(place: Place) -> None:
    place.create(job("train:1s", ttlSecondsAfterFinished=1))
    place.until("it is gone", lambda: place.get("jobs", "work") is None)


@workload
def job_with_final_failures(place: Place) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [139]}}
    place.create(job("crash:1s", parallelism=1, completions=4, podFailurePolicy={"rules": [rule]}))
    _is(place, "Failed")


@workload
def job_that_ignores_disruptions(place: Place) -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    count = {"action": "Count", "onExitCodes": {"operator": "NotIn", "values": [7]}}
    place.create(job("fail:1s", backoffLimit=0, podFailurePolicy={"rules": [rule, count]}))
    _is(place, "Failed")


@workload
def job_with_a_limit_per_index(place: Place) -> None:
    place.create(
        job(
            "fail:1s",
            completions=2,
            parallelism=2,
            completionMode="Indexed",
            backoffLimitPerIndex=0,
        )
    )
    _is(place, "Failed")


@workload
def job_with_a_success_policy(place: Place) -> None:
    policy = {"rules": [{"succeededCount": 1}]}
    place.create(
        job(
            "train:1s", completions=3, parallelism=1, completionMode="Indexed", successPolicy=policy
        )
    )
    _is(place, "Complete")


@workload
def job_scaled_down(place: Place) -> None:
    place.create(job("pause:1", parallelism=3, completions=3))
    place.until(
        "three run", lambda: (place.the("jobs", "work").get("status") or {}).get("ready") == 3
    )
    place.patch("jobs", "work", {"spec": {"parallelism": 1}})
    place.until("one is left", lambda: len(place.list("pods")) == 1)


# --- CronJob --------------------------------------------------------------------------------------


def _cron(image: str, **spec: Any) -> Object:
    """A suspended CronJob: it runs a Job only when the test resumes it."""
    wanted = {
        "schedule": "0 0 1 1 *",
        "suspend": True,
        "jobTemplate": {"spec": job_spec(image)},
        **spec,
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": wanted,
    }


def _miss(place: Place, minutes_ago: int) -> str:
    """Let the CronJob find a scheduled time that it missed this number of seconds ago; returns that
    time.

    The schedule changes while it is suspended: the real controller looks at a changed schedule only
    at its next scheduled time.
    """
    then = time.gmtime(place.now() - 60 * minutes_ago)
    before = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(place.now() - 60 * (minutes_ago + 5)))
    place.patch(
        "cronjobs",
        "nightly",
        {"spec": {"suspend": True, "schedule": f"{then.tm_min} {then.tm_hour} * * *"}},
    )
    place.patch("cronjobs", "nightly", {"status": {"lastScheduleTime": before}}, "status")
    place.patch("cronjobs", "nightly", {"spec": {"suspend": False}})
    return time.strftime("%Y-%m-%dT%H:%M:00Z", then)


def _strike(place: Place, minutes_ago: int) -> None:
    served = _miss(place, minutes_ago)
    place.until(
        "the strike is served",
        lambda: place.the("cronjobs", "nightly")["status"].get("lastScheduleTime") == served,
    )


@workload
def cron_job_that_forbids(place: Place) -> None:
    place.create(_cron("pause:1", concurrencyPolicy="Forbid"))
    _strike(place, 20)
    place.until("its job runs", lambda: bool(place.list("pods")))
    _miss(place, 10)
    place.rest(2)


@workload
def cron_job_that_replaces(place: Place) -> None:
    place.create(_cron("pause:1", concurrencyPolicy="Replace"))
    _strike(place, 20)
    place.until("its job runs", lambda: bool(place.list("pods")))
    _strike(place, 10)


@workload
def cron_job_that_forgets(place: Place) -> None:
    place.create(_cron("train:1s", successfulJobsHistoryLimit=1))
    for minutes in (30, 20, 10):
        _strike(place, minutes)
        place.until(
            "its job is over",
            lambda: not place.the("cronjobs", "nightly")["status"].get("active"),
        )
