"""What is kept of a world when its process ends: objects, held cards, a few numbers.

The world stands still while no process runs it. Its clock jumps to the present, so that ages are
true, but nothing happens in between: programs continue with what they had left, as after a
hibernation of all machines.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import Struct

from fairlead.model.devices.gpu import GpuMode
from fairlead.model.devices.kubelet import RegionCard
from fairlead.wire.kube.time import parse_time

Object = dict[str, Any]


class HeldCard(Struct, frozen=True, gc=False, array_like=True):
    """One card of a pod's node: `container` has it, whole or (`mode` share) a part of `limit_mib`,
    or (mig) one of its GPU instances. `counts`: those of the memory guard since the last start,
    None without it.
    """

    container: str
    index: int
    mode: GpuMode = GpuMode.EXCLUSIVE
    limit_mib: int = 0
    gpu_instance: int | None = None
    counts: RegionCard | None = None


@dataclass(frozen=True, slots=True)
class SavedWorld:
    """A saved world.

    `objects` in the order in which they came; `held` by pod uid; `submitted` jobs by stream
    (`namespace/name`).

    The world stopped at `stopped_at` and goes on at `now`. `epoch` is where its history would have
    begun had it never stood still. `standstills` are earlier ones, as (from, to). `is_whole`:
    whether what is not among the objects was deleted; of another cluster some are not known.
    """

    objects: Iterable[Object]
    stopped_at: float
    now: float
    epoch: float
    resource_version: int = 0
    names_counter: int = 0
    held: Mapping[str, Sequence[HeldCard]] = field(default_factory=dict)
    submitted: Mapping[str, int] = field(default_factory=dict)
    standstills: Sequence[tuple[float, float]] = ()
    is_whole: bool = True

    def lived_since(self, at: float) -> float:
        """Seconds that the world has lived from `at` until it stopped; negative for an instant that
        it had still to reach.

        >>> stood = [(20.0, 60.0)]
        >>> world = SavedWorld([], stopped_at=100.0, now=500.0, epoch=0.0, standstills=stood)
        >>> [world.lived_since(at) for at in (10.0, 30.0, 90.0, 130.0)]
        [50.0, 40.0, 10.0, -30.0]
        """
        stood = sum(max(0.0, end - max(begin, at)) for begin, end in self.standstills)
        return self.stopped_at - at - stood


FIRST_KINDS = (
    "CustomResourceDefinition",
    "ServiceAccount",
    "ConfigMap",
    "Namespace",
    "PriorityClass",
    "Node",
)
"""Kinds that others need: kinds before their objects, nodes before pods.

Also what a namespace gets before its content.
"""


def in_order(objects: Iterable[Object]) -> list[Object]:
    """The objects as they are to be put back."""
    rank = {kind: number for number, kind in enumerate(FIRST_KINDS)}
    return sorted(objects, key=lambda obj: rank.get(obj["kind"], len(rank)))


_NEEDED = ("name", "uid", "creationTimestamp")


def check_object(obj: Any) -> None:
    """Raises ValueError for what is no object, or lacks what every stored one has."""
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata", {}), dict):
        raise ValueError(f"an object is no object: `{str(obj)[:80]}`")
    for holder, keys in ((obj, ("apiVersion", "kind")), (obj.get("metadata", {}), _NEEDED)):
        for key in keys:
            if not isinstance(holder.get(key), str):
                raise ValueError(f"an object lacks its `{key}`")
    parse_time(obj["metadata"]["creationTimestamp"])
