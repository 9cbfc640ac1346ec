"""What does the CronJob controller do? A Job at every strike of its schedule, as its concurrency policy allows; it forgets old ones.

Time zones are left out: schedules are read in UTC.
"""

from __future__ import annotations

from typing import Any

from fairlead.sim.conditions import is_true
from fairlead.sim.cron_schedule import Schedule, parse_schedule
from fairlead.sim.job import is_finished
from fairlead.sim.plan import Plan, View, owned_by
from fairlead.wire.kube_time import parse_time, render_time

Object = dict[str, Any]

MOST_MISSED = 100


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    jobs = [child for child in view.owned(obj["metadata"]["uid"]) if child["kind"] == "Job"]
    status: Object = {**(obj.get("status") or {})}
    active = _active(status, jobs, plan)
    _forget_old(obj["spec"], jobs, plan)
    try:
        schedule = parse_schedule(str(obj["spec"]["schedule"]))
    except ValueError as error:
        plan.warning("UnparseableSchedule", f'unparseable schedule: "{obj["spec"]["schedule"]}" : {error}')
    else:
        if not obj["spec"].get("suspend"):
            _start_due(obj, schedule, active, status, view, plan)
    plan.status = with_active(status, active)
    return plan


def _active(status: Object, jobs: list[Object], plan: Plan) -> list[Object]:
    """Jobs that are not finished; the end of one that was at work is told once."""
    known = {reference["uid"] for reference in status.get("active") or ()}
    for job in jobs:
        if is_finished(job) and job["metadata"]["uid"] in known:
            condition = "Complete" if is_true(job, "Complete") else "Failed"
            plan.normal("SawCompletedJob", f"Saw completed job: {job['metadata']['name']}, condition: {condition}")
            if condition == "Complete":
                status["lastSuccessfulTime"] = job["status"].get("completionTime", "")
    return [job for job in jobs if not is_finished(job)]


def _forget_old(spec: Object, jobs: list[Object], plan: Plan) -> None:
    for condition, key, default in (("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1)):
        limit = spec.get(key)
        ended = [job for job in jobs if is_true(job, condition)]
        for job in ended[: max(0, len(ended) - int(default if limit is None else limit))]:
            plan.delete.append(job)
            plan.normal("SuccessfulDelete", f"Deleted job {job['metadata']['name']}")


def _start_due(obj: Object, schedule: Schedule, active: list[Object], status: Object, view: View, plan: Plan) -> None:
    """Start the latest strike that is due and not yet served, then come back at the next one."""
    since = parse_time(status.get("lastScheduleTime") or obj["metadata"]["creationTimestamp"])
    due, following = latest_strike(schedule, since, view.now)
    if following is not None:
        plan.wake(following)
    deadline = obj["spec"].get("startingDeadlineSeconds")
    if due is None or (deadline is not None and view.now - due > int(deadline)):
        return
    policy = obj["spec"].get("concurrencyPolicy", "Allow")
    if policy == "Forbid" and active:
        plan.normal("JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid")
        return
    if policy == "Replace":
        plan.delete += active
        plan.tell += [("Normal", "SuccessfulDelete", f"Deleted job {job['metadata']['name']}") for job in active]
        active.clear()
    job = _job(obj, due)
    plan.create.append(job)
    plan.normal("SuccessfulCreate", f"Created job {job['metadata']['name']}")
    status["lastScheduleTime"] = render_time(due)


def latest_strike(schedule: Schedule, since: float, now: float) -> tuple[float | None, float | None]:
    """The last strike up to `now`, and the first after it."""
    due, strike = None, schedule.next_after(since)
    for _ in range(MOST_MISSED):
        if strike is None or strike > now:
            return due, strike
        due, strike = strike, schedule.next_after(strike)
    return schedule.next_after(now - 60), schedule.next_after(now)


def _job(obj: Object, due: float) -> Object:
    """Named after the minute it was due, so that no strike is served twice."""
    template, metadata = obj["spec"]["jobTemplate"], obj["spec"]["jobTemplate"].get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), "batch.kubernetes.io/cronjob-scheduled-timestamp": render_time(due)}
    new = {
        "name": f"{obj['metadata']['name']}-{int(due) // 60}",
        "namespace": obj["metadata"]["namespace"],
        "labels": dict(metadata.get("labels") or {}),
        "annotations": annotations,
        "ownerReferences": owned_by(obj),
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": new, "spec": template["spec"]}


def with_active(status: Object, jobs: list[Object]) -> Object:
    """The status, with references to these jobs and to no others; without the field when there are none."""
    others = {key: value for key, value in status.items() if key != "active"}
    return {**others, "active": [_reference(job) for job in jobs]} if jobs else others


def _reference(job: Object) -> Object:
    metadata = job["metadata"]
    reference = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": metadata["name"], "namespace": metadata["namespace"]}
    return {**reference, "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
