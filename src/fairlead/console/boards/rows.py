"""Lists searched, filtered, sorted and cut into pages: the same way on every board.

Rows are built once per change of the cluster. A filter does not look at the row's keys: what it
matches stands in the `Entry`, in lower case (a node answers to the indexes and UUIDs of its GPUs,
which its row does not show).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import attrgetter
from types import UnionType
from typing import Any, Final, Generic, TypeVar, Union, get_args, get_origin, overload

import msgspec
from msgspec import Struct

from fairlead.console.pages.list_query import ListQuery, SortKey, check_keys
from fairlead.rules.reports.node import natural_key

Row = TypeVar("Row")

FACET_MAX: Final = 500
_UNKNOWN: Final = (None, "")
_QUERIES_KEPT: Final = 16
"""Queries of one row set whose results are kept, for the next browser."""

_Asked = tuple[frozenset[tuple[str, frozenset[str]]], tuple["SortKey", ...]]


class Entry(Struct, Generic[Row], frozen=True, gc=False):
    """`text`: what `q` searches, in lower case.

    `answers`: filter -> values this row matches, in lower case.
    """

    row: Row
    text: str
    answers: Mapping[str, tuple[str, ...]]


class RowSet(Struct, Generic[Row], frozen=True, dict=True):
    """All rows of one board in their default order, with the choices of each filter.

    `row_type` gives the keys. `ties` is the field that breaks ties; "" where the default order
    does.
    """

    row_type: Any
    entries: Sequence[Entry[Row]]
    facets: Mapping[str, list[str]] = {}
    ties: str = "name"

    @cached_property
    def _kept(self) -> dict[_Asked, Sequence[Row]]:
        """What the queries of the last clients found."""
        return {}

    def found(self, query: ListQuery) -> Sequence[Row]:
        """All rows that match, sorted. `sort` and `fields` are known keys.

        What filters and an order find is kept for the next client; what `q` finds is not, because
        every letter that is typed is another query.
        """
        asked = frozenset(query.filters.items()), query.sort
        kept = None if query.q else self._kept.get(asked)
        if kept is not None:
            return kept
        rows = self._sought(query)
        if not query.q:
            if len(self._kept) >= _QUERIES_KEPT:
                self._kept.clear()
            self._kept[asked] = rows
        return rows

    def has_found(self, query: ListQuery) -> bool:
        """Whether the rows of this query are kept."""
        return not query.q and (frozenset(query.filters.items()), query.sort) in self._kept

    def _sought(self, query: ListQuery) -> Sequence[Row]:
        entries = self.entries
        if needle := query.q.lower():
            entries = [entry for entry in entries if needle in entry.text]
        for name, values in query.filters.items():
            entries = [
                entry for entry in entries if not values.isdisjoint(entry.answers.get(name, ()))
            ]
        rows = [entry.row for entry in entries]
        if not query.sort:
            return rows
        return sorted_rows(rows, query.sort, keys_of(self.row_type), self.ties)


class CompletedRows(Sequence[Row]):
    """Rows of which only those that are looked at are completed, by `named`."""

    def __init__(self, rows: Sequence[Row], named: Callable[[Row], Row]) -> None:
        self._rows = rows
        self._named = named

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        if isinstance(place, slice):
            return [self._named(row) for row in self._rows[place]]
        return self._named(self._rows[place])


class RowPage(Struct, Generic[Row], frozen=True):
    """The rows asked for; `total` counts all that match."""

    rows: list[Row]
    total: int


def keys_of(row_type: Any) -> dict[str, str]:
    """JSON key -> Python field of a row type, in order."""
    return {field.encode_name: field.name for field in msgspec.structs.fields(row_type)}


def sortable_keys(row_type: Any) -> list[str]:
    """Keys whose values are numbers, words or null; nested ones have no order."""
    plain = {str, int, float, bool, type(None)}
    return [
        field.encode_name
        for field in msgspec.structs.fields(row_type)
        if _types_in(field.type) <= plain
    ]


def _types_in(annotation: Any) -> set[Any]:
    if hasattr(annotation, "__metadata__"):
        return _types_in(annotation.__origin__)
    origin = get_origin(annotation)
    if origin in (Union, UnionType):  # with an annotated part, as of a time, it is the first
        return set().union(*(_types_in(part) for part in get_args(annotation)))
    return {origin or annotation}


def matching(rows: RowSet[Row], query: ListQuery) -> Sequence[Row]:
    """All rows that match, sorted.

    Raises UserError for a key of `sort` or `fields` that rows do not have.
    """
    check_keys("sort", (key.key for key in query.sort), sortable_keys(rows.row_type))
    check_keys("fields", query.fields, list(keys_of(rows.row_type)))
    return rows.found(query)


def page_of(rows: Sequence[Row], query: ListQuery) -> RowPage[Row]:
    """The page; one behind the end is empty."""
    start = (query.page - 1) * query.size
    return RowPage(list(rows[start : start + query.size]), len(rows))


by_count: Final = lru_cache(maxsize=1 << 16)(natural_key)
"""Cached, because the same names are sorted repeatedly."""


def _order_of(value: Any) -> Any:
    return by_count(value) if isinstance(value, str) else value


def sorted_rows(
    rows: list[Row], sort: Sequence[SortKey], fields: Mapping[str, str], ties: str = "name"
) -> list[Row]:
    """Sorted by the keys, the first the strongest, names in their natural order.

    Unknown values come last in both directions: null, and an unknown word, which is "".
    `ties` breaks ties; "" leaves them as they come.
    """
    tie = attrgetter(ties) if ties else None
    ordered = sorted(rows, key=lambda row: _order_of(tie(row))) if tie else rows
    for key in reversed(sort):
        value = attrgetter(fields[key.key])
        known = [row for row in ordered if value(row) not in _UNKNOWN]
        unknown = [row for row in ordered if value(row) in _UNKNOWN]
        known.sort(key=lambda row, value=value: _order_of(value(row)), reverse=key.descending)  # type: ignore[misc]
        ordered = known + unknown
    return ordered


def choices(values: Iterable[str]) -> list[str]:
    """The choices of one filter as they are spelled (answers are in lower case)."""
    return sorted({value for value in values if value}, key=by_count)[:FACET_MAX]


def lowered(*values: str) -> tuple[str, ...]:
    return tuple(value.lower() for value in values)
