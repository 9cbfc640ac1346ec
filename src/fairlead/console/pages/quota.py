"""The form of the Quota board: one row per quota node and managed resource, leaves split by namespace.

Numbers are in `unit` (cores, bytes, GiB, count); unlimited is null. Inner nodes are totals of what is below
them.
"""

from __future__ import annotations

from fairlead.console.pages.envelope import Json, ListAnswer


class NamespaceUse(Json, frozen=True):
    namespace: str
    used: float


class QuotaRow(Json, frozen=True):
    """`borrowed` is used above min; `lent` is min that others use. `requested` counts waiting pods too."""

    name: str
    path: str
    parent: str
    depth: int
    is_leaf: bool
    namespaces: list[str]
    resource: str
    unit: str
    max: float | None
    min: float
    used: float
    requested: float
    borrowed: float
    lent: float
    waiting_pods: int
    waiting_jobs: int
    by_namespace: list[NamespaceUse]


class QuotaUsage(ListAnswer, frozen=True):
    """`resources`: the managed resources in the order of the tables."""

    items: list[QuotaRow]
    resources: list[str]
