"""Lines of prose in documents end at column 100, and the words are those of the glossary."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tools.plain_english import GLOSSARY, findings, read_table

ROOT = Path(__file__).resolve().parents[2]
MOST_COLUMNS = 100
NOT_PROSE = re.compile(r"^\s*(\||<)|^\[[^\]]+\]:|^#")
"""Tables, HTML, link definitions and headings, which cannot be wrapped."""
GENERATED = ("alerts.md", "cli.md", "dcgm-fields.md", "differences.md", "metrics.md")
"""Generated pages: their words come from the source, which has its own lints."""
PAGES = sorted(
    page
    for folder in (ROOT / "docs", ROOT / "examples")
    for page in folder.rglob("*.md")
    if not (page.parent.name == "reference" and page.name in GENERATED)
) + sorted(ROOT.glob("*.md"))
TABLE = read_table(GLOSSARY.read_text(encoding="utf-8"))


def long_lines(text: str) -> list[int]:
    """Numbers of prose lines that are too long; a line of one word cannot be wrapped."""
    found, is_code = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif (
            not is_code
            and len(line) > MOST_COLUMNS
            and not NOT_PROSE.match(line)
            and " " in line.strip()
        ):
            found.append(number)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_is_narrow_and_plain(page: Path) -> None:
    assert long_lines(page.read_text(encoding="utf-8")) == []
    assert [str(each) for each in findings([page], TABLE)] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (f"{'a ' * 51}\n", [1]),
        (f"| {'a ' * 51}|\n", []),
        (f"```\n{'a ' * 51}\n```\nshort\n- {'b ' * 50}", [5]),
        (f"[{'a ' * 51}](page.md)\n", [1]),
        (f"[name]: {'a' * 101}\n", []),
        (f"{'a' * 101}\n", []),
    ],
)
def test_a_long_line_is_found(text: str, found: list[int]) -> None:
    assert long_lines(text) == found
