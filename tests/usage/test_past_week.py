"""The cluster as it was equals a snapshot that was saved then, row for row, over a simulated week.

The usage recorder writes the states while the cluster lives; the snapshots are saved beside it.
The tables of both are compared (tests/usage/past_tables.py).
"""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime
from typing import Final

import pytest
from tests.examples import long_case
from tests.turns import in_turn
from tests.usage.kept import kept_rows
from tests.usage.memory_ledger import MemoryLedger
from tests.usage.past_tables import tables

from fairlead.console.boards.usage.past import find_moment, read_past
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.usage.ledger import OPEN, StateKind
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.run.hooks.world_usage import WorldUsage, record_world
from fairlead.settings import USAGE_READING_SECONDS
from fairlead.wire.files.snapshot_file import SavedSnapshot, parse_snapshot, render_snapshot
from fairlead.wire.usage.states import state_body
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.world.snapshot import WorldReader, take_snapshot
from fairlead_sim.world.world import World

EPOCH: Final = 1_790_000_000.0
MOMENTS: Final = 12
SETTLED_SECONDS: Final = USAGE_READING_SECONDS + 5


@pytest.mark.parametrize(
    ("scenario", "days", "seed"),
    [
        *in_turn([("default", 0.08, 1), ("faults", 0.04, 2)], 2),
        long_case("default", 7, 3),
        long_case("faults", 2, 4),
    ],
)
def test_the_past_is_what_was_saved_then(scenario: str, days: float, seed: int) -> None:
    asyncio.run(_compare(scenario, days, seed))


async def _compare(scenario: str, days: float, seed: int) -> None:
    chosen = random.Random(seed)
    world = sharing_world(load_scenario(scenario), seed, EPOCH)
    world.warm_up()
    ledger, reader = MemoryLedger(), WorldReader(world.cluster)
    usage = await record_world(world, ledger, "test")
    begin, saved = world.clock.now(), dict[int, bytes]()
    for share in sorted(chosen.random() for _ in range(MOMENTS if days >= 1 else 3)):
        await _live_until(world, usage, begin + share * days * 86_400)
        snapshot = await _settled(world, usage, reader)
        saved[round(snapshot.taken_at * 1000)] = render_snapshot(
            SavedSnapshot(snapshot, snapshot.taken_at)
        )
    await _live_until(world, usage, world.clock.now() + (3600 if days >= 1 else 600))
    await usage.end()
    differing, waited = [], 0
    now = round(world.clock.now() * 1000)
    for at, data in saved.items():
        then = tables(parse_snapshot(data, "then").snapshot)
        moment, gap = await find_moment(ledger, _text(at), now)
        past = tables((await read_past(ledger, moment, gap)).snapshot)
        differing += [(at, name) for name in then if then[name] != past[name]]
        waited += len(then["why"])
    assert differing == []
    kinds = {kind for kind, _, _ in ledger.states}
    assert kinds >= {StateKind.NODE, StateKind.POD, StateKind.JOB, StateKind.CARDS}
    assert waited, "nothing waited: the comparison proves too little"
    ended = sum(each.ended_at != OPEN for each in ledger.states.values())
    assert ended > 20, "nothing has changed"


async def _live_until(world: World, usage: WorldUsage, at: float) -> None:
    while world.clock.now() < at:
        world.run_until(min(at, world.clock.now() + 3600))
        await usage.queue.store()


async def _settled(world: World, usage: WorldUsage, reader: WorldReader) -> ClusterSnapshot:
    """The next snapshot before which nothing has changed for `SETTLED_SECONDS`, in which a recorder
    sees each change.
    """
    before = take_snapshot(world, reader)
    while True:
        await _live_until(world, usage, world.clock.now() + SETTLED_SECONDS)
        after = take_snapshot(world, reader)
        if _bodies(before) == _bodies(after):
            return after
        before = after


def _bodies(snapshot: ClusterSnapshot) -> set[tuple[str, str, bytes]]:
    return {(kind, uid, state_body(row)) for kind, uid, _, _, row in kept_rows(snapshot)}


def _text(at: int) -> str:
    """RFC 3339 in milliseconds."""
    return datetime.fromtimestamp(at / 1000, UTC).isoformat(timespec="milliseconds")
