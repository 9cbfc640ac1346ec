"""Quota in the simulated cluster's own time."""

from __future__ import annotations

from collections import Counter

import pytest

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import EVENTS
from fairlead_sim.objects.watch_log import ADDED, LoggedChange
from fairlead_sim.scenario.file import load_scenario

EPOCH = 1_767_600_000.0


@pytest.mark.long
@pytest.mark.parametrize("seed", [2, 3, 7])
def test_no_job_is_suspended_again_and_again(seed: int) -> None:
    world = sharing_world(load_scenario("default"), seed, EPOCH)
    reported: Counter[str] = Counter()

    def note(change: LoggedChange) -> None:
        event = change.object
        if event["reason"] == "QuotaSuspended" and (
            change.type == ADDED or event.get("count", 1) > 1
        ):
            reported[event["involvedObject"]["name"]] += 1

    world.cluster.subscribe(EVENTS, note)
    world.warm_up()
    assert max(reported.values(), default=0) <= 5, reported
