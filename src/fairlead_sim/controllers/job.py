"""The Job controller.

It makes pods until enough succeeded, again after failures with growing pauses; then come the end
and its TTL.

A pod is counted once, when its tracking finalizer is removed: so a deleted pod still counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fairlead.wire.kube.time import parse_time
from fairlead_sim.controllers.job_indexes import (
    INDEX_KEY,
    duplicates,
    failure_count,
    index_of,
    parse_indexes,
    pending_indexes,
    render_indexes,
)
from fairlead_sim.controllers.job_rules import (
    FAIL_INDEX,
    IGNORE,
    action_on,
    failing_message,
    success_message,
)
from fairlead_sim.controllers.plan import (
    Plan,
    View,
    generated_pod,
    is_active,
    is_going,
    restarts_of,
)
from fairlead_sim.controllers.replica_set import least_valuable
from fairlead_sim.objects.conditions import is_true, phase_of, with_condition
from fairlead_sim.objects.pod_counts import BURST

Object = dict[str, Any]

FINALIZER = "batch.kubernetes.io/job-tracking"
FIRST_PAUSE_SECONDS = 10.0
LONGEST_PAUSE_SECONDS = 600.0
_UNLIMITED = 2**31 - 1
_TARGETS = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}


@dataclass(slots=True)
class _Work:
    """One look at a Job.

    `status` is what will be written; `succeeded` and `failed` count indexes or pods up to now.
    """

    obj: Object
    view: View
    plan: Plan
    pods: list[Object]
    status: Object
    succeeded: int = 0
    succeeded_indexes: frozenset[int] = frozenset()
    failed_indexes: frozenset[int] = frozenset()

    @property
    def spec(self) -> Object:
        spec: Object = self.obj["spec"]
        return spec

    @property
    def is_indexed(self) -> bool:
        return bool(self.spec.get("completionMode") == "Indexed")

    @property
    def active(self) -> list[Object]:
        return [pod for pod in self.pods if is_active(pod)]

    @property
    def replaces_only_failed(self) -> bool:
        return bool(
            self.spec.get("podReplacementPolicy") == "Failed" or self.spec.get("podFailurePolicy")
        )


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    if is_finished(obj):
        _expire(obj, view, plan)
        return plan
    work = _Work(obj, view, plan, view.pods_of(obj), {**(obj.get("status") or {})})
    if not obj["spec"].get("suspend"):
        work.status.setdefault("startTime", view.time)
    _count_finished(work)
    target = _target(work)
    if target is not None:
        _end(work, target)
    elif obj["spec"].get("suspend"):
        _suspend(work)
    else:
        _resume(work)
        _go_on(work)
    _write_status(work)
    return plan


def is_finished(obj: Object) -> bool:
    return is_true(obj, "Complete") or is_true(obj, "Failed")


# --- counting -------------------------------------------------------------------------------------


def _is_tracked(pod: Object) -> bool:
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


def _untracked(pod: Object) -> Object:
    return {
        **pod,
        "metadata": {
            **pod["metadata"],
            "finalizers": [name for name in pod["metadata"]["finalizers"] if name != FINALIZER],
        },
    }


def _is_failed(work: _Work, pod: Object) -> bool:
    """Failed, or deleted before it could: unless only pods that failed are replaced."""
    phase = phase_of(pod)
    return phase == "Failed" or (
        phase != "Succeeded" and is_going(pod) and not work.replaces_only_failed
    )


def _count_finished(work: _Work) -> None:
    """Count the pods that ended since the last look and let them go."""
    ended = [pod for pod in work.pods if _is_tracked(pod)]
    failed = [pod for pod in ended if _is_failed(work, pod)]
    succeeded = [pod for pod in ended if phase_of(pod) == "Succeeded"]
    for pod in (*failed, *succeeded):
        work.plan.change.append((pod, _untracked(pod)))
    counted = sum(action_on(work.obj, pod) != IGNORE for pod in failed)
    work.status["failed"] = work.status.get("failed", 0) + counted
    if not work.is_indexed:
        work.succeeded = work.status["succeeded"] = work.status.get("succeeded", 0) + len(succeeded)
        return
    completions = int(work.spec.get("completions") or 0)
    found = {
        index for pod in succeeded if (index := index_of(pod)) is not None and index < completions
    }
    work.succeeded_indexes = parse_indexes(work.status.get("completedIndexes", "")) | found
    work.succeeded = work.status["succeeded"] = len(work.succeeded_indexes)
    work.status["completedIndexes"] = render_indexes(work.succeeded_indexes)
    if work.spec.get("backoffLimitPerIndex") is not None:
        lost = {
            index
            for pod in failed
            if _is_index_lost(work, pod) and (index := index_of(pod)) is not None
        }
        work.failed_indexes = parse_indexes(work.status.get("failedIndexes", "")) | lost
        work.status["failedIndexes"] = render_indexes(work.failed_indexes)


def _is_index_lost(work: _Work, pod: Object) -> bool:
    action = action_on(work.obj, pod)
    return action == FAIL_INDEX or (
        action != IGNORE and failure_count(pod) >= int(work.spec["backoffLimitPerIndex"])
    )


# --- the end --------------------------------------------------------------------------------------


def _target(work: _Work) -> tuple[str, str, str] | None:
    """Condition, reason and message of the end that the Job is
    going to; None while it may go on.
    """
    for kind in _TARGETS:
        if is_true(work.obj, kind):
            condition = next(
                item for item in work.obj["status"]["conditions"] if item["type"] == kind
            )
            return kind, condition.get("reason", ""), condition.get("message", "")
    if failing := failing_message(work.obj, work.pods):
        return "FailureTarget", "PodFailurePolicy", failing
    if (why := _failure(work)) is not None:
        return "FailureTarget", *why
    if work.is_indexed and (matched := success_message(work.obj, work.succeeded_indexes)):
        return "SuccessCriteriaMet", "SuccessPolicy", matched
    if _is_complete(work):
        return (
            "SuccessCriteriaMet",
            "CompletionsReached",
            "Reached expected number of succeeded pods",
        )
    return None


def _failure(work: _Work) -> tuple[str, str] | None:
    limit = work.spec.get("backoffLimit")
    most = 6 if limit is None else int(limit)
    restarts = (
        sum(restarts_of(pod) for pod in work.active)
        if work.spec["template"]["spec"].get("restartPolicy") == "OnFailure"
        else 0
    )
    if work.status["failed"] > most or (restarts and restarts >= most):
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    deadline, start = work.spec.get("activeDeadlineSeconds"), work.status.get("startTime")
    if deadline and start and not work.spec.get("suspend"):
        ends_at = parse_time(start) + deadline
        if work.view.now >= ends_at:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        work.plan.wake(ends_at)
    return (
        _lost_indexes(work)
        if work.is_indexed and work.spec.get("backoffLimitPerIndex") is not None
        else None
    )


def _lost_indexes(work: _Work) -> tuple[str, str] | None:
    most, lost = work.spec.get("maxFailedIndexes"), len(work.failed_indexes)
    if most is not None and lost > int(most):
        return "MaxFailedIndexesExceeded", (
            "Job has exceeded the specified maximal number of failed indexes"
        )
    if lost and lost + len(work.succeeded_indexes) >= int(work.spec.get("completions") or 0):
        return "FailedIndexes", "Job has failed indexes"
    return None


def _is_complete(work: _Work) -> bool:
    """Enough pods succeeded and none is active; without `completions` one success is enough."""
    completions = work.spec.get("completions")
    return work.succeeded >= (1 if completions is None else int(completions)) and not work.active


def _end(work: _Work, target: tuple[str, str, str]) -> None:
    """Report the coming end, delete active pods, and once there
    are none, that the job has ended.
    """
    kind, reason, message = target
    _set(work, kind, "True", reason, message)
    _delete(work, work.active)
    if any(phase_of(pod) not in ("Succeeded", "Failed") for pod in work.pods):
        return
    _set(work, _TARGETS[kind], "True", reason, message)
    if kind == "SuccessCriteriaMet":
        work.status["completionTime"] = work.view.time
        work.plan.normal("Completed", "Job completed")
    else:
        work.plan.warning(reason, message)
    work.plan.wake(work.view.now)


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


# --- on the way -----------------------------------------------------------------------------------


def _suspend(work: _Work) -> None:
    _remove(work, work.active)
    if not is_true(work.obj, "Suspended"):
        _set(work, "Suspended", "True", "JobSuspended", "Job suspended")
        work.plan.normal("Suspended", "Job suspended")
    work.status.pop("startTime", None)


def _resume(work: _Work) -> None:
    if is_true(work.obj, "Suspended"):
        _set(work, "Suspended", "False", "JobResumed", "Job resumed")
        work.status["startTime"] = work.view.time
        work.plan.normal("Resumed", "Job resumed")


def _go_on(work: _Work) -> None:
    """Delete pods that are too many, or create those that are missing, or come back when the pause
    after a failure is over.
    """
    active, wanted = work.active, _wanted(work)
    surplus = duplicates(active) if work.is_indexed else []
    rest = [pod for pod in least_valuable(active) if pod not in surplus]
    surplus += rest[: max(0, len(active) - len(surplus) - wanted)]
    if surplus:
        _remove(work, surplus)
        return
    going = (
        sum(is_going(pod) and phase_of(pod) not in ("Succeeded", "Failed") for pod in work.pods)
        if work.replaces_only_failed
        else 0
    )
    missing = min(wanted - len(active) - going, BURST)
    if missing <= 0:
        return
    if work.spec.get("backoffLimitPerIndex") is None:
        ready_at = _paused_until(work.pods)
        if ready_at > work.view.now:
            work.plan.wake(ready_at)
            return
    _create(work, missing)


def _wanted(work: _Work) -> int:
    parallelism, completions = int(work.spec.get("parallelism", 1)), work.spec.get("completions")
    if completions is None:
        return len(work.active) if work.succeeded else parallelism
    return min(parallelism, int(completions) - work.succeeded)


def _paused_until(pods: list[Object]) -> float:
    """The end of the pause after failures: 10, 20, 40 … seconds after the last one.

    It doubles with each pod that failed since the last success.
    """
    last_success = max(
        (_finished_at(pod) for pod in pods if phase_of(pod) == "Succeeded"), default=0.0
    )
    failures = [
        at for pod in pods if phase_of(pod) == "Failed" and (at := _finished_at(pod)) > last_success
    ]
    if not failures:
        return 0.0
    return max(failures) + min(
        LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * (1 << min(len(failures) - 1, 6))
    )


def _finished_at(pod: Object) -> float:
    ends = [
        parse_time(status["state"]["terminated"]["finishedAt"])
        for status in (pod.get("status") or {}).get("containerStatuses") or ()
        if "terminated" in status["state"]
    ]
    return max(ends, default=parse_time(pod["metadata"]["creationTimestamp"]))


def _create(work: _Work, missing: int) -> None:
    if not work.is_indexed:
        for name in work.view.names_below(work.obj, missing):
            _create_pod(work, name, work.spec["template"])
        return
    last_failed: dict[int, Object] = {}
    for pod in sorted((pod for pod in work.pods if phase_of(pod) == "Failed"), key=_finished_at):
        last_failed[index_of(pod) or 0] = pod
    taken = {index for pod in work.pods if is_active(pod) and (index := index_of(pod)) is not None}
    done = taken | work.succeeded_indexes | work.failed_indexes
    names = work.view.names_below(work.obj, missing)
    for name, index in zip(
        names, pending_indexes(done, int(work.spec["completions"]), missing), strict=False
    ):
        _create_index(work, name, index, last_failed.get(index))


def _create_index(work: _Work, name: str, index: int, failed: Object | None) -> None:
    per_index = work.spec.get("backoffLimitPerIndex") is not None
    before = failure_count(failed) + 1 if failed is not None and per_index else 0
    if failed is not None and per_index:
        ready_at = _finished_at(failed) + min(
            LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * (1 << min(before - 1, 6))
        )
        if ready_at > work.view.now:
            work.plan.wake(ready_at)
            return
    template, job = work.spec["template"], work.obj["metadata"]["name"]
    metadata = template.get("metadata") or {}
    annotations = {**(metadata.get("annotations") or {}), INDEX_KEY: str(index)}
    if per_index:
        annotations["batch.kubernetes.io/job-index-failure-count"] = str(before)
    labels = {**(metadata.get("labels") or {}), INDEX_KEY: str(index)}
    containers = [_with_index(container) for container in template["spec"]["containers"]]
    spec = {**template["spec"], "hostname": f"{job}-{index}", "containers": containers}
    indexed = {
        **template,
        "metadata": {**metadata, "annotations": annotations, "labels": labels},
        "spec": spec,
    }
    _create_pod(work, f"{job}-{index}-{name.rpartition('-')[2]}", indexed)


def _with_index(container: Object) -> Object:
    held = container.get("env") or []
    if any(variable["name"] == "JOB_COMPLETION_INDEX" for variable in held):
        return container
    field = {"fieldRef": {"fieldPath": f"metadata.labels['{INDEX_KEY}']"}}
    return {**container, "env": [*held, {"name": "JOB_COMPLETION_INDEX", "valueFrom": field}]}


def _create_pod(work: _Work, name: str, template: Object) -> None:
    pod = generated_pod(template, work.obj, name, labels_of(work.obj))
    work.plan.create.append({**pod, "metadata": {**pod["metadata"], "finalizers": [FINALIZER]}})
    work.plan.normal("SuccessfulCreate", f"Created pod: {name}")


def labels_of(obj: Object) -> dict[str, str]:
    """The labels by which a Job's pods are found."""
    name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
    return {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }


def _remove(work: _Work, pods: list[Object]) -> None:
    """Delete pods that are too many: they are no failures, so they are not tracked any longer."""
    work.plan.change += [(pod, _untracked(pod)) for pod in pods if _is_tracked(pod)]
    _delete(work, pods)


def _delete(work: _Work, pods: list[Object]) -> None:
    for pod in pods:
        work.plan.delete.append(pod)
        work.plan.normal("SuccessfulDelete", f"Deleted pod: {pod['metadata']['name']}")


# --- status ---------------------------------------------------------------------------------------


def _set(work: _Work, kind: str, value: str, reason: str, message: str) -> None:
    work.status["conditions"] = [
        {"lastProbeTime": condition["lastTransitionTime"], **condition}
        for condition in with_condition(
            work.status.get("conditions") or [], kind, value, reason, message, work.view.time
        )
    ]


def _write_status(work: _Work) -> None:
    status, active = work.status, [pod for pod in work.active if pod not in work.plan.delete]
    status["active"] = len(active)
    for name in ("active", "succeeded", "failed"):
        if not status.get(name):
            status.pop(name, None)
    for name in ("completedIndexes",):
        if not status.get(name):
            status.pop(name, None)
    status["ready"] = sum(is_true(pod, "Ready") for pod in active)
    going = [
        pod
        for pod in work.pods
        if phase_of(pod) not in ("Succeeded", "Failed")
        and (is_going(pod) or pod in work.plan.delete)
    ]
    status["terminating"] = len(going)
    status["uncountedTerminatedPods"] = {}
    work.plan.status = status
