"""What does the Job controller do? Pods until enough succeeded, again after failures with growing pauses, then the end and its TTL.

Pods are counted from their objects; the tracking finalizers of the real controller are left out.
"""

from __future__ import annotations

from typing import Any

from fairlead.sim.conditions import is_true, phase_of, with_condition
from fairlead.sim.plan import Plan, View, is_active, pod_from, restarts_of
from fairlead.sim.pod_counts import BURST
from fairlead.wire.kube_time import parse_time

Object = dict[str, Any]

FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 600.0


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    pods = view.pods_of(obj)
    if is_finished(obj):
        _expire(obj, view, plan)
        return plan
    status: Object = {**(obj.get("status") or {})}
    if obj["spec"].get("suspend"):
        _suspend(obj, pods, status, view, plan)
        return plan
    if is_true(obj, "Suspended"):
        _set(status, "Suspended", "False", "JobResumed", "Job resumed", view)
        status["startTime"] = view.time
        plan.normal("Resumed", "Job resumed")
    status.setdefault("startTime", view.time)
    if (why := _failure(obj, pods, view)) is not None:
        _fail(pods, status, why, view, plan)
    elif _succeeded(pods) >= _completions(obj):
        _complete(status, pods, view, plan)
    else:
        _fill(obj, pods, view, plan)
    _count(status, pods)
    plan.status = status
    return plan


def is_finished(obj: Object) -> bool:
    return is_true(obj, "Complete") or is_true(obj, "Failed")


def _completions(obj: Object) -> int:
    return int(obj["spec"].get("completions") or obj["spec"].get("parallelism") or 1)


def _succeeded(pods: list[Object]) -> int:
    return sum(phase_of(pod) == "Succeeded" for pod in pods)


def _failed(pods: list[Object]) -> int:
    return sum(phase_of(pod) == "Failed" for pod in pods)


def _failure(obj: Object, pods: list[Object], view: View) -> tuple[str, str] | None:
    """Reason and message of the job's failure, None while it may go on."""
    limit = obj["spec"].get("backoffLimit")
    tries = _failed(pods) + sum(restarts_of(pod) for pod in pods if is_active(pod))
    if tries > (6 if limit is None else int(limit)):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    deadline, start = obj["spec"].get("activeDeadlineSeconds"), (obj.get("status") or {}).get("startTime")
    if deadline and start and view.now >= parse_time(start) + deadline:
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def _fill(obj: Object, pods: list[Object], view: View, plan: Plan) -> None:
    """Create the pods that are missing now, or come back when the pause after a failure is over."""
    active = sum(is_active(pod) for pod in pods)
    wanted = min(int(obj["spec"].get("parallelism", 1)), _completions(obj) - _succeeded(pods))
    if active >= wanted:
        _watch_deadline(obj, plan)
        return
    failures = _failed(pods)
    if failures:
        pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (failures - 1))
        ready_at = max(_finished_at(pod) for pod in pods if phase_of(pod) == "Failed") + pause
        if view.now < ready_at:
            plan.wake(ready_at)
            return
    labels = _labels(obj)
    for name in view.names_below(obj, min(wanted - active, BURST)):
        plan.create.append(pod_from(obj["spec"]["template"], obj, name, labels))
        plan.normal("SuccessfulCreate", f"Created pod: {name}")
    _watch_deadline(obj, plan)


def _watch_deadline(obj: Object, plan: Plan) -> None:
    deadline, start = obj["spec"].get("activeDeadlineSeconds"), (obj.get("status") or {}).get("startTime")
    if deadline and start:
        plan.wake(parse_time(start) + deadline)


def _labels(obj: Object) -> dict[str, str]:
    name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
    return {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }


def _finished_at(pod: Object) -> float:
    ends = [
        parse_time(status["state"]["terminated"]["finishedAt"])
        for status in (pod.get("status") or {}).get("containerStatuses") or ()
        if "terminated" in status["state"]
    ]
    return max(ends, default=parse_time(pod["metadata"]["creationTimestamp"]))


def _suspend(obj: Object, pods: list[Object], status: Object, view: View, plan: Plan) -> None:
    plan.delete += [pod for pod in pods if is_active(pod)]
    if not is_true(obj, "Suspended"):
        _set(status, "Suspended", "True", "JobSuspended", "Job suspended", view)
        plan.normal("Suspended", "Job suspended")
    status.pop("startTime", None)
    _count(status, [])
    plan.status = status


def _fail(pods: list[Object], status: Object, why: tuple[str, str], view: View, plan: Plan) -> None:
    plan.delete += [pod for pod in pods if is_active(pod)]
    _set(status, "FailureTarget", "True", *why, view)
    _set(status, "Failed", "True", *why, view)
    plan.warning(*why)


def _complete(status: Object, pods: list[Object], view: View, plan: Plan) -> None:
    plan.delete += [pod for pod in pods if is_active(pod)]
    message = "Reached expected number of succeeded pods"
    _set(status, "SuccessCriteriaMet", "True", "CompletionsReached", message, view)
    _set(status, "Complete", "True", "CompletionsReached", message, view)
    status["completionTime"] = view.time
    plan.normal("Completed", "Job completed")


def _set(status: Object, kind: str, value: str, reason: str, message: str, view: View) -> None:
    status["conditions"] = [
        {"lastProbeTime": condition["lastTransitionTime"], **condition}
        for condition in with_condition(status.get("conditions") or [], kind, value, reason, message, view.time)
    ]


def _count(status: Object, pods: list[Object]) -> None:
    is_over = any(item["type"] in ("Complete", "Failed") and item["status"] == "True" for item in status.get("conditions") or ())
    active = [pod for pod in pods if is_active(pod)] if not is_over else []
    counts = {"active": len(active), "succeeded": _succeeded(pods), "failed": _failed(pods)}
    for name, count in counts.items():
        if count:
            status[name] = count
        else:
            status.pop(name, None)
    status["ready"] = sum(is_true(pod, "Ready") for pod in active)
    status["terminating"] = 0
    status["uncountedTerminatedPods"] = {}


def _expire(obj: Object, view: View, plan: Plan) -> None:
    """Delete a finished job once its TTL is over."""
    ttl = obj["spec"].get("ttlSecondsAfterFinished")
    if ttl is None:
        return
    ended = next(
        parse_time(condition["lastTransitionTime"])
        for condition in obj["status"]["conditions"]
        if condition["type"] in ("Complete", "Failed") and condition["status"] == "True"
    )
    if view.now >= ended + ttl:
        plan.delete.append(obj)
    else:
        plan.wake(ended + ttl)
