"""The world as one value: repeated looks see the same as a first look would."""

from __future__ import annotations

from itertools import pairwise

from tests.sim.small_world import EPOCH

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import PODS
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.snapshot import WorldReader, take_snapshot


def test_a_later_look_sees_what_came_what_changed_and_what_went() -> None:
    world = sharing_world(load_scenario("default"), 0, EPOCH)
    reader, seen = WorldReader(world.cluster), []
    for _ in range(12):
        world.run_until(world.clock.now() + 120)
        seen.append(take_snapshot(world, reader))
        assert seen[-1] == take_snapshot(world)
    assert sum(before.pods != after.pods for before, after in pairwise(seen)) > 5, (
        "too little happens to prove anything"
    )
    for pod in world.cluster.list(PODS):
        world.cluster.delete(PODS, pod["metadata"]["namespace"], pod["metadata"]["name"], 0)
    assert take_snapshot(world, reader) == take_snapshot(world)
