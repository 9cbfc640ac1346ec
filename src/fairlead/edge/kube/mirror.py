"""The rows of one resource, as the last changes left them, and the same in order when a snapshot asks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Generic, TypeVar

Row = TypeVar("Row")


class Mirror(Generic[Row]):
    """A `reflector.Sink`. `order` is the sort key of rows; sorting happens on demand, once per change."""

    def __init__(self, order: Callable[[Row], Any]) -> None:
        self._order = order
        self._rows: dict[str, Row] = {}
        self._sorted: tuple[Row, ...] | None = ()

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> tuple[Row, ...]:
        if self._sorted is None:
            self._sorted = tuple(sorted(self._rows.values(), key=self._order))
        return self._sorted

    def replace(self, rows: dict[str, Row], unreadable: Collection[str]) -> None:
        for key in unreadable:
            if key in self._rows:
                rows[key] = self._rows[key]
        self._rows = rows
        self._sorted = None

    def upsert(self, key: str, row: Row) -> None:
        self._rows[key] = row
        self._sorted = None

    def remove(self, key: str) -> None:
        if self._rows.pop(key, None) is not None:
            self._sorted = None

    def clear(self) -> None:
        self.replace({}, ())
