"""KubeDL's controller of Crons: a job from the template at every strike, and a history.

The strikes follow the schedule.

Unlike a CronJob it deletes none of them, and it may make jobs of any kind. A time zone stands in
the schedule itself (`TZ=…`).
"""

from __future__ import annotations

from typing import Any

from fairlead.wire.kube.time import parse_time, render_time
from fairlead.wire.names import LABEL_CRON
from fairlead.wire.text.cron_schedule import Schedule, parse_schedule
from fairlead_sim.controllers.cron_job import latest_strike, with_active
from fairlead_sim.controllers.plan import Plan, View, owned_by
from fairlead_sim.operators.kubeflow_status import is_over

Object = dict[str, Any]


def reconcile(obj: Object, view: View) -> Plan:
    plan, spec = Plan(), obj["spec"]
    status: Object = {**(obj.get("status") or {})}
    jobs = view.controlled(obj, spec["template"]["kind"])
    active = _active(status, jobs, plan)
    status["history"] = _history(spec, status.get("history") or [], jobs, view)
    if not spec.get("suspend") and not _is_too_late(spec, view, plan):
        try:
            schedule = parse_schedule(str(spec["schedule"]))
        except ValueError as error:
            plan.warning("InvalidSchedule", f"invalid schedule: {spec['schedule']}, err: {error}")
        else:
            _start_due(obj, schedule, active, status, view, plan)
    plan.status = with_active(status, active)
    return plan


def _active(status: Object, jobs: list[Object], plan: Plan) -> list[Object]:
    """Jobs that are not over; the end of an active one is reported once."""
    known = {reference["uid"] for reference in status.get("active") or ()}
    for job in jobs:
        if is_over(job) and job["metadata"]["uid"] in known:
            plan.normal(
                "SawCompletedWorkload", f"Saw completed workload: {job['metadata']['name']}"
            )
    return [job for job in jobs if not is_over(job)]


def _history(spec: Object, before: list[Object], jobs: list[Object], view: View) -> list[Object]:
    """The newest entries, oldest first. The entry of a deleted job stays as it was."""
    found = {entry["object"]["name"]: entry for entry in before}
    for job in jobs:
        name = job["metadata"]["name"]
        found[name] = _entry(spec["template"], job, found.get(name) or {}, view)
    entries = sorted(found.values(), key=lambda entry: (entry["created"], entry["object"]["name"]))
    limit = spec.get("historyLimit")
    return entries if limit is None else entries[max(0, len(entries) - int(limit)) :]


def _entry(template: Object, job: Object, before: Object, view: View) -> Object:
    """A row of the history, as the real controller writes it.

    `apiGroup` has the version, too, and the end is when the controller observed it.
    """
    conditions = (job.get("status") or {}).get("conditions") or [{"type": ""}]
    named = {
        "apiGroup": template["apiVersion"],
        "kind": template["kind"],
        "name": job["metadata"]["name"],
    }
    entry = {
        "object": named,
        "status": conditions[-1]["type"],
        "created": job["metadata"]["creationTimestamp"],
    }
    return {**entry, "finished": before.get("finished") or view.time} if is_over(job) else entry


def _is_too_late(spec: Object, view: View, plan: Plan) -> bool:
    deadline = spec.get("deadline")
    if deadline is None or view.now <= parse_time(deadline):
        return False
    plan.normal("Deadline", "cron has reach deadline and stop scheduling")
    return True


def _start_due(
    obj: Object, schedule: Schedule, active: list[Object], status: Object, view: View, plan: Plan
) -> None:
    since = parse_time(status.get("lastScheduleTime") or obj["metadata"]["creationTimestamp"])
    due, following = latest_strike(schedule, since, view.now)
    if following is not None:
        plan.wake(following)
    if due is None:
        return
    job = _job(obj, due)
    has_own_name = bool(
        ((obj["spec"]["template"].get("workload") or {}).get("metadata") or {}).get("name")
    )
    policy = "Forbid" if has_own_name else obj["spec"].get("concurrencyPolicy", "Allow")
    if policy == "Forbid" and active:
        plan.normal(
            "AlreadyActive",
            "Not starting because prior execution is running and concurrency policy is Forbid",
        )
        return
    if policy == "Replace":
        plan.delete += active
        active.clear()
    plan.create.append(job)
    plan.normal("SuccessfulCreate", f"Created workload: {job['metadata']['name']}")
    status["lastScheduleTime"] = render_time(due)


def _job(obj: Object, due: float) -> Object:
    """Named after the second it was due, so that no strike is served twice."""
    template = obj["spec"]["template"]
    workload = template["workload"]
    metadata = {
        key: value
        for key, value in (workload.get("metadata") or {}).items()
        if key != "generateName"
    }
    own = {
        "name": metadata.get("name") or f"{obj['metadata']['name']}-{int(due)}",
        "namespace": obj["metadata"]["namespace"],
        "labels": {**(metadata.get("labels") or {}), LABEL_CRON: obj["metadata"]["name"]},
        "ownerReferences": owned_by(obj),
    }
    return {
        "apiVersion": template["apiVersion"],
        "kind": template["kind"],
        "metadata": {**metadata, **own},
        "spec": workload["spec"],
    }
