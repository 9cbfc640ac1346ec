"""What a container gets with its cards: environment, device nodes, files.

Specification: docs/spec/gpu-sharing.md#container-environment,
docs/spec/gpu-sharing.md#what-the-container-gets, docs/spec/gpu-sharing.md#isolation-providers.

Without a guard the environment is the only place where a program finds its share. Files are named
here and written by the agent before the container starts: a mount whose file is missing becomes a
directory. The edits for `cgroup`, `mig` and `mps` have not been tried on
hardware.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.devices.gpu import GpuSlot, Grant
from fairlead.model.devices.granted import ContainerGrant, DeviceRefusal, RefusalCode
from fairlead.model.devices.kubelet import (
    CardLimit,
    ContainerEdits,
    ContainerLimits,
    GivenShare,
    MountedFile,
    Region,
)
from fairlead.rules.devices.provider import Provider

CONTROL_NODES: Final = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
LIMITS_PATH: Final = "/etc/fairlead/gpu/limits"
REGION_PATH: Final = "/run/fairlead/gpu/region"
GUARD_PATH: Final = "/usr/lib/fairlead/libfairlead-guard.so"
PRELOAD_PATH: Final = "/etc/ld.so.preload"
PRELOAD: Final = f"{GUARD_PATH}\n"
"""The content of `PRELOAD_PATH`."""
MPS_PIPE_PATH: Final = "/run/fairlead/mps"
_SHARED_MEMORY_PATH: Final = "/dev/shm"


class NodeFiles(Struct, frozen=True, gc=False):
    """Paths of what is mounted from the node.

    `limits` and `region` belong to one container and its grant.

    `mps_pipes`: by UUID, the pipe directory of the card's daemon. `has_device_nodes` False: the
    cards are simulated, and no container gets `/dev/nvidia…`.
    """

    limits: str
    region: str
    guard: str = ""
    preload: str = ""
    mps_pipes: Mapping[str, str] = {}
    mps_shared_memory: str = ""
    has_device_nodes: bool = True


def shared_edits(
    given: ContainerGrant, cards: Collection[GpuSlot], provider: Provider, files: NodeFiles
) -> ContainerEdits | DeviceRefusal:
    """The edits of the container with this grant.

    For several cards `ALIYUN_COM_GPU_MEM_IDX` lists them and `…_DEV` is the sum of their units, so
    that `…_CONTAINER` divided by it is the share of memory that a program may take.
    """
    by_uuid = {card.uuid: card for card in cards}
    slots = [by_uuid[grant.uuid] for grant in given.cards]
    indexes = ",".join(str(grant.index) for grant in given.cards)
    environment = {
        **_whole_environment(slots),
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "ALIYUN_COM_GPU_MEM_IDX": indexes,
        "ALIYUN_COM_GPU_MEM_CONTAINER": str(given.units),
        "ALIYUN_COM_GPU_MEM_DEV": str(sum(slot.units for slot in slots)),
        "ALIYUN_COM_GPU_VISIBLE_DEVICES": indexes,
    }
    if given.pod_units is not None:
        environment["ALIYUN_COM_GPU_MEM_POD"] = str(given.pod_units)
    mounts = [
        MountedFile(files.limits, LIMITS_PATH),
        MountedFile(files.region, REGION_PATH, is_read_only=False),
    ]
    match provider:
        case Provider.NONE:
            environment["CGPU_DISABLE"] = "true"
        case Provider.GUARD:
            mounts += _guard_mounts(files)
        case Provider.MPS:
            pipe = files.mps_pipes.get(given.cards[0].uuid)
            if len(given.cards) > 1:
                reason = (
                    "MPS on this node serves one GPU per container, the placement has "
                    f"{len(given.cards)}"
                )
                return DeviceRefusal(RefusalCode.FAILED_PRECONDITION, reason)
            if pipe is None:
                return DeviceRefusal(
                    RefusalCode.UNAVAILABLE, f"no MPS daemon serves GPU {given.cards[0].uuid}"
                )
            environment |= _mps_environment(given.cards[0])
            mounts.append(MountedFile(pipe, MPS_PIPE_PATH, is_read_only=False))
            mounts.append(
                MountedFile(files.mps_shared_memory, _SHARED_MEMORY_PATH, is_read_only=False)
            )
            if files.guard:
                mounts += _guard_mounts(files)
        case Provider.CGROUP:
            mib = str(min(grant.memory_mib or 0 for grant in given.cards))
            environment |= {"NVIDIA_GPU_MEMORY_REQUEST": mib, "NVIDIA_GPU_MEMORY_LIMIT": mib}
        case Provider.MIG:
            pass
    nodes = _device_nodes(slots, files.has_device_nodes)
    return (
        nodes
        if isinstance(nodes, DeviceRefusal)
        else ContainerEdits(environment, nodes, tuple(mounts))
    )


def whole_edits(
    cards: Sequence[GpuSlot], *, has_device_nodes: bool = True
) -> ContainerEdits | DeviceRefusal:
    """The edits of a container that has these cards for itself; its image chooses libraries."""
    nodes = _device_nodes(cards, has_device_nodes)
    return (
        nodes
        if isinstance(nodes, DeviceRefusal)
        else ContainerEdits(_whole_environment(cards), nodes)
    )


def container_limits(
    given: ContainerGrant, context_mib: Mapping[str, int], provider: Provider = Provider.GUARD
) -> ContainerLimits:
    """The content of the container's limits file.

    `context_mib`: by UUID, the memory of a program's context. Where MPS limits the container, the
    guard only shows the limit, because MPS does not.
    """
    cards = (
        CardLimit(
            grant.uuid, grant.memory_mib or 0, grant.core_percent, context_mib.get(grant.uuid, 0)
        )
        for grant in given.cards
    )
    return ContainerLimits(tuple(cards), REGION_PATH, provider is Provider.MPS)


def fresh_region(now: float) -> Region:
    """The region of a container that starts at `now`, in epoch seconds: nothing is in use."""
    return Region(int(now * 1e9))


def given_shares(given: ContainerGrant) -> tuple[GivenShare, ...]:
    """The rows of the grants file: for each container that may have the ids, one row per card."""
    return tuple(
        GivenShare(given.namespace, given.pod, given.pod_uid, container, grant, given.token)
        for container in given.containers
        for grant in given.cards
    )


def _guard_mounts(files: NodeFiles) -> list[MountedFile]:
    return [MountedFile(files.guard, GUARD_PATH), MountedFile(files.preload, PRELOAD_PATH)]


def _whole_environment(cards: Sequence[GpuSlot]) -> dict[str, str]:
    return {"NVIDIA_VISIBLE_DEVICES": ",".join(card.uuid for card in cards)}


def _mps_environment(grant: Grant) -> dict[str, str]:
    """The environment of a client of MPS.

    MPS numbers the cards that its client sees, so a client's one card is 0 whatever its index is.
    """
    percent = (
        {"CUDA_MPS_ACTIVE_THREAD_PERCENTAGE": str(grant.core_percent)} if grant.core_percent else {}
    )
    return {
        "CUDA_MPS_PIPE_DIRECTORY": MPS_PIPE_PATH,
        "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT": f"0={grant.memory_mib}M",
        **percent,
    }


def _device_nodes(
    cards: Sequence[GpuSlot], has_device_nodes: bool
) -> tuple[str, ...] | DeviceRefusal:
    if not has_device_nodes:
        return ()
    nameless = [card.uuid for card in cards if card.minor < 0]
    if nameless:
        return DeviceRefusal(
            RefusalCode.UNAVAILABLE,
            f"the driver does not report the device node of GPU {nameless[0]}",
        )
    return (*(f"/dev/nvidia{card.minor}" for card in cards), *CONTROL_NODES)
