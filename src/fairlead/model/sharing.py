"""Sharing a GPU: what a pod asks of shared GPUs (`GpuNeed`), and an answer that is a no (`Verdict`).

Units are those of `aliyun.com/gpu-mem` on the pod's node (GiB, or MiB where the cluster says so). What was
given is a `gpu.Grant`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.model.pod import Container
from fairlead.model.resources import GPU_CORE, GPU_MEMORY


class Placement(StrEnum):
    """Which node, or which card of it, a pod is given first: the fullest that has room, or the emptiest."""

    BINPACK = "binpack"
    SPREAD = "spread"


BINPACK: Final = Placement.BINPACK
SPREAD: Final = Placement.SPREAD
PLACEMENTS: Final = {each.value: each for each in Placement}
NOT_PLACED: Final = "GPUShareNotPlaced"
"""Event: a pod that somebody else put on a node, and no card there has room for it."""
NO_ROOM: Final = "GPUShareNoRoom"
"""Event: the sentence over all nodes (`rules/sharing/why`)."""

MANAGED: Final = (GPU_MEMORY, GPU_CORE)
"""The resources of the extender.

kube-scheduler asks it about every pod that names one of them, whatever the amount.
"""


def name_shared_gpus(containers: Iterable[Container]) -> bool:
    """Whether one of these containers names a resource of shared GPUs.

    Of a pod, init containers count, too.
    """
    for part in containers:
        for name in MANAGED:
            if name in part.limits or name in part.requests:
                return True
    return False


class Withheld(Struct, frozen=True, gc=False):
    """Cards of a node that an operator took out (ConfigMap `unhealthy-gpu-<node>`).

    `node` is "" for a ConfigMap of something else.
    """

    node: str
    indexes: frozenset[int]


class ContainerNeed(Struct, frozen=True, gc=False):
    """What one container asks on each of the pod's cards.

    `limit_mib`: the lower limit its owner wished for there; None = none. `beside`: of an init container that
    ends, the sidecars that run already when it starts.
    """

    name: str
    units: int
    core_percent: int = 0
    limit_mib: int | None = None
    beside: tuple[str, ...] = ()


class GpuNeed(Struct, frozen=True, gc=False):
    """What a pod asks of shared GPUs.

    `units`, `core_percent`: the most that is held at one instant on each of `cards` distinct GPUs, each by
    itself. `running`: containers and sidecars; `passing`: init containers that end, which use the cards of
    the first running one. `is_split`: running containers may sit on different cards. `policy`: the pod's own
    wish. `fault`: why no node can ever take it, "" = nothing is wrong.
    """

    units: int = 0
    core_percent: int = 0
    cards: int = 1
    running: tuple[ContainerNeed, ...] = ()
    passing: tuple[ContainerNeed, ...] = ()
    is_split: bool = False
    policy: Placement | None = None
    fault: str = ""

    @property
    def is_nothing(self) -> bool:
        """It names the resource and asks for none of it."""
        return not (self.running or self.passing or self.fault)

    @property
    def is_plain(self) -> bool:
        """Memory on one card and nothing else: what nearly every pod asks.

        It is answered from one number per node.
        """
        return self.cards == 1 and not self.core_percent and not self.is_split and not self.fault


class Verdict(Struct, frozen=True, gc=False):
    """Why a node cannot take a pod. `is_final`: not even if others were pushed aside."""

    reason: str
    is_final: bool


class BindAsked(Struct, frozen=True):
    """kube-scheduler asks to bind this pod to the node."""

    namespace: str
    name: str
    uid: str
    node: str
