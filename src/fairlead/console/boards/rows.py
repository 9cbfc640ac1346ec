"""Lists searched, filtered, sorted and cut into pages: the same way on every board.

Rows are built once per change of the cluster. A filter does not look at the row's keys: what it
matches stands in the `Entry`, in lower case (a node answers to the indexes and UUIDs of its GPUs,
which its row does not show).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import attrgetter
from types import UnionType
from typing import Any, Final, Generic, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from fairlead.console.pages.list_query import ListQuery, SortKey, check_keys
from fairlead.rules.reports.node import natural_key

Row = TypeVar("Row")

FACET_MAX: Final = 500
_UNKNOWN: Final = (None, "")


class Entry(Struct, Generic[Row], frozen=True, gc=False):
    """`text`: what `q` searches, in lower case.

    `answers`: filter -> values this row matches, in lower case.
    """

    row: Row
    text: str
    answers: Mapping[str, tuple[str, ...]]


class RowSet(Struct, Generic[Row], frozen=True):
    """All rows of one board in their default order, with the choices of each filter.

    `row_type` gives the keys. `ties` is the field that breaks ties; "" where the default order
    does.
    """

    row_type: Any
    entries: Sequence[Entry[Row]]
    facets: Mapping[str, list[str]] = {}
    ties: str = "name"


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


def matching(rows: RowSet[Row], query: ListQuery) -> list[Row]:
    """All rows that match, sorted.

    Raises UserError for a key of `sort` or `fields` that rows do not have.
    """
    check_keys("sort", (key.key for key in query.sort), sortable_keys(rows.row_type))
    check_keys("fields", query.fields, list(keys_of(rows.row_type)))
    needle = query.q.lower()
    found = [entry.row for entry in rows.entries if _matches(entry, needle, query.filters)]
    return (
        sorted_rows(found, query.sort, keys_of(rows.row_type), rows.ties) if query.sort else found
    )


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


def _matches(entry: Entry[Row], needle: str, filters: Mapping[str, frozenset[str]]) -> bool:
    if needle and needle not in entry.text:
        return False
    return all(
        not values.isdisjoint(entry.answers.get(name, ())) for name, values in filters.items()
    )
