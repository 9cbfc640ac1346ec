"""Connections to the three engines: timeouts, transactions, locks, and what their failures mean.

The drivers are blocking and pure Python; calls run in threads.
"""

from __future__ import annotations

import os
import ssl
import struct
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from fairlead.edge.store.address import MYSQL, POSTGRESQL, SQLITE, StoreAddress
from fairlead.errors import StoreDown, UserError

CONNECTIONS: Final = 4
"""Of one process. SQLite has one writer at a time, and readers beside it."""
CALL_SECONDS: Final = 5.0
"""The time that an engine may take for one statement, and for a new connection."""
MIGRATION_SECONDS: Final = 120.0
"""The time for one statement of a migration, an export or an import."""
WRITES: Final = "fairlead_writes"
"""Execution option of a connection to SQLite: transactions take the write lock at their start.

A transaction that reads first and writes later fails if another one wrote between.
"""
_CLIENT_NUMBERS: Final = range(2000, 2100)
"""Numbers that MySQL's clients give to failures of a connection."""
_FULL_CODES: Final = frozenset(("53100", "1021", "1114", "3675"))
"""Codes of PostgreSQL and MySQL: the disk is full."""
_REFUSED_CODES: Final = frozenset(("28P01", "28000", "3D000", "1044", "1045", "1049", "1698"))
"""Codes: wrong password, unknown user or database."""
_BUSY_CODES: Final = frozenset(("55P03", "1205", "40001", "40P01", "1213"))


def make_engine(
    address: StoreAddress, seconds: float = CALL_SECONDS, *, may_create: bool = False
) -> Engine:
    """An engine for the address. It connects at the first use.

    `may_create`: a SQLite file that does not exist is created. Raises UserError for a file that
    cannot be opened, and for an authority that cannot be read.
    """
    options: dict[str, Any] = {
        "hide_parameters": True,  # an exception's text would contain values of rows
        "pool_size": CONNECTIONS,
        "max_overflow": 0,
        "pool_timeout": seconds,
    }
    if address.engine == SQLITE:
        _open_file(address.file, may_create=may_create)
        engine = create_engine(
            URL.create("sqlite", database=address.file),
            connect_args={"timeout": seconds},
            **options,
        )
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return engine
    url = URL.create(
        _DIALECTS[address.engine],
        username=address.user,
        password=address.password,
        host=address.host,
        port=address.port,
        database=address.database,
    )
    return create_engine(
        url,
        connect_args=_connect_arguments(address, seconds),
        pool_pre_ping=True,
        isolation_level="READ COMMITTED",
        **options,
    )


def long_engine(address: StoreAddress, *, may_create: bool = False) -> Engine:
    """An engine for long statements. Raises as `failures` if a short one finds no server: pg8000
    has one timeout for statements and for new connections.
    """
    if address.engine != SQLITE:
        short = make_engine(address)
        try:
            with short.connect():
                pass
        finally:
            short.dispose()
    return make_engine(address, MIGRATION_SECONDS, may_create=may_create)


_DIALECTS: Final = {POSTGRESQL: "postgresql+pg8000", MYSQL: "mysql+pymysql"}


def _connect_arguments(address: StoreAddress, seconds: float) -> dict[str, Any]:
    context = _tls_context(address) if address.is_encrypted else None
    if address.engine == POSTGRESQL:
        return {
            "timeout": seconds,
            "ssl_context": context or False,
            "application_name": "fairlead",
        }
    return {
        "connect_timeout": seconds,
        "read_timeout": seconds,
        "write_timeout": seconds,
        "charset": "utf8mb4",
        **({"ssl": context} if context else {"ssl_disabled": True}),
    }


def _tls_context(address: StoreAddress) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=address.authority or None)
    except OSError as error:
        raise UserError(
            f"the authority `{address.authority}` of the store cannot be read: {error}",
            "name a PEM file with certificates",
        ) from error


def _open_file(name: str, *, may_create: bool) -> None:
    """SQLite would create it with the process's umask; its other files get the same mode."""
    flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if may_create else 0)
    try:
        os.close(os.open(name, flags, 0o600))
    except OSError as error:
        what = f"the store `{name}` cannot be opened: {error.strerror}"
        raise UserError(
            what,
            "name a file in a folder that exists and that this process may write"
            if may_create
            else "name the file of a store, or make one with `fairlead store migrate`",
        ) from error


def _prepare_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # `_begin_sqlite` begins transactions
    cursor = connection.cursor()
    try:
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")
    finally:
        cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    is_writer = connection.get_execution_options().get(WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writer else "BEGIN")


class NoConnection(StoreDown):
    """The engine does not answer, or answers no one now: the next call would wait as long."""


@contextmanager
def failures(address: StoreAddress) -> Iterator[None]:
    """Raise StoreDown for what an engine or the way to it refuses.

    A duplicate key is the caller's: IntegrityError goes on.
    """
    try:
        yield
    except IntegrityError:
        raise
    except DBAPIError as error:
        is_away = error.connection_invalidated or not _is_answer(error.orig)
        raise _store_down(address, error.orig or error, is_away=is_away) from error
    except PoolTimeout as error:
        what = f"`{address.place}` is busy: all connections are in use"
        raise NoConnection(what, "look at the load of the database") from error
    except (OSError, EOFError, struct.error) as error:  # pg8000 leaves these to its callers
        raise _store_down(address, error, is_away=True) from error


def _is_answer(error: BaseException | None) -> bool:
    """Whether the engine answered: with PostgreSQL's fields, or one of MySQL's numbers that are not
    the client's own.
    """
    first = error.args[0] if error is not None and error.args else ""
    if isinstance(first, int):
        return first not in _CLIENT_NUMBERS
    return isinstance(first, dict)


def _store_down(address: StoreAddress, error: BaseException, *, is_away: bool) -> StoreDown:
    code, reason = _code(error), _reason(address, error)
    what = f"`{address.place}`: {reason}"
    if code in _FULL_CODES or "disk is full" in reason or "No space left" in reason:
        return StoreDown(what, "free some room on the disk of the store")
    if code in _REFUSED_CODES:
        return StoreDown(what, "look at user, password and database")
    if code in _BUSY_CODES or "database is locked" in reason:
        return StoreDown(what, "another process is writing for a long time: look which one")
    if address.engine == SQLITE:
        return StoreDown(what, "look at the file, or put back a copy of it")
    kind = NoConnection if is_away else StoreDown
    return kind(what, "look at the database server and the network to it")


def _code(error: BaseException) -> str:
    """PostgreSQL's SQLSTATE, MySQL's number, or ""."""
    first = error.args[0] if error.args else ""
    return str(first.get("C", "")) if isinstance(first, dict) else str(first)


def _reason(address: StoreAddress, error: BaseException) -> str:
    if isinstance(error.__cause__, OSError):  # pg8000's own text has no reason
        error = error.__cause__
    first = error.args[0] if error.args else ""
    if isinstance(first, dict):  # pg8000: the fields of PostgreSQL's answer
        found = str(first.get("M", ""))
    elif len(error.args) > 1:
        found = str(error.args[1])
    else:
        found = str(error)
    line = " ".join(found.split()) or type(error).__name__
    return line.replace(address.password, "…") if address.password else line


@contextmanager
def writing(engine: Engine) -> Generator[Connection]:
    """A transaction that writes; committed at the end, rolled back by an exception."""
    with _transaction(engine.connect().execution_options(**{WRITES: True})) as connection:
        yield connection


@contextmanager
def reading(engine: Engine) -> Generator[Connection]:
    with _transaction(engine.connect()) as connection:
        yield connection


@contextmanager
def _transaction(connection: Connection) -> Generator[Connection]:
    try:
        with connection.begin():
            yield connection
    except (OSError, EOFError, struct.error):
        connection.invalidate()  # of unknown state; SQLAlchemy does not know these
        raise
    finally:
        connection.close()


def engine_version(connection: Connection) -> str:
    names = {SQLITE: "sqlite_version()"}
    question = names.get(connection.dialect.name, "version()")
    return str(connection.scalar(text(f"SELECT {question}")))


def copy_sqlite(connection: Connection, target: Path) -> None:
    """A copy of the file as it is now, with what its WAL holds; whole or not at all."""
    import sqlite3

    source = connection.connection.driver_connection
    unfinished = target.with_name(target.name + ".unfinished")
    unfinished.unlink(missing_ok=True)
    os.close(os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    copy = sqlite3.connect(unfinished)
    try:
        if not isinstance(source, sqlite3.Connection):
            raise TypeError(f"{type(source).__name__} is no connection of SQLite")
        source.backup(copy)
    finally:
        copy.close()
    unfinished.replace(target)
