"""The cards of a pod's containers on their node, as device plugins assign them for the kubelet.

Whole cards (`nvidia.com/gpu`) and MIG instances are chosen here, when the pod is admitted. Parts of
shared cards were chosen by the scheduler's extender; the node's agent, a hook, decides what a
starting container is given of them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from fairlead.model.devices.gpu import GpuMode
from fairlead.model.resources import GPU_MEMORY, MIG_PREFIX, NVIDIA_GPU
from fairlead.wire.names import ANNOTATION_ALLOCATION
from fairlead_sim.gpus.devices import Owner, SimulatedDevices
from fairlead_sim.kubelet.node_sums import too_few_devices
from fairlead_sim.kubelet.pod_status import NOT_STARTED
from fairlead_sim.objects.saved import HeldCard
from fairlead_sim.scheduler.hooks import AgentHook, NoShare, Share
from fairlead_sim.scheduler.needs import is_sidecar, limit_of

Object = dict[str, Any]


def allocate(pod: Object, node: str, devices: SimulatedDevices) -> str:
    """Take the pod's whole cards and instances, all or none; returns the reason, "" = taken."""
    metadata = pod["metadata"]
    if devices.held(metadata["uid"]):
        return ""
    for container in pod["spec"]["containers"]:
        reason = _allocate_whole(container, node, _owner(pod), devices) or _allocate_instances(
            container, node, _owner(pod), devices
        )
        if reason:
            devices.release(metadata["uid"])
            return reason
    return ""


def take_shares(
    pod: Object, name: str, node: str, devices: SimulatedDevices, agent: AgentHook
) -> str:
    """Give the container its parts of shared cards, if it has not got them yet.

    Why not, in the kubelet's words, else "".
    """
    container = next(each for each in _containers(pod) if each["name"] == name)
    if not limit_of(container, GPU_MEMORY) or devices.held(pod["metadata"]["uid"], name):
        return ""
    given = agent(pod, name, _whole(node, devices))
    by_uuid = {card.uuid: card for card in devices.cards(node)}
    if not isinstance(given, NoShare) and not all(share.uuid in by_uuid for share in given):
        given = NoShare("Unknown", f"container {name} has no grant on this node")
    if isinstance(given, NoShare):
        return f"{NOT_STARTED}rpc error: code = {given.code} desc = {given.reason}"
    for share in given:
        devices.hold(
            by_uuid[share.uuid], _owner(pod), name, mode=GpuMode.SHARE, limit_mib=share.mib
        )
    return ""


def take_lasting_shares(
    pod: Object, node: str, devices: SimulatedDevices, agent: AgentHook
) -> bool:
    """Give containers their parts of shared cards before they start.

    Returns whether all that ask may have them.

    If an init container that ends has a share, too, no container is given anything yet: it runs
    before the others, perhaps on the memory that they get after it.
    """
    sharing = [each for each in _containers(pod) if limit_of(each, GPU_MEMORY)]
    inits = [
        each["name"] for each in pod["spec"].get("initContainers") or () if not is_sidecar(each)
    ]
    if any(each["name"] in inits for each in sharing):
        return not any(
            isinstance(agent(pod, each["name"], _whole(node, devices)), NoShare) for each in sharing
        )
    return not [each for each in sharing if take_shares(pod, each["name"], node, devices, agent)]


def hold_again(pod: Object, node: str, held: Sequence[HeldCard], devices: SimulatedDevices) -> None:
    """Give a running pod the cards back that it held.

    If those are unknown, whole ones that are free: it keeps running without, too.
    """
    cards = devices.cards(node)
    for hold in held:
        if hold.index < len(cards):
            limit = hold.limit_mib or cards[hold.index].model.memory_mib
            card, instance = cards[hold.index], hold.gpu_instance
            devices.hold(
                card,
                _owner(pod),
                hold.container,
                mode=hold.mode,
                limit_mib=limit,
                gpu_instance=instance,
                counts=hold.counts,
            )
    if not held:
        allocate(pod, node, devices)


def annotated_shares(pod: Object, name: str, _whole: Collection[str]) -> Sequence[Share] | NoShare:
    """The shares in the pod's annotation, for a world without an agent."""
    grants = granted(pod).get(name)
    if not grants:
        return NoShare("Unknown", f"container {name} has no grant on this node")
    return [Share(grant["uuid"], int(grant["mib"])) for grant in grants]


def _containers(pod: Object) -> Sequence[Object]:
    return (*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ()))


def _owner(pod: Object) -> Owner:
    metadata = pod["metadata"]
    return metadata["namespace"], metadata["name"], metadata["uid"]


def _whole(node: str, devices: SimulatedDevices) -> Collection[str]:
    return [
        card.uuid
        for card in devices.cards(node)
        if any(hold.mode == GpuMode.EXCLUSIVE for hold in card.holds)
    ]


def _allocate_whole(container: Object, node: str, owner: Owner, devices: SimulatedDevices) -> str:
    wanted = limit_of(container, NVIDIA_GPU)
    free = [card for card in devices.free_cards(node) if not card.is_shared]
    if wanted > len(free):
        return too_few_devices(NVIDIA_GPU, wanted, len(free))
    for card in free[:wanted]:
        devices.hold(
            card, owner, container["name"], mode=GpuMode.EXCLUSIVE, limit_mib=card.model.memory_mib
        )
    return ""


def _allocate_instances(
    container: Object, node: str, owner: Owner, devices: SimulatedDevices
) -> str:
    asked = (container.get("resources") or {}).get("limits") or {}
    for resource in [name for name in asked if name.startswith(MIG_PREFIX)]:
        wanted, free = (
            limit_of(container, resource),
            devices.free_instances(node, resource.removeprefix(MIG_PREFIX)),
        )
        if wanted > len(free):
            return too_few_devices(resource, wanted, len(free))
        for card, instance in free[:wanted]:
            limit, number = instance.memory_mib, instance.gpu_instance
            devices.hold(
                card,
                owner,
                container["name"],
                mode=GpuMode.MIG,
                limit_mib=limit,
                gpu_instance=number,
            )
    return ""


def granted(pod: Object) -> dict[str, list[Object]]:
    """The extender's choice by container (annotation `fairlead.io/gpu-allocation`); empty where
    there is none or it is not JSON.
    """
    text = (pod["metadata"].get("annotations") or {}).get(ANNOTATION_ALLOCATION, "")
    try:
        return dict(json.loads(text)) if text else {}
    except ValueError:
        return {}
