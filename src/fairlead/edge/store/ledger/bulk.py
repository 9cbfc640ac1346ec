"""Many rows in one statement.

SQLite runs a statement for each row, within its process. For servers all rows are one argument, a
JSON document that the statement reads as a table: their drivers send a statement at a time, and
wait for its answer. The drivers are in Python: a column of an answer costs them as much as a row,
so that numbers of a row come as one text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

import msgspec
from sqlalchemy import BigInteger, Column, Connection, Integer, Select, String, Table, func

from fairlead.edge.store.address import POSTGRESQL, SQLITE

ROWS_AT_ONCE: Final = 5000
"""Of one document: a statement takes a fraction of a second."""
Values = tuple[Any, ...]


class Rows:
    """The rows of a statement: what each value is, as columns with different names."""

    def __init__(self, engine: str, columns: Sequence[Column[Any]]) -> None:
        self.engine = engine
        self.names = tuple(each.name for each in columns)
        self._types = [_type(engine, each) for each in columns]

    def __getitem__(self, name: str) -> str:
        """How a statement names a value."""
        if self.engine == SQLITE:
            return f"?{self.names.index(name) + 1}"
        if self.engine == POSTGRESQL:
            return f"v.{name}"
        is_number = self._types[self.names.index(name)] == "BIGINT"
        return f"v.{name}" if is_number else f"v.{name} COLLATE utf8mb4_bin"

    @property
    def source(self) -> str:
        """The document as a table `v`; of servers only."""
        if self.engine == POSTGRESQL:
            listed = ", ".join(
                f"{name} {kind}" for name, kind in zip(self.names, self._types, strict=True)
            )
            return f"json_to_recordset(CAST(%s AS json)) AS v({listed})"
        listed = ", ".join(
            f"{name} {kind} PATH '$[{at}]'"
            for at, (name, kind) in enumerate(zip(self.names, self._types, strict=True))
        )
        return f"JSON_TABLE(%s, '$[*]' COLUMNS ({listed})) AS v"

    def run(self, connection: Connection, statement: str, rows: Iterable[Values]) -> None:
        """The statement for each row."""
        if self.engine == SQLITE:
            found = [*rows]
            if found:
                connection.exec_driver_sql(statement, found)
            return
        for part in _parts(rows):
            document = msgspec.json.encode(self._document(part)).decode()
            connection.exec_driver_sql(statement, (document,))

    def _document(self, part: list[Values]) -> list[Any]:
        if self.engine != POSTGRESQL:
            return part
        names = self.names
        return [dict(zip(names, values, strict=True)) for values in part]


def matching(
    connection: Connection,
    column: Column[Any],
    values: Iterable[Any],
    question: Callable[[str, str], str],
) -> list[Any]:
    """The rows of a question about a list of values of a column. `question`: makes the statement
    from the list as a table, and the name of its value.
    """
    engine = connection.dialect.name
    if engine == SQLITE:
        statement = question("json_each(?) AS v", "v.value")
        rows: Iterable[Any] = values
    else:
        listed = Rows(engine, [column])
        statement = question(listed.source, listed[column.name])
        is_named = engine == POSTGRESQL
        rows = ({column.name: each} if is_named else [each] for each in values)
    found: list[Any] = []
    for part in _parts(rows):
        document = msgspec.json.encode(part).decode()
        found += connection.exec_driver_sql(statement, (document,))
    return found


def number_rows(connection: Connection, asked: Select[Any]) -> Iterator[Sequence[int]]:
    """The rows of a question whose columns are whole numbers, none of them NULL."""
    if connection.dialect.name == SQLITE:
        return iter(raw_rows(connection, asked))
    joined = asked.with_only_columns(func.concat_ws(" ", *asked.selected_columns))
    return ([int(each) for each in row[0].split()] for row in raw_rows(connection, joined))


def raw_rows(connection: Connection, asked: Select[Any]) -> list[Any]:
    """The rows as the driver returns them."""
    cursor: Any = connection.execute(asked).cursor
    return list(cursor.fetchall())


def plain_insert(table: Table, rows: Rows) -> str:
    """A statement that inserts rows, and fails for a key that is there."""
    into = f"INSERT INTO {table.name} ({', '.join(rows.names)})"
    if rows.engine == SQLITE:
        return f"{into} VALUES ({', '.join(rows[name] for name in rows.names)})"
    return f"{into} SELECT {', '.join(f'v.{name}' for name in rows.names)} FROM {rows.source}"


def upsert(table: Table, rows: Rows, key: Sequence[str], kept: Sequence[str] = ()) -> str:
    """A statement that inserts rows, or changes those with the same key. `kept`: columns that are
    not changed then.
    """
    names = rows.names
    changed = [name for name in names if name not in {*key, *kept}]
    return f"{plain_insert(table, rows)} {_conflict(rows.engine, key, changed)}"


def upsert_joined(
    table: Table, rows: Rows, other: Table, same: Sequence[str], id: str, key: Sequence[str]
) -> str:
    """The same with a column `id` that is the id of a row of another table, found by the columns
    `same`. Rows without one are left out.
    """
    values = [name for name in rows.names if name not in same]
    is_plain = rows.engine != SQLITE
    found = ", ".join(f"v.{name}" if is_plain else rows[name] for name in values)
    is_same = " AND ".join(f"o.{name} = {rows[name]}" for name in same)
    places = f"{rows.source}, {other.name} o" if is_plain else f"{other.name} o"
    changed = [name for name in values if name not in key]
    return (
        f"INSERT INTO {table.name} ({id}, {', '.join(values)}) SELECT o.id, {found} FROM {places} "
        f"WHERE {is_same} {_conflict(rows.engine, key, changed)}"
    )


def _conflict(engine: str, key: Sequence[str], changed: Sequence[str]) -> str:
    """What happens to a row whose key is there."""
    if engine in (SQLITE, POSTGRESQL):
        target = ", ".join(key)
        if not changed:
            return f"ON CONFLICT ({target}) DO NOTHING"
        values = ", ".join(f"{name} = excluded.{name}" for name in changed)
        return f"ON CONFLICT ({target}) DO UPDATE SET {values}"
    values = ", ".join(f"{name} = VALUES({name})" for name in changed or key[:1])
    return f"ON DUPLICATE KEY UPDATE {values}"


def change(table: Table, rows: Rows, where: Sequence[str], values: Sequence[str], more: str) -> str:
    """A statement that sets `values` in the rows whose `where` columns are the row's, if the
    condition `more` holds.
    """
    name = table.name
    is_same = " AND ".join(f"{name}.{each} = {rows[each]}" for each in where)
    condition = f"{is_same} AND {more}"
    if rows.engine == SQLITE:
        set_values = ", ".join(f"{each} = {rows[each]}" for each in values)
        return f"UPDATE {name} SET {set_values} WHERE {condition}"
    if rows.engine == POSTGRESQL:
        set_values = ", ".join(f"{each} = v.{each}" for each in values)
        return f"UPDATE {name} SET {set_values} FROM {rows.source} WHERE {condition}"
    set_values = ", ".join(f"{name}.{each} = v.{each}" for each in values)
    return f"UPDATE {name} JOIN {rows.source} SET {set_values} WHERE {condition}"


def _type(engine: str, column: Column[Any]) -> str:
    kind = column.type
    if isinstance(kind, BigInteger | Integer):
        return "BIGINT"
    if engine == POSTGRESQL:
        return "text"
    length = kind.length if isinstance(kind, String) else None
    return (
        f"VARCHAR({length}) CHARACTER SET utf8mb4" if length else "LONGTEXT CHARACTER SET utf8mb4"
    )


def _parts(rows: Iterable[Any]) -> Iterator[list[Any]]:
    following = iter(rows)
    while part := [*islice(following, ROWS_AT_ONCE)]:
        yield part
