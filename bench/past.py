"""The cluster as it was: from the states in a SQLite store to the bytes of the GPU map."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from itertools import islice, pairwise
from pathlib import Path
from typing import Final

from bench.support.options import options
from bench.support.past_cluster import DAY, states
from fairlead.console.boards.restricted.board import SharedBoard
from fairlead.console.boards.usage.past import snapshot_of
from fairlead.console.http.answers import pack
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.opened import open_store
from fairlead.model.usage.ledger import KeptState, LedgerBatch, StateKind

UNTIL: Final = 1_790_000_000_000
_BATCH: Final = 10_000
_PARTS: Final = ("read", "snapshot", "occupancy", "map")


def measure_past_map() -> None:
    """The GPU map of moments of the past. Aim: 300 ms at 40,000 cards and 90 days.

        python -m bench past_map [--nodes 5000] [--days 90] [--moments 7]

    `read`: the states of the moment from SQLite; `snapshot`: they are decoded and sorted;
    `occupancy`: who is on which card; `map`: cells and bytes. Nothing is kept between moments.
    """
    parser = options(measure_past_map)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--moments", type=int, default=7)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = StoreAddress(SQLITE, file=str(Path(folder) / "store"))
        asyncio.run(_measure(place, chosen.nodes, chosen.days, chosen.moments))


async def _measure(place: StoreAddress, nodes: int, days: int, moments: int) -> None:
    store = await open_store(place)
    try:
        epoch = (await store.ledger.claim_ledger("bench", UNTIL - days * DAY)).epoch
        made, count = states(nodes, days, UNTIL), 0
        while batch := tuple(islice(made, _BATCH)):
            count += len(batch)
            await store.ledger.write_ledger(epoch, LedgerBatch(UNTIL, states=batch))
        rows = []
        for number in range(moments):
            at = UNTIL - days * DAY + (2 * number + 1) * days * DAY // (2 * moments)
            began = time.perf_counter()
            found = await store.ledger.states_at(at, tuple(StateKind))
            rows.append((len(found), [*_parts(began, found, at)]))
        print(f"{count:,} states, {statistics.median(size for size, _ in rows):,.0f} at a moment")
        for place_, name in enumerate(_PARTS):
            print(f"{name:<11}{statistics.median(row[place_] for _, row in rows):8.0f} ms")
        whole = [sum(row) for _, row in rows]
        print(f"{'together':<11}{statistics.median(whole):8.0f} ms, longest {max(whole):.0f} ms")
    finally:
        await store.close()


def _parts(began: float, found: tuple[KeptState, ...], at: int) -> list[float]:
    times = [began, time.perf_counter()]
    snapshot = snapshot_of(found, at)
    times.append(time.perf_counter())
    board = SharedBoard(snapshot, at / 1000)
    len(board.occupancy.nodes)
    times.append(time.perf_counter())
    pack(board.gpu_map)
    times.append(time.perf_counter())
    return [(end - start) * 1000 for start, end in pairwise(times)]
