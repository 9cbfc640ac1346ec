"""What a node's kubelet and its GPU agent say to each other: device ids, who holds them, what they bring.

The kubelet knows ids only: it hands them out, and asks what a container that has them is given. Who that
container is stands in the kubelet's own lists.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from fairlead.model.devices.gpu import Grant


class OfferedDevice(Struct, frozen=True, gc=False):
    """One id of a resource, as it is told to the kubelet. What is not healthy is in capacity only."""

    id: str
    is_healthy: bool = True


class ClaimedDevice(Struct, frozen=True, gc=False):
    """A device that a container has by a resource claim (DRA)."""

    claim: str
    claim_namespace: str
    driver: str
    pool: str
    device: str


class ClaimableCard(Struct, frozen=True, gc=False):
    """A card, or a MIG instance, that a driver publishes for claims. `profile`: of an instance, "" = none."""

    driver: str
    pool: str
    device: str
    uuid: str
    profile: str = ""


class HeldDevices(Struct, frozen=True, gc=False):
    """The ids of one resource that one container has, sorted.

    `pod_uid`: "" where the kubelet's list of pod resources tells, which has none; `namespace` and `pod`: ""
    where its checkpoint tells, which has only the uid. `claimed`: by a claim; `resource` is its driver then.
    """

    resource: str
    ids: tuple[str, ...]
    container: str
    namespace: str = ""
    pod: str = ""
    pod_uid: str = ""
    claimed: ClaimedDevice | None = None


class MountedFile(Struct, frozen=True, gc=False):
    """A file of the node inside the container. Both paths are absolute."""

    host_path: str
    container_path: str
    is_read_only: bool = True


class ContainerEdits(Struct, frozen=True, gc=False):
    """What a container gets with its devices: environment, device nodes (`/dev/nvidia0`), files."""

    environment: Mapping[str, str] = {}
    device_nodes: tuple[str, ...] = ()
    mounts: tuple[MountedFile, ...] = ()


class CardLimit(Struct, frozen=True, gc=False):
    """What a container may use of one card. `context_mib`: what each context of a program costs there."""

    uuid: str
    memory_mib: int
    core_percent: int = 0
    context_mib: int = 0


class ContainerLimits(Struct, frozen=True, gc=False):
    """The limits of one container. `region`: the path, inside it, of the file that its processes share."""

    cards: tuple[CardLimit, ...]
    region: str


class GivenShare(Struct, frozen=True, gc=False):
    """What the node's agent gave to one container of one card, under the token of its device ids."""

    namespace: str
    pod: str
    pod_uid: str
    container: str
    grant: Grant
    token: str


class CdiDevices(Struct, frozen=True, gc=False):
    """Names of devices by which the container runtime finds what a container gets, when it is created."""

    names: tuple[str, ...]
