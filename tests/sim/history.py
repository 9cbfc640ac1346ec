"""The whole history of a world as one hash. As a program it prints one line per seed, so that
another process can have another hash seed.
"""

from __future__ import annotations

import hashlib
import sys

import msgspec

from fairlead.run.hooks.sharing_hooks import sharing_hooks
from fairlead_sim.objects.watch_log import LoggedChange
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.scenario.scenario import Scenario
from fairlead_sim.scheduler.hooks import Hooks
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.store.recorder import Recorder
from fairlead_sim.world.world import World

EPOCH = 1_767_600_000.0


class Histories:
    """The objects with which a world starts, then every event of every kind, in order, as bytes.
    Pass `listen` as its `hooks`.
    """

    def __init__(self) -> None:
        self.events = 0
        self._digest = hashlib.blake2b(digest_size=16)

    def listen(self, cluster: StoredCluster, recorder: Recorder) -> Hooks:
        for ref in cluster.kinds():
            self._digest.update(msgspec.json.encode(cluster.list(ref)))
            cluster.subscribe(ref, self._note)
        return sharing_hooks(cluster, recorder)

    def _note(self, event: LoggedChange) -> None:
        self.events += 1
        self._digest.update(msgspec.json.encode([event.type, event.object, event.resource_version]))

    def digest(self) -> str:
        return self._digest.hexdigest()


def history_hash(scenario: Scenario, seed: int, seconds: float) -> str:
    """Every event of every kind in order, then the state of every device."""
    received = Histories()
    world = World(scenario, seed, EPOCH, hooks=received.listen)
    world.run_until(EPOCH + seconds)
    devices = hashlib.blake2b(repr(world.devices.sample()).encode(), digest_size=16)
    return f"{received.digest()}-{devices.hexdigest()}"


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        print(number, history_hash(load_scenario("default"), number, float(sys.argv[2])))
