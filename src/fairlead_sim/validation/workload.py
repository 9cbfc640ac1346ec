"""Which Deployments, Jobs and other makers of pods, and changes of them, are refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fairlead.wire.text.cron_schedule import find_zone, parse_schedule
from fairlead_sim.objects import resources as served
from fairlead_sim.objects.watch_log import Object
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.selector import selects
from fairlead_sim.schema.status import (
    FieldError,
    forbidden_field,
    required,
    shown,
    shown_as_written,
    unsupported,
    wrong_value,
)
from fairlead_sim.validation.field_rules import (
    Rule,
    at_least,
    bounded_share,
    fields,
    frozen,
    labels,
    object_of,
    one_of,
    selector,
    share,
)
from fairlead_sim.validation.pod import pod_errors

_LONGEST_CRON_NAME = 52
_ZONE_PART = re.compile(r"[A-Za-z.\-_0-9+]{1,14}")
_NOT_NEGATIVE = at_least(0)
TEMPLATED = (served.DEPLOYMENTS, served.REPLICA_SETS, served.STATEFUL_SETS, served.DAEMON_SETS)


def workload_errors(ref: ResourceKind, obj: Object) -> list[FieldError]:
    """The faults of an object that makes pods; none for other kinds."""
    spec = obj.get("spec") or {}
    if ref in TEMPLATED:
        return [
            *_RULES[ref]("spec", spec),
            *_selector_errors(ref, spec),
            *_template_errors("spec.template", spec, ("Always",)),
        ]
    if ref is served.JOBS:
        return _job_errors("spec", spec)
    return _cron_job_errors(obj, spec) if ref is served.CRON_JOBS else []


def workload_change_errors(ref: ResourceKind, before: Object, after: Object) -> list[FieldError]:
    """What of a maker of pods may not change once it is there."""
    if ref is served.STATEFUL_SETS:
        fixed = [key for key in {**before, **after} if key not in _FREE_IN_STATEFUL_SETS]
        return (
            [forbidden_field("spec", _SET_RULE)]
            if any(before.get(key) != after.get(key) for key in fixed)
            else []
        )
    if ref in TEMPLATED and before.get("selector") != after.get("selector"):
        return [frozen("spec.selector", after.get("selector"))]
    if ref is not served.JOBS:
        return []
    fixed = [key for key in _FIXED_IN_JOBS if before.get(key) != after.get(key)]
    if "completions" in fixed and after.get("completionMode") == "Indexed":
        return _indexed_completions(after)
    errors = [frozen(f"spec.{key}", after.get(key)) for key in fixed if key != "template"]
    if "template" in fixed and not before.get("suspend"):
        errors.append(frozen("spec.template", after.get("template")))
    return errors


_FIXED_IN_JOBS = ("completions", "selector", "template", "completionMode")
_FREE_IN_STATEFUL_SETS = (
    *("replicas", "ordinals", "template", "updateStrategy"),
    *("revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy", "minReadySeconds"),
)
_SET_RULE = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
    "'updateStrategy', 'revisionHistoryLimit', "
    "'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def _indexed_completions(spec: Object) -> list[FieldError]:
    """An indexed Job may grow and shrink while all of its pods may run at once."""
    why = "can only be modified in tandem with spec.parallelism"
    return (
        []
        if spec["completions"] == spec.get("parallelism")
        else [wrong_value("spec.completions", spec["completions"], why)]
    )


# --- what they share ------------------------------------------------------------------------------


def _selector_errors(ref: ResourceKind, spec: Object) -> list[FieldError]:
    wanted = spec.get("selector")
    if wanted is None:
        return [required("spec.selector"), _unmatched(spec)]
    errors = selector("spec.selector", wanted)
    if errors:
        return [*errors, wrong_value("spec.selector", wanted, "invalid label selector")]
    if not wanted.get("matchLabels") and not wanted.get("matchExpressions"):
        return [
            wrong_value("spec.selector", wanted, f"empty selector is invalid for {ref.singular}")
        ]
    found = {"metadata": {"labels": _template_labels(spec)}}
    return [] if selects(wanted)(found) else [_unmatched(spec)]


def _template_labels(spec: Object) -> Object:
    return object_of(object_of(object_of(spec, "template"), "metadata"), "labels")


def _unmatched(spec: Object) -> FieldError:
    return wrong_value(
        "spec.template.metadata.labels",
        _template_labels(spec) or None,
        "`selector` does not match template `labels`",
    )


def _template_errors(field: str, spec: Object, policies: tuple[str, ...]) -> list[FieldError]:
    pod = object_of(object_of(spec, "template"), "spec")
    errors = [*labels(f"{field}.labels", _template_labels(spec)), *pod_errors(f"{field}.spec", pod)]
    policy = pod.get("restartPolicy", "Always")
    if not errors and policy not in policies:
        errors.append(unsupported(f"{field}.spec.restartPolicy", policy, policies))
    if pod.get("activeDeadlineSeconds") is not None and policies == ("Always",):
        errors.append(
            forbidden_field(
                f"{field}.spec.activeDeadlineSeconds",
                "activeDeadlineSeconds in ReplicaSet is not Supported",
            )
        )
    return errors


# --- Deployments and their like -------------------------------------------------------------------


def _strategy(field: str, strategy: Object) -> list[FieldError]:
    kind, rolling = strategy.get("type"), strategy.get("rollingUpdate") or {}
    if kind not in ("Recreate", "RollingUpdate"):
        got = shown({"RollingUpdate": None, "Type": kind})
        return [
            FieldError(
                field,
                "FieldValueNotSupported",
                (f'Unsupported value: {got}: supported values: "Recreate", "RollingUpdate"'),
            )
        ]
    if kind == "Recreate":
        return (
            [
                forbidden_field(
                    f"{field}.rollingUpdate",
                    "may not be specified when strategy `type` is 'Recreate'",
                )
            ]
            if rolling
            else []
        )
    errors = _ROLLING(f"{field}.rollingUpdate", rolling)
    if not errors and all(rolling.get(key) in (0, "0%") for key in ("maxSurge", "maxUnavailable")):
        zero = rolling["maxUnavailable"]
        return [
            wrong_value(
                f"{field}.rollingUpdate.maxUnavailable", zero, "may not be 0 when `maxSurge` is 0"
            )
        ]
    return errors


def _set_strategy(field: str, strategy: Any) -> list[FieldError]:
    rolling = strategy.get("rollingUpdate") if isinstance(strategy, dict) else None
    if rolling is None or strategy.get("type") != "OnDelete":
        return []
    strategy = {
        "Partition": rolling.get("partition"),
        "MaxUnavailable": rolling.get("maxUnavailable"),
    }
    why = (
        f"Invalid value: {shown_as_written(strategy)}: only allowed for updateStrategy "
        "'RollingUpdate'"
    )
    return [FieldError(f"{field}.rollingUpdate", "FieldValueInvalid", why)]


def _daemon_strategy(field: str, strategy: Any) -> list[FieldError]:
    """One of the two numbers is 0, and not both."""
    rolling = object_of({"strategy": strategy}, "strategy").get("rollingUpdate")
    if not isinstance(rolling, dict) or strategy.get("type") != "RollingUpdate":
        return []
    here = f"{field}.rollingUpdate"
    errors = _DAEMON_ROLLING(here, rolling)
    has_surge, has_gap = (
        rolling.get(key) not in (0, "0%", None) for key in ("maxSurge", "maxUnavailable")
    )
    if has_surge and has_gap:
        errors.append(
            wrong_value(
                f"{here}.maxSurge",
                rolling["maxSurge"],
                "may not be set when maxUnavailable is non-zero",
            )
        )
    if not has_surge and not has_gap:
        errors.append(required(f"{here}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return errors


def _deadline(field: str, spec: Object) -> list[FieldError]:
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is None or deadline > (spec.get("minReadySeconds") or 0):
        return []
    return [
        wrong_value(
            f"{field}.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds"
        )
    ]


_DAEMON_ROLLING = fields({"maxUnavailable": bounded_share, "maxSurge": bounded_share})
_ROLLING = fields({"maxSurge": share, "maxUnavailable": bounded_share})
_COUNTS: Mapping[str, Rule] = {
    "minReadySeconds": _NOT_NEGATIVE,
    "revisionHistoryLimit": _NOT_NEGATIVE,
}
_RULES: Mapping[ResourceKind, Rule] = {
    served.DEPLOYMENTS: fields({**_COUNTS, "strategy": _strategy}, also=_deadline),
    served.REPLICA_SETS: fields(_COUNTS),
    served.STATEFUL_SETS: fields(
        {
            **_COUNTS,
            "podManagementPolicy": one_of("OrderedReady", "Parallel"),
            "updateStrategy": _set_strategy,
        }
    ),
    served.DAEMON_SETS: fields({**_COUNTS, "updateStrategy": _daemon_strategy}),
}


# --- Jobs -----------------------------------------------------------------------------------------

_JOB = fields(
    {
        "completions": _NOT_NEGATIVE,
        "backoffLimit": _NOT_NEGATIVE,
        "activeDeadlineSeconds": _NOT_NEGATIVE,
        "ttlSecondsAfterFinished": _NOT_NEGATIVE,
        "completionMode": one_of("NonIndexed", "Indexed"),
        "podReplacementPolicy": one_of("Failed", "TerminatingOrFailed"),
    }
)


def _job_errors(field: str, spec: Object) -> list[FieldError]:
    errors = _JOB(field, spec)
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        errors.append(required(f"{field}.completions", "when completion mode is Indexed"))
    pod = object_of(object_of(spec, "template"), "spec")
    errors += pod_errors(f"{field}.template.spec", pod)
    if pod.get("restartPolicy", "Always") == "Always":
        why = 'Required value: valid values: "OnFailure", "Never"'
        errors.append(FieldError(f"{field}.template.spec.restartPolicy", "FieldValueRequired", why))
    return errors


_CRON_JOB = fields(
    {
        "concurrencyPolicy": one_of("Allow", "Forbid", "Replace"),
        "successfulJobsHistoryLimit": _NOT_NEGATIVE,
        "failedJobsHistoryLimit": _NOT_NEGATIVE,
        "startingDeadlineSeconds": _NOT_NEGATIVE,
    },
    needs=("schedule",),
)


def _cron_job_errors(obj: Object, spec: Object) -> list[FieldError]:
    errors = _job_errors(
        "spec.jobTemplate.spec", (spec.get("jobTemplate") or {}).get("spec") or {}
    ) + _CRON_JOB("spec", spec)
    schedule, zone = spec.get("schedule"), spec.get("timeZone")
    if schedule and (fault := _schedule_fault(schedule)):
        errors.append(wrong_value("spec.schedule", schedule, fault))
    if schedule and "TZ" in schedule:
        errors.append(
            wrong_value(
                "spec.schedule",
                schedule,
                "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
            )
        )
    if zone is not None:
        errors += [wrong_value("spec.timeZone", zone, fault) for fault in _zone_faults(zone)]
    if len(obj["metadata"]["name"]) > _LONGEST_CRON_NAME:
        errors.append(
            wrong_value(
                "metadata.name",
                obj["metadata"]["name"],
                f"must be no more than {_LONGEST_CRON_NAME} characters",
            )
        )
    return errors


def _schedule_fault(schedule: str) -> str:
    try:
        parse_schedule(schedule)
    except ValueError as error:
        return str(error)
    return ""


def _zone_faults(zone: str) -> list[str]:
    if not zone:
        return ["timeZone must be nil or non-empty string"]
    unknown = f"unknown time zone {zone}"
    if any(
        part in (".", "..") or part[:1] == "-" or not _ZONE_PART.fullmatch(part)
        for part in zone.split("/")
    ):
        return [unknown]
    if zone.lower() == "local":
        own = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [own] if zone == "Local" else [own, unknown]
    return [] if find_zone(zone) else [unknown]
