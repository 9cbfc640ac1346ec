"""Fluid's controller of DataLoads: a Job that brings a data set into its cache.

The Dataset names the DataLoad in `status.operationRef` while it runs; one with a schedule from its
creation to the end of its first Job, too. Left out: the policy OnEvent, and an operation that waits
for another one (`runAfter`).
"""

from __future__ import annotations

from typing import Any

from fairlead.wire.data.fluid import DATASET
from fairlead.wire.data.stand_in import DATASET_CONTROLLER, stand_in_image
from fairlead.wire.kube.time import parse_time
from fairlead_sim.controllers.plan import Plan, View, is_going
from fairlead_sim.objects.conditions import conditions_of, find_condition, is_true, status_of
from fairlead_sim.operators.fluid import (
    API_VERSION,
    RETRY_SECONDS,
    adopted,
    helm_labels,
    install_fault,
    is_running,
    operations_of,
    owner_reference,
    release_of,
    releases,
    runtime_of,
    set_operations,
    without_finalizer,
)
from fairlead_sim.operators.fluid_cache import LOAD_ROLES, LOAD_SUFFIX, load_seconds, source_of

Object = dict[str, Any]

FINALIZER = "fluid-dataload-controller-finalizer"
CHART = {"name": "fluid-dataloader", "version": "0.10.3"}
_OVER = ("Complete", "Failed")


def reconcile(obj: Object, view: View) -> Plan:
    plan = Plan()
    if not is_running(view, DATASET_CONTROLLER):
        return plan
    dataset = _dataset(obj, view)
    if is_going(obj):
        _end(obj, dataset, view, plan)
    elif dataset is None:
        name = (obj["spec"].get("dataset") or {}).get("name", "")
        missing = f'datasets.data.fluid.io "{name}" not found'
        plan.warning("TargetDatasetNotFound", f"Target dataset not found: {missing}")
        plan.wake(view.now + RETRY_SECONDS)
    elif not status_of(dataset).get("runtimes"):
        _wait_for_runtime(view, plan)
    elif (prepared := adopted(obj, dataset, FINALIZER)) != obj:
        plan.change.append((obj, prepared))
    else:
        _operate(obj, dataset, view, plan)
    return plan


def _dataset(obj: Object, view: View) -> Object | None:
    wish = obj["spec"].get("dataset") or {}
    return view.find(API_VERSION, DATASET[3], wish.get("name", ""), wish.get("namespace") or "")


def _wait_for_runtime(view: View, plan: Plan) -> None:
    plan.normal("RuntimeNotReady", "Bounded accelerate runtime not ready")
    plan.wake(view.now + RETRY_SECONDS)


def _operate(obj: Object, dataset: Object, view: View, plan: Plan) -> None:
    """One phase at a time, as Fluid does."""
    status = status_of(obj)
    phase = status.get("phase") or ""
    if not phase:
        fixed = {"conditions": [], "duration": "Unfinished", "infos": {}}
        plan.status = {**fixed, **status, "phase": "Pending"}
    elif phase == "Pending":
        runtime = runtime_of(view, dataset)
        if runtime is None or not status_of(runtime).get("masterNumberReady"):
            _wait_for_runtime(view, plan)
            return
        names = [*operations_of(dataset), obj["metadata"]["name"]]
        set_operations(dataset, list(dict.fromkeys(names)), plan)
        plan.status = {**status, "phase": "Executing"}
    elif phase == "Executing":
        _execute(obj, dataset, view, plan)
    else:
        _release(obj, dataset, plan)
        if _is_repeated(obj):
            _execute(obj, dataset, view, plan)
        else:
            _expire(obj, view, plan)


def _execute(obj: Object, dataset: Object, view: View, plan: Plan) -> None:
    namespace, release = obj["metadata"]["namespace"], _release_name(obj)
    kind = "CronJob" if _is_repeated(obj) else "Job"
    job = view.find("batch/v1", kind, f"{release}-job", namespace)
    found = releases(view, namespace, release)
    if job is None and found:
        plan.delete += found
        plan.wake(view.now + RETRY_SECONDS)
    elif fault := install_fault("fluid-dataloader/alluxio", release):
        plan.warning("DataOperationExecutionFailed", f"fail to execute data operation: {fault}")
        plan.wake(view.now + RETRY_SECONDS)
    elif job is None:
        plan.create += _objects(obj, dataset, view)
    elif kind == "CronJob":
        _follow(obj, job, view, plan)
    elif is_true(job, "Complete") or is_true(job, "Failed"):
        _finish(obj, job, {}, plan)


def _is_repeated(obj: Object) -> bool:
    return bool(obj["spec"].get("policy") == "Cron")


def _follow(obj: Object, cron: Object, view: View, plan: Plan) -> None:
    """The newest Job of a schedule is the state of the DataLoad."""
    status, name = status_of(obj), cron["metadata"]["name"]
    times = ("lastScheduleTime", "lastSuccessfulTime")
    seen = {key: status_of(cron)[key] for key in times if status_of(cron).get(key)}
    since = parse_time(seen["lastScheduleTime"]) if "lastScheduleTime" in seen else 0.0
    current = next(
        (
            job
            for job in view.listed("batch/v1", "Job", obj["metadata"]["namespace"])
            if (job["metadata"].get("labels") or {}).get("cronjob") == name
            and parse_time(job["metadata"]["creationTimestamp"]) >= since
        ),
        None,
    )
    if current is None:
        plan.status = {**status, **seen}
    elif is_true(current, "Complete") or is_true(current, "Failed"):
        _finish(obj, current, seen, plan)
    elif status.get("phase") in _OVER:
        plan.status = {**status, **seen, "phase": "Pending", "duration": "-"}
    else:
        plan.status = {**status, **seen}


def _finish(obj: Object, job: Object, seen: Object, plan: Plan) -> None:
    kind = "Complete" if is_true(job, "Complete") else "Failed"
    condition = find_condition(conditions_of(job), kind) or {}
    ended, begun = condition.get("lastTransitionTime"), job["metadata"]["creationTimestamp"]
    seconds = int(parse_time(ended) - parse_time(begun)) if ended else 0
    kept = ("type", "status", "reason", "message", "lastProbeTime", "lastTransitionTime")
    plan.status = {
        **status_of(obj),
        **seen,
        "phase": kind,
        "conditions": [{key: condition[key] for key in kept if key in condition}],
        "duration": go_seconds(seconds),
    }
    name = obj["metadata"]["name"]
    if plan.status == status_of(obj):
        return
    if kind == "Complete":
        plan.normal("DataOperationSucceed", f"DataLoad {name} succeeded")
    else:
        plan.warning("DataOperationFailed", f"DataLoad {name} failed")


def go_seconds(seconds: int) -> str:
    """
    >>> go_seconds(42), go_seconds(75), go_seconds(3600)
    ('42s', '1m15s', '1h0m0s')
    """
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def _expire(obj: Object, view: View, plan: Plan) -> None:
    ttl = obj["spec"].get("ttlSecondsAfterFinished")
    ended = (conditions_of(obj) or [{}])[0].get("lastTransitionTime")
    if ttl is None or not ended:
        return
    until = parse_time(ended) + int(ttl)
    if view.now < until:
        plan.wake(until)
    else:
        plan.delete.append(obj)


def _release(obj: Object, dataset: Object, plan: Plan) -> None:
    name = obj["metadata"]["name"]
    set_operations(dataset, [each for each in operations_of(dataset) if each != name], plan)


def _end(obj: Object, dataset: Object | None, view: View, plan: Plan) -> None:
    if FINALIZER not in (obj["metadata"].get("finalizers") or ()):
        return
    namespace = obj["metadata"]["namespace"]
    script = view.find("v1", "ConfigMap", _script_name(obj), namespace)
    plan.delete += [
        *releases(view, namespace, _release_name(obj)),
        *([script] if script is not None else []),
        *view.owned(obj["metadata"]["uid"]),
    ]
    if dataset is not None:
        _release(obj, dataset, plan)
    plan.change.append((obj, without_finalizer(obj, FINALIZER)))


# --- what it creates ------------------------------------------------------------------------------


def _release_name(obj: Object) -> str:
    return f"{obj['metadata']['name']}{LOAD_SUFFIX}"


def _script_name(obj: Object) -> str:
    return f"{_release_name(obj)}-data-load-script"


def _objects(obj: Object, dataset: Object, view: View) -> list[Object]:
    """The release, its script, and the Job, in the order in which they are made."""
    name, namespace = _release_name(obj), obj["metadata"]["namespace"]
    labels = {
        **helm_labels(name, CHART["name"], CHART["version"], dataset),
        "role": LOAD_ROLES[0],
        "targetDataset": dataset["metadata"]["name"],
    }
    meta = {
        "namespace": namespace,
        "labels": labels,
        "ownerReferences": [owner_reference(obj, controls=True)],
    }
    script = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _script_name(obj), "namespace": namespace, "labels": labels},
        "data": {},
    }
    job = _job(obj, dataset, meta, view)
    return [release_of(name, namespace, CHART, [script, job], view.now), script, job]


def _job(obj: Object, dataset: Object, meta: Object, view: View) -> Object:
    name = f"{_release_name(obj)}-job"
    labels = {**meta["labels"], "app": "alluxio"}
    runs = {"backoffLimit": 3, "completions": 1, "parallelism": 1}
    if not _is_repeated(obj):
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {**meta, "name": name, "labels": labels},
            "spec": {**runs, "template": _pod(obj, dataset, labels, view)},
        }
    own = {**labels, "role": "dataload-cronjob", "dataload": obj["metadata"]["name"]}
    template = _pod(obj, dataset, {**labels, "cronjob": name}, view)
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {**meta, "name": name, "labels": own},
        "spec": {
            "schedule": obj["spec"].get("schedule", ""),
            "jobTemplate": {"spec": {**runs, "template": template}},
        },
    }


def _pod(obj: Object, dataset: Object, labels: dict[str, str], view: View) -> Object:
    """Its program runs for the time that the workers which are ready need for the source."""
    spec = obj["spec"]
    runtime = runtime_of(view, dataset)
    workers = int(status_of(runtime).get("workerNumberReady") or 0) if runtime else 0
    seconds = load_seconds(obj, source_of(dataset, view).size, workers, view.seed)
    container: Object = {
        "name": "dataloader",
        "image": stand_in_image("alluxio"),
        "command": ["/bin/sh", "-c"],
        "args": [f"sleep {seconds}"],
    }
    if spec.get("resources"):
        container["resources"] = spec["resources"]
    chosen = ("nodeSelector", "affinity", "tolerations", "schedulerName")
    placed = {key: spec[key] for key in chosen if spec.get(key)}
    return {
        "metadata": {"labels": {**labels, "role": LOAD_ROLES[1]}},
        "spec": {"containers": [container], "restartPolicy": "Never", **placed},
    }
