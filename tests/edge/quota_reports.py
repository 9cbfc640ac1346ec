"""What the quota controller follows, and what was reported to it."""

from __future__ import annotations

from typing import Any

from fairlead.edge.kube.quota_api import FOLLOWED
from fairlead.model.changes import Changes

ALL = {each.name for each in FOLLOWED}


class Reported:
    """The reported rows by kind; a kind that was not listed yet is absent. `lists`: the kinds of
    the lists, in order.
    """

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.lists: list[str] = []

    def observe(self, changes: Changes[Any]) -> None:
        if changes.is_list:
            self.rows[changes.kind] = changes.all_rows()
            self.lists.append(changes.kind)
            return
        for key, row in changes.rows.items():
            if row is None:
                self.rows[changes.kind].pop(key)
            else:
                self.rows[changes.kind][key] = row

    def names(self, kind: str) -> list[str] | None:
        """The names of a kind's rows; None before the first list."""
        rows = self.rows.get(kind)
        return None if rows is None else sorted(row.name for row in rows.values())
