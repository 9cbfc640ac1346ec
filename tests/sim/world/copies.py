"""Starts a world from the objects of another."""

from __future__ import annotations

import json
from typing import Any

from fairlead.model.snapshot import ClusterSnapshot
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.scenario.scenario import Scenario
from fairlead_sim.world.imported import imported_world
from fairlead_sim.world.snapshot import take_objects, take_snapshot
from fairlead_sim.world.world import World

Object = dict[str, Any]
EMPTY = Scenario(title="a snapshot", node_pools=())


def copy_of(world: World) -> World:
    return imported(take_objects(world), take_snapshot(world))


def imported(objects: list[Object], snapshot: ClusterSnapshot) -> World:
    saved = imported_world(json.loads(json.dumps(objects)), snapshot)
    return sharing_world(EMPTY, 0, saved.epoch, saved)
