"""Prices of nodes. Specification: docs/spec/usage.md#prices."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

MATCHED_NODE_LABELS: Final = (
    "node.kubernetes.io/instance-type",
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "karpenter.sh/capacity-type",
    "fairlead.io/price-class",
)
"""Labels of nodes that a price class keeps."""
MODEL_LABEL: Final = "gpu-model"
"""The label of a matcher that means the model of a node's GPUs."""


class Price(Struct, frozen=True):
    """What a node costs per hour from `valid_from` on, as it was entered at `entered_at`.

    `matcher`: sorted (label, value), all of which a price class must have; empty matches every
    class. `node_hour`, `list_node_hour`: micro-units; `gpu_permille`: the GPU share of the price,
    None = the default. `ended`: from `valid_from` on the matcher has no price. `id`: assigned when
    it is stored, growing.
    """

    matcher: tuple[tuple[str, str], ...]
    currency: str
    node_hour: int
    valid_from: int
    entered_at: int
    list_node_hour: int | None = None
    gpu_permille: int | None = None
    entered_by: str = ""
    note: str = ""
    ended: bool = False
    id: int = 0
