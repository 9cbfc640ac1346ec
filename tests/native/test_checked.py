"""The guard under the sanitizers, in parts and with all hooks, and its account at each instruction.

Specification: docs/spec/gpu-sharing.md#accounting-of-the-guard. native/steps/checked.c has the
parts; native/steps/hooked.c makes the tests' tenant a program that contains the guard.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.native.driver import MIB, TENANT, Machine
from tests.programs import run_program

from build_native import build_checked, build_hooked

BOUNDS = "address,undefined"
LIMIT, CONTEXT, BLOCK = 64 * MIB, 8 * MIB, 4 * MIB


def checked(sanitizers: str, *words: object) -> str:
    done = run_program([str(build_checked(sanitizers)), *map(str, words)])
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


def test_a_look_for_dead_processes_is_short_and_has_the_lock_for_none_that_lives() -> None:
    """32 at once, so that 76 processes take three."""
    assert checked(BOUNDS, "dead", 70, 5) == "3 looks, 5 left\n"


def hooked(container: Machine, sanitizers: str, *words: object) -> list[str]:
    """The lines of a tenant that contains the guard. The tenant itself keeps what it allocated."""
    done = run_program(
        [str(build_hooked(TENANT, sanitizers)), *map(str, words)],
        env=container.environment(ASAN_OPTIONS="detect_leaks=0"),
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-500:]
    return done.stdout.splitlines()


@pytest.fixture
def container(tmp_path: Path) -> Machine:
    """With a share of compute time. The guard is not preloaded."""
    kernel = {"FAIRLEAD_STUB_KERNEL_NS": "300000"}
    return Machine(tmp_path, LIMIT, CONTEXT, core=50, has_guard=False, knobs=kernel)


@pytest.mark.parametrize("sanitizers", [BOUNDS, "thread"])
@pytest.mark.parametrize("way", ["dlsym", "proc2"])
def test_every_allocator_is_refused_and_freed_without_a_fault(
    container: Machine, sanitizers: str, way: str
) -> None:
    filled = hooked(container, sanitizers, way, "fill", "all", BLOCK, 40)[::2]
    assert len(filled) > 30
    assert {line.partition(" code ")[2].split()[0] for line in filled} == {"2"}
    counted = container.count()
    assert (counted.truth, counted.used, counted.unknown) == (CONTEXT, CONTEXT, 0)
    assert max(counted.peak, counted.used_peak) <= LIMIT


@pytest.mark.parametrize("sanitizers", [BOUNDS, "thread"])
def test_every_step_of_the_hooks_is_without_a_fault(container: Machine, sanitizers: str) -> None:
    """What the driver refuses, what finds no room, and what takes more than it asked for."""
    assert len(hooked(container, sanitizers, "dlsym", "audit", BLOCK)) > 500


@pytest.mark.parametrize("sanitizers", [BOUNDS, "thread"])
@pytest.mark.parametrize("seed", [31, 32])
def test_threads_share_all_hooks_without_a_race(
    container: Machine, sanitizers: str, seed: int
) -> None:
    """Pools and launches of graphs, too."""
    assert hooked(container, sanitizers, "link", "storm", seed, 8, 2500, 2 * BLOCK) == ["done"]
    counted = container.count()
    assert (counted.truth, counted.used) == (CONTEXT, CONTEXT)
    assert max(counted.peak, counted.used_peak) <= LIMIT


@pytest.mark.parametrize("sanitizers", [BOUNDS, "thread"])
def test_threads_launch_while_graphs_and_contexts_go_without_a_race(
    container: Machine, sanitizers: str
) -> None:
    container.knobs["FAIRLEAD_STUB_KERNEL_NS"] = "20000"
    assert hooked(container, sanitizers, "link", "launches", 6, 300) == ["done"]
    counted = container.count()
    assert (counted.truth, counted.used) == (CONTEXT, CONTEXT)
