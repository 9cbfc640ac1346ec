"""The rows of the page of the quota tree: one per node, with bounds per managed resource."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead.console.boards.quota.usage_rows import places_of, shown_amount, unit_of
from fairlead.console.pages.quota_tree import QuotaBounds, QuotaTreeRow
from fairlead.model.quota.use import QuotaUse
from fairlead.model.resources import amount_text


def tree_rows(uses: Sequence[QuotaUse], resources: Sequence[str]) -> list[QuotaTreeRow]:
    """Parents before children, in the order written."""
    places = places_of(uses)
    return [
        QuotaTreeRow(
            name=use.node.name,
            short_name=use.node.short_name,
            path=use.node.path,
            parent=use.node.parent,
            depth=places[use.node.path].depth,
            is_leaf=use.node.is_leaf,
            namespaces=list(use.node.namespaces),
            attributes=dict(use.node.attributes),
            bounds=[_bounds(use, resource) for resource in resources],
            waiting_pods=use.own.waiting_pods,
        )
        for use in uses
    ]


def _bounds(use: QuotaUse, resource: str) -> QuotaBounds:
    least, most = use.node.min.get(resource, 0), use.node.max.get(resource)
    return QuotaBounds(
        resource=resource,
        unit=unit_of(resource)[0],
        min=shown_amount(resource, least),
        max=None if most is None else shown_amount(resource, most),
        min_counted=shown_amount(resource, use.min_of(resource)),
        over_max=shown_amount(resource, use.own.over_max.get(resource, 0)),
        used=shown_amount(resource, use.own.used.get(resource, 0)),
        min_text=amount_text(resource, least),
        max_text="" if most is None else amount_text(resource, most),
        waiting_pods=use.own.waiting_by_resource.get(resource, 0),
    )
