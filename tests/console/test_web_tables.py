"""Every column that the page can sort is also sortable in the API's list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from fairlead.console.boards.rows import keys_of, sortable_keys
from fairlead.console.pages.gpus import ListedGpu
from fairlead.console.pages.holders import Holder, HolderGroup
from fairlead.console.pages.jobs import JobRow
from fairlead.console.pages.nodes import NodeRow
from fairlead.console.pages.quota import QuotaRow, WaitingUnit
from fairlead.console.pages.serving.jobs import ServingJob

BOARDS: Final = Path(__file__).parents[2] / "web" / "src" / "boards"
TABLE: Final = re.compile(
    (
        r"^(?:export )?function \w+\([^\n]*\): "
        r"Column<(\w+)>\[\] \{$(.*?)^\}$"
    ),
    re.MULTILINE | re.DOTALL,
)
COLUMN: Final = re.compile(r'^.*\{ (?:\.\.\.\w+, )?key: "([^"]+)".*$', re.MULTILINE)
ROWS: Final = {
    "JobRow": JobRow,
    "NodeRow": NodeRow,
    "ListedGpu": ListedGpu,
    "Holder": Holder,
    "HolderGroup": HolderGroup,
    "ServingJob": ServingJob,
}


def tables() -> dict[str, list[str]]:
    """Row type of each table of the page -> keys of its sortable columns."""
    found: dict[str, list[str]] = {}
    for path in sorted(BOARDS.rglob("*.tsx")):
        for name, body in TABLE.findall(path.read_text()):
            sortable = [
                match[1]
                for match in COLUMN.finditer(body)
                if "unsortable" not in match[0] and "...plain" not in match[0]
            ]
            found.setdefault(name, []).extend(sortable)
    return found


def test_the_tables_of_lists_are_found() -> None:
    found = tables()
    assert set(ROWS) <= set(found), "the columns are written otherwise than this test reads them"
    assert all(len(found[name]) >= 5 for name in ROWS), found


@pytest.mark.parametrize("name", ROWS)
def test_each_column_that_can_be_sorted_is_sortable_in_the_api(name: str) -> None:
    assert set(tables()[name]) <= set(sortable_keys(ROWS[name]))


@pytest.mark.parametrize("row_type", [*ROWS.values(), WaitingUnit, QuotaRow])
def test_times_and_words_that_may_be_unknown_are_sortable(row_type: type) -> None:
    times = {key for key in keys_of(row_type) if key.endswith(("At", "Since")) or key == "since"}
    assert times <= set(sortable_keys(row_type))
