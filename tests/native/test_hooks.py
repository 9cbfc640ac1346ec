"""Every allocator, found in every way, stays within the limit of the ground truth.

Specification: docs/spec/gpu-sharing.md#resolution-by-the-guard.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.driver import MIB, OTHER_UUID, TENANT, UUID, WAYS, Machine

from guard_table import GuardTable, read_table

BLOCK = 4 * MIB
LIMIT = 64 * MIB
CONTEXT = 8 * MIB
MORE = 40
WRITTEN = (TENANT / "rows.c").read_text(encoding="utf-8")
ROWS = re.findall(r'^    \{"(\w+)", \w+, \w+\},', WRITTEN, re.MULTILINE)
IMPORTS = ("cuIpc", "cuMemPoolImport", "cuImport", "cuMemMap")
NODES = ("cuGraphAddMemAllocNode", "cuGraphAddNode")
FILLED = re.compile(r"(\w+) granted (\d+) code (\d+) free (\d+) total (\d+)")
FREED = re.compile(r"(\w+) freed (\d+) free (\d+) total (\d+)")

MachineOf = Callable[..., Machine]


@pytest.fixture
def machine(tmp_path: Path) -> MachineOf:
    def made(**more: object) -> Machine:
        return Machine(tmp_path, LIMIT, CONTEXT, **more)  # type: ignore[arg-type]

    return made


@pytest.fixture(scope="module")
def table() -> GuardTable:
    return read_table()


@pytest.mark.parametrize("way", WAYS)
def test_no_allocator_exceeds_the_limit(machine: MachineOf, way: str) -> None:
    container = machine()
    out = container.run(way, "fill", "all", BLOCK, MORE)
    for row, filled, freed in zip(ROWS, out[::2], out[1::2], strict=True):
        name, granted, code, free, total = FILLED.fullmatch(filled).groups()  # type: ignore[union-attr]
        assert (name, code, total) == (row, "2", str(LIMIT)), filled
        assert int(free) <= LIMIT - CONTEXT
        assert int(granted) >= 1 or row.startswith(NODES), filled
        assert FREED.fullmatch(freed).groups() == (row, "0", str(LIMIT - CONTEXT), str(LIMIT))  # type: ignore[union-attr]
    counted = container.count()
    assert counted.peak <= LIMIT
    assert counted.used_peak <= LIMIT
    assert counted.denied >= len(ROWS) - len(NODES) - 2
    assert (counted.truth, counted.unknown) == (CONTEXT, 0)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.startswith((*IMPORTS, *NODES))])
def test_without_its_hook_an_allocator_exceeds_the_limit(machine: MachineOf, row: str) -> None:
    container = machine()
    container.run("dlsym", "fill", row, BLOCK, MORE, FAIRLEAD_GUARD_WITHOUT=row)
    assert container.count().peak > LIMIT


def test_the_table_names_a_row_for_every_hook_that_reserves(table: GuardTable) -> None:
    kinds = ("reserve", "array", "import", "implicit")
    reserving = {hook.export for hook in table.hooks if hook.kind in kinds}
    graphs = {hook.export for hook in table.hooks if re.match("cuGraph(Inst|Add)", hook.export)}
    elsewhere = {"cuDevicePrimaryCtxRetain"}
    assert set(ROWS) == (reserving | graphs) - elsewhere


def test_without_the_guard_all_of_it_exceeds_the_limit(machine: MachineOf) -> None:
    container = machine(has_guard=False)
    container.run("link", "fill", "cuMemAlloc_v2", BLOCK, MORE)
    assert container.count().peak == MORE * BLOCK + CONTEXT


def test_a_guard_that_only_shows_refuses_nothing_and_shows_the_limit(machine: MachineOf) -> None:
    """As under MPS, whose own limits the stub does not play: `view` in the limits file."""
    container = machine(is_view_only=True)
    out = container.run("dlsym", "fill", "all", BLOCK, MORE)
    for row, filled, freed in zip(ROWS, out[::2], out[1::2], strict=True):
        name, granted, code, free, total = FILLED.fullmatch(filled).groups()  # type: ignore[union-attr]
        assert (name, code, total) == (row, "0", str(LIMIT)), filled
        assert int(granted) == MORE or row.startswith(NODES), filled
        assert int(free) == 0 or row.startswith((*NODES, "cuGraph")), filled
        assert FREED.fullmatch(freed).groups() == (row, "0", str(LIMIT - CONTEXT), str(LIMIT))  # type: ignore[union-attr]
    counted = container.count()
    assert counted.peak > LIMIT, "the stub gave all that was asked for"
    assert (counted.denied, counted.truth) == (0, CONTEXT)


def test_a_guard_that_only_shows_needs_no_region(machine: MachineOf) -> None:
    container = machine(is_view_only=True)
    container.region.write_bytes(b"")
    out = container.run("dlsym", "fill", "cuMemAlloc_v2", BLOCK, MORE)
    assert out[0].startswith(f"cuMemAlloc_v2 granted {MORE} code 0 "), out


def test_a_guard_that_only_shows_refuses_no_context_of_a_gpu_that_is_not_listed(
    machine: MachineOf,
) -> None:
    container = machine(is_view_only=True)
    text = container.limits_text.replace(UUID, OTHER_UUID)
    container.limits.write_text(text, encoding="utf-8")
    out = container.run("dlsym", "fill", "cuMemAlloc_v2", BLOCK, MORE)
    assert out[0].startswith(f"cuMemAlloc_v2 granted {MORE} code 0 "), out


@pytest.mark.parametrize("knob", ["FAIRLEAD_STUB_REFUSE", "FAIRLEAD_GUARD_FULL"])
def test_a_guard_that_only_shows_refuses_no_call_that_it_cannot_count(
    machine: MachineOf, knob: str
) -> None:
    """No current context explains it, or the process has no memory for an entry."""
    container = machine(is_view_only=True)
    out = container.run("dlsym", "fill", "all", BLOCK, MORE, **{knob: "cuCtxGetCurrent"})
    for row, filled, freed in zip(ROWS, out[::2], out[1::2], strict=True):
        assert filled.startswith(f"{row} granted {MORE} code 0 "), filled
        assert freed.startswith(f"{row} freed 0 "), freed
    counted = container.count()
    assert (counted.denied, counted.truth) == (0, CONTEXT)
    assert counted.used == CONTEXT or knob == "FAIRLEAD_GUARD_FULL"
