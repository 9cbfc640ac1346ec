"""Can the world read this pod? The API takes what people send; the scheduler and the kubelets look here before they touch it.

A real API server would have refused such an object by its types. Here it is stored and simply never runs, with an event that says why.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from fairlead.wire.quantity import parse_amounts

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


class _Spec(Struct, rename="camel"):
    containers: list[_Container]
    init_containers: list[_Container] | None = None
    tolerations: list[_Toleration] | None = None
    node_selector: dict[str, str] | None = None
    overhead: _Amounts = None
    priority: int | None = None


def unreadable(pod: Object) -> str:
    """What is wrong with the pod's spec; "" when it can be read."""
    try:
        spec = msgspec.convert(pod.get("spec"), _Spec)
        for container in (*spec.containers, *(spec.init_containers or ())):
            resources = container.resources or _Resources()
            parse_amounts(resources.limits)
            parse_amounts(resources.requests)
        parse_amounts(spec.overhead)
    except (msgspec.ValidationError, ValueError) as error:
        return f"spec cannot be read: {error}"
    return ""
