"""The true counts of a cluster, from kubectl's JSON, by code that shares nothing with Fairlead's.

The tests in this folder compare against them. The code is plain loops over dicts and follows the
definitions of docs/spec/telemetry.md#definitions.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from tests.kube.kubectl import Kubectl, Objects
from tests.kube.objects import GPU, GPU_COUNT, GPU_MEMORY, Object


@dataclass(frozen=True)
class NodeCounts:
    """The GPUs of one node."""

    total: int
    allocated: float
    unhealthy: int
    is_ready: bool
    is_shared: bool
    status: str


@dataclass(frozen=True)
class Counts:
    """GPU nodes by name, and the sums that the boards show."""

    nodes: dict[str, NodeCounts]

    @property
    def gpus(self) -> int:
        return sum(node.total for node in self.nodes.values())

    @property
    def allocated(self) -> float:
        """To one decimal, halves up, as pages and arena round; 26.45 is less in binary."""
        total = f"{sum(node.allocated for node in self.nodes.values()):.6f}"
        return float(Decimal(total).quantize(Decimal("0.1"), ROUND_HALF_UP))

    @property
    def unhealthy(self) -> int:
        return sum(node.unhealthy for node in self.nodes.values())

    @property
    def unhealthy_nodes(self) -> int:
        return sum(not node.is_ready for node in self.nodes.values())

    @property
    def allocated_nodes(self) -> int:
        return sum(node.allocated > 0 for node in self.nodes.values())


def count(admin: Kubectl) -> Counts:
    """Nodes are read before pods: where one of the two is out of date, the counts must err on the
    safe side.
    """
    nodes = admin.get("nodes")
    pods = admin.get("pods")
    return Counts(
        {node["metadata"]["name"]: _count_node(node, pods) for node in nodes if _total_gpus(node)}
    )


def _count_node(node: Object, pods: Objects) -> NodeCounts:
    here = [
        pod
        for pod in pods
        if pod["spec"].get("nodeName") == node["metadata"]["name"] and _holds(pod)
    ]
    capacity, allocatable = node["status"]["capacity"], node["status"]["allocatable"]
    is_shared = GPU_MEMORY in capacity
    allocated = (
        _shared_gpus(node, here) if is_shared else float(sum(_limit(pod, GPU) for pod in here))
    )
    name = GPU_MEMORY if is_shared else GPU
    missing = int(capacity[name]) - int(allocatable[name])
    unhealthy = _total_gpus(node) * missing // int(capacity[name]) if is_shared else missing
    ready = next((c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"), None)
    status = {"True": "Ready", "False": "NotReady"}.get(str(ready), "Unknown")
    return NodeCounts(_total_gpus(node), allocated, unhealthy, ready == "True", is_shared, status)


def _holds(pod: Object) -> bool:
    """A terminating pod holds its GPUs until it is gone."""
    return pod["status"]["phase"] not in ("Succeeded", "Failed")


def _total_gpus(node: Object) -> int:
    capacity = node["status"]["capacity"]
    return int(capacity.get(GPU) or capacity.get(GPU_COUNT) or 0)


def _limit(pod: Object, resource: str) -> int:
    return sum(
        int(container["resources"].get("limits", {}).get(resource, 0))
        for container in pod["spec"]["containers"]
    )


def _shared_gpus(node: Object, pods: Objects) -> float:
    """The sum of granted / total memory over GPUs, to one decimal, halves rounded up."""
    per_gpu = int(node["status"]["capacity"][GPU_MEMORY]) / _total_gpus(node)
    granted: dict[str, int] = defaultdict(int)
    for pod in pods:
        text = (
            pod["metadata"]
            .get("annotations", {})
            .get("scheduler.framework.gpushare.allocation", "{}")
        )
        for units_by_gpu in json.loads(text).values():
            for gpu, units in units_by_gpu.items():
                granted[gpu] += units
    return math.floor(sum(units / per_gpu for units in granted.values()) * 10 + 0.5) / 10
