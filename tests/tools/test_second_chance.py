"""What becomes of failed cases of real components: run again alone, named as unsteady, and never hidden."""

from __future__ import annotations

import importlib
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
STEADY = "def test_steady(): pass\n"
BROKEN = "class TestOf:\n    def test_broken(self): assert 0\n"
UNSTEADY = """
import pathlib, pytest
@pytest.mark.parametrize("word", ["a b", "c::d.e"])
def test_unsteady(word):
    seen = pathlib.Path(__file__).with_name("seen " + word.replace("::", ""))
    if not seen.exists():
        seen.touch()
        raise AssertionError("the first time")
"""
TEARDOWN = """
import pathlib, pytest
@pytest.fixture
def breaks_once():
    yield
    seen = pathlib.Path(__file__).with_name("torn")
    if not seen.exists():
        seen.touch()
        raise AssertionError("while it is taken down")
def test_torn_down(breaks_once): pass
"""


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    second_chance = importlib.import_module("second_chance")
    monkeypatch.setattr(importlib.import_module("junit"), "REPOSITORY", tmp_path)
    monkeypatch.setattr(second_chance, "JUNIT", tmp_path / "junit")
    monkeypatch.setattr(second_chance, "UNSTEADY", tmp_path / "build" / "unsteady.txt")
    monkeypatch.setattr(importlib.import_module("run_group"), "LOGS", tmp_path / "logs")
    return second_chance


def _ran(tmp_path: Path, *, is_real: bool = True, **modules: str) -> Any:
    """The outcome of a group whose test modules have these texts; `is_real`: it needs a program of Debian."""
    groups, run_group = importlib.import_module("groups"), importlib.import_module("run_group")
    folder = tmp_path / "tests"
    folder.mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    (folder / "__init__.py").touch()
    for name, text in modules.items():
        (folder / f"test_{name}.py").write_text(textwrap.dedent(text))
    report = tmp_path / "junit" / "first.xml"
    step = groups.Step("pytest", (*groups.PYTEST, f"--junit-xml={report}", "tests"), tmp_path, report)
    packages = (importlib.import_module("debian").Package("coreutils", program="true"),) if is_real else ()
    return run_group.run_group(groups.Group("first", "a group of the test", (step,), packages=packages))


def _counts(outcome: Any) -> tuple[int, int]:
    return outcome.tally.passed, outcome.tally.failed


def test_a_case_that_passes_alone_is_unsteady_and_named(tools: ModuleType, tmp_path: Path) -> None:
    outcome = _ran(tmp_path, steady=STEADY, unsteady=UNSTEADY)
    assert _counts(outcome) == (1, 2)
    chance = tools.try_again([outcome])
    names = ["tests/test_unsteady.py::test_unsteady[a b]", "tests/test_unsteady.py::test_unsteady[c::d.e]"]
    assert (_counts(outcome), outcome.word) == ((3, 0), "passed")
    assert chance == tools.SecondChance(dict.fromkeys(names, "first"), {})
    assert (tmp_path / "build" / "unsteady.txt").read_text().splitlines() == names
    assert [line.split()[0] for line in tools.lines(chance, tmp_path)] == ["UNSTEADY", "UNSTEADY", "2"]


def test_a_case_that_fails_twice_has_failed(tools: ModuleType, tmp_path: Path) -> None:
    outcome = _ran(tmp_path, broken=BROKEN, unsteady=UNSTEADY)
    chance = tools.try_again([outcome])
    assert (_counts(outcome), outcome.word) == ((2, 1), "FAILED")
    assert chance.failed == {"tests/test_broken.py::TestOf::test_broken": "first"}
    assert len(chance.unsteady) == 2


def test_a_group_without_real_components_gets_no_second_chance(tools: ModuleType, tmp_path: Path) -> None:
    outcome = _ran(tmp_path, is_real=False, unsteady=UNSTEADY)
    chance = tools.try_again([outcome])
    assert (_counts(outcome), chance.unsteady) == ((0, 2), {})


def test_a_case_whose_teardown_failed_counts_once(tools: ModuleType, tmp_path: Path) -> None:
    outcome = _ran(tmp_path, torn=TEARDOWN)
    assert outcome.tally.failed == 1
    chance = tools.try_again([outcome])
    assert outcome.tally.failed == 0
    assert list(chance.unsteady) == ["tests/test_torn.py::test_torn_down"]


def test_a_module_that_cannot_be_imported_gets_no_second_chance(tools: ModuleType, tmp_path: Path) -> None:
    outcome = _ran(tmp_path, steady=STEADY, wrong="import no_such_module_at_all\n")
    failed = outcome.tally.failed
    assert failed > 0
    chance = tools.try_again([outcome])
    assert (outcome.tally.failed, chance.unsteady) == (failed, {})


def test_many_failures_have_a_cause_and_are_not_run_again(tools: ModuleType, tmp_path: Path) -> None:
    many = f"import pytest\n@pytest.mark.parametrize('n', range({tools.MOST_CASES + 1}))\ndef test_n(n): assert 0\n"
    outcome = _ran(tmp_path, many=many)
    chance = tools.try_again([outcome])
    assert outcome.tally.failed == len(chance.failed) == tools.MOST_CASES + 1
    assert not (tmp_path / "junit" / "first-again.xml").exists()


def test_a_list_of_an_earlier_run_does_not_stay(tools: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "unsteady.txt").write_text("tests/of_yesterday.py::test_it\n")
    tools.try_again([_ran(tmp_path, steady=STEADY)])
    assert not (tmp_path / "build" / "unsteady.txt").exists()


def test_cases_that_were_not_all_run_again_stay_failed(tools: ModuleType) -> None:
    junit = importlib.import_module("junit")
    assert tools.passed_again(["a", "b"], junit.Tally(passed=1)) == []
    assert tools.passed_again(["a", "b"], junit.Tally(passed=2, skipped=1)) == []
    assert tools.passed_again(["a"], junit.Tally(failed=1)) == []
    assert tools.passed_again(["a", "b"], junit.Tally(passed=1, failed=1, failed_ids=["b"])) == ["a"]
