"""The rooms of all nodes, the pods that count in them, and the places that are promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from fairlead.model.resources import NVIDIA_GPU
from fairlead_sim.scheduler.affinity import (
    NO_NEIGHBOURS,
    Neighbourhood,
    keeps_others_away,
    leanings,
    looks_at_others,
    neighbourhood,
    prefers_others,
    suits_node,
)
from fairlead_sim.scheduler.rooms import Lodger, Room, room_of
from fairlead_sim.scheduler.topology_spread import spreads

Object = dict[str, Any]


class RoomLedger:
    """A pod on a node that is not known (yet, or any more) is a tenant without a room."""

    def __init__(self) -> None:
        self.rooms: dict[str, Room] = {}
        self.tenants: dict[str, Lodger] = {}
        self._loners: dict[str, Lodger] = {}
        self._priorities: Counter[int] = Counter()
        self._promises: dict[str, str] = {}
        self._by_free_gpus: dict[int, dict[str, None]] = {}
        self._free_gpus: dict[str, int] = {}

    def set_node(self, node: Object) -> bool:
        """Take in a node as it now is; whether that changed its room."""
        name = node["metadata"]["name"]
        before = self.rooms.get(name)
        room = self.rooms[name] = room_of(node, before)
        self._sort_in(name, room)
        return before is None or before != room

    def remove_node(self, name: str) -> None:
        self.rooms.pop(name, None)
        self._sort_in(name, None)

    def admit(self, tenant: Lodger) -> None:
        self.tenants[tenant.uid] = tenant
        self._priorities[tenant.priority] += 1
        if keeps_others_away(tenant.pod["spec"]):
            self._loners[tenant.uid] = tenant
        if tenant.node in self.rooms:
            self.rooms[tenant.node].admit(tenant)
            self._sort_in(tenant.node, self.rooms[tenant.node])

    def release(self, uid: str) -> bool:
        """Whether the pod had a place."""
        tenant = self.tenants.pop(uid, None)
        if tenant is None:
            return False
        self._loners.pop(uid, None)
        self._priorities[tenant.priority] -= 1
        if not self._priorities[tenant.priority]:
            del self._priorities[tenant.priority]
        if tenant.node in self.rooms:
            self.rooms[tenant.node].release(tenant)
            self._sort_in(tenant.node, self.rooms[tenant.node])
        return True

    def by_free_gpus(self, least: int) -> Iterator[list[Room]]:
        """Rooms with at least `least` free GPUs in groups, those with the fewest first."""
        for free in sorted(self._by_free_gpus):
            if free >= least:
                yield [self.rooms[name] for name in self._by_free_gpus[free]]

    def _sort_in(self, name: str, room: Room | None) -> None:
        """Keep the room in the group of its free GPUs."""
        before = self._free_gpus.pop(name, None)
        free = (
            room.free(NVIDIA_GPU) if room is not None and NVIDIA_GPU in room.allocatable else None
        )
        if free is not None:
            self._free_gpus[name] = free
        if before == free:
            return
        if before is not None:
            del self._by_free_gpus[before][name]
            if not self._by_free_gpus[before]:
                del self._by_free_gpus[before]
        if free is not None:
            self._by_free_gpus.setdefault(free, {})[name] = None

    # --- promises ---------------------------------------------------------------------------------

    def promise(self, asker: Lodger, room: Room) -> None:
        self.take_back(asker.uid)
        self._promises[asker.uid] = room.name
        room.promised[asker.uid] = asker

    def take_back(self, uid: str) -> None:
        room = self.promised_room(uid)
        self._promises.pop(uid, None)
        if room is not None:
            room.promised.pop(uid, None)

    def promised_room(self, uid: str) -> Room | None:
        return self.rooms.get(self._promises.get(uid, ""))

    # --- what others mean -------------------------------------------------------------------------

    def is_lowest(self, priority: int) -> bool:
        """Whether no pod of lower priority has a place."""
        return all(priority <= other for other in self._priorities)

    def minds_others(self, spec: Object) -> bool:
        """Whether other pods matter: the pod has affinity to others, or others keep pods away."""
        return bool(self._loners) or looks_at_others(spec) or prefers_others(spec)

    def is_loner(self, uid: str) -> bool:
        """Whether the pod keeps others away."""
        return uid in self._loners

    def neighbours(self, pod: Object, gone: Collection[str] = ()) -> Neighbourhood:
        """What the placed pods, without those `gone`, mean for `pod`."""
        if not self.minds_others(pod["spec"]):
            return NO_NEIGHBOURS
        spec = pod["spec"]
        seen = self.tenants if looks_at_others(spec) or prefers_others(spec) else self._loners
        tenants = (
            tenant for uid, tenant in seen.items() if uid not in gone and tenant.node in self.rooms
        )
        placed = [(tenant.pod, self.rooms[tenant.node].labels) for tenant in tenants]
        found = neighbourhood(pod, placed)
        if not spec.get("topologySpreadConstraints") and not prefers_others(spec):
            return found
        nodes = [
            room.labels for room in self.rooms.values() if suits_node(spec, room.name, room.labels)
        ]
        hard, soft = (spreads(pod, nodes, placed, is_hard=is_hard) for is_hard in (True, False))
        return replace(found, spreads=hard, evenness=soft, leanings=leanings(pod, placed))
