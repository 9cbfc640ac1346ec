"""The usage ledger when recorders, processes, servers and disks fail: a batch is stored as a whole
or not at all, and once.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, event
from tests.stores.database_servers import DatabaseServer, Mariadb, Postgres, is_installed
from tests.stores.killed import WRITES, end, started
from tests.stores.rows import A100, HOUR, NOW, kept_state, ledger_batch, pod_interval, price
from tests.stores.small_disk import SmallDisk
from tests.turns import in_turn
from tests.usage.memory_ledger import MemoryLedger
from tests.waiting import until

from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.administration import SqlAdministration
from fairlead.edge.store.ledger import bulk, upkeep
from fairlead.edge.store.opened import open_store
from fairlead.edge.store.sql_store import SqlStore
from fairlead.errors import LedgerTaken, StoreDown, UserError
from fairlead.model.usage.ledger import (
    MOST,
    OPEN,
    Amount,
    ClosedBy,
    End,
    JobRecord,
    LedgerBatch,
    LedgerCard,
    LedgerJob,
    NodeHour,
    NodeInterval,
    PriceClass,
    StateEnd,
    StateKind,
    UsedBy,
)
from fairlead.ports import UsageLedger

DAY = 24 * HOUR
SERVERS = pytest.mark.parametrize("engine", ["postgresql", "mariadb"])


def kept_as_a_port(store: SqlStore) -> UsageLedger:
    """mypy compares the class with the port."""
    return store.ledger


def exported(address: StoreAddress) -> bytes:
    return b"".join(SqlAdministration(address).export())


async def test_of_two_recorders_the_newer_one_writes_and_the_older_one_is_refused(
    address: StoreAddress,
) -> None:
    one, other = await open_store(address), SqlStore(address)
    try:
        claims = await asyncio.gather(
            *(each.ledger.claim_ledger("r", NOW) for _ in range(3) for each in (one, other))
        )
        assert sorted(claim.epoch for claim in claims) == [1, 2, 3, 4, 5, 6]
        before = exported(address)
        for attempt in (
            one.ledger.write_ledger(5, ledger_batch()),
            one.ledger.fold_day(5, NOW, NOW + DAY),
            one.ledger.forget_ledger(5, NOW + DAY, NOW + DAY),
        ):
            with pytest.raises(LedgerTaken) as caught:
                await attempt
            assert "claim 6 follows 5" in caught.value.what
        assert exported(address) == before
        await other.ledger.write_ledger(6, ledger_batch())
        assert len(await one.ledger.pod_intervals(NOW, NOW + DAY)) == 2
    finally:
        await one.close()
        await other.close()


async def test_a_ledger_keeps_the_time_zone_of_its_days(store: SqlStore) -> None:
    await store.ledger.claim_ledger("one", NOW, "Asia/Shanghai")
    with pytest.raises(UserError) as caught:
        await store.ledger.claim_ledger("two", NOW, "UTC")
    assert "`Asia/Shanghai`, not `UTC`" in caught.value.what
    bounds = await store.ledger.ledger_bounds()
    assert (bounds.zone, bounds.epoch) == ("Asia/Shanghai", 1)


async def test_a_batch_that_is_repeated_changes_nothing(
    address: StoreAddress, store: SqlStore
) -> None:
    epoch = (await store.ledger.claim_ledger("one", NOW)).epoch
    ends = (End(("p1", NOW), NOW + 9, ClosedBy.DELETED),)
    state_ends = (StateEnd(StateKind.POD, ("p1", NOW), NOW + 9),)
    batch = replace(ledger_batch(), pod_ends=ends, state_ends=state_ends)
    await store.ledger.write_ledger(epoch, batch)
    once = exported(address)
    for _ in range(2):
        await store.ledger.write_ledger(epoch, batch)
    await store.ledger.fold_day(epoch, NOW, NOW + DAY)
    folded = exported(address)
    await store.ledger.fold_day(epoch, NOW, NOW + DAY)
    assert exported(address) == folded != once
    [p1, _] = await store.ledger.pod_intervals(NOW, NOW + 1)
    assert (p1.ended_at, p1.closed_by) == (NOW + 9, ClosedBy.DELETED)


def written(address: StoreAddress, epoch: int, batch: LedgerBatch) -> None:
    async def write() -> None:
        store = SqlStore(address)
        await store.ledger.write_ledger(epoch, batch)
        await store.close()

    asyncio.run(write())


def killed_at(address: StoreAddress, batch: LedgerBatch, number: int, folder: Path) -> int:
    """Write the batch in a process that ends right before a statement or commit; their number."""
    seen_file, done = folder / "seen", folder / "done"
    done.unlink(missing_ok=True)

    def work() -> None:
        seen = 0

        def count(*_: object) -> None:
            nonlocal seen
            seen += 1
            seen_file.write_text(str(seen))
            if seen == number:
                end()

        def count_write(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            if statement.split()[0].upper() in WRITES:
                count()

        event.listen(Engine, "before_cursor_execute", count_write)
        event.listen(Engine, "commit", count)
        written(address, 1, batch)

    os.waitpid(started(work, done), 0)
    assert done.exists() == (not number)
    return int(seen_file.read_text())


def test_killed_at_any_statement_of_a_write_nothing_of_it_is_stored(
    new_address: Callable[[], StoreAddress], tmp_path: Path
) -> None:
    async def begun() -> StoreAddress:
        address = new_address()
        store = await open_store(address)
        await store.ledger.claim_ledger("one", NOW)
        await store.ledger.write_ledger(1, LedgerBatch(NOW, (pod_interval(),)))
        await store.close()
        return address

    batch = replace(ledger_batch(), pod_ends=(End(("p1", NOW), NOW + 9, ClosedBy.FINISHED),))
    whole = asyncio.run(begun())
    count = killed_at(whole, batch, 0, tmp_path)
    assert count > 5
    address = asyncio.run(begun())
    before = exported(address)
    for number in in_turn(range(1, count + 1), 3):
        killed_at(address, batch, number, tmp_path)
        assert exported(address) == before, number
    written(address, 1, batch)

    async def ends_of(address: StoreAddress) -> list[int]:
        store = SqlStore(address)
        pods = await store.ledger.pod_intervals(NOW, NOW + DAY)
        await store.close()
        return [pod.ended_at for pod in pods]

    for each in (whole, address):
        assert asyncio.run(ends_of(each)) == [NOW + 9, NOW + 5]


@SERVERS
async def test_a_server_that_ends_in_a_write_has_nothing_of_it_and_takes_it_again(
    address: StoreAddress, store: SqlStore, server: DatabaseServer
) -> None:
    await store.ledger.claim_ledger("one", NOW)
    await store.ledger.write_ledger(1, LedgerBatch(NOW, (pod_interval("p0"),)))
    crashes: list[str] = []

    def crash(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("INSERT INTO kept_states") and not crashes:
            crashes.append("after the pods, before the states")
            server.crash()

    batch = LedgerBatch(NOW + HOUR, tuple(pod_interval(f"p{n}") for n in range(1, 3000)))
    batch = replace(batch, states=tuple(kept_state(f"p{n}") for n in range(3000)))
    event.listen(Engine, "before_cursor_execute", crash)
    try:
        with pytest.raises(StoreDown):
            await store.ledger.write_ledger(1, batch)
    finally:
        event.remove(Engine, "before_cursor_execute", crash)
    assert len(crashes) == 1
    server.start()

    async def is_back() -> bool:
        try:
            await store.facts()
        except StoreDown:
            return False
        return True

    await until(is_back)
    assert (await store.ledger.ledger_bounds()).heartbeat == NOW
    assert len(await store.ledger.pod_intervals(NOW, NOW + DAY)) == 1
    await store.ledger.write_ledger(1, batch)
    assert len(await store.ledger.pod_intervals(NOW, NOW + DAY)) == 3000
    assert len(await store.ledger.states_at(NOW + 5, [StateKind.POD])) == 3000


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")
async def test_a_full_disk_keeps_whole_batches_and_with_more_room_the_last_one_is_stored(
    engine: str,
) -> None:
    if not is_installed(engine):
        pytest.skip(f"{engine} is not installed")
    disk, server = SmallDisk(), {"postgresql": Postgres, "mariadb": Mariadb}.get(engine)
    running = server() if server is not None else None
    address = (
        running.new_database("small", disk.folder)
        if running is not None
        else StoreAddress(SQLITE, file=str(disk.folder / "store"))
    )
    store = await open_store(address)

    def batch(number: int) -> LedgerBatch:
        body = f'"{os.urandom(60_000).hex()}"'.encode()
        states = tuple(kept_state(f"s{number}-{each}", body=body) for each in range(5))
        return LedgerBatch(NOW + number, states=states)

    try:
        await store.ledger.claim_ledger("one", NOW)
        stored = 0
        with pytest.raises(StoreDown):
            while stored < 200:
                await store.ledger.write_ledger(1, batch(stored + 1))
                stored += 1
        disk.grow()
        if running is not None and engine == "mariadb":
            running.crash()
            running.start()

        async def is_back() -> bool:
            try:
                await store.facts()
            except StoreDown:
                return False
            return True

        await until(is_back)
        assert (await store.ledger.ledger_bounds()).heartbeat == NOW + stored
        found = await store.ledger.states_at(NOW, [StateKind.POD])
        assert len(found) == 5 * stored > 0
        await store.ledger.write_ledger(1, batch(stored + 1))
        assert len(await store.ledger.states_at(NOW, [StateKind.POD])) == 5 * stored + 5
    finally:
        await store.close()
        if running is not None:
            running.end()
        disk.end()


BAD = "a\x00\udc80\n'\";--🚀\x1f\\"
GOOD = "a␀?\n'\";--🚀\x1f\\"


async def test_whatever_names_contain_is_stored(store: SqlStore) -> None:
    long = BAD + "x" * 100_000
    by = UsedBy(BAD, long, long)
    kind = PriceClass(((BAD, long),), BAD, 1, 2, 3)
    pod = pod_interval(
        BAD,
        by=by,
        pod=long,
        node=BAD,
        price_class=kind,
        job=LedgerJob(BAD, long, BAD),
        cards=(LedgerCard(BAD, 0),),
    )
    batch = LedgerBatch(
        NOW,
        (pod,),
        nodes=(NodeInterval(BAD, NOW, long, kind),),
        node_hours=(NodeHour(BAD, NOW, NOW, 1, 2, 3, 4, BAD, ((BAD, long),)),),
        states=(kept_state(BAD, namespace=BAD, name=long, body=b'"\xff\\u0000"'),),
        state_ends=(StateEnd(StateKind.POD, (BAD, NOW), NOW + 7),),
        jobs=(JobRecord(BAD, by, long, BAD, status=long, reason=BAD, manifest=long, image=BAD),),
    )
    await store.ledger.claim_ledger(long, NOW)
    for _ in range(2):
        await store.ledger.write_ledger(1, batch)
    [found] = await store.ledger.pod_intervals(NOW, NOW + 1, [BAD], BAD)
    assert (found.pod_uid, found.by.namespace, found.node) == (GOOD, GOOD, GOOD)
    assert found.by.user == found.by.leaf == GOOD + "x" * 100_000
    assert found.price_class.labels == ((GOOD, GOOD + "x" * 100_000),)
    assert found.cards == (LedgerCard(GOOD, 0),)
    assert (found.job.uid, len(found.job.name), found.pod[-1]) == (GOOD, 255, "…")
    [state] = await store.ledger.states_at(NOW + 6, [StateKind.POD], [BAD])
    name = GOOD.replace("\x1f", "␟")
    assert (state.uid, state.namespace, state.ended_at) == (name, name, NOW + 7)
    assert state.body == '"�\\u0000"'.encode()
    [job] = await store.ledger.ledger_jobs(NOW, NOW + 1, [BAD], long)
    assert (job.uid, job.manifest) == (GOOD, GOOD + "x" * 100_000)
    [hour] = await store.ledger.node_hours(NOW, NOW + 1)
    assert (hour.lacking, hour.holders) == (GOOD, ((GOOD, GOOD + "x" * 100_000),))
    assert await store.ledger.add_price(price(matcher=((BAD, BAD),), note=BAD)) == 1
    [found_price] = await store.ledger.prices()
    assert (found_price.matcher, found_price.note) == (((GOOD, GOOD),), GOOD)


async def test_sums_above_63_bits_are_exact_and_a_longer_time_is_refused(store: SqlStore) -> None:
    oracle = MemoryLedger()
    most = Amount(1 << 70, MOST, MOST, MOST)
    pods = tuple(
        pod_interval(f"p{number}", amount=most, ended_at=NOW + 60 * DAY) for number in range(200)
    )
    nodes = tuple(
        NodeInterval(f"n{number}", NOW, "node", A100, NOW + 60 * DAY) for number in range(3)
    )
    hours = tuple(NodeHour(node.node_uid, NOW, NOW, free=1 << 62) for node in nodes)
    for ledger in (store.ledger, oracle):
        await ledger.claim_ledger("one", NOW)
        batch = LedgerBatch(NOW + 90 * DAY, pods, nodes=nodes, node_hours=hours)
        await ledger.write_ledger(1, batch)
        await ledger.fold_day(1, NOW, NOW + DAY)
    [found] = await store.ledger.usage_sums(NOW - DAY, NOW + 90 * DAY)
    assert found.integral.gpu == 200 * MOST * 60 * DAY > 1 << 63
    assert (found,) == await oracle.usage_sums(NOW - DAY, NOW + 90 * DAY)
    assert await store.ledger.node_days(NOW, NOW + 1) == await oracle.node_days(NOW, NOW + 1)
    with pytest.raises(UserError) as caught:
        await store.ledger.usage_sums(0, NOW)
    assert caught.value.what == f"a period of {NOW // DAY} days is too long"


async def test_what_is_forgotten_is_counted_and_accounts_that_nothing_uses_go(
    store: SqlStore, address: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ROWS_AT_ONCE", "ACCOUNTS_AT_ONCE"):
        monkeypatch.setattr(upkeep, name, 2)
    monkeypatch.setattr(bulk, "ROWS_AT_ONCE", 2)
    pods = tuple(
        pod_interval(f"p{number}", job=LedgerJob(f"j{number}"), ended_at=NOW + number * DAY)
        for number in range(1, 6)
    )
    states = tuple(kept_state(f"s{number}", ended_at=NOW + number * DAY) for number in range(5))
    batch = replace(ledger_batch(NOW + 9 * DAY), pods=(*pods, pod_interval("p0")), states=states)
    await store.ledger.claim_ledger("one", NOW)
    await store.ledger.write_ledger(1, batch)
    await store.ledger.fold_day(1, NOW, NOW + DAY)
    rows = SqlAdministration(address).check().rows
    assert (rows["usage_accounts"], rows["pod_intervals"], rows["usage_days"]) == (6, 6, 6)
    before = NOW + 3 * DAY  # p1 and p2 ended before, s0 to s2, and the hours of one pod and node
    assert await store.ledger.forget_ledger(1, before, NOW) == 2 + 3 + 2
    assert await store.ledger.forget_ledger(1, before, NOW) == 0
    assert SqlAdministration(address).check().rows["usage_accounts"] == 6
    assert await store.ledger.forget_ledger(1, before, NOW + DAY) == 6 + 1
    assert SqlAdministration(address).check().rows["usage_accounts"] == 4
    left = await store.ledger.pod_intervals(NOW, OPEN)
    assert sorted(pod.job.uid for pod in left) == ["j1", "j3", "j4", "j5"]
    await store.ledger.write_ledger(1, batch)
    assert SqlAdministration(address).check().rows["usage_accounts"] == 6
