"""Several processes in one container: races, deaths, fork, exec, and one that is stopped.

Specification: docs/spec/gpu-sharing.md#accounting-of-the-guard. The peak of the ground truth is
compared, not what is left at the end.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import subprocess
import time
from pathlib import Path

import pytest
from tests.native.driver import MIB, Machine
from tests.native.tenants import hold
from tests.programs import freeze
from tests.waiting import HANG_SECONDS, wait_until

LIMIT = 64 * MIB
BLOCK = 16 * MIB
LOCK_OFFSET = 16
SLOTS_OFFSET = 1088


def end(*processes: subprocess.Popen[str]) -> None:
    for process in processes:
        process.communicate(timeout=HANG_SECONDS)


def kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate(timeout=HANG_SECONDS)


@pytest.mark.parametrize(
    ("processes", "threads", "delay"),
    [(2, 4, 5000), (8, 2, 2000), (16, 1, 500), pytest.param(64, 1, 2000, marks=pytest.mark.long)],
)
def test_racing_processes_and_threads_never_exceed_the_limit(
    tmp_path: Path, processes: int, threads: int, delay: int
) -> None:
    knobs = {"FAIRLEAD_STUB_DELAY_US": str(delay), "FAIRLEAD_STUB_FAIL_EVERY": "7"}
    machine = Machine(tmp_path, LIMIT, knobs=knobs)
    racing = [
        machine.start("link", "storm", number, threads, 120, 12 * MIB)
        for number in range(processes)
    ]
    for process in racing:
        out, errors = process.communicate(timeout=300)
        assert (process.returncode, out, errors) == (0, "done\n", "")
    count = machine.count()
    assert 0 < count.peak <= LIMIT
    assert count.used_peak <= LIMIT
    assert count.denied > 0
    assert count.used == 0, "what was granted came back"


def test_processes_that_are_killed_at_any_instruction_leave_all_others_limited(
    tmp_path: Path,
) -> None:
    seed = int(os.environ.get("FAIRLEAD_GUARD_SEED", time.time_ns() % 100_000))
    print(f"FAIRLEAD_GUARD_SEED={seed}")
    chance = random.Random(seed)
    machine = Machine(tmp_path, LIMIT)
    running: list[subprocess.Popen[str]] = []
    for number in range(16):
        running.append(machine.start("link", "storm", number, 2, 1_000_000, 12 * MIB))
        if len(running) < 3:
            continue
        refused = machine.count().denied + chance.randrange(1, 200)
        wait_until(
            f"{refused} refused requests",
            lambda refused=refused: machine.count().denied >= refused,  # type: ignore[misc]
            pause_seconds=0.001,
        )
        kill(running.pop(chance.randrange(3)))
    for process in running:
        kill(process)
    assert machine.count().peak <= LIMIT
    last, code = hold(machine, LIMIT)
    assert code == 0
    assert machine.count().used == LIMIT
    end(last)


def test_a_killed_process_frees_its_share_for_others_and_for_no_more_than_that(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path, LIMIT)
    first, code = hold(machine, 3 * BLOCK)
    assert code == 0
    kill(first)
    second, code = hold(machine, 4 * BLOCK)
    assert code == 0
    third, code = hold(machine, BLOCK)
    assert code == 2
    assert machine.count().peak == machine.count().used == LIMIT
    end(second, third)


@pytest.mark.parametrize(
    "row", ["cuIpcOpenMemHandle_v2", "cuMemMap", "cuMemPoolImportPointer", "cuImportExternalMemory"]
)
def test_an_import_counts_again_where_its_exporter_is_in_the_same_container(
    tmp_path: Path, row: str
) -> None:
    """The driver does not report who exported. The truth has the memory once."""
    machine = Machine(tmp_path, LIMIT)
    exporter, code = hold(machine, 3 * BLOCK)
    assert code == 0
    filled = machine.run("dlsym", "fill", row, BLOCK, 4)[0]
    assert filled.startswith(f"{row} granted 1 code 2 free 0 ")
    count = machine.count()
    assert (count.peak, count.used, count.used_peak) == (3 * BLOCK, 3 * BLOCK, LIMIT)
    end(exporter)


def test_a_pid_that_another_process_got_later_holds_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, LIMIT)
    before = own_start() - 1
    slot = struct.pack("<QQQQ", os.getpid() | before << 32, before, own_namespace(), LIMIT)
    write(machine, SLOTS_OFFSET, slot)
    write(machine, 64, struct.pack("<Q", LIMIT))
    process, code = hold(machine, LIMIT)
    assert code == 0
    end(process)


def test_a_process_of_another_pid_namespace_is_not_judged(tmp_path: Path) -> None:
    machine = Machine(tmp_path, LIMIT)
    before = own_start() - 1
    slot = struct.pack("<QQQQ", os.getpid() | before << 32, before, own_namespace() + 1, LIMIT)
    write(machine, SLOTS_OFFSET, slot)
    write(machine, 64, struct.pack("<Q", LIMIT))
    process, code = hold(machine, BLOCK)
    assert code == 2
    end(process)


def test_a_zombie_holds_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, LIMIT)
    zombie, _ = hold(machine, 3 * BLOCK)
    os.kill(zombie.pid, signal.SIGKILL)
    os.waitid(os.P_PID, zombie.pid, os.WEXITED | os.WNOWAIT)
    second, code = hold(machine, 4 * BLOCK)
    assert code == 0
    end(second)
    zombie.communicate(timeout=HANG_SECONDS)


def test_a_forked_child_is_counted_by_itself(tmp_path: Path) -> None:
    machine = Machine(tmp_path, LIMIT)
    assert machine.run("link", "fork", 2 * BLOCK) == ["parent 0", "child 0", "again 0"]
    assert machine.count().peak == LIMIT
    assert machine.run("link", "fork", 3 * BLOCK) == ["parent 0", "child 2", "again 2"]


def test_a_new_program_of_the_same_process_starts_with_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, LIMIT)
    process = machine.start("link", "exec", 3 * BLOCK)
    out, _ = process.communicate(timeout=HANG_SECONDS)
    assert out.splitlines() == ["before 0", "held 0"]
    assert machine.count().used == 3 * BLOCK


def lock_of(machine: Machine) -> int:
    return int(struct.unpack_from("<I", machine.region.read_bytes(), LOCK_OFFSET)[0])


def write(machine: Machine, offset: int, content: bytes) -> None:
    with machine.region.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def test_a_process_that_stops_in_the_lock_has_others_refused_in_bounded_time(
    tmp_path: Path,
) -> None:
    machine = Machine(tmp_path, LIMIT)
    owner, _ = hold(machine, BLOCK)
    freeze(owner.pid)
    write(machine, LOCK_OFFSET, struct.pack("<I", 1 << 12 | 1 << 1))
    begun = time.monotonic()
    other, code = hold(machine, BLOCK)
    assert code == 2
    assert time.monotonic() - begun < 30
    os.kill(owner.pid, signal.SIGCONT)
    kill(owner)
    after, code = hold(machine, LIMIT)
    assert code == 0
    assert machine.count().peak <= LIMIT
    end(other, after)


@pytest.mark.parametrize(("asked", "answer"), [("f", "child 2"), ("x", "context code 2")])
def test_a_lock_holder_that_forks_or_is_another_program_has_others_refused_until_it_ends(
    tmp_path: Path, asked: str, answer: str
) -> None:
    machine = Machine(tmp_path, LIMIT)
    owner, _ = hold(machine, BLOCK)
    write(machine, LOCK_OFFSET, struct.pack("<I", 1 << 12 | 1 << 1))
    assert owner.stdin
    assert owner.stdout
    owner.stdin.write(asked)
    owner.stdin.flush()
    assert owner.stdout.readline() == f"{answer}\n"
    kill(owner)
    after, code = hold(machine, LIMIT)
    assert code == 0
    assert machine.count().peak <= LIMIT
    end(after)


def test_the_lock_of_a_process_that_died_in_it_is_taken_over(tmp_path: Path) -> None:
    machine = Machine(tmp_path, LIMIT)
    owner, _ = hold(machine, BLOCK)
    write(machine, LOCK_OFFSET, struct.pack("<I", 1 << 12 | 1 << 1))
    write(machine, 64, struct.pack("<Q", 3))
    kill(owner)
    other, code = hold(machine, LIMIT)
    assert code == 0
    assert machine.count().used == LIMIT
    assert lock_of(machine) & 0xFFF == 0
    end(other)


def test_one_process_more_than_there_are_slots_gets_nothing(tmp_path: Path) -> None:
    machine = Machine(tmp_path, LIMIT)
    slots = struct.pack("<QQQ", os.getpid() | own_start() << 32, own_start(), own_namespace())
    for index in range(1024):
        write(machine, SLOTS_OFFSET + 280 * index, slots)
    process = machine.start("dlsym", "fill", "cuMemAlloc_v2", BLOCK, 1)
    out, errors = process.communicate(timeout=HANG_SECONDS)
    assert out == "context code 2\n"
    assert errors == "fairlead-guard: this process gets no slot in the region; " + (
        "no GPU memory is granted\n"
    )


def own_start() -> int:
    return int(Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19])


def own_namespace() -> int:
    return int(Path("/proc/self/ns/pid").readlink().name.strip("pid:[]"))
