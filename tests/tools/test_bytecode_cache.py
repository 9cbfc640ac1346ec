"""Programs of a test run share compiled modules, outside the folders of sources."""

from __future__ import annotations

import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import HANG_SECONDS

TOOLS = Path(__file__).resolve().parents[2] / "tools"


@pytest.fixture
def cache(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("bytecode_cache")


def test_what_a_child_compiles_is_kept_in_the_folder_and_not_beside_its_source(
    cache: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    sources, folder = tmp_path / "sources", tmp_path / "bytecode"
    sources.mkdir()
    (sources / "imported.py").write_text("VALUE = 1\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "")
    monkeypatch.setattr(cache, "BYTECODE", folder)
    cache.keep_bytecode()
    subprocess.run(
        [sys.executable, "-c", "import imported"], cwd=sources, check=True, timeout=HANG_SECONDS
    )
    assert [path.name for path in sources.iterdir()] == ["imported.py"]
    assert [path for path in folder.rglob("imported.*.pyc") if path.parent.name == "sources"]


def test_what_is_compiled_first_exists(cache: Any) -> None:
    assert [name for name in cache.SHARED_PACKAGES if importlib.util.find_spec(name) is None] == []


def test_a_package_that_cannot_be_imported_ends_no_run(
    cache: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cache, "SHARED_PACKAGES", ("no_such_package_anywhere",))
    monkeypatch.setattr(cache, "REPOSITORY", tmp_path)
    cache.compile_shared()
