"""The console and the memory guard are built to where servers look for them, and into wheels."""

from __future__ import annotations

import importlib
import sys
import tomllib
import types
from collections.abc import Callable
from pathlib import Path

import pytest

from fairlead.console.http.web_files import DIST
from fairlead.edge.node.agent_files import GUARD_LIBRARY, GUARDS

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
    guards: Callable[[], None] = lambda: None,
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
    shipped = importlib.import_module("shipped_guard")
    monkeypatch.setattr(shipped, "place_guards", guards)
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


def test_a_distribution_has_the_guard_where_there_are_compilers(
    hook: types.ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    progress, calls = importlib.import_module("progress"), []

    def guards() -> None:
        calls.append(tmp_path)
        raise progress.StepFailed("no memory guard for aarch64: no compiler")

    assert built(hook, tmp_path, monkeypatch=monkeypatch, guards=guards) == 1
    assert len(calls) == 1
    assert capsys.readouterr().err == (
        "warning: no memory guard for aarch64: no compiler; "
        "nodes have no memory guard of this distribution\n"
    )
    (tmp_path / "PKG-INFO").touch()
    for machine in ("x86_64", "aarch64"):
        built(hook, tmp_path, monkeypatch=monkeypatch, guards=guards)
        path = tmp_path / "src/fairlead/guard_dist" / machine / "libfairlead-guard.so"
        path.parent.mkdir(parents=True)
        path.touch()
    built(hook, tmp_path, monkeypatch=monkeypatch, guards=guards)
    assert len(calls) == 3, "an sdist with both brings them along"


def test_the_guard_is_built_to_where_the_agent_takes_it_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    paths = importlib.import_module("shipped_guard").guard_paths()
    assert paths == {machine: GUARDS / machine / GUARD_LIBRARY for machine in ("x86_64", "aarch64")}


def test_the_distribution_holds_what_git_ignores_and_the_hook_is_named() -> None:
    project = tomllib.loads((TOOLS.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "hatch"
    ]["build"]
    assert [TOOLS.parent / each for each in project["artifacts"]] == [DIST, GUARDS]
    assert (TOOLS.parent / project["hooks"]["custom"]["path"]).exists()
