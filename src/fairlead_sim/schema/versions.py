"""How the versions of one kind differ, so that a stored object can be shown in each.

Custom resources (conversion `None`) differ in nothing but `apiVersion`, built-in kinds also in the
fields listed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead_sim.schema.resource import ResourceKind

Object = dict[str, Any]

# Fields of a core `v1` Event and what they are called in `events.k8s.io/v1`.
_EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_OLD_EVENT_FIELDS: Object = {
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
    "deprecatedSource": {},
}
_AUTOSCALER_V1_STATUS = (
    "observedGeneration",
    "lastScaleTime",
    "currentReplicas",
    "desiredReplicas",
)
_EVENTS = ("events.k8s.io/v1", "Event")
_AUTOSCALERS = ("autoscaling/v1", "HorizontalPodAutoscaler")
_CPU_PERCENT = "targetCPUUtilizationPercentage"


def from_stored(obj: Object, view: ResourceKind) -> Object:
    """A stored object as `view` shows it; the same object when that is how it is stored."""
    if view.stored_as is None:
        return obj
    if (view.api_version, view.kind) == _EVENTS:
        obj = {**_OLD_EVENT_FIELDS, **_renamed(obj, _EVENT_FIELDS)}
    elif (view.api_version, view.kind) == _AUTOSCALERS:
        status = {
            key: value
            for key, value in (obj.get("status") or {}).items()
            if key in _AUTOSCALER_V1_STATUS
        }
        obj = {
            **obj,
            "spec": _autoscaler_v1(obj.get("spec") or {}),
            "status": {"currentReplicas": 0, "desiredReplicas": 0, **status},
        }
    return _named(obj, view)


def to_stored(obj: Object, view: ResourceKind) -> Object:
    """What a writer sent under `view` as it is stored."""
    if view.stored_as is None:
        return obj
    if (view.api_version, view.kind) == _EVENTS:
        obj = _renamed(obj, {new: old for old, new in _EVENT_FIELDS.items()})
    elif (view.api_version, view.kind) == _AUTOSCALERS:
        obj = {**obj, "spec": _autoscaler_v2(obj.get("spec") or {})}
    return _named(obj, view.stored_as)


def _named(obj: Object, ref: ResourceKind) -> Object:
    return (
        obj if obj.get("apiVersion") == ref.api_version else {**obj, "apiVersion": ref.api_version}
    )


def _renamed(obj: Mapping[str, Any], names: Mapping[str, str]) -> Object:
    return {names.get(key, key): value for key, value in obj.items()}


def _autoscaler_v1(spec: Mapping[str, Any]) -> Object:
    """`autoscaling/v1` knows the share of cpu alone; other metrics are not shown in it."""
    shown = {key: value for key, value in spec.items() if key not in ("metrics", "behavior")}
    for metric in spec.get("metrics") or ():
        resource = metric.get("resource") or {}
        percent = (resource.get("target") or {}).get("averageUtilization")
        if resource.get("name") == "cpu" and percent is not None:
            shown[_CPU_PERCENT] = percent
    return shown


def _autoscaler_v2(spec: Mapping[str, Any]) -> Object:
    stored = {key: value for key, value in spec.items() if key != _CPU_PERCENT}
    if _CPU_PERCENT in spec:
        target = {"type": "Utilization", "averageUtilization": spec[_CPU_PERCENT]}
        stored["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    return stored
