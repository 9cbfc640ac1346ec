"""Every case is in exactly one part, the part is chosen at random, and a run can be repeated."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests import turns
from tests.programs import run_program

CASES = [f"case-{number}" for number in range(20)]
CHOICES = 8
"""The probability that eight choices of one in a million are equal is 10^-42."""


def test_every_case_is_in_exactly_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    by_place, by_name = [], []
    for part in range(6):
        monkeypatch.setenv(turns.VARIABLE, str(part))
        by_place += turns.in_turn(CASES, 6)
        by_name += [case for case in CASES if turns.is_in_turn(case, 6)]
    assert sorted(by_place) == sorted(by_name) == sorted(CASES)


def test_all_is_everything_and_another_word_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(turns.VARIABLE, "all")
    assert turns.in_turn(CASES, 6) == CASES
    monkeypatch.setenv(turns.VARIABLE, "-1")
    with pytest.raises(ValueError) as caught:
        turns.in_turn(CASES, 6)
    assert str(caught.value) == "FAIRLEAD_TURN must be a number or all, not '-1'"


def test_the_choice_of_modules_does_not_depend_on_that_of_their_cases(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = set()
    for number in range(0, 20_000, 499):
        monkeypatch.setenv(turns.VARIABLE, str(number))
        (part,) = [part for part in range(2) if turns.is_module_in_turn(2, part)]
        found.add((part, turns.turn(2)))
    assert found == {(0, 0), (0, 1), (1, 0), (1, 1)}
    with pytest.raises(ValueError) as caught:
        turns.is_module_in_turn(2, 2)
    assert str(caught.value) == "part must be 0 to 1 of 2 parts, not 2"


@pytest.mark.parametrize(
    ("chosen", "modules"),
    [("", {0, 1}), ("all", {0, 1}), ("0", {0}), ("1000", {1})],
    ids=["by-hand", "all", "first", "second"],
)
def test_a_run_of_all_groups_plays_the_modules_of_its_part(
    tmp_path: Path, chosen: str, modules: set[int]
) -> None:
    for part in range(2):
        mark = f"import pytest\npytestmark = pytest.mark.turns(2, {part})\n"
        (tmp_path / f"test_part_{part}.py").write_text(f"{mark}def test_it(): pass\n")
    (tmp_path / "test_each_time.py").write_text("def test_it(): pass\n")
    code = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
    words = ("--collect-only", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider")
    listed = _python(code, chosen, *words, str(tmp_path))
    names = {Path(line.partition("::")[0]).name for line in listed if "::" in line}
    assert names == {
        "test_each_time.py",
        *(f"test_part_{part}.py" for part in modules),
    }


def test_the_part_is_chosen_anew_and_its_number_repeats_it() -> None:
    code = "from tests import turns; print(turns.chosen_turn(), turns.turn(3), turns.chosen_turn())"
    chosen = [_python(code, "") for _ in range(CHOICES)]
    assert len({first for first, _, _ in chosen}) > 1
    for first, part, again in chosen:
        assert first == again
        assert _python(code, first) == [first, part, first]


def _python(code: str, value: str, *words: str) -> list[str]:
    """`value`: of the variable; empty = it is not set."""
    environment = {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PATH": "/usr/bin:/bin",
        **({turns.VARIABLE: value} if value else {}),
    }
    done = run_program([sys.executable, "-c", code, *words], env=environment, check=True)
    return done.stdout.split()
