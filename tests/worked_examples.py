"""A plugin of pytest for `--doctest-modules`: only modules with a worked example are imported.

Three of four modules have none; to import and search them took a third of the CPU time.
"""

from __future__ import annotations

from pathlib import Path

PROMPT = ">>> "


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if collection_path.suffix != ".py":
        return None
    return None if PROMPT in collection_path.read_text(encoding="utf-8") else True
