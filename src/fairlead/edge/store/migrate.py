"""Bringing a store to this program's schema: forward only, one process at a time.

A process may end at any statement; the next one continues, and comes to the same end.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, delete, insert, inspect, select, text

from fairlead.edge.store import engines
from fairlead.edge.store.address import MYSQL, POSTGRESQL, SQLITE, StoreAddress
from fairlead.edge.store.migrations.env import VERSION_TABLE
from fairlead.edge.store.tables import meta, metadata
from fairlead.errors import StoreDown, UserError
from fairlead.model.records.rows import StoreFacts

META_ID: Final = "id"
META_MIGRATING: Final = "migrating"
"""The version from which a migration is under way: its copy of the file exists."""
LOCK_SECONDS: Final = 120.0
_LOCK_NAME: Final = "fairlead-store-schema"
_LOCK_NUMBER: Final = 0x6661_6972_6C65_6164
"""PostgreSQL's advisory locks are numbers: the first eight letters of the project's name."""
_MIGRATIONS: Final = Path(__file__).with_name("migrations")
_ALEMBIC: Final = threading.Lock()
"""Alembic's `context` is one per process."""


class _Schema:
    """The versions that this program knows, oldest first."""

    def __init__(self, folder: Path) -> None:
        self.config = Config()
        self.config.set_main_option("script_location", str(folder))
        self.config.set_main_option("version_locations", str(folder / "versions"))
        self.config.set_main_option("path_separator", "newline")
        self.scripts = ScriptDirectory.from_config(self.config)
        walked = self.scripts.walk_revisions()
        self.versions = tuple(reversed([each.revision for each in walked]))

    @property
    def newest(self) -> str:
        return self.versions[-1]


@cache
def known_schema(folder: Path = _MIGRATIONS) -> _Schema:
    return _Schema(folder)


def stored_version(connection: Connection) -> str:
    """The schema's version in the store; "" = the store is empty.

    Raises UserError for a store that is newer than this program, and for tables of another program.
    """
    options = {"version_table": VERSION_TABLE}
    found = MigrationContext.configure(connection, opts=options).get_current_revision() or ""
    versions = known_schema().versions
    tables = inspect(connection).get_table_names() if not found else []
    foreign = sorted(metadata.tables.keys() & {*tables}) if VERSION_TABLE not in tables else []
    if foreign:
        raise UserError(
            f"the database has a table `{foreign[0]}` that is not Fairlead's",
            "create a database for Fairlead alone",
        )
    if found and found not in versions:
        raise UserError(
            f"the store has schema `{found}`, and this Fairlead knows schemas up to "
            f"`{versions[-1]}`",
            "run the newer Fairlead, or put back the store that was copied before its migration",
        )
    return found


def check_schema(address: StoreAddress, connection: Connection) -> str:
    """The version, which is this program's. Raises UserError if it is another one."""
    found, newest = stored_version(connection), known_schema().newest
    if found != newest:
        what = f"has schema `{found}`, not `{newest}`" if found else "is empty"
        raise UserError(f"the store `{address.place}` {what}", "run `fairlead store migrate`")
    return found


def store_facts(address: StoreAddress, connection: Connection) -> StoreFacts:
    """Raises UserError for a store of another schema."""
    return StoreFacts(
        address.engine,
        engines.engine_version(connection),
        address.place,
        check_schema(address, connection),
        connection.scalar(select(meta.c.value).where(meta.c.name == META_ID)) or "",
    )


def migrate(
    address: StoreAddress, say: Callable[[str], None] = lambda line: None, target: str = "head"
) -> str:
    """Bring the store to the newest schema and return its version.

    Of SQLite the file is copied first, to `FILE.before-VERSION`. `target`: an older version, for
    tests. Raises UserError for a store that is newer, StoreDown if the engine fails.
    """
    with engines.failures(address):
        engine = engines.long_engine(address, may_create=True)
    try:
        with (
            engines.failures(address),
            engine.connect().execution_options(**{engines.WRITES: True}) as connection,
            _lock(address, connection),
        ):
            _migrate(address, connection, say, target)
            return stored_version(connection)
    finally:
        engine.dispose()


def _migrate(
    address: StoreAddress, connection: Connection, say: Callable[[str], None], target: str
) -> None:
    schema = known_schema()
    goal = schema.newest if target == "head" else target
    before = stored_version(connection)
    connection.commit()
    if before and schema.versions.index(before) > schema.versions.index(goal):
        raise UserError(f"the store has schema `{before}`, which is newer than `{goal}`")
    if before != goal:
        if before:
            _begin_migration(address, connection, before, goal, say)
        say(f"the store goes from schema `{before or 'empty'}` to `{goal}`")
        _run_alembic(schema, connection, goal)
    _end_migration(connection)


def _begin_migration(
    address: StoreAddress,
    connection: Connection,
    before: str,
    goal: str,
    say: Callable[[str], None],
) -> None:
    found = connection.scalar(select(meta.c.value).where(meta.c.name == META_MIGRATING))
    connection.commit()
    if found is not None:
        return  # an earlier start copied the file and ended on the way
    if address.engine == SQLITE:
        target = Path(f"{address.file}.before-{goal}")
        try:
            engines.copy_sqlite(connection, target)
        except OSError as error:
            raise StoreDown(
                f"`{target}` cannot be written: {error.strerror}",
                "the store is as it was: it needs room for a copy of its file",
            ) from error
        say(f"copied the store to `{target}`")
    connection.execute(insert(meta).values(name=META_MIGRATING, value=before))
    connection.commit()


def _run_alembic(schema: _Schema, connection: Connection, goal: str) -> None:
    with _ALEMBIC:
        schema.config.attributes["connection"] = connection
        try:
            command.upgrade(schema.config, goal)
            connection.commit()
        finally:
            del schema.config.attributes["connection"]


def _end_migration(connection: Connection) -> None:
    """Remove the mark, and give a new store its id."""
    connection.execute(delete(meta).where(meta.c.name == META_MIGRATING))
    if connection.scalar(select(meta.c.value).where(meta.c.name == META_ID)) is None:
        connection.execute(insert(meta).values(name=META_ID, value=uuid.uuid4().hex))
    connection.commit()


@contextmanager
def _lock(address: StoreAddress, connection: Connection) -> Iterator[None]:
    """Wait until no other process migrates. Raises StoreDown after `LOCK_SECONDS`.

    The lock ends with the connection, which `migrate` closes.
    """
    if address.engine == SQLITE:
        with _file_lock(address):
            yield
        return
    limit = time.monotonic() + LOCK_SECONDS
    while not connection.scalar(text(TAKE_LOCK[address.engine]), LOCK_ARGUMENTS[address.engine]):
        connection.commit()
        if time.monotonic() > limit:
            raise _still_locked(address)
        time.sleep(0.1)
    connection.commit()
    yield


TAKE_LOCK: Final = {
    POSTGRESQL: "SELECT pg_try_advisory_lock(:number)",
    MYSQL: "SELECT GET_LOCK(CONCAT(:name, '-', MD5(DATABASE())), 0)",
}
"""MySQL's locks belong to the server, PostgreSQL's to the database."""
LOCK_ARGUMENTS: Final[dict[str, dict[str, Any]]] = {
    POSTGRESQL: {"number": _LOCK_NUMBER},
    MYSQL: {"name": _LOCK_NAME},
}


def _still_locked(address: StoreAddress) -> StoreDown:
    return StoreDown(
        f"another process has been migrating `{address.place}` for {LOCK_SECONDS:.0f} s",
        "wait until it has ended",
    )


@contextmanager
def _file_lock(address: StoreAddress) -> Iterator[None]:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(f"{address.file}.lock", flags, 0o600)
    limit = time.monotonic() + LOCK_SECONDS
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > limit:
                    raise _still_locked(address) from None
                time.sleep(0.05)
        yield
    finally:
        os.close(descriptor)
