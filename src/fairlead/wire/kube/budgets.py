"""PodDisruptionBudgets and namespaces: the fields that quota reads."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from fairlead.model.node_choice import Expression
from fairlead.model.quota.rows import Budget, Namespace
from fairlead.wire.kube.objects import WireMeta, kept_annotations, parse_labels


class WireRequirement(Struct, gc=False):
    key: str
    operator: str = ""
    values: list[str] | None = None


class WireSelector(Struct, gc=False, rename="camel"):
    match_labels: dict[str, str | None] | None = None
    match_expressions: list[WireRequirement] | None = None


class WireBudgetMeta(WireMeta, gc=False, rename="camel"):
    generation: int | None = None


class WireBudgetSpec(Struct, gc=False):
    selector: WireSelector | None = None


class WireBudgetStatus(Struct, gc=False, rename="camel"):
    disruptions_allowed: int | None = None
    observed_generation: int | None = None


class WireBudget(Struct, gc=False):
    metadata: WireBudgetMeta
    spec: WireBudgetSpec | None = None
    status: WireBudgetStatus | None = None


class WireNamespaceStatus(Struct, gc=False):
    phase: str | None = None


class WireNamespace(Struct, gc=False):
    metadata: WireMeta
    status: WireNamespaceStatus | None = None


def parse_budget(wire: WireBudget) -> Budget:
    """The budget. It allows nothing until its controller has observed its present generation, as
    the eviction API refuses until then.
    """
    meta, status = wire.metadata, wire.status or WireBudgetStatus()
    is_current = (status.observed_generation or 0) >= (meta.generation or 0)
    selector = wire.spec.selector if wire.spec else None
    return Budget(
        meta.namespace or "",
        meta.name or "",
        meta.uid or "",
        selector=None if selector is None else tuple(_expressions(selector)),
        allowed=max(0, status.disruptions_allowed or 0) if is_current else 0,
    )


def parse_namespace(wire: WireNamespace) -> Namespace:
    meta = wire.metadata
    return Namespace(
        meta.name or "",
        meta.uid or "",
        labels=parse_labels(meta.labels),
        annotations=kept_annotations(meta.annotations),
        is_ending=meta.deletion_timestamp is not None
        or (wire.status is not None and wire.status.phase == "Terminating"),
    )


def _expressions(selector: WireSelector) -> Iterator[Expression]:
    for key, value in sorted((selector.match_labels or {}).items()):
        yield Expression(key, "In", (value or "",))
    for each in selector.match_expressions or ():
        yield Expression(each.key, each.operator, tuple(each.values or ()))
