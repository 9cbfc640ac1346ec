"""The history that the console shows of the hour before a laptop's start: the same history is
simulated again, but not for a world that is too large.
"""

from __future__ import annotations

from itertools import islice

import pytest

from fairlead.run.initial_worlds import scenario_world
from fairlead.run.simulation import Simulation
from fairlead_sim.world.snapshot import take_snapshot


@pytest.mark.long
async def test_the_past_leads_to_the_present() -> None:
    simulation = Simulation(scenario_world("default").world(7), speed=1.0)
    now = simulation.world.clock.now()
    seen = list(simulation.past(60, 15))
    assert [round(now - snapshot.taken_at) for snapshot in seen] == [60, 45, 30, 15]
    long_running = {
        pod.uid
        for pod in take_snapshot(simulation.world).pods
        if (pod.started_at or now) < now - 60
    }
    assert long_running
    assert long_running <= {pod.uid for pod in seen[-1].pods}, "another history has other pods"
    assert len(seen[-1].gpus) == 32


@pytest.mark.long
async def test_a_world_too_large_is_not_lived_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    simulation = Simulation(scenario_world("default").world(7), speed=1.0)
    monkeypatch.setattr("fairlead.run.simulation.NODES_LIVED_TWICE", 8)
    assert list(islice(simulation.past(60, 15), 1)) == []


async def test_a_world_that_goes_on_has_no_past_to_show() -> None:
    simulation = Simulation(scenario_world("empty").world(7), speed=1.0, has_past=False)
    assert list(simulation.past(60, 15)) == []
