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
from fairlead.collector import quiet_collector
from fairlead.console.boards.usage.past import snapshot_of
from fairlead.console.http.answers import pack
from fairlead.console.http.past_states import PastBoard
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.opened import open_store
from fairlead.model.usage.ledger import HOUR, LedgerBatch, StateKind
from fairlead.ports import LedgerReading
from fairlead.wire.usage.states import StateRows

UNTIL: Final = 1_790_000_000_000
_BATCH: Final = 10_000
_PARTS: Final = ("read", "snapshot", "occupancy", "map")


def measure_past_map() -> None:
    """The GPU map of moments of the past. Aim: 300 ms at 40,000 cards and 90 days.

        python -m bench past_map [--nodes 5000] [--days 90] [--moments 7]

    `read`: the states of the moment from SQLite; `snapshot`: they are decoded and sorted;
    `occupancy`: who is on which card; `map`: cells and bytes. The second column is an hour
    later, when a tenth of the pods with cards are others: the rows that are the same are known.
    The process has read the present cluster before, as a console does. CPU is of this process.
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
        with quiet_collector(is_first=True):
            present = snapshot_of(await store.ledger.states_at(UNTIL, tuple(StateKind)), UNTIL)
        tries = []
        for number in range(moments):
            day = (2 * number + 1) * days // (2 * moments)
            at, reader = UNTIL - (days - day) * DAY + 5 * HOUR, StateRows()
            first, board = await _parts(store.ledger, at, reader, None)
            second, _ = await _parts(store.ledger, at + HOUR, reader, board)
            tries.append((first, second))
        print(f"{count:,} states; {len(present.pods):,} pods at the end")
        print(f"{'':<11}{'first':>8}    {'an hour later':>8}")
        for place_, name in enumerate((*_PARTS, "together", "CPU")):
            found = [statistics.median(each[way][place_] for each in tries) for way in (0, 1)]
            print(f"{name:<11}" + " ".join(f"{each:8.0f} ms" for each in found))
    finally:
        await store.close()


async def _parts(
    ledger: LedgerReading, at: int, reader: StateRows, before: PastBoard | None
) -> tuple[list[float], PastBoard]:
    """Milliseconds of each part, of all and of the CPU."""
    times, worked = [time.perf_counter()], time.process_time()
    found = await ledger.states_at(at, tuple(StateKind))
    times.append(time.perf_counter())
    with quiet_collector():  # as the console reads it
        snapshot = snapshot_of(found, at, reader=reader)
        times.append(time.perf_counter())
        board = PastBoard(snapshot, before)
        len(board.occupancy.nodes)
        times.append(time.perf_counter())
        pack(board.gpu_map)
        times.append(time.perf_counter())
    parts = [end - start for start, end in pairwise(times)]
    whole = [*parts, sum(parts), time.process_time() - worked]
    return [each * 1000 for each in whole], board
