"""A simulated cluster on disk: one SQLite file, with a row per object and one header.

Data is on disk when `write` returns. The file is locked for this process and checked completely
before it is used; a file that is damaged, of another program or of a newer version is not changed.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from fairlead.edge.files.own_files import make_private
from fairlead.errors import OutsideError, UserError

FILE: Final = "world.sqlite"
FORMAT: Final = 1
APPLICATION: Final = int.from_bytes(b"FLWD")
_SCHEMA: Final = (
    "CREATE TABLE objects (id INTEGER PRIMARY KEY,"
    " resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,"
    " body BLOB NOT NULL, cards BLOB NOT NULL, UNIQUE (resource, namespace, name))",
    "CREATE TABLE world (id INTEGER PRIMARY KEY CHECK (id = 1), header BLOB NOT NULL)",
    f"PRAGMA application_id = {APPLICATION}",
    f"PRAGMA user_version = {FORMAT}",
)
_PUT: Final = (
    "INSERT INTO objects (resource, namespace, name, body, cards) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (resource, namespace, name)"
    " DO UPDATE SET body = excluded.body, cards = excluded.cards"
)
_DROP: Final = "DELETE FROM objects WHERE resource = ? AND namespace = ? AND name = ?"
_HEAD: Final = (
    "INSERT INTO world (id, header) VALUES (1, ?)"
    " ON CONFLICT (id) DO UPDATE SET header = excluded.header"
)
_ELSEWHERE: Final = "give another directory with --state-dir"
_MEND: Final = "copy a good one back, or move it away to begin a new world"

Key = tuple[str, str, str]
"""Resource (`deployments.apps`), namespace ("" for none) and name."""


class Row(NamedTuple):
    """One object as JSON, and the cards that it holds as JSON."""

    resource: str
    namespace: str
    name: str
    body: bytes
    cards: bytes


class WorldFile:
    """An open file.

    Its errors name `world file PATH`: UserError while opening, OutsideError for a failed write,
    which changed nothing.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / FILE
        is_there = os.path.lexists(self.path)
        try:
            make_private(directory)
            # it will contain Secrets
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NONBLOCK, 0o600))
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            what = f"world file `{self.path}` cannot be opened: {why}"
            raise UserError(what, _ELSEWHERE) from error
        if not self.path.is_file():
            raise UserError(f"world file `{self.path}` is no regular file", _ELSEWHERE)
        if is_there and not self.path.stat().st_size:
            raise UserError(f"world file `{self.path}` is empty", _MEND)
        with self._opening():
            self._sql = sqlite3.connect(self.path, isolation_level=None, timeout=0)
            self._sql.execute("PRAGMA locking_mode = EXCLUSIVE")
            self.is_new = not self._number("SELECT count(*) FROM sqlite_master")
            if not self.is_new:
                self._check()
            self._sql.execute("PRAGMA journal_mode = WAL")
            self._sql.execute("PRAGMA synchronous = FULL")
            self._sql.execute("BEGIN IMMEDIATE")
            self._sql.execute("COMMIT")

    def header(self) -> bytes:
        """The header of the last `write`."""
        with self._opening():
            found = self._sql.execute("SELECT header FROM world").fetchone()
        if found is None:
            raise self.damaged("it has no header")
        return bytes(found[0])

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """Body and cards of every object, in the order in which they were added."""
        with self._opening():
            yield from self._sql.execute("SELECT body, cards FROM objects ORDER BY id")

    def write(self, drops: Iterable[Key], puts: Iterable[Row], header: bytes) -> None:
        """Writes everything or nothing, on disk when it returns.

        An object that is dropped and put is a new one.
        """
        try:
            self._sql.execute("BEGIN IMMEDIATE")
            try:
                if self.is_new:
                    for statement in _SCHEMA:
                        self._sql.execute(statement)
                self._sql.executemany(_DROP, drops)
                self._sql.executemany(_PUT, puts)
                self._sql.execute(_HEAD, (header,))
                self._sql.execute("COMMIT")
            except BaseException:
                if self._sql.in_transaction:
                    self._sql.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            what, hint = _explained(error)
            raise OutsideError(
                "disk", f"world file `{self.path}` cannot be written: {what}", hint
            ) from error
        self.is_new = False

    def close(self) -> None:
        self._sql.close()

    def damaged(self, why: object) -> UserError:
        """The error for contents that make no sense."""
        return UserError(f"world file `{self.path}` is damaged: {why}", _MEND)

    def _check(self) -> None:
        if self._number("PRAGMA application_id") != APPLICATION:
            raise UserError(f"`{self.path}` is a database of another program", _ELSEWHERE)
        version = self._number("PRAGMA user_version")
        if version != FORMAT:
            age, hint = (
                ("newer", "upgrade Fairlead")
                if version > FORMAT
                else ("older", "open it with the Fairlead that wrote it")
            )
            what = (
                f"world file `{self.path}` has format {version}, "
                f"which is {age} than this program's {FORMAT}"
            )
            raise UserError(what, f"{hint}, or {_ELSEWHERE}")
        (verdict,) = self._sql.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise self.damaged(verdict)

    def _number(self, statement: str) -> int:
        return int(self._sql.execute(statement).fetchone()[0])

    @contextmanager
    def _opening(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            what, hint = _explained(error)
            raise UserError(f"world file `{self.path}` cannot be opened: {what}", hint) from error


_WORDS: Final = {
    "SQLITE_BUSY": ("another laptop keeps its world there", f"end it, or {_ELSEWHERE}"),
    "SQLITE_FULL": ("the disk is full", "free some space"),
    "SQLITE_NOTADB": ("it is no database", f"move it away, or {_ELSEWHERE}"),
    "SQLITE_CORRUPT": ("it is damaged or cut off", _MEND),
    "SQLITE_READONLY": ("it may only be read", f"make it writable, or {_ELSEWHERE}"),
}


def _explained(error: sqlite3.Error) -> tuple[str, str]:
    """The cause and a hint."""
    name = getattr(error, "sqlite_errorname", "")
    return _WORDS.get("_".join(name.split("_")[:2]), (str(error), "check the disk"))
