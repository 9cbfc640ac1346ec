"""docs/reference/gpu-guard.md is what native/guard/hooks.toml has."""

from __future__ import annotations

import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))

from docs_guard import FILE, KINDS, guard_text  # noqa: E402
from guard_table import read_table  # noqa: E402


def test_the_page_of_the_guard_is_fresh() -> None:
    assert FILE.read_text(encoding="utf-8") == guard_text(), "python tools/docs_guard.py"


def test_every_kind_of_hook_has_a_title() -> None:
    assert {hook.kind for hook in read_table().hooks} == set(KINDS)
