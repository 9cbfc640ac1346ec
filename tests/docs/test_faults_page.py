"""docs/reference/faults.md is fresh, and each test that it names exists."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from bench.__main__ import MODULES  # noqa: E402

from docs_faults import FILE, faults_text, read_rows  # noqa: E402

FAULTS = (
    *("API server away", "410 Gone", "429 Too Many Requests", "Killed (SIGKILL)"),
    *("Frozen (SIGSTOP)", "Node", "Disk full", "Clock", "Expired certificate"),
)


def test_the_page_is_fresh() -> None:
    assert FILE.read_text(encoding="utf-8") == faults_text(), "python tools/docs_faults.py"


def test_every_fault_has_rows_and_nothing_is_claimed_without_a_test() -> None:
    rows = read_rows()
    assert {row["fault"] for row in rows} == set(FAULTS)
    for row in rows:
        assert ("shown" in row) == ("wrong" in row), row
        assert "shown" in row or "seconds" not in row, row
        assert row.get("wrong", 0) == 0, "a wrong decision is a defect"


def test_what_the_page_names_exists() -> None:
    named = [each for row in read_rows() for each in row.get("shown", ())]
    assert len(named) > 15
    for each in named:
        if each.startswith("python -m bench "):
            assert each.split()[3] in MODULES
            continue
        file, *names = each.split("::")
        text = (ROOT / file).read_text(encoding="utf-8")
        for name in names:
            assert re.search(rf"\b(def|class) {name}\b", text), each
