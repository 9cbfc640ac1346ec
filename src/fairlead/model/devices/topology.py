"""How the GPUs of one node are connected (docs/spec/arena-cli.md#topology-nodes).

The source is the node's topology ConfigMap in kube-system.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class GpuTopology(Struct, frozen=True, gc=False):
    """`health_by_index` in numeric order, `Healthy` or another word.

    Matrices are square, by GPU index; empty = unknown.
    """

    health_by_index: Mapping[int, str] = {}
    links: tuple[tuple[str, ...], ...] = ()
    bandwidths: tuple[tuple[float, ...], ...] = ()
