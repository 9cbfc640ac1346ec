"""The cards of a pod's container on its node: what a device plugin answers in Allocate.

Whole cards (`nvidia.com/gpu`) are chosen here; parts of shared cards were chosen by the scheduler's extender,
whose annotation is read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fairlead.model.devices.gpu import GpuMode
from fairlead.model.resources import GPU_MEMORY, NVIDIA_GPU
from fairlead.wire.names import ANNOTATION_ALLOCATION
from fairlead_sim.gpus.devices import Owner, SimulatedDevices
from fairlead_sim.objects.saved import HeldCard
from fairlead_sim.scheduler.needs import limit_of

Object = dict[str, Any]


def allocate(pod: Object, node: str, devices: SimulatedDevices) -> str:
    """Take the pod's cards, all of them or none; the reason when that is impossible, else ""."""
    metadata = pod["metadata"]
    owner: Owner = (metadata["namespace"], metadata["name"], metadata["uid"])
    if devices.held(metadata["uid"]):
        return ""
    for container in pod["spec"]["containers"]:
        reason = _allocate_whole(container, node, owner, devices) or _allocate_shared(container, pod, node, owner, devices)
        if reason:
            devices.release(metadata["uid"])
            return reason
    return ""


def hold_again(pod: Object, node: str, held: Sequence[HeldCard], devices: SimulatedDevices) -> None:
    """Give a pod that runs the cards back that it held. Where nobody knows which, those that are free: it
    keeps running without, too."""
    metadata = pod["metadata"]
    cards = devices.cards(node)
    for hold in held:
        if hold.index < len(cards):
            limit = hold.limit_mib or cards[hold.index].model.memory_mib
            owner = (metadata["namespace"], metadata["name"], metadata["uid"])
            devices.hold(cards[hold.index], owner, hold.container, mode=hold.mode, limit_mib=limit)
    if not held:
        allocate(pod, node, devices)


def _allocate_whole(container: Object, node: str, owner: Owner, devices: SimulatedDevices) -> str:
    wanted = limit_of(container, NVIDIA_GPU)
    free = [card for card in devices.free_cards(node) if not card.is_shared]
    if wanted > len(free):
        why = f"requested number of devices unavailable for {NVIDIA_GPU}. Requested: {wanted}, Available: {len(free)}"
        return f"Pod was rejected: Allocate failed due to {why}, which is unexpected"
    for card in free[:wanted]:
        devices.hold(card, owner, container["name"], mode=GpuMode.EXCLUSIVE, limit_mib=card.model.memory_mib)
    return ""


def _allocate_shared(container: Object, pod: Object, node: str, owner: Owner, devices: SimulatedDevices) -> str:
    if not limit_of(container, GPU_MEMORY):
        return ""
    by_uuid = {card.uuid: card for card in devices.cards(node)}
    grants = granted(pod).get(container["name"], [])
    cards = [(by_uuid.get(grant["uuid"]), grant["mib"]) for grant in grants]
    if not cards or any(card is None for card, _ in cards):
        why = f"rpc error: code = Unknown desc = container {container['name']} has no grant on this node"
        return f"Pod was rejected: Allocate failed due to {why}, which is unexpected"
    for card, mib in cards:
        assert card is not None
        devices.hold(card, owner, container["name"], mode=GpuMode.SHARE, limit_mib=int(mib))
    return ""


def granted(pod: Object) -> dict[str, list[Object]]:
    """The extender's choice by container (annotation `fairlead.io/gpu-allocation`); empty where there is
    none or it is not JSON."""
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_ALLOCATION, "")
    try:
        return dict(json.loads(text)) if text else {}
    except ValueError:
        return {}
