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
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, delete, insert, inspect, select, text

from fairlead.edge.store import engines
from fairlead.edge.store.address import MYSQL, POSTGRESQL, SQLITE, StoreAddress
from fairlead.edge.store.tables import (
    META_ID,
    META_MIGRATING,
    VERSION_TABLE,
    VERSIONS,
    meta,
    metadata,
)
from fairlead.errors import StoreDown, UserError
from fairlead.model.records.rows import StoreFacts

LOCK_SECONDS: Final = 120.0
_LOCK_NAME: Final = "fairlead-store-schema"
_LOCK_NUMBER: Final = 0x6661_6972_6C65_6164
"""PostgreSQL's advisory locks are numbers: the first eight letters of the project's name."""
MIGRATIONS: Final = Path(__file__).with_name("migrations")
_ALEMBIC: Final = threading.Lock()
"""Alembic's `context` is one per process."""


def stored_version(connection: Connection) -> str:
    """The schema's version in the store; "" = the store is empty.

    Raises UserError for a store that is newer than this program, and for tables of another program.
    """
    tables = inspect(connection).get_table_names()
    found = ""
    if VERSION_TABLE in tables:
        found = connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}")) or ""
    else:
        foreign = sorted(metadata.tables.keys() & {*tables})
        if foreign:
            raise UserError(
                f"the database has a table `{foreign[0]}` that is not Fairlead's",
                "create a database for Fairlead alone",
            )
    if found and found not in VERSIONS:
        raise UserError(
            f"the store has schema `{found}`, and this Fairlead knows schemas up to "
            f"`{VERSIONS[-1]}`",
            "run the newer Fairlead, or put back the store that was copied before its migration",
        )
    return found


def check_schema(address: StoreAddress, connection: Connection) -> str:
    """The version, which is this program's. Raises UserError if it is another one."""
    found, newest = stored_version(connection), VERSIONS[-1]
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
        ):
            if target == "head" and _is_current(connection):
                return VERSIONS[-1]
            with _lock(address, connection):
                _migrate(address, connection, say, target)
            return stored_version(connection)
    finally:
        engine.dispose()


def _is_current(connection: Connection) -> bool:
    """Whether nothing is left to do, not even of a migration whose process ended."""
    if stored_version(connection) != VERSIONS[-1]:
        connection.rollback()
        return False
    names = set(connection.scalars(select(meta.c.name)))
    connection.rollback()
    return META_ID in names and META_MIGRATING not in names


def _migrate(
    address: StoreAddress, connection: Connection, say: Callable[[str], None], target: str
) -> None:
    goal = VERSIONS[-1] if target == "head" else target
    before = stored_version(connection)
    connection.commit()
    if before and VERSIONS.index(before) > VERSIONS.index(goal):
        raise UserError(f"the store has schema `{before}`, which is newer than `{goal}`")
    if before != goal:
        if before:
            _begin_migration(address, connection, before, goal, say)
        say(f"the store goes from schema `{before or 'empty'}` to `{goal}`")
        _run_alembic(connection, goal)
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


def _run_alembic(connection: Connection, goal: str) -> None:
    from alembic import command  # a third of a second, which a store of this schema does not pay
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.set_main_option("version_locations", str(MIGRATIONS / "versions"))
    config.set_main_option("path_separator", "newline")
    config.attributes["connection"] = connection
    with _ALEMBIC:
        command.upgrade(config, goal)
    connection.commit()


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
