"""The hour before a laptop's start, for charts: kept while the history is simulated."""

from __future__ import annotations

from typing import Final

import pytest

from fairlead.run.initial_worlds import scenario_world
from fairlead.run.simulation import Simulation
from fairlead_sim.world.past import WorldPast
from fairlead_sim.world.snapshot import WorldReader, take_snapshot

STEP: Final = 15


@pytest.mark.long
async def test_the_kept_past_is_what_a_second_simulation_shows() -> None:
    past = WorldPast(600, STEP)
    world = scenario_world("default").world(7, past)
    simulation, end = Simulation(world, 1.0, past), world.clock.now()
    kept = simulation.past()
    assert kept[-1][0] <= end < kept[-1][0] + STEP
    assert [at for at, _ in kept] == [kept[0][0] + STEP * number for number in range(40)]
    assert kept[0][0] % STEP == 0
    world.run_until(end + 600)  # what happens later does not change what was
    again = world.again()
    reader, written = WorldReader(again.cluster), set()
    for at, snapshot in kept:
        again.run_until(at)
        expected = take_snapshot(again, reader)
        assert snapshot() == expected
        written.add(tuple(pod.name for pod in expected.pods))
        assert len(expected.gpus) == 32
    assert len(written) > 5, "a past in which pods come and go"


def test_a_past_goes_on_after_the_history_until_it_is_asked_for() -> None:
    past = WorldPast(60, STEP)
    world = scenario_world("empty").world(7, past)
    simulation, now = Simulation(world, 1.0, past), world.clock.now()
    world.run_until(now + 600)
    kept = [at for at, _ in simulation.past()]
    assert len(kept) == 4
    assert now + 600 - STEP < kept[-1] <= now + 600
    world.run_until(now + 1200)
    assert list(simulation.past()) == []
    assert len(past.moments()) == 4, "it keeps no more once it was asked for"


def test_nothing_is_kept_of_a_world_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fairlead_sim.world.past.NODES_KEPT", 2)
    past = WorldPast(60, STEP)
    world = scenario_world("empty").world(7, past)
    assert Simulation(world, 1.0, past).past() == []


def test_a_world_that_goes_on_has_no_past_to_show() -> None:
    simulation = Simulation(scenario_world("empty").world(7), speed=1.0)
    assert simulation.past() == ()
