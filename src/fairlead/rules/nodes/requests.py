"""How much cpu and memory the pods of a node request, as the scheduler counts it.

Init containers count by the larger-of rule.
"""

from __future__ import annotations

from collections.abc import Mapping

from fairlead.model.resources import CPU, MEMORY, Amounts, sum_of
from fairlead.model.snapshot import ClusterSnapshot


def requested_by_node(snapshot: ClusterSnapshot) -> Mapping[str, Amounts]:
    """By node of the snapshot: cpu in millicores, memory in bytes.

    Finished pods do not count.
    """
    return {node.name: _requested(node.name, snapshot) for node in snapshot.nodes}


def _requested(node: str, snapshot: ClusterSnapshot) -> Amounts:
    total = sum_of(pod.requests for pod in snapshot.pods_on(node) if pod.is_holding)
    return {name: total.get(name, 0) for name in (CPU, MEMORY)}
