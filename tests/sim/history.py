"""The whole history of a world as one hash; run as a program it prints one line per seed (another process, another hash seed)."""

from __future__ import annotations

import hashlib
import json
import sys

from fairlead.sim.cluster import Cluster
from fairlead.sim.gpushare import BestFit
from fairlead.sim.scenario import Scenario
from fairlead.sim.scenario_file import load_scenario
from fairlead.sim.watch_log import WatchEvent
from fairlead.sim.world import World

EPOCH = 1_767_600_000.0


def history_hash(scenario: Scenario, seed: int, seconds: float) -> str:
    """Every event of every kind in order, then the state of every device."""
    digest = hashlib.blake2b(digest_size=16)

    def note(event: WatchEvent) -> None:
        digest.update(json.dumps([event.type, event.object, event.resource_version]).encode())

    def listen(cluster: Cluster) -> BestFit:
        for ref in cluster.kinds():
            cluster.subscribe(ref, note)
        return BestFit(cluster)

    world = World(scenario, seed, EPOCH, extender=listen)
    world.run_until(EPOCH + seconds)
    digest.update(repr(world.devices.sample()).encode())
    return digest.hexdigest()


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        print(number, history_hash(load_scenario("default"), number, float(sys.argv[2])))
