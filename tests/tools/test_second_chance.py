"""Failed cases of real components run again alone, are named as unsteady if they pass, and are
never hidden.
"""

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

CHAIN = """
import pathlib
DONE = []
def test_first(): DONE.append(1)
def test_second():
    assert DONE == [1]
    seen = pathlib.Path(__file__).with_name("chain")
    if not seen.exists():
        seen.touch()
        raise AssertionError("the first time")
    DONE.append(2)
def test_third(): assert DONE == [1, 2]
"""


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    # plugins take longer to load than these cases to run
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    second_chance = importlib.import_module("second_chance")
    monkeypatch.setattr(importlib.import_module("junit"), "REPOSITORY", tmp_path)
    monkeypatch.setattr(second_chance, "JUNIT", tmp_path / "junit")
    monkeypatch.setattr(second_chance, "UNSTEADY", tmp_path / "build" / "unsteady.txt")
    monkeypatch.setattr(importlib.import_module("run_group"), "LOGS", tmp_path / "logs")
    return second_chance


def _ran(tmp_path: Path, *, is_ordered: bool = False, **modules: str) -> Any:
    """The outcome of a group whose test modules have these texts."""
    groups, run_group = importlib.import_module("groups"), importlib.import_module("run_group")
    folder = tmp_path / "tests"
    folder.mkdir()
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (folder / "__init__.py").touch()
    for name, text in modules.items():
        (folder / f"test_{name}.py").write_text(textwrap.dedent(text))
    report = tmp_path / "junit" / "first.xml"
    step = groups.Step(
        "pytest", (*groups.PYTEST, f"--junit-xml={report}", "tests"), tmp_path, report
    )
    return run_group.run_group(
        groups.Group(
            "first", "a group of the test", (step,), packages=(_program(),), is_ordered=is_ordered
        )
    )


def _program() -> Any:
    return importlib.import_module("debian").Package("coreutils", program="true")


def _outcome(is_real: bool, failed: list[str]) -> Any:
    """The outcome of a group whose cases with these ids failed; `is_real`: the group needs a
    program of Debian.
    """
    groups, junit, run_group = (
        importlib.import_module(name) for name in ("groups", "junit", "run_group")
    )
    group = groups.Group(
        "first", "a group of the test", (), packages=(_program(),) if is_real else ()
    )
    return run_group.Outcome(group, junit.Tally(failed=len(failed), failed_ids=failed))


def test_cases_that_pass_alone_are_unsteady_and_named_and_others_stay_failed(
    tools: ModuleType, tmp_path: Path
) -> None:
    outcome = _ran(tmp_path, steady=STEADY, unsteady=UNSTEADY, broken=BROKEN, torn=TEARDOWN)
    assert outcome.tally.failed == 4
    chance = tools.try_again([outcome])
    names = [
        "tests/test_torn.py::test_torn_down",
        "tests/test_unsteady.py::test_unsteady[a b]",
        "tests/test_unsteady.py::test_unsteady[c::d.e]",
    ]
    assert (outcome.tally.failed, outcome.word) == (1, "FAILED")
    broken = "tests/test_broken.py::TestOf::test_broken"
    assert chance == tools.SecondChance(
        dict.fromkeys(names, "first"),
        {broken: "first"},
        {
            broken: "assert 0",
            names[0]: 'failed on teardown with "AssertionError: while it is taken down"',
            **dict.fromkeys(names[1:], "AssertionError: the first time"),
        },
    )
    assert (tmp_path / "build" / "unsteady.txt").read_text().splitlines() == names
    lines = tools.lines(chance, tmp_path)
    assert [line.split()[0] for line in lines if line[0] != " "] == [
        *("UNSTEADY", "UNSTEADY", "UNSTEADY", "FAILED", "3"),
    ]
    assert [line.strip() for line in lines if line[0] == " "] == [
        chance.reasons[each] for each in (*names, broken)
    ]


def test_a_case_of_an_ordered_group_runs_again_with_its_whole_module(
    tools: ModuleType, tmp_path: Path
) -> None:
    outcome = _ran(tmp_path, is_ordered=True, steady=STEADY, chain=CHAIN)
    assert outcome.tally.failed == 2
    chance = tools.try_again([outcome])
    ids = [f"tests/test_chain.py::{each}" for each in ("test_second", "test_third")]
    assert (list(chance.unsteady), chance.failed, outcome.tally.failed) == (ids, {}, 0)


def test_a_module_that_cannot_be_imported_gets_no_second_chance(
    tools: ModuleType, tmp_path: Path
) -> None:
    outcome = _ran(tmp_path, steady=STEADY, wrong="import no_such_module_at_all\n")
    failed = outcome.tally.failed
    assert failed > 0
    chance = tools.try_again([outcome])
    assert (outcome.tally.failed, chance.unsteady) == (failed, {})


@pytest.mark.parametrize(
    ("is_real", "more", "named"),
    [(False, 0, 25), (True, 1, 26)],
    ids=["no real component", "too many failures"],
)
def test_others_get_no_second_chance(
    tools: ModuleType, monkeypatch: pytest.MonkeyPatch, is_real: bool, more: int, named: int
) -> None:
    ids = [f"tests/test_many.py::test_{number}" for number in range(tools.MOST_CASES + more)]
    outcome = _outcome(is_real, ids)
    monkeypatch.setattr(tools, "run_group", lambda group: pytest.fail(f"{group.name} ran again"))
    chance = tools.try_again([outcome])
    assert (outcome.tally.failed, chance.unsteady, len(chance.failed)) == (len(ids), {}, named)


def test_a_list_of_an_earlier_run_does_not_stay(tools: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "unsteady.txt").write_text("tests/of_yesterday.py::test_it\n")
    tools.try_again([_outcome(True, [])])
    assert not (tmp_path / "build" / "unsteady.txt").exists()


def test_cases_that_were_not_all_run_again_stay_failed(tools: ModuleType) -> None:
    junit = importlib.import_module("junit")
    assert tools.passed_again(["a", "b"], junit.Tally(passed=1)) == []
    assert tools.passed_again(["a", "b"], junit.Tally(passed=2, skipped=1)) == []
    assert tools.passed_again(["a"], junit.Tally(failed=1)) == []
    assert tools.passed_again(["a", "b"], junit.Tally(passed=1, failed=1, failed_ids=["b"])) == [
        "a"
    ]
