"""The CronJob controller: a Job at each time of the schedule, if the concurrency policy allows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fairlead.wire.kube.time import parse_time, render_time
from fairlead.wire.text.cron_schedule import Schedule, find_zone, parse_schedule
from fairlead_sim.controllers.job import is_finished
from fairlead_sim.controllers.plan import Plan, View, owned_by
from fairlead_sim.objects.conditions import is_true

Object = dict[str, Any]


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    jobs = _jobs(obj, view)
    status: Object = {**(obj.get("status") or {})}
    active = _active(status, jobs, plan)
    _forget_old(obj["spec"], jobs, plan)
    try:
        schedule = parse_schedule(_zoned(obj["spec"]))
    except ValueError as error:
        plan.warning(
            "UnparseableSchedule", (f'unparseable schedule: "{obj["spec"]["schedule"]}" : {error}')
        )
    else:
        if not obj["spec"].get("suspend"):
            _start_due(obj, schedule, active, status, view, plan)
    plan.status = with_active(status, active)
    return plan


def _jobs(obj: Object, view: View) -> list[Object]:
    return [child for child in view.owned(obj["metadata"]["uid"]) if child["kind"] == "Job"]


def _active(status: Object, jobs: list[Object], plan: Plan) -> list[Object]:
    """Jobs that are not finished; the end of an active one is reported once."""
    known = {reference["uid"] for reference in status.get("active") or ()}
    for job in jobs:
        if is_finished(job) and job["metadata"]["uid"] in known:
            condition = "Complete" if is_true(job, "Complete") else "Failed"
            plan.normal(
                "SawCompletedJob",
                f"Saw completed job: {job['metadata']['name']}, condition: {condition}",
            )
            if condition == "Complete":
                status["lastSuccessfulTime"] = job["status"].get("completionTime", "")
    return [job for job in jobs if not is_finished(job)]


def _forget_old(spec: Object, jobs: list[Object], plan: Plan) -> None:
    for condition, key, default in (
        ("Complete", "successfulJobsHistoryLimit", 3),
        ("Failed", "failedJobsHistoryLimit", 1),
    ):
        limit = spec.get(key)
        ended = [job for job in jobs if is_true(job, condition)]
        for job in ended[: max(0, len(ended) - int(default if limit is None else limit))]:
            plan.delete.append(job)
            plan.normal("SuccessfulDelete", f"Deleted job {job['metadata']['name']}")


def _zoned(spec: Object) -> str:
    """The schedule behind its time zone, as the real controller writes it for robfig's parser."""
    schedule, zone = str(spec["schedule"]), spec.get("timeZone")
    return schedule if "TZ" in schedule or zone is None else f"TZ={zone} {schedule}"


def _start_due(
    obj: Object, schedule: Schedule, active: list[Object], status: Object, view: View, plan: Plan
) -> None:
    """Start the latest strike that is due and not yet served, then come back at the next one."""
    since = parse_time(status.get("lastScheduleTime") or obj["metadata"]["creationTimestamp"])
    following = latest_strike(schedule, since, view.now)[1]
    if following is not None:
        plan.wake(following)
    deadline = obj["spec"].get("startingDeadlineSeconds")
    earliest = since if deadline is None else max(since, view.now - int(deadline))
    due = latest_strike(schedule, earliest, view.now)[0]
    if due is None:
        return
    job = _job(obj, due)
    if _is_among(job, active):
        return
    policy = obj["spec"].get("concurrencyPolicy", "Allow")
    if policy == "Forbid" and active:
        plan.normal(
            "JobAlreadyActive",
            (
                "Not starting job because prior execution is running and "
                "concurrency policy is Forbid"
            ),
        )
        return
    if policy == "Replace":
        plan.delete += active
        plan.events += [
            ("Normal", "SuccessfulDelete", f"Deleted job {job['metadata']['name']}")
            for job in active
        ]
        active.clear()
    if not _is_among(job, _jobs(obj, view)):
        plan.create.append(job)
        plan.normal("SuccessfulCreate", f"Created job {job['metadata']['name']}")
    status["lastScheduleTime"] = render_time(due)


def _is_among(job: Object, jobs: list[Object]) -> bool:
    """Whether this strike's minute has had its job (`@every 20s` strikes three times in one)."""
    return any(job["metadata"]["name"] == other["metadata"]["name"] for other in jobs)


def latest_strike(
    schedule: Schedule, since: float, now: float
) -> tuple[float | None, float | None]:
    """The last strike in (`since`, `now`], and the first after it; None where there is none.

    Far behind, it does not count every strike: it looks from one or two of the first gaps before
    `now` on, as `mostRecentScheduleTime` of the real controller does, and as there a strike before
    that (of Friday, on Sunday) is lost.
    """
    first = schedule.next_after(since)
    if first is None or first > now:
        return None, first
    due: float | None = first
    strike = schedule.next_after(first)
    gap = strike - first if strike is not None else now
    if now - first >= 2 * gap:
        due, strike = None, schedule.next_after(first + ((now - first) // gap - 1) * gap)
    while strike is not None and strike <= now:
        due, strike = strike, schedule.next_after(strike)
    return due, strike


def _job(obj: Object, due: float) -> Object:
    """Named after the minute it was due, so that no strike is served twice."""
    template, metadata = (
        obj["spec"]["jobTemplate"],
        obj["spec"]["jobTemplate"].get("metadata") or {},
    )
    detail = _in_zone(due, obj["spec"].get("timeZone") or "")
    annotations = {
        **(metadata.get("annotations") or {}),
        "batch.kubernetes.io/cronjob-scheduled-timestamp": detail,
    }
    new = {
        "name": f"{obj['metadata']['name']}-{int(due) // 60}",
        "namespace": obj["metadata"]["namespace"],
        "labels": dict(metadata.get("labels") or {}),
        "annotations": annotations,
        "ownerReferences": owned_by(obj),
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": new, "spec": template["spec"]}


def _in_zone(due: float, name: str) -> str:
    zone = find_zone(name)
    return (
        render_time(due)
        if zone in (None, UTC)
        else datetime.fromtimestamp(due, zone).isoformat(timespec="seconds")
    )


def with_active(status: Object, jobs: list[Object]) -> Object:
    """The status with references to these jobs only; without the field when there are none."""
    others = {key: value for key, value in status.items() if key != "active"}
    return {**others, "active": [_reference(job) for job in jobs]} if jobs else others


def _reference(job: Object) -> Object:
    metadata = job["metadata"]
    reference = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": metadata["name"],
        "namespace": metadata["namespace"],
    }
    return {**reference, "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
