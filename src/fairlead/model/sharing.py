"""GPU sharing: what a pod requests (`GpuNeed`), and why a node cannot take it (`Verdict`).

Units are those of `aliyun.com/gpu-mem` on the pod's node (GiB, or MiB if the cluster is set so).
What a pod was given is a `gpu.Grant`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct

from fairlead.model.pod import Container
from fairlead.model.resources import GPU_CORE, GPU_MEMORY


class Placement(StrEnum):
    """Which node, or which card of it, is tried first: the fullest with room, or the emptiest."""

    BINPACK = "binpack"
    SPREAD = "spread"


BINPACK: Final = Placement.BINPACK
SPREAD: Final = Placement.SPREAD
PLACEMENTS: Final = {each.value: each for each in Placement}
NOT_PLACED: Final = "GPUShareNotPlaced"
"""Event: no card of the node has room for a pod that another scheduler bound to it."""
NO_ROOM: Final = "GPUShareNoRoom"
"""Event: the sentence about all nodes (`rules/sharing/why`)."""

MANAGED: Final = (GPU_MEMORY, GPU_CORE)
"""The resources of the extender.

kube-scheduler asks the extender about every pod that names one of them, whatever the amount.
"""


def name_shared_gpus(containers: Iterable[Container]) -> bool:
    """Whether one of these containers names a resource of shared GPUs.

    For a pod, init containers count as well.
    """
    for part in containers:
        for name in MANAGED:
            if name in part.limits or name in part.requests:
                return True
    return False


class Withheld(Struct, frozen=True, gc=False):
    """Cards of a node that an operator took out of use (ConfigMap `unhealthy-gpu-<node>`).

    `node` is "" for any other ConfigMap.
    """

    node: str
    indexes: frozenset[int]


class ContainerNeed(Struct, frozen=True, gc=False):
    """What one container requests on each of the pod's cards.

    `limit_mib`: the lower limit that its owner set; None = none. `beside`: for an init container
    that ends, the sidecars that already run when it starts.
    """

    name: str
    units: int
    core_percent: int = 0
    limit_mib: int | None = None
    beside: tuple[str, ...] = ()


class GpuNeed(Struct, frozen=True, gc=False):
    """What a pod requests of shared GPUs.

    `units`, `core_percent`: the highest use at one time on each of `cards` distinct GPUs, both
    computed separately. `running`: containers and sidecars; `passing`: init containers that end,
    which use the cards of the first running one. `is_split`: running containers may be on different
    cards. `policy`: the pod's own placement policy. `fault`: why no node can ever take it, "" =
    nothing is wrong.
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
        """Whether it names the resource and requests none of it."""
        return not (self.running or self.passing or self.fault)

    @property
    def is_plain(self) -> bool:
        """Whether it requests memory on one card and nothing else, as nearly every pod does.

        Such a need is decided from one number per node.
        """
        return self.cards == 1 and not self.core_percent and not self.is_split and not self.fault


class Verdict(Struct, frozen=True, gc=False):
    """Why a node cannot take a pod. `is_final`: preemption of other pods would not help."""

    reason: str
    is_final: bool


class BindAsked(Struct, frozen=True):
    """kube-scheduler's request to bind this pod to the node."""

    namespace: str
    name: str
    uid: str
    node: str
