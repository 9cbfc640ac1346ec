"""What a list or a watch of the API server reports, as one value per kind: rows by uid.

A process that follows the cluster has one method, `observe(changes)`. Changes of one kind arrive in
the order in which the API server reported them; between kinds there is no order. After a failure,
or when the Lease comes anew, a kind is listed again: a whole list replaces all that was known of
the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar, cast

from msgspec import Struct

Row = TypeVar("Row")

KIND_NODES: Final = "nodes"
KIND_PODS: Final = "pods"
KIND_NAMESPACES: Final = "namespaces"
KIND_BUDGETS: Final = "poddisruptionbudgets"
KIND_QUOTA_TREES: Final = "elasticquotatrees"
"""Kinds that rules look for, by the name of their source in a snapshot (`model/source`)."""


class ChangeType(StrEnum):
    """What one event of a watch reports of an object."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


class Changes(Struct, Generic[Row], frozen=True):
    """Rows of one kind by uid; None: the object is gone.

    `is_list`: these are all rows that exist, and what is missing is gone, but for the uids in
    `unreadable`: these objects exist, cannot be read, and keep the row they had. `rows` belongs to
    the observer, which may keep and change it.
    """

    kind: str
    rows: dict[str, Row | None]
    is_list: bool = False
    unreadable: Collection[str] = ()

    def all_rows(self) -> dict[str, Row]:
        """The rows of a whole list, none of which is None; the same dict."""
        assert self.is_list, f"changes of {self.kind} are no list"
        return cast("dict[str, Row]", self.rows)


def listed(kind: str, rows: dict[str, Row], unreadable: Collection[str] = ()) -> Changes[Row]:
    """A whole list."""
    return Changes(kind, cast("dict[str, Row | None]", rows), is_list=True, unreadable=unreadable)


def changed(kind: str, uid: str, row: Row | None) -> Changes[Row]:
    """One object; None: it is gone."""
    return Changes(kind, {uid: row})


Observe = Callable[[Changes[Any]], None]
"""Takes what is reported, at once and without waiting."""
