"""Whether the simulation can read a pod; scheduler and kubelets check it first.

A real API server would have refused such an object by its types. Here it is stored and never runs;
an event gives the reason.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct, field

from fairlead_sim.scheduler.affinity import neighbourhood
from fairlead_sim.scheduler.needs import amounts_of
from fairlead_sim.schema.status import ApiStatus

Object = dict[str, Any]
_Amounts = dict[str, str | int | float] | None


class _Resources(Struct):
    limits: _Amounts = None
    requests: _Amounts = None


class _Container(Struct, rename="camel"):
    name: str
    image: str | None = None
    command: list[str] | None = None
    resources: _Resources | None = None
    restart_policy: str | None = None


class _Toleration(Struct):
    key: str | None = None
    operator: str | None = None
    value: str | None = None
    effect: str | None = None


class _Expression(Struct):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] | None = None

    def __post_init__(self) -> None:
        if self.operator in ("Gt", "Lt") and not (
            self.values and self.values[0].lstrip("-").isdigit()
        ):
            raise ValueError(f"operator {self.operator} wants one integer in values")


class _Selector(Struct, rename="camel"):
    match_expressions: list[_Expression] | None = None
    match_fields: list[_Expression] | None = None
    match_labels: dict[str, str] | None = None


class _NodeSelector(Struct, rename="camel"):
    node_selector_terms: list[_Selector]


class _Preferred(Struct):
    weight: int
    preference: _Selector


class _NodeAffinity(Struct):
    required: _NodeSelector | None = field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )
    preferred: list[_Preferred] | None = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )


class _PodTerm(Struct, rename="camel"):
    topology_key: str
    label_selector: _Selector | None = None
    namespaces: list[str] | None = None
    namespace_selector: _Selector | None = None


class _PreferredPodTerm(Struct, rename="camel"):
    weight: int
    pod_affinity_term: _PodTerm


class _Spread(Struct, rename="camel"):
    topology_key: str
    max_skew: int
    when_unsatisfiable: Literal["DoNotSchedule", "ScheduleAnyway"] = "DoNotSchedule"
    label_selector: _Selector | None = None
    match_label_keys: list[str] | None = None


class _PodAffinity(Struct):
    preferred: list[_PreferredPodTerm] | None = field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default=None
    )
    required: list[_PodTerm] | None = field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class _Affinity(Struct, rename="camel"):
    node_affinity: _NodeAffinity | None = None
    pod_affinity: _PodAffinity | None = None
    pod_anti_affinity: _PodAffinity | None = None


class _Spec(Struct, rename="camel"):
    containers: list[_Container]
    init_containers: list[_Container] | None = None
    tolerations: list[_Toleration] | None = None
    node_selector: dict[str, str] | None = None
    overhead: _Amounts = None
    affinity: _Affinity | None = None
    priority: int | None = None
    topology_spread_constraints: list[_Spread] | None = None


def unreadable(pod: Object) -> str:
    """What is wrong with the pod's spec; "" when it can be read."""
    try:
        spec = msgspec.convert(pod.get("spec"), _Spec)
        for container in (*spec.containers, *(spec.init_containers or ())):
            resources = container.resources or _Resources()
            amounts_of(resources.limits)
            amounts_of(resources.requests)
        amounts_of(spec.overhead)
        if spec.affinity is not None:
            neighbourhood(pod, ())
    except ApiStatus as refusal:
        return f"spec.affinity cannot be read: {refusal.message}"
    except (msgspec.ValidationError, ValueError, KeyError) as error:
        return f"spec cannot be read: {error}"
    return ""
