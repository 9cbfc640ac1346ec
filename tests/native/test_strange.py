"""Calls that no program should make get the driver's own answer, or out of memory, and no crash.

`strange.c` makes them, each in a process of its own, with the guard and without it.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from pathlib import Path

import pytest
from tests.native.driver import MIB, REGION_BYTES, Machine
from tests.native.tenants import hold
from tests.programs import run_program
from tests.waiting import HANG_SECONDS

from guard_table import read_table

SIZE, LIMIT = 4 * MIB, 64 * MIB
NEVER_FITS = "cuGraphAdd"
"""Rows that ask for more than the limit."""

NVML = """
import ctypes, os, sys
nvml = ctypes.CDLL("libnvidia-ml.so.1")
device = ctypes.c_void_p()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
for name in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        print(name, getattr(nvml, name)(device, None, None, None), flush=True)
        os._exit(0)
    signal = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if signal:
        print(name, "signal", -signal, flush=True)
"""


def answers(machine: Machine, which: str) -> list[str]:
    return machine.run("dlsym", "strange", which, SIZE)


@pytest.mark.parametrize(("which", "calls"), [("nulls", 77), ("zero", 35), ("twice", 35)])
def test_the_driver_answers(tmp_path: Path, which: str, calls: int) -> None:
    """NULL for every pointer, the size 0, and what is freed twice."""
    machine = Machine(tmp_path, LIMIT)
    found = answers(machine, which)
    assert machine.count().peak <= LIMIT
    machine.has_guard = False
    expected = answers(machine, which)
    if which == "twice":
        expected = [
            line.replace("code 0", "code 2") if line.startswith(NEVER_FITS) else line
            for line in expected
        ]
    assert len(found) >= calls
    assert [line for line in expected if "signal" in line] == []
    assert found == expected


def test_what_was_freed_twice_was_given_back_once(tmp_path: Path) -> None:
    """Another process gets the whole limit, and not more."""
    machine = Machine(tmp_path, LIMIT)
    answers(machine, "twice")
    process, code = hold(machine, LIMIT)
    assert code == 0
    assert machine.count().used == LIMIT
    other, code = hold(machine, 1)
    assert code == 2
    for each in (process, other):
        each.communicate(timeout=HANG_SECONDS)


def test_nvml_answers_for_pointers_that_are_null(tmp_path: Path) -> None:
    names = [hook.export for hook in read_table().hooks if hook.library == "nvml"]

    def asked(machine: Machine) -> list[str]:
        done = run_program([sys.executable, "-c", NVML, *names], env=machine.environment())
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    found = asked(Machine(tmp_path, LIMIT))
    assert [line.split()[0] for line in found] == names
    assert found == asked(Machine(tmp_path, LIMIT, has_guard=False))


@pytest.mark.parametrize("byte", [b"\0", b"\xff"])
def test_a_region_that_a_tenant_overwrites_crashes_no_program_of_it(
    tmp_path: Path, byte: bytes
) -> None:
    """Its programs go on, or are refused; the limit is then the watchdog's."""
    machine = Machine(tmp_path, LIMIT)
    process, code = hold(machine, SIZE)
    assert code == 0
    with machine.region.open("r+b") as region:
        region.write(byte * REGION_BYTES)
    assert process.stdin
    assert process.stdout
    process.stdin.write("f")
    process.stdin.flush()
    assert process.stdout.readline() in ("child 0\n", "child 2\n")
    out, errors = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, out, errors) == (0, "", "")
    head = struct.unpack_from("<I", machine.region.read_bytes())[0]
    late = machine.start("dlsym", "fill", "cuMemAlloc_v2", SIZE, 1)
    out, errors = late.communicate(timeout=HANG_SECONDS)
    assert late.returncode == 0
    assert (out, errors.count("\n")) == ("context code 2\n", 1), hex(head)


def test_a_region_that_a_tenant_cuts_short_ends_its_own_programs_and_grants_nothing(
    tmp_path: Path,
) -> None:
    """The kernel ends a program that touches a mapped page which the file no longer has."""
    machine = Machine(tmp_path, LIMIT)
    process, code = hold(machine, SIZE)
    assert code == 0
    os.truncate(machine.region, 0)
    assert process.stdin
    process.stdin.write("f")
    process.stdin.flush()
    out, errors = process.communicate(timeout=HANG_SECONDS)
    assert (process.returncode, out, errors) == (-signal.SIGBUS, "", "")
    late = machine.start("dlsym", "fill", "cuMemAlloc_v2", SIZE, 1)
    out, errors = late.communicate(timeout=HANG_SECONDS)
    assert (late.returncode, out) == (0, "context code 2\n")
    assert errors.endswith("; no GPU memory is granted\n")
