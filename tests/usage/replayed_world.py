"""A simulated world that a replay plays again."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from typing import Final

from tests.usage.memory_ledger import MemoryLedger
from tests.usage.world_states import WorldStates

from fairlead.model.quota.tree import QuotaTree
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.scenario.file import parse_scenario

EPOCH: Final = 1_790_000_000.0
SCENARIO: Final = Path(__file__).with_name("replayed_week.toml")
MODEL: Final = "NVIDIA-A100-SXM4-80GB"


@cache
def lived(days: float, seed: int) -> tuple[MemoryLedger, int, QuotaTree]:
    """The ledger of a world that lived so, its end in milliseconds, and its tree."""
    world = sharing_world(parse_scenario(SCENARIO.read_text(), SCENARIO.name), seed, EPOCH)
    world.warm_up()
    start = world.clock.now()
    states = WorldStates(world)
    world.run_until(start + days * 86_400)
    ledger, end = MemoryLedger(), round(world.clock.now() * 1000)
    asyncio.run(states.write(ledger, round(start * 1000), end))
    return ledger, end, states.tree
