"""The server-side `Table` that `kubectl get` shows, with columns and words of the real API server.

Wide columns are always sent; kubectl drops those of priority 1 unless they were asked for. Ages are
rendered here, relative to `now`, the cluster's time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead_sim.schema.cells import Layout, age, layout
from fairlead_sim.schema.resource import ResourceKind
from fairlead_sim.schema.versions import to_stored
from fairlead_sim.tables.core import LAYOUTS as _CORE_LAYOUTS
from fairlead_sim.tables.pod import LAYOUT as _POD_LAYOUT
from fairlead_sim.tables.stored import LAYOUTS as _STORED_LAYOUTS
from fairlead_sim.tables.workload import LAYOUTS as _WORKLOAD_LAYOUTS

_LAYOUTS: Mapping[str, Layout] = {
    "pods": _POD_LAYOUT,
    **_CORE_LAYOUTS,
    **_WORKLOAD_LAYOUTS,
    **_STORED_LAYOUTS,
}
_NAME_AGE = layout({"Age:date": age})


def render_table(
    ref: ResourceKind,
    objects: Sequence[Mapping[str, Any]],
    now: float,
    *,
    metadata: Mapping[str, Any],
    include: str = "Metadata",
    with_headers: bool = True,
) -> dict[str, Any]:
    """A `meta.k8s.io/v1` Table.

    `include` is what each row carries of its object: `None`, `Metadata` or `Object`.
    """
    kept = ref.stored_as if ref.custom is None and ref.stored_as is not None else ref
    layout = (
        ref.custom.layout
        if ref.custom is not None
        else _LAYOUTS.get(kept.group_resource, _NAME_AGE)
    )
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": list(layout.columns) if with_headers else None,
        "rows": [
            _row(layout, obj, obj if kept is ref else to_stored(dict(obj), ref), now, include)
            for obj in objects
        ],
    }


def partial_metadata(obj: Mapping[str, Any]) -> dict[str, Any]:
    """The `PartialObjectMetadata` of an object: all that garbage collectors and table rows need."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }


def _row(
    layout: Layout, obj: Mapping[str, Any], stored: Mapping[str, Any], now: float, include: str
) -> dict[str, Any]:
    """The row of an object; its cells come from the version in which it is stored."""
    row: dict[str, Any] = {"cells": layout.cells(stored, now)}
    condition = layout.condition(obj) if layout.condition else None
    if condition:
        row["conditions"] = [
            {"type": "Completed", "status": "True", "reason": condition[0], "message": condition[1]}
        ]
    row["object"] = (
        None if include == "None" else dict(obj) if include == "Object" else partial_metadata(obj)
    )
    return row
