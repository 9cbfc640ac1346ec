"""The usage ledger in each engine: written, added up, read at a moment, and claimed."""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, text
from tests.stores.database_servers import DatabaseServer, Mariadb, Postgres, is_installed

from bench.support.options import options
from bench.support.past_cluster import states
from fairlead.edge.store import engines
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.ledger import rows as as_rows
from fairlead.edge.store.ledger.accounts import AccountIds
from fairlead.edge.store.ledger_tables import pod_intervals
from fairlead.edge.store.migrate import migrate
from fairlead.edge.store.sql_store import SqlStore
from fairlead.model.usage.ledger import (
    HOUR,
    OPEN,
    Amount,
    ClosedBy,
    KeptState,
    LedgerBatch,
    LedgerJob,
    NodeInterval,
    PodInterval,
    PriceClass,
    StateKind,
    UsedBy,
)

DAY: Final = 24 * HOUR
BASE: Final = 20_700 * DAY
BATCH: Final = 10_000
SECONDS: Final = 120.0
CLASSES: Final = tuple(
    PriceClass((("topology.kubernetes.io/zone", zone),), "A100", 8_000_000, 96_000, 1_048_576)
    for zone in "abcd"
)


@contextmanager
def _addresses(chosen: argparse.Namespace) -> Iterator[Iterator[tuple[str, Callable[[], Any]]]]:
    """Engines, and what makes an address of an empty store of each."""
    with tempfile.TemporaryDirectory() as folder:
        yield engine_addresses(Path(folder), chosen.engine)


def engine_addresses(folder: Path, wanted: str) -> Iterator[tuple[str, Callable[[], StoreAddress]]]:
    """Engines, and what makes an address of an empty store of each. `wanted`: only this one."""
    numbers = iter(range(1000))
    if wanted in ("", "sqlite"):
        yield "sqlite", lambda: StoreAddress(SQLITE, file=str(folder / f"store{next(numbers)}"))
    for engine, kind in (("postgresql", Postgres), ("mariadb", Mariadb)):
        if wanted not in ("", engine):
            continue
        if not is_installed(engine):
            print(f"{engine}: not installed")
            continue
        server: DatabaseServer = kind()
        try:
            yield engine, lambda server=server: server.new_database(f"bench{next(numbers)}")
        finally:
            server.end()


def _options(measurement: Callable[[], None]) -> argparse.ArgumentParser:
    parser = options(measurement)
    parser.add_argument("--engine", default="", help="sqlite, postgresql or mariadb; else all")
    return parser


def pod(number: int, started_at: int, ended_at: int = OPEN, jobs: int = 20_000) -> PodInterval:
    job = number % jobs
    return PodInterval(
        f"6f9619ff-8b86-d011-b42d-{number:012x}",
        started_at,
        UsedBy(f"team-{job % 100}", f"user-{job % 500}", f"root.a.{job % 100}"),
        f"bert-{job}-worker-{number}",
        f"node-{number % 5000:04d}",
        CLASSES[number % len(CLASSES) if jobs < number else job % len(CLASSES)],
        Amount(2_000_000, 163_840, 8000, 65_536),
        LedgerJob(f"9f9619ff-8b86-d011-b42d-{job:012x}", f"bert-{job}", "PYTORCHJOB"),
        (),
        ended_at,
        ClosedBy.NOT if ended_at == OPEN else ClosedBy.FINISHED,
    )


def _pods(count: int, days: int, jobs: int) -> list[PodInterval]:
    chance = random.Random(7)
    found = []
    for number in range(count):
        started_at = BASE + chance.randrange(days * DAY)
        found.append(pod(number, started_at, started_at + chance.randrange(HOUR, DAY), jobs))
    return found


def _parts(all: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for at in range(0, len(all), BATCH):
        yield tuple(all[at : at + BATCH])


def measure_ledger_write() -> None:
    """Intervals stored in batches of 10,000, beside the same rows by the driver's executemany.

    Both write to the tables of the store with their indexes, each into an empty store, 10,000 rows
    in a transaction. The rows of executemany are made before.
    """
    parser = _options(measure_ledger_write)
    parser.add_argument("--intervals", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3, help="in turns; the quickest is printed")
    chosen = parser.parse_args()
    pods = _pods(chosen.intervals, 30, 2000)
    gc.freeze()  # as servers do
    with _addresses(chosen) as found:
        for engine, address in found:
            stored, bare = [], []
            for _ in range(chosen.runs):
                stored.append(asyncio.run(_written(address(), pods)))
                bare.append(_bare(address(), pods))
            wall, cpu = map(min, zip(*stored, strict=True))
            bare_wall, bare_cpu = map(min, zip(*bare, strict=True))
            print(
                f"{engine:<11} {len(pods):,} intervals: {wall:.2f} s, {cpu:.2f} CPU s of this "
                f"process; executemany {bare_wall:.2f} s, {bare_cpu:.2f} CPU s; "
                f"{bare_wall / wall:.2f}× as fast, {bare_cpu / cpu:.2f}× by CPU",
                flush=True,
            )


async def _written(address: StoreAddress, pods: Sequence[PodInterval]) -> tuple[float, float]:
    """Seconds, and CPU seconds of this process."""
    migrate(address)
    store = SqlStore(address, SECONDS)
    epoch = (await store.ledger.claim_ledger("bench", BASE)).epoch
    began, cpu = time.perf_counter(), time.process_time()
    for part in _parts(pods):
        await store.ledger.write_ledger(epoch, LedgerBatch(BASE + 40 * DAY, part))
    taken = time.perf_counter() - began, time.process_time() - cpu
    await store.close()
    return taken


def _bare(address: StoreAddress, pods: Sequence[PodInterval]) -> tuple[float, float]:
    migrate(address)
    engine = engines.make_engine(address, SECONDS)
    with engines.writing(engine) as connection:
        ids = AccountIds().find(connection, map(as_rows.account_of, pods), (), ())
    values = [as_rows.pod_values(each, ids.account(as_rows.account_of(each))) for each in pods]
    mark = "?" if address.engine == SQLITE else "%s"
    columns = as_rows.POD_COLUMNS
    statement = (
        f"INSERT INTO {pod_intervals.name} ({', '.join(columns)}) "
        f"VALUES ({', '.join(mark for _ in columns)})"
    )
    began, cpu = time.perf_counter(), time.process_time()
    for part in _parts(values):
        with engines.writing(engine) as connection:
            driver: Any = connection.connection
            cursor = driver.cursor()
            cursor.executemany(statement, part)
            cursor.close()
    taken = time.perf_counter() - began, time.process_time() - cpu
    engine.dispose()
    return taken


def measure_ledger_sums() -> None:
    """A month of 1,000,000 intervals of 20,000 jobs, added up by account, beside the same four sums
    as one SQL statement. Then a day of it.
    """
    parser = _options(measure_ledger_sums)
    parser.add_argument("--intervals", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    pods = _pods(chosen.intervals, 30, 20_000)
    with _addresses(chosen) as found:
        for engine, address in found:
            place = address()
            asyncio.run(_written(place, pods))
            _analyze(place)
            month, raw, day = asyncio.run(_summed(place, chosen.runs))
            print(
                f"{engine:<11} month of {len(pods):,} intervals: {month:.2f} s; raw SQL "
                f"{raw:.2f} s; {month / raw:.2f}×; a day {day:.2f} s (medians of {chosen.runs})",
                flush=True,
            )


def _analyze(address: StoreAddress) -> None:
    """As engines do by themselves in time."""
    statement = "ANALYZE TABLE pod_intervals" if address.engine == "mysql" else "ANALYZE"
    engine = engines.make_engine(address, SECONDS)
    with engines.writing(engine) as connection:
        connection.execute(text(statement))
    engine.dispose()


async def _summed(address: StoreAddress, runs: int) -> tuple[float, float, float]:
    store = SqlStore(address, SECONDS)
    engine = engines.make_engine(address, SECONDS)
    times: tuple[list[float], ...] = ([], [], [])
    for _ in range(runs):
        began = time.perf_counter()
        assert await store.ledger.usage_sums(BASE, BASE + 30 * DAY)
        times[0].append(time.perf_counter() - began)
        began = time.perf_counter()
        with engines.reading(engine) as connection:
            _raw_sum(connection)
        times[1].append(time.perf_counter() - began)
        began = time.perf_counter()
        assert await store.ledger.usage_sums(BASE + 9 * DAY, BASE + 10 * DAY)
        times[2].append(time.perf_counter() - began)
    await store.close()
    engine.dispose()
    month, raw, day = map(statistics.median, times)
    return month, raw, day


def _raw_sum(connection: Connection) -> None:
    least, greatest = ("min", "max") if connection.dialect.name == SQLITE else ("least", "greatest")
    start, end = BASE, BASE + 30 * DAY
    ms = f"({least}(ended_at, {end}) - {greatest}(started_at, {start}))"
    names = ("gpu", "gpu_memory_mib", "cpu_milli", "memory_mib")
    sums = ", ".join(f"SUM({name} * {ms})" for name in names)
    asked = (
        f"SELECT account_id, {sums} FROM pod_intervals "
        f"WHERE started_at < {end} AND ended_at > {start} GROUP BY account_id"
    )
    assert connection.exec_driver_sql(asked).all()


def measure_ledger_past() -> None:
    """The states of a moment in 90 days of a cluster with 5,000 nodes of 8 GPUs.

    The states are those of `past_map`. CPU is of this process.
    """
    parser = _options(measure_ledger_past)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--days", type=int, default=90)
    parser.add_argument("--moments", type=int, default=9)
    chosen = parser.parse_args()
    with _addresses(chosen) as found:
        for engine, address in found:
            place = address()
            count = asyncio.run(_states_written(place, chosen))
            _analyze_all(place)
            asyncio.run(_past(engine, place, chosen, count))


def _analyze_all(address: StoreAddress) -> None:
    statement = "ANALYZE TABLE kept_states" if address.engine == "mysql" else "ANALYZE"
    engine = engines.make_engine(address, SECONDS)
    with engines.writing(engine) as connection:
        connection.execute(text(statement))
    engine.dispose()


async def _states_written(address: StoreAddress, chosen: argparse.Namespace) -> int:
    migrate(address)
    store = SqlStore(address, SECONDS)
    epoch = (await store.ledger.claim_ledger("bench", BASE)).epoch
    count = 0
    waiting: list[KeptState] = []

    async def write() -> None:
        await store.ledger.write_ledger(epoch, LedgerBatch(BASE, states=tuple(waiting)))
        waiting.clear()

    for state in states(chosen.nodes, chosen.days, BASE + chosen.days * DAY):
        count += 1
        waiting.append(state)
        if len(waiting) == BATCH:
            await write()
    await write()
    await store.close()
    return count


async def _past(engine: str, address: StoreAddress, chosen: argparse.Namespace, count: int) -> None:
    store = SqlStore(address, SECONDS)
    times, cpu, sizes = [], [], []
    for number in range(chosen.moments):
        at = BASE + (2 * number + 1) * chosen.days * DAY // (2 * chosen.moments)
        began, worked = time.perf_counter(), time.process_time()
        found = await store.ledger.states_at(at, (StateKind.NODE, StateKind.POD))
        times.append((time.perf_counter() - began) * 1000)
        cpu.append((time.process_time() - worked) * 1000)
        sizes.append(len(found))
    await store.close()
    print(
        f"{engine:<11} {count:,} states, {statistics.median(sizes):,.0f} at a moment: "
        f"median {statistics.median(times):.0f} ms, longest {max(times):.0f} ms; "
        f"CPU {statistics.median(cpu):.0f} ms",
        flush=True,
    )


def measure_ledger_claim() -> None:
    """What a recorder reads when it begins: open intervals and open states of as many pods."""
    parser = _options(measure_ledger_claim)
    parser.add_argument("--open", type=int, default=50_000)
    chosen = parser.parse_args()
    count: int = chosen.open
    with _addresses(chosen) as found:
        for engine, address in found:
            asyncio.run(_claimed(engine, address(), count))


async def _claimed(engine: str, address: StoreAddress, count: int) -> None:
    migrate(address)
    store = SqlStore(address, SECONDS)
    epoch = (await store.ledger.claim_ledger("bench", BASE)).epoch
    pods = [pod(number, BASE + number) for number in range(count)]
    states = [
        KeptState(StateKind.POD, each.pod_uid, each.started_at, "ml", each.pod, b"{}" * 200)
        for each in pods
    ]
    for part, kept in zip(_parts(pods), _parts(states), strict=True):
        batch = LedgerBatch(BASE + DAY, part, states=kept)
        await store.ledger.write_ledger(epoch, batch)
    nodes = tuple(
        NodeInterval(f"n-{number}", BASE, f"node-{number}", CLASSES[0]) for number in range(5000)
    )
    await store.ledger.write_ledger(epoch, LedgerBatch(BASE + DAY, nodes=nodes))
    gc.freeze()
    began, worked = time.perf_counter(), time.process_time()
    claim = await store.ledger.claim_ledger("bench", BASE + DAY + 5)
    taken, cpu = time.perf_counter() - began, time.process_time() - worked
    assert len(claim.pods) == len(claim.states) == count
    await store.close()
    print(
        f"{engine:<11} {count:,} open intervals and states: {taken:.2f} s, {cpu:.2f} CPU s",
        flush=True,
    )
