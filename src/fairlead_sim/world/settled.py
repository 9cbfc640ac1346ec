"""The start of a world that has existed for long: its services are in place.

They are as controllers, scheduler and kubelets would have made them. Each pod is one write instead
of a dozen, so that fifty thousand of them take seconds. Nothing is decided here that would not hold
later: a pod is placed only where the scheduler's account has room, and a pod without room waits
like any other.
"""

from __future__ import annotations

from typing import Any

from fairlead.model.resources import GPU_MEMORY
from fairlead_sim.controllers import deployment, replica_set
from fairlead_sim.controllers.plan import generated_pod, template_hash
from fairlead_sim.kubelet.kubelet import Kubelets
from fairlead_sim.objects.chance import suffix_of
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.scenario import ScenarioService
from fairlead_sim.scenario.workloads import render_service
from fairlead_sim.scheduler.needs import pod_needs
from fairlead_sim.scheduler.room_ledger import RoomLedger
from fairlead_sim.scheduler.rooms import PodInRoom, Room
from fairlead_sim.store.cluster import StoredCluster

Object = dict[str, Any]


class ServicePlacement:
    """Places services, node after node.

    Equal ones start where the last one found room.
    """

    def __init__(
        self, cluster: StoredCluster, ledger: RoomLedger, kubelets: Kubelets, seed: int
    ) -> None:
        self._cluster = cluster
        self._ledger = ledger
        self._kubelets = kubelets
        self._seed = seed
        self._rooms = list(ledger.rooms.values())
        self._next: dict[tuple[tuple[str, int], ...], int] = {}

    def put(self, service: ScenarioService) -> None:
        owner = self._cluster.create(render_service(service))
        label = template_hash(owner["spec"]["template"])
        owned = self._cluster.create(deployment.replica_set(owner, label, service.replicas, 1))
        begin, seeds = owned["metadata"]["name"], (self._seed, service.namespace, service.name)
        names = [f"{begin}-{suffix_of(*seeds, number)}" for number in range(service.replicas)]
        example: Object | None = None
        placed = 0
        for name in names:
            if example is None:
                new = generated_pod(owned["spec"]["template"], owned, name)
                # with defaults and admission, and not stored
                example = self._cluster.rehearsal().create(new)
                needs = pod_needs(example)
            metadata = {**example["metadata"], "name": name, "uid": self._cluster.names.uid()}
            pod = {**example, "metadata": metadata}
            asker = PodInRoom(pod, needs, int(example["spec"].get("priority") or 0))
            # only the extender allocates shares of a card
            room = None if needs.get(GPU_MEMORY) else self._room_for(asker)
            if room is None:
                self._cluster.create(generated_pod(owned["spec"]["template"], owned, name))
            else:
                self._place(pod, room)
                placed += 1
        # as its controller would find it, which then looks at thousands of pods once and not twice
        if placed == service.replicas:
            self._cluster.update_status({**owned, "status": replica_set.settled_status(placed)})

    def _room_for(self, asker: PodInRoom) -> Room | None:
        """The room where the last equal pod went, or the next one that fits; one round at most."""
        key = tuple(asker.needs.items())
        start = self._next.get(key, 0)
        neighbours = self._ledger.neighbours(asker.pod)
        for offset in range(len(self._rooms)):
            index = (start + offset) % len(self._rooms)
            if self._rooms[index].refusal(asker, neighbours) is None:
                self._next[key] = index
                return self._rooms[index]
        return None

    def _place(self, pod: Object, room: Room) -> None:
        node = self._cluster.get(NODES, None, room.name)
        assert node is not None
        bound = {**pod, "spec": {**pod["spec"], "nodeName": room.name}}
        self._cluster.load({**bound, "status": self._kubelets.adopt(bound, node)})
