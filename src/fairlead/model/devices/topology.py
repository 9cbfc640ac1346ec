"""How the GPUs of one node are wired to each other (docs/spec/arena-cli.md#topology-nodes).

The node's topology ConfigMap in kube-system says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class GpuTopology(Struct, frozen=True, gc=False):
    """`health_by_index` in numeric order, `Healthy` or another word.

    Matrices are square, by GPU index; empty when not told.
    """

    health_by_index: Mapping[int, str] = {}
    links: tuple[tuple[str, ...], ...] = ()
    bandwidths: tuple[tuple[float, ...], ...] = ()
