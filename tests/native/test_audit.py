"""What the guard counts after each step of every row, and that no step of it can be left out.

Specification: docs/spec/gpu-sharing.md#accounting-of-the-guard. `audit.c` has the rows: allocators
and releases that the driver refuses, that find no room, or for which it takes more than was asked.
"""

from __future__ import annotations

import re
import resource
from pathlib import Path

import pytest
from tests.native.driver import MIB, Machine

from guard_table import read_table

SIZE, CONTEXT, LIMIT = 4 * MIB, 8 * MIB, 64 * MIB
LINE = re.compile(r"(\S+) (.+) code (\d+) used (-?\d+) truth (-?\d+)")
IMPORTS = ("cuIpc", "cuMemPoolImport", "cuImport")
UNSEEN = {("on_primary_retain", "table_count")}
"""The driver is asked whether a primary context is gone, so a count that is too low changes
nothing.
"""


def audit(folder: Path, *, is_view_only: bool = False, **more: str) -> list[str]:
    """The lines of the rows; fewer where the program hung or crashed."""
    knobs = {"FAIRLEAD_STUB_KERNEL_NS": "300000"}
    machine = Machine(folder, LIMIT, CONTEXT, core=50, is_view_only=is_view_only, knobs=knobs)
    with machine.start("dlsym", "audit", SIZE, **more) as process:
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (2, 2))
        return process.communicate(timeout=300)[0].splitlines()


@pytest.fixture(scope="module")
def sane(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return audit(tmp_path_factory.mktemp("sane"))


CODES = {"refused": "999", "kept": "999", "unknown": "1", "no size": "1"}
CODES |= dict.fromkeys(("full", "over", "largest", "nowhere"), "2")
NOTHING = ("after", "freed", "refused", "full", "over", "largest", "nowhere", "unknown")
NO_ROW = ("cuMemFree_v2", "cuMemMap", "cuMemRelease", "cuMemUnmap", "cuDevicePrimary")
"""Sequences of more than one allocation."""


def test_each_step_of_each_row_counts_what_the_driver_gave(sane: list[str]) -> None:
    rows = [found.groups() for found in map(LINE.fullmatch, sane) if found]
    assert len(rows) > 300
    steps = set()
    for row, step, code, used, truth in rows:
        steps.add(step)
        line = f"{row} {step} code {code} used {used} truth {truth}"
        never_fits = row.startswith("cuGraphAdd") and step == "plain"
        if not row.startswith(NO_ROW):
            assert code == ("2" if never_fits else CODES.get(step, "0")), line
        if (step in NOTHING and not row.startswith(NO_ROW)) or never_fits:
            assert used == "0", line
        elif step in ("plain", "larger", "kept") and not row.startswith(NO_ROW):
            assert int(used) >= SIZE, line
        is_kept = "Async" in row and step in ("nowhere", "unknown")
        if row.startswith((*IMPORTS, *NO_ROW[:4])):
            assert int(used) >= int(truth), line
        elif not is_kept:  # its pool gives that back at the next trim
            assert used == truth, line
    assert {*CODES, *NOTHING, "plain", "larger", "gone", "live"} <= steps


def test_a_guard_that_only_shows_refuses_no_step(tmp_path: Path) -> None:
    found = [LINE.fullmatch(line) for line in audit(tmp_path, is_view_only=True)]
    codes = {(step, code) for _, step, code, *_ in (row.groups() for row in found if row)}
    assert {"refused", "kept"} <= {step for step, code in codes if code == "999"}
    assert {("full", "0"), ("nowhere", "0"), ("over", "0"), ("largest", "0")} <= codes
    assert not [step for step, code in codes if code == "2"]


def test_strange_pointers_and_sizes_get_the_answer_of_the_driver(sane: list[str]) -> None:
    answers = {"once": 0, "again": 1, "none": 0, "strange": 1}
    for step, code in answers.items():
        assert f"cuMemFree_v2 {step} code {code} used 0 truth 0" in sane
    assert "cuMemAlloc_v2 no size code 1 used 0 truth 0" in sane
    sizes = [line for line in sane if " largest size " in line]
    assert len(sizes) == 20
    assert {line.split()[-1] for line in sizes} == {"refused"}


def test_programs_see_their_grant(sane: list[str]) -> None:
    shown = f"free {LIMIT - CONTEXT - SIZE} total {LIMIT}"
    assert f"cuMemGetInfo_v2 {shown}" in sane
    assert f"cuMemGetInfo {shown}" in sane
    assert f"cuDeviceTotalMem_v2 {LIMIT}" in sane
    assert f"cuDeviceTotalMem {LIMIT}" in sane


def seen_by(sane: list[str], lines: list[str]) -> str:
    """The first row and step that is not as it should be; empty where all are."""
    for at, line in enumerate(sane):
        if lines[at : at + 1] != [line]:
            return line.partition(" code")[0]
    return ""


def test_a_hook_that_is_taken_out_is_seen_by_a_row(tmp_path: Path, sane: list[str]) -> None:
    hooks = [each for each in read_table().hooks if each.library == "cuda"]
    seen = {
        hook.export: seen_by(sane, audit(tmp_path, FAIRLEAD_GUARD_WITHOUT=hook.export))
        for hook in hooks
        if hook.kind != "resolution"
    }
    for export, row in seen.items():
        print(f"without {export}: {row or 'NOTHING'}")
    assert len(seen) > 60
    assert [export for export, row in seen.items() if not row] == []


def test_each_half_of_each_rollback_that_is_taken_out_is_seen_by_a_row(
    tmp_path: Path, sane: list[str]
) -> None:
    listed = tmp_path / "sites"
    assert audit(tmp_path, FAIRLEAD_GUARD_SITES=str(listed)) == sane
    sites = [line.split() for line in listed.read_text(encoding="utf-8").splitlines()]
    assert len(sites) > 80
    assert [(function, what) for _, function, what, passed in sites if passed == "0"] == []
    unseen = set()
    for number, function, what, _ in sites:
        row = seen_by(sane, audit(tmp_path, FAIRLEAD_GUARD_OUT=number))
        print(f"{function} without {what}: {row or 'NOTHING'}")
        if not row:
            unseen.add((function, what))
    assert unseen == UNSEEN


@pytest.mark.parametrize(
    ("way", "export"), [("proc1", "cuGetProcAddress"), ("proc2", "cuGetProcAddress_v2")]
)
def test_a_look_up_that_is_taken_out_leads_past_the_limit(
    tmp_path: Path, way: str, export: str
) -> None:
    machine = Machine(tmp_path, LIMIT)
    machine.run(way, "fill", "cuMemAlloc_v2", SIZE, 40, FAIRLEAD_GUARD_WITHOUT=export)
    assert machine.count().peak > LIMIT
