"""The allocation of shared cards in JSON, for `/inspect` and `kubectl inspect cgpu -o json`.

`/inspect` is a path of the extender.

See docs/spec/gpu-sharing.md#inspect-json. Keys of the reference extender come first, then
Fairlead's. `pods[].usedGPU` is what the pod has of that card, not its total.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlead.model.devices.gpu import Health
from fairlead.model.inspection import InspectedCard, InspectedNode, InspectedPod

Object = dict[str, Any]


def render_inspection(nodes: Sequence[InspectedNode], error: str = "") -> Object:
    """The whole document; the key `error` is present only when something is wrong.

    >>> render_inspection([], 'node "x" not found')
    {'nodes': [], 'error': 'node "x" not found'}
    """
    found = {"nodes": [_node(node) for node in nodes]}
    return {**found, "error": error} if error else found


def _node(node: InspectedNode) -> Object:
    isolation = node.isolation
    return {
        "name": node.name,
        "totalGPU": node.total,
        "usedGPU": node.used,
        "devs": [_card(card) for card in node.cards],
        "unit": node.unit,
        "mode": node.mode,
        "isolation": {
            "provider": isolation.provider,
            "memory": isolation.memory,
            "compute": isolation.compute,
            "fault": isolation.fault,
        },
        "overcommitted": node.overcommitted,
        "pending": [_pod(pod) for pod in node.pending],
    }


def _card(card: InspectedCard) -> Object:
    return {
        "id": card.index,
        "totalGPU": card.total,
        "usedGPU": card.used,
        "pods": [_pod(pod) for pod in card.pods],
        "uuid": card.uuid,
        "model": card.model,
        "memoryMiB": card.memory_mib,
        "health": Health.HEALTHY if card.is_healthy else Health.UNHEALTHY,
        "reason": card.reason,
        "coreTotal": card.core_total,
        "coreUsed": card.core_used,
    }


def _pod(pod: InspectedPod) -> Object:
    return {
        "name": pod.name,
        "namespace": pod.namespace,
        "usedGPU": pod.used,
        "uid": pod.uid,
        "containers": {
            name: {"units": part.units, "mib": part.mib, "core": part.core_percent}
            for name, part in pod.containers.items()
        },
        "state": pod.state,
        "terminating": pod.is_terminating,
        "usedMiB": pod.used_mib,
    }
