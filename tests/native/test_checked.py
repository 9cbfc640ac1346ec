"""Parts of the guard under the sanitizers, and its account at each instruction.

Specification: docs/spec/gpu-sharing.md#accounting-of-the-guard. native/steps/checked.c has the
parts.
"""

from __future__ import annotations

import re
import subprocess

import pytest
from tests.native import driver  # noqa: F401  (build_native is found by it)

from build_native import build_checked

BOUNDS = "address,undefined"


def checked(sanitizers: str, *words: object) -> str:
    done = subprocess.run(
        [str(build_checked(sanitizers)), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    return done.stdout


@pytest.mark.parametrize("seed", [31, 32])
def test_strange_limits_files_are_read_within_their_bounds(seed: int) -> None:
    word, understood = checked(BOUNDS, "limits", seed, 60_000).split()
    assert word == "understood"
    assert 10_000 < int(understood) < 50_000


@pytest.mark.parametrize("seed", [31, 32])
def test_a_region_of_strange_words_grants_no_more_than_the_limit(seed: int) -> None:
    word, granted = checked(BOUNDS, "region", seed, 3000).split()
    assert word == "granted"
    assert 1000 < int(granted) < 2500


@pytest.mark.parametrize("sanitizers", [BOUNDS, "thread"])
@pytest.mark.parametrize("part", ["table", "account"])
def test_threads_share_a_table_and_an_account_without_a_race(sanitizers: str, part: str) -> None:
    assert checked(sanitizers, part, 4, 9000) == "right\n"


def test_a_process_that_dies_at_any_instruction_leaves_its_share_and_no_more() -> None:
    """At each instruction also truth <= used <= limit holds, and the lock of a process that is
    stopped in it is not taken.
    """
    found = re.fullmatch(r"(\d+) instructions, (\d+) in the lock\n", checked("", "killed", 2, 5))
    assert found
    instructions, locked = map(int, found.groups())
    assert 500 < instructions < 20_000
    assert 100 < locked < instructions
