"""When a card joins its node's new mode: after the last pod of the old mode has left it.

(docs/spec/gpu-sharing.md#switching-a-node-between-shared-and-exclusive) The node's inventory and
capacity are in `scenario/machines`; here are only the time of the change and its Events, as the
device plugin of a node would write them.
"""

from __future__ import annotations

from fairlead.model.devices.gpu import GpuMode
from fairlead.model.inspection import DrainingCards
from fairlead.wire.gpus.draining import render_draining
from fairlead_sim.gpus.devices import SimulatedDevices
from fairlead_sim.objects.conditions import phase_of
from fairlead_sim.objects.resources import NODES, PODS
from fairlead_sim.objects.watch_log import DELETED, LoggedChange
from fairlead_sim.scenario.machines import has_draining_cards, with_cards
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.store.recorder import Recorder
from fairlead_sim.time.timers import Timers

JOIN_SECONDS = 2.0
"""Seconds between the end of a pod and the device plugin's next look."""
COMPONENT = "fairlead-device-plugin"
DRAINING, JOINED = "GPUDraining", "GPUModeChanged"
"""Reasons of its Events on the node: cards still have pods of the old mode; none has any more."""


class Draining:
    def __init__(
        self, cluster: StoredCluster, timers: Timers, devices: SimulatedDevices, recorder: Recorder
    ) -> None:
        self._cluster = cluster
        self._timers = timers
        self._devices = devices
        self._recorder = recorder
        cluster.subscribe(PODS, self._on_pod)

    def _on_pod(self, event: LoggedChange) -> None:
        pod = event.object
        name = pod["spec"].get("nodeName")
        if not name or (event.type != DELETED and phase_of(pod) not in ("Succeeded", "Failed")):
            return
        node = self._cluster.get(NODES, None, name)
        if node is not None and has_draining_cards(node):
            self._timers.after(JOIN_SECONDS, lambda: self._join(name))

    def switch(self, name: str) -> None:
        """The node has another mode, which its cards know: it offers the cards that are free of the
        old mode, and reports the others.
        """
        self._look(name)
        waiting = [card for card in self._devices.cards(name) if card.is_draining]
        node = self._cluster.get(NODES, None, name)
        if node is None or not waiting:
            return
        old = [
            hold
            for card in waiting
            for hold in card.holds
            if (hold.mode == GpuMode.SHARE) is not card.is_shared
        ]
        holders = sorted({f"{hold.namespace}/{hold.pod}" for hold in old})
        event = DrainingCards(
            name, tuple(card.index for card in waiting), tuple(holders), waiting[0].is_shared
        )
        self._recorder.normal(node, DRAINING, render_draining(event), COMPONENT, name)

    def _look(self, name: str) -> None:
        self._cluster.mutate(
            NODES, None, name, lambda node: with_cards(node, self._devices.cards(name))
        )

    def _join(self, name: str) -> None:
        """A pod has left: whatever it alone held is of the new mode now."""
        before = self._cluster.get(NODES, None, name)
        self._look(name)
        node, cards = self._cluster.get(NODES, None, name), self._devices.cards(name)
        if (
            before is not None
            and node is not None
            and has_draining_cards(before)
            and not has_draining_cards(node)
        ):
            self._recorder.normal(
                node,
                JOINED,
                f"all GPUs are {'shared' if cards[0].is_shared else 'exclusive'} now",
                COMPONENT,
                name,
            )
