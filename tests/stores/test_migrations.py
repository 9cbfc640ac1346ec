"""From every earlier schema to the newest: with rows, killed at every statement, two at once."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, event, inspect, select, text
from tests.programs import run_program
from tests.stores.database_servers import DatabaseServer
from tests.stores.killed import WRITES, end, started
from tests.stores.rows import audit_row, sign_in
from tests.turns import in_turn

from fairlead.edge.store import engines, migrate
from fairlead.edge.store.address import SQLITE, StoreAddress
from fairlead.edge.store.migrate import MIGRATIONS, stored_version
from fairlead.edge.store.opened import open_store
from fairlead.edge.store.sql_store import SqlStore
from fairlead.edge.store.tables import VERSION_TABLE, VERSIONS, meta, metadata
from fairlead.errors import StoreDown, UserError
from fairlead.model.records.audit import AuditFilter
from fairlead.model.records.sign_ins import SignIn

PARTS = {"sqlite": 9, "postgresql": 18, "mariadb": 9}
"""Of the statements a run tries one part: a new database takes a second in PostgreSQL."""

OLD_SIGN_IN = (
    *("hash", "identity", "user_id", "way", "began_at", "seen_at", "ends_at", "csrf"),
    *("group_names", "source_ip"),
)
"""The columns of a sign-in in the schemas 0001 and 0002."""


def _in_row(row: SignIn, column: str) -> object:
    if column == "group_names":
        return json.dumps(list(row.groups))
    value = row.user if column == "user_id" else getattr(row, column)
    return str(value) if isinstance(value, str) else value


def version_of(address: StoreAddress) -> str:
    with connected(address) as connection:
        return stored_version(connection)


@contextlib.contextmanager
def connected(address: StoreAddress) -> Iterator[Connection]:
    engine = engines.make_engine(address, may_create=True)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()


def differences(address: StoreAddress) -> list[object]:
    """Between the tables of the program and those of the store, as Alembic sees them."""

    def is_table_of_fairlead(_object: object, name: str | None, kind: str, *_: object) -> bool:
        return (kind, name) != ("table", VERSION_TABLE)

    with connected(address) as connection:
        options = {"include_object": is_table_of_fairlead, "compare_type": True}
        return list(
            compare_metadata(MigrationContext.configure(connection, opts=options), metadata)
        )


def writes_of(address: StoreAddress, count_file: Path, kill_at: int = 0) -> int:
    """The number of statements and commits that a migration sends, in a process of its own. The
    process ends right before number `kill_at`, counted from 1.
    """

    def work() -> None:
        seen = 0

        def count(*_: object) -> None:
            nonlocal seen
            seen += 1
            if seen == kill_at:
                end()

        def count_write(_connection: object, _cursor: object, statement: str, *_: object) -> None:
            if statement.split()[0].upper() in WRITES:
                count()

        event.listen(Engine, "before_cursor_execute", count_write)
        event.listen(Engine, "commit", count)
        migrate.migrate(address)
        count_file.write_text(str(seen))

    done = count_file.with_suffix(".done")
    done.unlink(missing_ok=True)
    os.waitpid(started(work, done), 0)
    assert done.exists() == (not kill_at)
    return kill_at or int(count_file.read_text())


def test_the_versions_are_those_of_the_files() -> None:
    walked = ScriptDirectory(str(MIGRATIONS), str(MIGRATIONS / "versions")).walk_revisions()
    assert tuple(reversed([each.revision for each in walked])) == VERSIONS


@pytest.mark.parametrize("engine", ["sqlite"])
def test_a_store_of_this_schema_is_opened_without_alembic(
    engine: str, address: StoreAddress
) -> None:
    code = (
        "import asyncio, sys\n"
        "from fairlead.edge.store.address import store_address\n"
        "from fairlead.edge.store.opened import open_store\n"
        "async def main(): await (await open_store(store_address(sys.argv[1]))).close()\n"
        "asyncio.run(main())\n"
        "print('alembic' in sys.modules)"
    )
    for expected in ("True", "False"):
        argv = [sys.executable, "-c", code, f"sqlite:///{address.file}"]
        ended = run_program(argv)
        assert ended.stdout.strip() == expected, ended.stderr


def test_an_empty_store_comes_to_the_tables_of_the_program(address: StoreAddress) -> None:
    assert version_of(address) == ""
    assert migrate.migrate(address) == VERSIONS[-1] == version_of(address)
    assert differences(address) == []


@pytest.mark.parametrize("version", VERSIONS[:-1])
async def test_rows_of_an_earlier_schema_are_kept(address: StoreAddress, version: str) -> None:
    migrate.migrate(address, target=version)
    assert version_of(address) == version
    before = sign_in(bound_to="")  # no schema before 0003 has it
    old = SqlStore(address)
    with connected(address) as connection:
        values = {column: _in_row(before, column) for column in OLD_SIGN_IN}
        named = ", ".join(f":{column}" for column in OLD_SIGN_IN)
        statement = f"INSERT INTO sign_ins ({', '.join(OLD_SIGN_IN)}) VALUES ({named})"
        connection.execute(text(statement), values)
        connection.commit()
    number = await old.append_audit(audit_row())
    await old.close()
    with connected(address) as connection:
        identity = connection.scalar(select(meta.c.value).where(meta.c.name == "id"))
    store = await open_store(address)
    assert (await store.facts()).id == identity
    assert await store.sign_in(before.hash) == before
    [row] = await store.audit_page(AuditFilter(), 10)
    assert row == audit_row(id=number)
    await store.close()
    assert differences(address) == []


def test_a_second_migration_changes_nothing_and_prints_nothing(address: StoreAddress) -> None:
    migrate.migrate(address)
    lines: list[str] = []
    migrate.migrate(address, lines.append)
    assert lines == []


@pytest.mark.parametrize("start", ["", *VERSIONS[:-1]])
def test_killed_at_any_statement_the_next_start_comes_to_the_same_end(
    engine: str, new_address: Callable[[], StoreAddress], start: str, tmp_path: Path
) -> None:
    def begun() -> StoreAddress:
        address = new_address()
        if start:
            migrate.migrate(address, target=start)
        return address

    writes = writes_of(begun(), tmp_path / "count")
    assert writes > 5
    for number in in_turn(range(1, writes + 1), PARTS[engine]):
        address = begun()
        writes_of(address, tmp_path / "count", kill_at=number)
        migrate.migrate(address)
        assert differences(address) == [] and version_of(address) == VERSIONS[-1], number
        with connected(address) as connection:
            names = connection.scalars(select(meta.c.name)).all()
        assert list(names) == ["id"], number


def test_consoles_that_start_at_once_migrate_one_after_the_other(
    address: StoreAddress, tmp_path: Path
) -> None:
    ends = [tmp_path / f"done-{number}" for number in range(4)]
    for pid in [started(lambda: migrate.migrate(address), done) for done in ends]:
        os.waitpid(pid, 0)
    assert [each.exists() for each in ends] == [True] * 4
    assert differences(address) == []


def test_a_store_that_is_newer_is_refused_and_not_changed(address: StoreAddress) -> None:
    migrate.migrate(address)
    with connected(address) as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
        connection.commit()
    with pytest.raises(UserError) as caught:
        migrate.migrate(address)
    assert caught.value.what == (
        f"the store has schema `9999`, and this Fairlead knows schemas up to `{VERSIONS[-1]}`"
    )
    with connected(address) as connection:
        assert connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) == "9999"


def test_tables_of_another_program_are_refused_and_not_changed(address: StoreAddress) -> None:
    with connected(address) as connection:
        connection.execute(text("CREATE TABLE audit (line VARCHAR(10))"))
        connection.commit()
    with pytest.raises(UserError) as caught:
        migrate.migrate(address)
    assert caught.value.what == "the database has a table `audit` that is not Fairlead's"
    with connected(address) as connection:
        assert inspect(connection).get_table_names() == ["audit"]


@pytest.mark.parametrize("engine", ["sqlite"])
def test_the_file_is_copied_before_it_is_migrated(engine: str, address: StoreAddress) -> None:
    migrate.migrate(address, target=VERSIONS[0])
    with connected(address) as connection:
        connection.execute(text("INSERT INTO spent_keys VALUES ('a', 1)"))
        connection.commit()
    lines: list[str] = []
    migrate.migrate(address, lines.append)
    copy = Path(f"{address.file}.before-{VERSIONS[-1]}")
    assert lines[0] == f"copied the store to `{copy}`"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with contextlib.closing(sqlite3.connect(copy)) as found:
        assert found.execute("SELECT hash FROM spent_keys").fetchall() == [("a",)]
        assert found.execute(f"SELECT * FROM {VERSION_TABLE}").fetchall() == [(VERSIONS[0],)]


@pytest.mark.parametrize("engine", ["sqlite"])
def test_without_a_copy_the_store_stays_as_it_was(
    engine: str, address: StoreAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate.migrate(address, target=VERSIONS[0])
    copy = Path(f"{address.file}.before-{VERSIONS[-1]}")
    copy.mkdir()
    with pytest.raises(StoreDown) as caught:
        migrate.migrate(address)
    assert caught.value.what == f"`{copy}` cannot be written: Is a directory"
    assert version_of(address) == VERSIONS[0]
    copy.rmdir()
    assert migrate.migrate(address) == VERSIONS[-1]


@pytest.mark.parametrize("engine", ["sqlite"])
def test_the_files_of_a_store_are_its_users_alone(engine: str, address: StoreAddress) -> None:
    assert address.engine == SQLITE
    before = os.umask(0)
    try:
        migrate.migrate(address)
        with connected(address) as connection:
            connection.execute(text("INSERT INTO spent_keys VALUES ('a', 1)"))
            connection.commit()
            files = sorted(Path(address.file).parent.glob(f"{Path(address.file).name}*"))
            modes = {
                each.name.removeprefix(Path(address.file).name): oct(each.stat().st_mode & 0o777)
                for each in files
            }
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("", "-wal", "-shm", ".lock"), "0o600")


@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
def test_a_process_that_migrates_is_waited_for_and_no_longer_than_the_limit(
    engine: str, address: StoreAddress, server: DatabaseServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrate, "LOCK_SECONDS", 0.3)
    with connected(address) as connection:
        question = text(migrate.TAKE_LOCK[address.engine])
        assert connection.scalar(question, migrate.LOCK_ARGUMENTS[address.engine]) == 1
        with pytest.raises(StoreDown) as caught:
            migrate.migrate(address)
        assert "another process has been migrating" in caught.value.what
    migrate.migrate(address)
