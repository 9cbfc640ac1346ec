"""(scenario, seed) decides the whole history: in any process, under any hash seed, however time is
divided into steps.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.sim.history import EPOCH, history_hash

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.scenario.file import load_scenario

WHOLE = int(load_scenario("default").history.seconds)
LIVES = pytest.mark.parametrize(
    ("seeds", "seconds"), [(1, 3600), pytest.param(4, WHOLE, marks=pytest.mark.long)]
)
ROOT = Path(__file__).parents[3]


def living(hash_seed: str, seeds: int, seconds: int) -> subprocess.Popen[str]:
    """A process that runs the seeds below `seeds`, one line each."""
    command = [sys.executable, str(ROOT / "tests/sim/history.py"), str(seeds), str(seconds)]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@LIVES
def test_every_seed_lives_the_same_in_two_processes(seeds: int, seconds: int) -> None:
    first, second = (
        each.communicate(timeout=300)[0].splitlines()
        for each in [living(each, seeds, seconds) for each in ("1", "4242")]
    )
    assert first == second
    assert len(first) == seeds
    assert len({line.split()[1] for line in first}) == seeds, "different seeds live differently"


@pytest.mark.long
def test_how_time_is_cut_changes_nothing() -> None:
    scenario = load_scenario("default")
    whole, cut = sharing_world(scenario, 3, EPOCH), sharing_world(scenario, 3, EPOCH)
    whole.run_until(EPOCH + 1800)
    for second in range(0, 1800, 7):
        cut.run_until(EPOCH + second)
        cut.devices.sample()
    cut.run_until(EPOCH + 1800)
    assert whole.cluster.resource_version == cut.cluster.resource_version
    assert whole.devices.sample() == cut.devices.sample()
    for ref in whole.cluster.kinds():
        assert whole.cluster.list(ref) == cut.cluster.list(ref)


@pytest.mark.long
def test_a_second_run_in_one_process_is_the_same() -> None:
    scenario = load_scenario("default")
    assert history_hash(scenario, 5, 1800) == history_hash(scenario, 5, 1800)
    assert history_hash(scenario, 5, 1800) != history_hash(scenario, 6, 1800)
