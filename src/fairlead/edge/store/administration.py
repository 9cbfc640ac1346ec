"""What an operator does with a store: look at it, migrate it, write it to lines and read those.

Lines are JSON: a head, a line for each row, an end with their number. So a file that was cut is
found out, and a store changes its engine by them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Integer,
    Table,
    and_,
    func,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.exc import IntegrityError

from fairlead.edge.store import engines
from fairlead.edge.store.address import POSTGRESQL, SQLITE, StoreAddress
from fairlead.edge.store.ledger.bulk import Rows, plain_insert
from fairlead.edge.store.migrate import migrate, store_facts
from fairlead.edge.store.tables import META_ID, VERSIONS, meta, metadata
from fairlead.errors import UserError
from fairlead.model.records.rows import StoreCheck

FORMAT: Final = 1
ROWS_AT_ONCE: Final = 500
_TABLES: Final = tuple(table for table in metadata.sorted_tables if table is not meta)
_HINT: Final = "give the whole file that `fairlead store export` printed"


class _Head(Struct, rename={"fairlead_store": "fairlead-store"}, forbid_unknown_fields=True):
    fairlead_store: int
    schema: str
    id: str


class _Row(Struct, forbid_unknown_fields=True):
    table: str
    row: dict[str, str | int]


class _End(Struct, forbid_unknown_fields=True):
    rows: int


class SqlAdministration:
    """Blocking; each method connects and disconnects."""

    def __init__(self, address: StoreAddress) -> None:
        self._address = address

    def check(self) -> StoreCheck:
        """Raises UserError for another schema, StoreDown if the engine does not answer."""
        with self._connected() as connection:
            return StoreCheck(store_facts(self._address, connection), row_counts(connection))

    def migrate(self, say: Callable[[str], None]) -> str:
        return migrate(self._address, say)

    def export(self) -> Iterator[bytes]:
        """The lines, of one moment: what is written meanwhile is not in them."""
        encode = msgspec.json.encode
        with self._connected(is_one_moment=True) as connection:
            facts = store_facts(self._address, connection)
            yield encode(_Head(FORMAT, facts.schema, facts.id)) + b"\n"
            count = 0
            for table in _TABLES:
                for row in _all_rows(connection, table):
                    count += 1
                    yield encode(_Row(str(table.name), row)) + b"\n"
            yield encode(_End(count)) + b"\n"

    def import_lines(self, data: bytes) -> int:
        """Store the rows of an export in a store that has none, all or nothing; how many.

        Raises UserError for a store with rows, and for lines that are no whole export.
        """
        migrate(self._address)
        with self._connected(is_write=True) as connection:
            full = [name for name, count in row_counts(connection).items() if count]
            if full:
                raise UserError(
                    f"the store `{self._address.place}` has rows already, in `{full[0]}`",
                    "name an empty store",
                )
            count = _import(connection, data.splitlines())
            if self._address.engine == POSTGRESQL:
                _continue_numbers(connection)
            return count

    @contextmanager
    def _connected(
        self, *, is_write: bool = False, is_one_moment: bool = False
    ) -> Generator[Connection]:
        with engines.failures(self._address):
            engine = engines.long_engine(self._address)
        opened = engines.writing if is_write else engines.reading
        try:
            if is_one_moment and self._address.engine != SQLITE:
                engine = engine.execution_options(isolation_level="REPEATABLE READ")
            with engines.failures(self._address), opened(engine) as connection:
                yield connection
        finally:
            engine.dispose()


def row_counts(connection: Connection) -> dict[str, int]:
    """Rows by table."""
    return {
        table.name: connection.scalar(select(func.count()).select_from(table)) or 0
        for table in _TABLES
    }


def _all_rows(connection: Connection, table: Table) -> Iterator[dict[str, str | int]]:
    """By key, in parts: drivers would read the whole table into memory."""
    key = list(table.primary_key.columns)
    asked = select(table).order_by(*key).limit(ROWS_AT_ONCE)
    rows = connection.execute(asked).mappings().all()
    while rows:
        yield from (dict(row) for row in rows)
        last = [rows[-1][each.name] for each in key]
        rows = connection.execute(asked.where(_is_after(key, last))).mappings().all()


def _is_after(key: Sequence[Column[Any]], last: Sequence[Any]) -> ColumnElement[bool]:
    """Row comparisons in words that each engine answers by its index."""
    first, *others = key
    is_greater: ColumnElement[bool] = first > last[0]
    if not others:
        return is_greater
    is_equal = and_(first == last[0], _is_after(others, last[1:]))
    return and_(first >= last[0], or_(is_greater, is_equal))


def _import(connection: Connection, lines: list[bytes]) -> int:
    head = _decoded(lines, 0, _Head)
    if (head.fairlead_store, head.schema) != (FORMAT, VERSIONS[-1]):
        raise UserError(
            f"the file has a store of schema `{head.schema}`, format {head.fairlead_store}; this "
            f"Fairlead imports schema `{VERSIONS[-1]}`, format {FORMAT}",
            "export it with this version of Fairlead, after `fairlead store migrate`",
        )
    try:
        end = msgspec.json.decode(lines[-1], type=_End)
    except msgspec.DecodeError as error:
        raise UserError("the file has no last line with the number of rows", _HINT) from error
    if end.rows != len(lines) - 2:
        raise UserError(f"the file has {len(lines) - 2} rows and lists {end.rows}", _HINT)
    waiting: dict[str, list[dict[str, str | int]]] = {table.name: [] for table in _TABLES}
    for number in range(1, len(lines) - 1):
        found = _decoded(lines, number, _Row)
        _check_row(found, number)
        rows = waiting[found.table]
        rows.append(found.row)
        if len(rows) == ROWS_AT_ONCE:
            _insert(connection, found.table, rows)
    for name, rows in waiting.items():
        _insert(connection, name, rows)
    connection.execute(update(meta).where(meta.c.name == META_ID).values(value=head.id))
    return end.rows


T = TypeVar("T")


def _decoded(lines: list[bytes], number: int, kind: type[T]) -> T:
    if not 0 <= number < len(lines):
        raise UserError("the file is empty", _HINT)
    try:
        return msgspec.json.decode(lines[number], type=kind)
    except msgspec.DecodeError as error:
        raise UserError(f"line {number + 1} is not one of an export: {error}", _HINT) from error


def _check_row(found: _Row, number: int) -> None:
    table = metadata.tables.get(found.table) if found.table != meta.name else None
    if table is None:
        raise UserError(f"line {number + 1} has the unknown table `{found.table}`", _HINT)
    if found.row.keys() != {*table.columns.keys()}:
        fields = sorted(found.row.keys() ^ {*table.columns.keys()})
        raise UserError(
            f"line {number + 1} has other columns than `{found.table}`: `{fields[0]}`", _HINT
        )
    for column in table.columns:
        value = found.row[column.name]
        fault = _fault(column, value)
        if fault:
            raise UserError(f"line {number + 1}: `{column.name}` {fault}", _HINT)


def _fault(column: Column[Any], value: str | int) -> str:
    if isinstance(column.type, BigInteger | Integer):
        is_number = isinstance(value, int) and -(2**63) <= value < 2**63
        return "" if is_number else "is no whole number of 64 bits"
    if not isinstance(value, str):
        return "is no text"
    length = getattr(column.type, "length", None)
    return f"has more than {length} characters" if length and len(value) > length else ""


def _insert(connection: Connection, name: str, rows: list[dict[str, str | int]]) -> None:
    if rows:
        try:
            table = metadata.tables[name]
            into = Rows(connection.dialect.name, list(table.columns))
            columns = table.columns.keys()
            values = (tuple(row[column] for column in columns) for row in rows)
            into.run(connection, plain_insert(table, into), values)
        except IntegrityError as error:
            raise UserError(f"two rows of `{name}` have the same key", _HINT) from error
    rows.clear()


def _continue_numbers(connection: Connection) -> None:
    """PostgreSQL numbers new rows from a sequence, which rows with a number do not move."""
    for table in _TABLES:
        if table.autoincrement_column is not None:
            connection.execute(
                text(
                    f"SELECT setval(pg_get_serial_sequence('{table.name}', 'id'), "
                    f"(SELECT COALESCE(MAX(id), 0) + 1 FROM {table.name}), false)"
                )
            )
