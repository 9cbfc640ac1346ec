"""The store is away, comes back, is full, is locked. What was promised stays, and messages name the
fault and no password.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from msgspec import structs
from sqlalchemy import text
from tests.edge.pki import Authority
from tests.programs import freeze
from tests.stores.database_servers import (
    DatabaseServer,
    Mariadb,
    Postgres,
    is_installed,
    processes,
)
from tests.stores.rows import audit_row, sign_in, tree_version
from tests.stores.small_disk import SmallDisk
from tests.waiting import until

from fairlead.edge.store import engines, opened, sql_store
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.migrate import migrate
from fairlead.edge.store.opened import open_store
from fairlead.edge.store.sql_store import SqlStore
from fairlead.edge.store.tables import VERSIONS
from fairlead.errors import StoreDown, UserError
from fairlead.model.records.audit import AuditFilter

SERVERS = pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
ONLY_SQLITE = pytest.mark.parametrize("engine", ["sqlite"])


async def fault_of(store: SqlStore) -> StoreDown:
    with pytest.raises(StoreDown) as caught:
        await store.append_audit(audit_row())
    return caught.value


async def answers(store: SqlStore) -> bool:
    try:
        await store.facts()
    except StoreDown:
        return False
    return True


@SERVERS
async def test_a_server_that_stops_and_comes_back_needs_no_restart_of_the_console(
    address: StoreAddress, store: SqlStore, server: DatabaseServer
) -> None:
    await store.add_sign_in(sign_in())
    server.crash()
    fault = await fault_of(store)
    assert fault.what.startswith(f"`{address.place}`: ")
    assert fault.hint == "look at the database server and the network to it"
    assert address.password not in f"{fault} {fault.__cause__!r}"
    server.start()
    await until(lambda: answers(store))
    assert await store.sign_in(sign_in().hash) == sign_in()
    await store.append_audit(audit_row())
    assert await store.count_audit(AuditFilter()) == 1


@SERVERS
async def test_a_server_that_was_restarted_while_the_console_rested_fails_no_call(
    address: StoreAddress, store: SqlStore, server: DatabaseServer
) -> None:
    await store.add_sign_in(sign_in())
    server.crash()
    server.start()
    assert await store.sign_in(sign_in().hash) == sign_in()


@SERVERS
async def test_a_server_that_hangs_costs_one_wait_and_then_none_for_a_moment(
    address: StoreAddress, server: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sql_store, "DOWN_SECONDS", 3600.0)
    await (await open_store(address)).close()
    store = SqlStore(address, seconds=1.0)
    await store.facts()
    backends = _frozen_with(server)
    try:
        await fault_of(store)
        began = time.monotonic()
        for _ in range(20):
            await fault_of(store)
        assert time.monotonic() - began < 20 * 0.75, "each call waited for itself"
    finally:
        for pid in backends:
            os.kill(pid, signal.SIGCONT)
    monkeypatch.setattr(sql_store, "DOWN_SECONDS", 0.0)
    await store.close()


def _frozen_with(server: DatabaseServer) -> list[int]:
    """The server and its children, all stopped."""
    found = processes(server.component)
    freeze(*found)
    return found


ENCRYPTED = {
    "postgresql": "SELECT ssl::int FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
    "mariadb": "SELECT variable_value <> '' FROM information_schema.session_status "
    "WHERE variable_name = 'Ssl_cipher'",
}


@SERVERS
async def test_with_an_authority_the_connection_is_encrypted_and_the_server_checked(
    engine: str, address: StoreAddress, server: DatabaseServer, tmp_path: Path
) -> None:
    def is_encrypted(address: StoreAddress) -> bool:
        made = engines.make_engine(address)
        try:
            with made.connect() as connection:
                return bool(connection.scalar(text(ENCRYPTED[engine])))
        finally:
            made.dispose()

    encrypted = structs.replace(address, is_encrypted=True, authority=str(server.authority))
    assert is_encrypted(encrypted) and not is_encrypted(address)
    await (await open_store(encrypted)).close()
    other = tmp_path / "other.pem"
    other.write_bytes(Authority("other").pem)
    for wrong in (structs.replace(encrypted, authority=str(other)), _of_this_machine(encrypted)):
        with pytest.raises(StoreDown) as caught:
            await open_store(wrong)
        assert "CERTIFICATE_VERIFY_FAILED" in caught.value.what.upper().replace(" ", "_")


def _of_this_machine(address: StoreAddress) -> StoreAddress:
    """With the authorities that this machine trusts."""
    return structs.replace(address, authority="")


@SERVERS
async def test_a_wrong_password_is_named_and_not_printed(
    address: StoreAddress, server: DatabaseServer
) -> None:
    wrong = structs.replace(address, password="not-the-password")
    with pytest.raises(StoreDown) as caught:
        await open_store(wrong)
    assert caught.value.hint == "look at user, password and database"
    assert "not-the-password" not in f"{caught.value!r} {caught.value}"
    assert "not-the-password" not in repr(wrong)


@SERVERS
async def test_an_unknown_database_is_named(address: StoreAddress, server: DatabaseServer) -> None:
    with pytest.raises(StoreDown) as caught:
        await open_store(structs.replace(address, database="absent"))
    assert "absent" in caught.value.what
    assert caught.value.hint == "look at user, password and database"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a file system")
async def test_a_full_disk_loses_nothing_and_with_more_room_the_store_goes_on(engine: str) -> None:
    """MariaDB ends itself when its disk is full, or hangs, and needs a start of its own."""
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
    try:
        await store.add_sign_in(sign_in())
        stored = await _filled(store, engine)
        disk.grow()
        if running is not None and engine == "mariadb":
            running.crash()
            running.start()
        await until(lambda: answers(store))
        assert await store.sign_in(sign_in().hash) == sign_in()
        versions = await store.tree_versions()
        assert [each.id for each in versions] == list(reversed(stored))[:20]
        assert await store.append_audit(audit_row()) == 1
        assert await store.add_tree_version(tree_version()) > stored[-1]
    finally:
        await store.close()
        if running is not None:
            running.end()
        disk.end()


async def _filled(store: SqlStore, engine: str) -> list[int]:
    """The versions that were stored until one was refused."""
    stored: list[int] = []
    with pytest.raises(StoreDown) as caught:
        while len(stored) < 100:  # text that no engine makes smaller
            version = tree_version(len(stored), tree=os.urandom(600_000).hex())
            stored.append(await store.add_tree_version(version))
    if engine != "mariadb":
        assert caught.value.hint == "free some room on the disk of the store", caught.value.what
    assert stored
    return stored


@ONLY_SQLITE
async def test_a_writer_that_does_not_end_is_waited_for_and_named(
    address: StoreAddress, engine: str
) -> None:
    await (await open_store(address)).close()
    store = SqlStore(address, seconds=0.2)
    with closing(sqlite3.connect(address.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        fault = await fault_of(store)
        assert fault.what == f"`{address.file}`: database is locked"
        assert fault.hint == "another process is writing for a long time: look which one"
        assert (await store.facts()).engine == "sqlite", "readers do not wait for a writer"
    assert await store.append_audit(audit_row()) == 1
    await store.close()


@ONLY_SQLITE
async def test_a_second_console_is_refused_until_the_first_has_ended(
    address: StoreAddress, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened, "HELD_SECONDS", 0.2)
    first = await open_store(address)
    with pytest.raises(UserError) as caught:
        await open_store(address)
    assert caught.value.what == f"another console uses the store `{address.file}`"
    monkeypatch.setattr(opened, "HELD_SECONDS", 30.0)
    second = asyncio.create_task(open_store(address))
    await first.close()
    await (await second).close()


@ONLY_SQLITE
def test_a_file_that_is_no_store_is_named(address: StoreAddress, engine: str) -> None:
    Path(address.file).write_bytes(b"not a database, " * 1000)
    with pytest.raises(StoreDown) as caught:
        migrate(address)
    assert caught.value.what == f"`{address.file}`: file is not a database"
    assert Path(address.file).read_bytes() == b"not a database, " * 1000


@ONLY_SQLITE
def test_a_process_killed_in_a_write_leaves_a_store_that_opens(
    new_address: Callable[[], StoreAddress], engine: str
) -> None:
    address = new_address()
    migrate(address)
    with closing(sqlite3.connect(address.file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("INSERT INTO spent_keys VALUES ('a', 1)")
    assert migrate(address) == VERSIONS[-1]
    with closing(sqlite3.connect(address.file)) as found:
        assert found.execute("SELECT count(*) FROM spent_keys").fetchone() == (0,)
