"""One spelling: `utilization`, as the boards of document 000 and the field's metrics have it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
FOLDERS: Final = ("src", "docs", "web/src", "web/dev", "web/test", "deploy", "bench", "tools", "man", "tests")
KINDS: Final = frozenset((".py", ".md", ".ts", ".tsx", ".css", ".json", ".yaml", ".prom", ".csv", ".1"))
OTHER: Final = "utili" + "s"


def test_utilization_has_one_spelling() -> None:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in KINDS and "web_dist" not in path.parts]
    assert len(files) > 1000
    assert [str(path.relative_to(ROOT)) for path in files if OTHER in path.read_text(encoding="utf-8").lower()] == []
