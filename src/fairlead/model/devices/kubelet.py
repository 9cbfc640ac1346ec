"""What a node's kubelet and its GPU agent exchange: device ids, their holders, what containers get.

The kubelet knows only ids: it allocates them, and asks what a container with these ids gets. Which
container that is must be looked up in the kubelet's lists.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.devices.gpu import Grant


class OfferedDevice(Struct, frozen=True, gc=False):
    """One id of a resource in the list for the kubelet. An unhealthy id counts in capacity only."""

    id: str
    is_healthy: bool = True


class ClaimedDevice(Struct, frozen=True, gc=False):
    """A device that a container holds by a resource claim (DRA)."""

    claim: str
    claim_namespace: str
    driver: str
    pool: str
    device: str


class ClaimableCard(Struct, frozen=True, gc=False):
    """A card or MIG instance that a driver publishes for claims.

    `profile`: of an instance, "" = none.
    """

    driver: str
    pool: str
    device: str
    uuid: str
    profile: str = ""


class HeldDevices(Struct, frozen=True, gc=False):
    """The ids of one resource held by one container, sorted.

    `pod_uid`: "" if the source is the kubelet's pod resources API, which has no uids; `namespace`
    and `pod`: "" if it is the kubelet's checkpoint, which has only uids. `claimed`: a device held
    by a claim; `resource` is its driver then.
    """

    resource: str
    ids: tuple[str, ...]
    container: str
    namespace: str = ""
    pod: str = ""
    pod_uid: str = ""
    claimed: ClaimedDevice | None = None


class MountedFile(Struct, frozen=True, gc=False):
    """A file of the node that is mounted into the container. Both paths are absolute."""

    host_path: str
    container_path: str
    is_read_only: bool = True


class ContainerEdits(Struct, frozen=True, gc=False):
    """What a container gets with its devices: variables, device nodes (`/dev/nvidia0`), files."""

    environment: Mapping[str, str] = {}
    device_nodes: tuple[str, ...] = ()
    mounts: tuple[MountedFile, ...] = ()


class CardLimit(Struct, frozen=True, gc=False):
    """The limits of a container on one card.

    `context_mib`: memory that each CUDA context costs there.
    """

    uuid: str
    memory_mib: int
    core_percent: int = 0
    context_mib: int = 0


class ContainerLimits(Struct, frozen=True, gc=False):
    """The limits of one container.

    `region`: path, in the container, of the file that its processes share. `is_view_only`: another
    provider limits the container; the memory guard in it shows the limits, and refuses nothing.
    """

    cards: tuple[CardLimit, ...]
    region: str
    is_view_only: bool = False


class RegionCard(Struct, frozen=True, gc=False):
    """What the memory guard of one container counts on one card; `used` and `peak` are bytes.

    `denied`: refused requests. `unknown_allocators`: look-ups of functions that look like
    allocators and are in no list of the guard.
    """

    used: int = 0
    peak: int = 0
    denied: int = 0
    unknown_allocators: int = 0


class RegionSlot(Struct, frozen=True, gc=False):
    """One process in a region, by the number of its slot.

    `identity`: its pid, and above it the low 32 bits of its start time (`start`, in ticks since the
    boot). `pid_namespace`: the inode of the namespace to which the pid belongs. `held`: bytes, by
    the card's place in the limits file.
    """

    number: int
    identity: int
    start: int
    pid_namespace: int
    held: tuple[int, ...]

    @property
    def pid(self) -> int:
        return self.identity & 0xFFFF_FFFF


class Region(Struct, frozen=True, gc=False):
    """The file that the processes of one container share for the memory guard.

    Any of them can write anything into it. `generation`: another number at each start of the
    container. `cards`: in the order of the limits file. `slots`: those that are taken.
    """

    generation: int
    cards: tuple[RegionCard, ...] = ()
    slots: tuple[RegionSlot, ...] = ()


class GivenShare(Struct, frozen=True, gc=False):
    """The share of a card that the node's agent gave to a container, with its device ids' token."""

    namespace: str
    pod: str
    pod_uid: str
    container: str
    grant: Grant
    token: str


class CdiDevices(Struct, frozen=True, gc=False):
    """CDI device names with which the container runtime finds what a new container gets."""

    names: tuple[str, ...]
