"""When does a card join the mode that its node now has? Once the last pod of the old mode has left it; until then it is draining.

(sharing contract 1.5) What the node says of its cards (inventory, capacity) is in `sim/machines`; here is only the moment when it changes.
"""

from __future__ import annotations

from fairlead.sim.cluster import Cluster
from fairlead.sim.conditions import phase_of
from fairlead.sim.devices import Devices
from fairlead.sim.machines import has_draining_cards, with_cards
from fairlead.sim.resources import NODES, PODS
from fairlead.sim.timers import Timers
from fairlead.sim.watch_log import DELETED, WatchEvent

JOIN_SECONDS = 2.0
"""The device plugin looks again so long after a pod has ended."""


class Draining:
    def __init__(self, cluster: Cluster, timers: Timers, devices: Devices) -> None:
        self._cluster = cluster
        self._timers = timers
        self._devices = devices
        cluster.subscribe(PODS, self._on_pod)

    def _on_pod(self, event: WatchEvent) -> None:
        pod = event.object
        name = pod["spec"].get("nodeName")
        if not name or (event.type != DELETED and phase_of(pod) not in ("Succeeded", "Failed")):
            return
        node = self._cluster.get(NODES, None, name)
        if node is not None and has_draining_cards(node):
            self._timers.after(JOIN_SECONDS, lambda: self._look(name))

    def _look(self, name: str) -> None:
        self._cluster.mutate(NODES, None, name, lambda node: with_cards(node, self._devices.cards(name)))
