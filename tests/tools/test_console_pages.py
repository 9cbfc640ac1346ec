"""The console is built to where the server looks for it, and into wheels."""

from __future__ import annotations

import importlib
import sys
import tomllib
import types
from pathlib import Path

import pytest

from fairlead.console.http.web_files import DIST

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def test_pages_are_built_to_where_they_are_served_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    assert importlib.import_module("console_pages").PAGES == DIST


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    """The build hook. It needs only the name of hatchling's base class, and no lock file contains
    hatchling.
    """
    plugin = types.ModuleType("hatchling.builders.hooks.plugin.interface")
    plugin.BuildHookInterface = types.SimpleNamespace  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, plugin.__name__, plugin)
    monkeypatch.syspath_prepend(str(TOOLS))
    monkeypatch.delitem(sys.modules, "wheel_pages", raising=False)
    return importlib.import_module("wheel_pages")


def built(
    hook: types.ModuleType,
    root: Path,
    version: str = "standard",
    *,
    monkeypatch: pytest.MonkeyPatch,
    fails: str = "",
) -> int:
    """How often the pages were built while hatchling made a distribution of `root`."""
    pages, progress, calls = (
        importlib.import_module("console_pages"),
        importlib.import_module("progress"),
        [],
    )

    def build_console() -> None:
        calls.append(root)
        if fails:
            raise progress.StepFailed(fails)

    monkeypatch.setattr(pages, "build_console", build_console)
    hook.WheelPages(root=str(root)).initialize(version, {})
    return len(calls)


def test_a_wheel_of_a_clone_builds_the_pages(
    hook: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert built(hook, tmp_path, monkeypatch=monkeypatch) == 1


def test_an_editable_install_and_an_sdist_with_pages_build_none(
    hook: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert built(hook, tmp_path, "editable", monkeypatch=monkeypatch) == 0
    (tmp_path / "PKG-INFO").touch()
    assert built(hook, tmp_path, monkeypatch=monkeypatch) == 1, "an sdist without pages"
    page = tmp_path / "src" / "fairlead" / "web_dist" / "index.html"
    page.parent.mkdir(parents=True)
    page.touch()
    assert built(hook, tmp_path, monkeypatch=monkeypatch) == 0


def test_an_install_without_pages_fails_and_names_what_is_missing(
    hook: types.ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as caught:
        built(hook, tmp_path, monkeypatch=monkeypatch, fails="no Node is to be had")
    assert str(caught.value) == (
        "error: the console's pages were not built: no Node is to be had\nhint: building "
        "the console needs Node 24, or a registry of Python packages from which Node can "
        "be fetched"
    )


def test_the_distribution_holds_what_git_ignores_and_the_hook_is_named() -> None:
    project = tomllib.loads((TOOLS.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "hatch"
    ]["build"]
    assert TOOLS.parent / project["artifacts"][0] == DIST
    assert (TOOLS.parent / project["hooks"]["custom"]["path"]).exists()
