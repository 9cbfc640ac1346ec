"""A Job's own rules: `podFailurePolicy` and `successPolicy`.

The first defines what a failure means, the second when enough pods succeeded.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fairlead_sim.controllers.job_indexes import parse_indexes
from fairlead_sim.objects.conditions import conditions_of, phase_of, status_of

Object = dict[str, Any]

FAIL_JOB, FAIL_INDEX, IGNORE = "FailJob", "FailIndex", "Ignore"


def action_on(obj: Object, pod: Object) -> str:
    """What the first rule that matches a failed pod wants; ""
    where none does: the failure counts.
    """
    matched = _match(obj, pod)
    return matched[0] if matched else ""


def failing_message(obj: Object, pods: list[Object]) -> str:
    """Why the whole Job fails with one of these pods; "" if it does not."""
    for pod in pods if obj["spec"].get("podFailurePolicy") else ():
        matched = _match(obj, pod) if phase_of(pod) == "Failed" else None
        if matched and matched[0] == FAIL_JOB:
            return matched[1]
    return ""


def _match(obj: Object, pod: Object) -> tuple[str, str] | None:
    place = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    for number, rule in enumerate((obj["spec"].get("podFailurePolicy") or {}).get("rules") or ()):
        action, ending = rule["action"], f"matching {rule['action']} rule at index {number}"
        if rule.get("onExitCodes"):
            found = _container_by_exit_code(pod, rule["onExitCodes"])
            if found is not None:
                code = found["state"]["terminated"]["exitCode"]
                return action, (
                    f"Container {found['name']} for pod {place} failed with exit code {code} "
                    f"{ending}"
                )
        else:
            for condition in conditions_of(pod):
                if any(
                    _is_pattern_of(pattern, condition)
                    for pattern in rule.get("onPodConditions") or ()
                ):
                    return action, f"Pod {place} has condition {condition['type']} {ending}"
    return None


def _is_pattern_of(pattern: Object, condition: Object) -> bool:
    return bool(
        pattern["type"] == condition["type"]
        and pattern.get("status", "True") == condition["status"]
    )


def _container_by_exit_code(pod: Object, wanted: Object) -> Object | None:
    status = status_of(pod)
    for container in (
        *(status.get("containerStatuses") or ()),
        *(status.get("initContainerStatuses") or ()),
    ):
        code = (container["state"].get("terminated") or {}).get("exitCode", 0)
        is_named = wanted.get("containerName") in (None, container["name"])
        if code and is_named and (code in wanted["values"]) == (wanted["operator"] == "In"):
            found: Object = container
            return found
    return None


def success_message(obj: Object, succeeded: Collection[int]) -> str:
    """Which rule of the success policy is met; "" if none is."""
    for number, rule in enumerate((obj["spec"].get("successPolicy") or {}).get("rules") or ()):
        count = rule.get("succeededCount")
        if rule.get("succeededIndexes"):
            required = parse_indexes(rule["succeededIndexes"])
            held = len(required & set(succeeded))
            is_met = held == len(required) or (count is not None and held >= count)
        else:
            is_met = count is not None and len(succeeded) >= count
        if is_met and succeeded:
            return f"Matched rules at index {number}"
    return ""
