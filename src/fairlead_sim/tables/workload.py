"""What does `kubectl get` show of deployments, jobs and the other kinds that make pods?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.wire.kube.time import parse_time
from fairlead_sim.schema.cells import (
    NAME,
    NONE,
    Layout,
    Object,
    age,
    columns,
    containers_and_images,
    labels_cell,
    number,
    part,
    selector_cell,
    since,
    text,
    true_condition,
)
from fairlead_sim.schema.duration import render_duration
from fairlead_sim.schema.selector import render_label_selector

_WIDE = ("Containers", "Images", "Selector")


def _pod_template(obj: Object) -> Any:
    return part(obj, "spec", "template", "spec")


def _deployment(obj: Object, now: float) -> list[Any]:
    return [
        obj["metadata"]["name"],
        f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}",
        number(obj, "status", "updatedReplicas"),
        number(obj, "status", "availableReplicas"),
        age(obj, now),
        *containers_and_images(_pod_template(obj)),
        render_label_selector(part(obj, "spec", "selector")),
    ]


def _replica_set(obj: Object, now: float) -> list[Any]:
    return [
        obj["metadata"]["name"],
        number(obj, "spec", "replicas"),
        number(obj, "status", "replicas"),
        number(obj, "status", "readyReplicas"),
        age(obj, now),
        *containers_and_images(_pod_template(obj)),
        selector_cell(part(obj, "spec", "selector")),
    ]


def _controller_revision(obj: Object, now: float) -> list[Any]:
    owner = next((item for item in obj["metadata"].get("ownerReferences") or () if item.get("controller")), None)
    kind = f"{owner['kind'].lower()}.{owner['apiVersion'].partition('/')[0]}/{owner['name']}" if owner else NONE
    return [obj["metadata"]["name"], kind, number(obj, "revision"), age(obj, now)]


def _stateful_set(obj: Object, now: float) -> list[Any]:
    ready = f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}"
    return [obj["metadata"]["name"], ready, age(obj, now), *containers_and_images(_pod_template(obj))]


def _daemon_set(obj: Object, now: float) -> list[Any]:
    fields = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable")
    return [
        obj["metadata"]["name"],
        *(number(obj, "status", field) for field in fields),
        labels_cell(part(_pod_template(obj) or {}, "nodeSelector")),
        age(obj, now),
        *containers_and_images(_pod_template(obj)),
        selector_cell(part(obj, "spec", "selector")),
    ]


_JOB_WORDS = (("Complete", "Complete"), ("Failed", "Failed"), ("", "Terminating"), ("Suspended", "Suspended"))
_JOB_LAST_WORDS = ("FailureTarget", "SuccessCriteriaMet")


def job_word(obj: Object) -> str:
    """The STATUS of a batch Job: the first that holds."""
    for condition, word in _JOB_WORDS:
        if true_condition(obj, condition) if condition else part(obj, "metadata", "deletionTimestamp"):
            return word
    return next((word for word in _JOB_LAST_WORDS if true_condition(obj, word)), "Running")


def _job(obj: Object, now: float) -> list[Any]:
    return [
        obj["metadata"]["name"],
        job_word(obj),
        _completions(obj),
        _job_duration(obj, now),
        age(obj, now),
        *containers_and_images(_pod_template(obj)),
        selector_cell(part(obj, "spec", "selector")),
    ]


def _completions(obj: Object) -> str:
    done, wanted = number(obj, "status", "succeeded"), part(obj, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallelism = number(obj, "spec", "parallelism")
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(obj: Object, now: float) -> str:
    started, ended = text(obj, "status", "startTime"), text(obj, "status", "completionTime")
    if not started:
        return ""
    return render_duration((parse_time(ended) if ended else now) - parse_time(started))


def _cron_job(obj: Object, now: float) -> list[Any]:
    suspend = part(obj, "spec", "suspend")
    last = part(obj, "status", "lastScheduleTime")
    job_spec = part(obj, "spec", "jobTemplate", "spec") or {}
    return [
        obj["metadata"]["name"],
        text(obj, "spec", "schedule"),
        text(obj, "spec", "timeZone", default=NONE),
        "<unset>" if suspend is None else "True" if suspend else "False",
        len(part(obj, "status", "active") or ()),
        since(last, now) if last else NONE,
        age(obj, now),
        *containers_and_images(part(job_spec, "template", "spec")),
        selector_cell(part(job_spec, "selector")),
    ]


def _disruption_budget(obj: Object, now: float) -> list[Any]:
    bounds = [text(obj, "spec", field, default="N/A") for field in ("minAvailable", "maxUnavailable")]
    return [obj["metadata"]["name"], *bounds, number(obj, "status", "disruptionsAllowed"), age(obj, now)]


LAYOUTS: Mapping[str, Layout] = {
    "deployments.apps": Layout(columns(NAME, "Ready", "Up-to-date", "Available", "Age", wide=_WIDE), _deployment),
    "controllerrevisions.apps": Layout(columns(NAME, "Controller", "Revision", "Age"), _controller_revision),
    "replicasets.apps": Layout(columns(NAME, "Desired:integer", "Current:integer", "Ready:integer", "Age", wide=_WIDE), _replica_set),
    "statefulsets.apps": Layout(columns(NAME, "Ready", "Age", wide=("Containers", "Images")), _stateful_set),
    "daemonsets.apps": Layout(
        columns(
            NAME,
            *("Desired:integer", "Current:integer", "Ready:integer", "Up-to-date:integer", "Available:integer"),
            *("Node Selector", "Age"),
            wide=_WIDE,
        ),
        _daemon_set,
    ),
    "jobs.batch": Layout(columns(NAME, "Status", "Completions", "Duration", "Age", wide=_WIDE), _job),
    "cronjobs.batch": Layout(
        columns(NAME, "Schedule", "Timezone", "Suspend:boolean", "Active:integer", "Last Schedule", "Age", wide=_WIDE), _cron_job
    ),
    "poddisruptionbudgets.policy": Layout(
        columns(NAME, "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"), _disruption_budget
    ),
}
