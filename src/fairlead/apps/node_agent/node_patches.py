"""What a node's agent writes to its node: labels, inventory, counts of cards and a condition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from fairlead.model.actions import PatchObject
from fairlead.model.devices.granted import GpuIdentity
from fairlead.model.devices.kubelet import OfferedDevice
from fairlead.model.keys import ANNOTATION_GPU_IDENTITY, ANNOTATION_GPU_UNIT
from fairlead.model.node import Condition, Node
from fairlead.model.resources import GPU_COUNT, MemoryUnit
from fairlead.rules.devices.card_mode import SHARE_READY, CardPlan
from fairlead.rules.devices.machine import Seen, node_changes, node_ref
from fairlead.rules.devices.node_labels import gpu_counts, missing_labels
from fairlead.wire.kube.time import render_time
from fairlead.wire.kubelet.inventory import render_inventory
from fairlead.wire.names import ANNOTATION_GPUS

_CONDITION_PARTS: Final = ("status", "reason", "message")


def metadata_patch(
    node: Node, seen: Seen, identity: GpuIdentity | None, unit: MemoryUnit
) -> PatchObject | None:
    """None if the node has it all already, or has no GPU and never had one."""
    cards = seen.plan.cards
    if not cards and not node.gpus:
        return None
    annotations = {ANNOTATION_GPU_UNIT: unit.value}
    if cards != node.gpus:
        annotations[ANNOTATION_GPUS] = render_inventory(cards)
    if identity is not None:
        annotations[ANNOTATION_GPU_IDENTITY] = identity.value
    return node_changes(node, missing_labels(cards, seen.provider, node.labels), annotations)


def status_patch(node: Node, plan: CardPlan, now: float) -> PatchObject | None:
    """`aliyun.com/gpu-count` and the condition `GPUShareReady`, where they are out of date."""
    status: dict[str, Any] = _outdated_counts(node, {GPU_COUNT: gpu_counts(plan)})
    before = next((each for each in node.conditions if each.type == SHARE_READY), None)
    if condition := _condition(before, plan.condition, now):
        status["conditions"] = [condition]
    return (
        PatchObject(node_ref(node), {"status": status}, "status", is_strategic=True)
        if status
        else None
    )


def counts_patch(node: Node, lists: Mapping[str, Sequence[OfferedDevice]]) -> PatchObject | None:
    """The amounts that the kubelet derives from these lists,
    where the node does not have them yet.
    """
    status = _outdated_counts(
        node,
        {
            name: (len(devices), sum(each.is_healthy for each in devices))
            for name, devices in lists.items()
        },
    )
    return (
        PatchObject(node_ref(node), {"status": status}, "status", is_strategic=True)
        if status
        else None
    )


def _outdated_counts(
    node: Node, counts: Mapping[str, tuple[int, int]]
) -> dict[str, dict[str, str]]:
    """Capacity and allocatable by resource, where the node has other values."""
    status: dict[str, dict[str, str]] = {}
    for name, wanted in counts.items():
        for place, current, count in zip(
            ("capacity", "allocatable"), (node.capacity, node.allocatable), wanted, strict=True
        ):
            if current.get(name, 0) != count:
                status.setdefault(place, {})[name] = str(count)
    return status


def _condition(
    before: Condition | None, wanted: Condition | None, now: float
) -> Mapping[str, Any] | None:
    if wanted is None:
        return {"$patch": "delete", "type": SHARE_READY} if before else None
    if before is not None and all(
        getattr(before, name) == getattr(wanted, name) for name in _CONDITION_PARTS
    ):
        return None
    condition = {
        "type": wanted.type,
        "status": wanted.status,
        "reason": wanted.reason,
        "message": wanted.message,
    }
    since = (
        before.at
        if before is not None and before.status == wanted.status and before.at is not None
        else now
    )
    return {
        **condition,
        "lastTransitionTime": render_time(since),
        "lastHeartbeatTime": render_time(now),
    }
