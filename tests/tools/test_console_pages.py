"""The console is built to where the server looks for it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from fairlead.console.http.web_files import DIST

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def test_pages_are_built_to_where_they_are_served_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    assert importlib.import_module("console_pages").PAGES == DIST
