"""A node of the cluster, as the API server describes it.

`capacity` is what it has; `allocatable` is what remains for pods after reservations and failures.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from fairlead.model.devices.gpu import GpuSlot
from fairlead.model.moment import Moment
from fairlead.model.resources import GPU_COUNT, GPU_MEMORY, NOTHING, Amounts


class NodeStatus(StrEnum):
    """`UNKNOWN`: the kubelet has stopped reporting, or has never reported."""

    READY = "Ready"
    NOT_READY = "NotReady"
    UNKNOWN = "Unknown"


class Condition(Struct, frozen=True, gc=False):
    """A Kubernetes condition; `status` is the text `True`, `False` or `Unknown`.

    `at`: the last transition, epoch seconds.
    """

    type: str
    status: str
    reason: str = ""
    message: str = ""
    at: float | None = None


class Taint(Struct, frozen=True, gc=False):
    key: str
    value: str = ""
    effect: str = ""


class Node(Struct, frozen=True, gc=False):
    """`annotations` has only keys that Fairlead reads.

    `addresses` has the API's order, as (type, address). `card_memory_mib`: memory of one GPU from a
    label; None = no label has it.
    """

    name: str
    uid: str = ""
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    capacity: Amounts = NOTHING
    allocatable: Amounts = NOTHING
    addresses: tuple[tuple[str, str], ...] = ()
    conditions: tuple[Condition, ...] = ()
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    created_at: Moment | None = None
    kubelet_version: str = ""
    runtime_version: str = ""
    os_image: str = ""
    gpus: tuple[GpuSlot, ...] = ()
    card_memory_mib: int | None = None

    @property
    def units_per_card(self) -> float:
        """Units of `aliyun.com/gpu-mem` of each of its cards, if all are equal; 0 = unknown."""
        cards = self.capacity.get(GPU_COUNT, 0)
        return self.capacity.get(GPU_MEMORY, 0) / cards if cards else 0.0
