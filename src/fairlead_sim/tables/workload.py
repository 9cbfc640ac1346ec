"""The tables of deployments, jobs and the other kinds that make pods."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.wire.kube.time import parse_time
from fairlead_sim.schema.cells import (
    NONE,
    Fill,
    Layout,
    Object,
    age,
    containers_of,
    count_of,
    labels_of,
    layout,
    number,
    part,
    selector_of,
    since,
    text,
    true_condition,
)
from fairlead_sim.schema.duration import render_duration


def wide_columns(template: str, selector: Fill | None = None) -> dict[str, str | Fill]:
    """What `-o wide` adds to a kind with a pod template at the path."""
    shown: dict[str, str | Fill] = {
        title: containers_of(f"{template}.spec", key) for title, key in _CONTAINER_COLUMNS
    }
    return {**shown, "+Selector": selector} if selector else shown


_CONTAINER_COLUMNS = (("+Containers", "name"), ("+Images", "image"))
_TEMPLATE = ".spec.template"
_WIDE = wide_columns(_TEMPLATE, selector_of(".spec.selector"))


def _ready(obj: Object, now: float) -> str:
    return f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}"


def _controller(obj: Object, now: float) -> str:
    owner = next(
        (item for item in obj["metadata"].get("ownerReferences") or () if item.get("controller")),
        None,
    )
    return (
        f"{owner['kind'].lower()}.{owner['apiVersion'].partition('/')[0]}/{owner['name']}"
        if owner
        else NONE
    )


_JOB_WORDS = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
)
_JOB_LAST_WORDS = ("FailureTarget", "SuccessCriteriaMet")


def _job_word(obj: Object, now: float) -> str:
    """The STATUS of a batch Job: the first that holds."""
    for condition, word in _JOB_WORDS:
        if (
            true_condition(obj, condition)
            if condition
            else part(obj, "metadata", "deletionTimestamp")
        ):
            return word
    return next((word for word in _JOB_LAST_WORDS if true_condition(obj, word)), "Running")


def _completions(obj: Object, now: float) -> str:
    done, wanted = number(obj, "status", "succeeded"), part(obj, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallelism = number(obj, "spec", "parallelism")
    return f"{done}/1 of {parallelism}" if parallelism > 1 else f"{done}/1"


def _job_duration(obj: Object, now: float) -> str:
    started, ended = text(obj, "status", "startTime"), text(obj, "status", "completionTime")
    return (
        render_duration((parse_time(ended) if ended else now) - parse_time(started))
        if started
        else ""
    )


def _last_schedule(obj: Object, now: float) -> str:
    last = part(obj, "status", "lastScheduleTime")
    return since(last, now) if last else NONE


LAYOUTS: Mapping[str, Layout] = {
    "deployments.apps": layout(
        {
            "Ready": _ready,
            "Up-to-date": "#.status.updatedReplicas",
            "Available": "#.status.availableReplicas",
            "Age": age,
            **wide_columns(_TEMPLATE, selector_of(".spec.selector", "")),
        }
    ),
    "controllerrevisions.apps": layout(
        {"Controller": _controller, "Revision": "#.revision", "Age": age}
    ),
    "replicasets.apps": layout(
        {
            "Desired:integer": ".spec.replicas",
            "Current:integer": ".status.replicas",
            "Ready:integer": ".status.readyReplicas",
            "Age": age,
            **_WIDE,
        }
    ),
    "statefulsets.apps": layout({"Ready": _ready, "Age": age, **wide_columns(_TEMPLATE)}),
    "daemonsets.apps": layout(
        {
            "Desired:integer": ".status.desiredNumberScheduled",
            "Current:integer": ".status.currentNumberScheduled",
            "Ready:integer": ".status.numberReady",
            "Up-to-date:integer": ".status.updatedNumberScheduled",
            "Available:integer": ".status.numberAvailable",
            "Node Selector": labels_of(".spec.template.spec.nodeSelector"),
            "Age": age,
            **_WIDE,
        }
    ),
    "jobs.batch": layout(
        {
            "Status": _job_word,
            "Completions": _completions,
            "Duration": _job_duration,
            "Age": age,
            **_WIDE,
        }
    ),
    "cronjobs.batch": layout(
        {
            "Schedule": ".spec.schedule",
            "Timezone": ".spec.timeZone|<none>",
            "Suspend:boolean": ".spec.suspend|<unset>",
            "Active:integer": count_of(".status.active"),
            "Last Schedule": _last_schedule,
            "Age": age,
            **wide_columns(
                ".spec.jobTemplate.spec.template", selector_of(".spec.jobTemplate.spec.selector")
            ),
        }
    ),
    "poddisruptionbudgets.policy": layout(
        {
            "Min Available": ".spec.minAvailable|N/A",
            "Max Unavailable": ".spec.maxUnavailable|N/A",
            "Allowed Disruptions:integer": ".status.disruptionsAllowed",
            "Age": age,
        }
    ),
}
