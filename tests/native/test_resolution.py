"""What the CUDA runtimes look up gets the right wrapper, or the driver's own function.

Specification: docs/spec/gpu-sharing.md#resolution-by-the-guard. The look-ups of two runtimes are
replayed from native/lookups.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.native.driver import Machine

from guard_table import LOOKUPS, GuardTable, Hook, Lookup, read_lookups, read_table

LISTS = sorted(path.name for path in LOOKUPS.glob("*.txt"))
GUARD, DRIVER = "libfairlead-guard.so", "libcuda.so.1"


@pytest.fixture(scope="module")
def table() -> GuardTable:
    return read_table()


def found(machine: Machine, lookups: list[Lookup], **more: str) -> list[tuple[str, str]]:
    """The library and the export that each look-up got; the driver's exports are not named."""
    asked = "".join(f"{each.symbol or '-'},{each.version},{each.flags}\n" for each in lookups)
    rows = [line.split() for line in machine.run("dlsym", "find", stdin=asked, **more)]
    assert [row[0] for row in rows] == [each.symbol or "-" for each in lookups]
    return [(row[2], row[3] if row[2] == GUARD else "") for row in rows]


@pytest.mark.parametrize("name", LISTS)
def test_every_look_up_of_a_runtime_goes_where_the_table_sends_it(
    tmp_path: Path, table: GuardTable, name: str
) -> None:
    lookups = read_lookups(LOOKUPS / name)
    expected = []
    for lookup in lookups:
        kind = table.classify(lookup)
        expected.append((GUARD, kind.export) if isinstance(kind, Hook) else (DRIVER, ""))
    assert found(Machine(tmp_path), lookups) == expected
    assert sum(library == GUARD for library, _ in expected) > 40


def test_a_name_of_neither_list_is_not_classified(table: GuardTable) -> None:
    with pytest.raises(KeyError):
        table.classify(Lookup("cuMemStrangeAlloc", 13050, 0))


def test_an_allocator_of_a_later_driver_passes_and_is_counted(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    strange = Lookup("cuMemStrangeAlloc", 13050, 0)
    assert found(machine, [strange]) == [(DRIVER, "")]
    assert machine.count().unknown == 1


def test_cu_get_proc_address_finds_itself_by_version(tmp_path: Path) -> None:
    asked = [Lookup("cuGetProcAddress", version, 0) for version in (11030, 12000, 13050)]
    assert found(Machine(tmp_path), asked) == [
        (GUARD, "cuGetProcAddress"),
        (GUARD, "cuGetProcAddress_v2"),
        (GUARD, "cuGetProcAddress_v2"),
    ]


def test_an_older_version_never_gets_a_later_form(tmp_path: Path) -> None:
    asked = [Lookup("cuGraphAddNode", version, 0) for version in (12020, 12030, 13040, 12010)]
    assert found(Machine(tmp_path), asked) == [
        (GUARD, "cuGraphAddNode"),
        (GUARD, "cuGraphAddNode_v2"),
        (GUARD, "cuGraphAddNode_v3"),
        ("-", ""),
    ]


def test_the_kinds_of_the_table_all_have_a_reason(table: GuardTable) -> None:
    assert set(table.untouched.values()) == set(table.reasons)
