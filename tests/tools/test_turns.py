"""Every case is in exactly one part, the part is chosen at random, and a run can be repeated."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests import turns

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


def test_the_part_is_chosen_anew_and_its_number_repeats_it() -> None:
    code = "from tests import turns; print(turns.chosen_turn(), turns.turn(3), turns.chosen_turn())"
    chosen = [_python(code, "") for _ in range(CHOICES)]
    assert len({first for first, _, _ in chosen}) > 1
    for first, part, again in chosen:
        assert first == again
        assert _python(code, first) == [first, part, first]


def _python(code: str, value: str) -> list[str]:
    environment = {
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PATH": "/usr/bin:/bin",
        turns.VARIABLE: value,
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout.split()
