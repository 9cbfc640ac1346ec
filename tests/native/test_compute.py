"""The share of compute time: what launches get of the GPU, and when they do not wait.

Specification: docs/spec/gpu-sharing.md#compute-share-of-the-guard. The ground truth is the time
that the stub's kernels take.
"""

from __future__ import annotations

import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.native.driver import MIB, Machine
from tests.native.stepped import Built, SteppedAccount
from tests.waiting import HANG_SECONDS, wait_until

PAID_AT = 287808
LOCK_AT = 16
SECOND = 1_000_000_000
WINDOW = SECOND // 10
MOST_DEBT = 10 * SECOND
POINTS = 5
SECONDS = 8


def machine(folder: Path, percent: int, *, has_guard: bool = True, **knobs: str) -> Machine:
    kernel = {"FAIRLEAD_STUB_KERNEL_NS": "500000"}
    return Machine(folder, core=percent, has_guard=has_guard, knobs=kernel | knobs)


def shared(container: Machine, how: str) -> float:
    """Percent of the GPU's time that all programs of the container had."""
    begun, share = container.run("dlsym", "share", how, 1000)
    assert begun == "begun"
    return int(share.removeprefix("share ")) / 10


def check_share(measure: Callable[[], float], percent: int) -> None:
    """A second in which other programs leave this one no processor is measured again."""
    found: list[float] = []
    while not found or abs(found[-1] - percent) > POINTS:
        assert len(found) < SECONDS, f"{found} of {percent}"
        found.append(measure())


@pytest.mark.parametrize("percent", [25, 50, 75])
@pytest.mark.parametrize("how", ["eager", "graph", "queue", "mixed"])
def test_launches_get_their_share_of_gpu_time(tmp_path: Path, how: str, percent: int) -> None:
    container = machine(tmp_path, percent)
    check_share(lambda: shared(container, how), percent)


def test_kernels_of_microseconds_get_their_share(tmp_path: Path) -> None:
    container = machine(tmp_path, 50, FAIRLEAD_STUB_KERNEL_NS="20000")
    check_share(lambda: shared(container, "queue"), 50)


def test_two_processes_of_a_container_have_one_budget(tmp_path: Path) -> None:
    container = machine(tmp_path, 50)

    def share_of_two() -> float:
        other = container.start("dlsym", "share", "eager", 0)
        assert other.stdout
        assert other.stdout.readline() == "begun\n"
        share = shared(container, "eager")
        _, errors = other.communicate(timeout=HANG_SECONDS)
        assert (other.returncode, errors) == (0, "")
        return share

    check_share(share_of_two, 50)


def test_without_the_guard_launches_get_more_than_a_share(tmp_path: Path) -> None:
    assert shared(machine(tmp_path, 25, has_guard=False), "queue") > 80


def owe(container: Machine, seconds: float) -> None:
    """What the container has used already."""
    with container.region.open("r+b") as file:
        file.seek(PAID_AT)
        moment = time.monotonic_ns() + int(seconds * SECOND) if seconds else 0
        file.write(struct.pack("<q", moment))


def owed(container: Machine) -> float:
    """Seconds."""
    (moment,) = struct.unpack_from("<q", container.region.read_bytes(), PAID_AT)
    return float(moment - time.monotonic_ns()) / SECOND


def ask(process: subprocess.Popen[str], what: str) -> None:
    assert process.stdin
    assert process.stdout
    process.stdin.write(what)
    process.stdin.flush()
    assert process.stdout.readline() == f"begun {what}\n"


def answered(process: subprocess.Popen[str]) -> tuple[int, int]:
    """The code, and how many milliseconds it took."""
    assert process.stdout
    _, code, milliseconds = process.stdout.readline().split()
    return int(code), int(milliseconds)


def is_waiting(process: subprocess.Popen[str]) -> bool:
    return Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").split()[2] == "S"


def test_a_launch_waits_for_what_its_container_owes(tmp_path: Path) -> None:
    container = machine(tmp_path, 50)
    process = container.start("dlsym", "ask")
    owe(container, 0.5)
    ask(process, "l")
    code, milliseconds = answered(process)
    assert code == 0
    assert milliseconds >= 400
    process.communicate(timeout=HANG_SECONDS)


def test_a_wait_looks_again_after_a_window(tmp_path: Path) -> None:
    container = machine(tmp_path, 50)
    process = container.start("dlsym", "ask")
    owe(container, 9)
    ask(process, "l")
    wait_until("the launch waits", lambda: is_waiting(process), pause_seconds=0.001)
    owe(container, 0)
    code, milliseconds = answered(process)
    assert code == 0
    assert milliseconds < 4000
    process.communicate(timeout=HANG_SECONDS)


def test_a_process_that_is_killed_while_it_waits_held_no_lock(tmp_path: Path) -> None:
    container = machine(tmp_path, 50)
    process = container.start("dlsym", "ask")
    ask(process, "m")
    assert answered(process)[0] == 0
    owe(container, 9)
    ask(process, "l")
    wait_until("the launch waits", lambda: is_waiting(process), pause_seconds=0.001)
    assert struct.unpack_from("<I", container.region.read_bytes(), LOCK_AT)[0] & 0xFFF == 0
    other = container.start("dlsym", "ask")
    ask(other, "m")
    code, milliseconds = answered(other)
    assert code == 0
    assert milliseconds < 2000
    assert is_waiting(process)
    process.kill()
    process.communicate(timeout=HANG_SECONDS)
    assert struct.unpack_from("<I", container.region.read_bytes(), LOCK_AT)[0] & 0xFFF == 0
    other.communicate(timeout=HANG_SECONDS)
    out = container.run("dlsym", "fill", "cuMemAlloc_v2", 64 * MIB, 1)
    assert out[0].startswith("cuMemAlloc_v2 granted 1 code 0")


def test_no_launch_of_a_capture_waits_or_ends_it(tmp_path: Path) -> None:
    container = machine(tmp_path, 50)
    process = container.start("dlsym", "ask")
    for _ in range(3):
        ask(process, "l")
        assert answered(process)[0] == 0
    owe(container, 9)
    ask(process, "c")
    code, milliseconds = answered(process)
    assert code == 0
    assert milliseconds < 4000
    assert owed(container) < 9, "captured launches cost nothing"
    process.communicate(timeout=HANG_SECONDS)


def test_launches_that_the_driver_refuses_cost_nothing(tmp_path: Path) -> None:
    container = machine(tmp_path, 5)
    process = container.start("dlsym", "ask")
    for what in "lsls":
        ask(process, what)
        assert answered(process)[0] == 0
    ask(process, "r")
    code, milliseconds = answered(process)
    assert code == 999
    assert milliseconds < 500, "a hundred of them would cost a second"
    process.communicate(timeout=HANG_SECONDS)


@pytest.mark.parametrize("missing", ["event", "cuEventRecord", "cuEventQuery"])
def test_launches_pass_where_the_driver_measures_no_time(tmp_path: Path, missing: str) -> None:
    log = tmp_path / "log"
    container = machine(tmp_path, 5, FAIRLEAD_STUB_REFUSE=missing, FAIRLEAD_GUARD_LOG=str(log))
    process = container.start("dlsym", "ask")
    for _ in range(40):
        ask(process, "l")
        code, milliseconds = answered(process)
        assert code == 0
        assert milliseconds < 500
    process.communicate(timeout=HANG_SECONDS)
    assert log.read_text(encoding="utf-8").startswith("compute time is not limited")
    assert log.read_text(encoding="utf-8").count("\n") == 1


@pytest.mark.parametrize(
    ("paid", "cost", "until"),
    [
        (0, 5, 100 * SECOND - WINDOW + 5),
        (100 * SECOND, 5, 100 * SECOND + 5),
        (101 * SECOND, -5, 101 * SECOND - 5),
        (105 * SECOND, 20 * SECOND, 100 * SECOND + MOST_DEBT),
        (111 * SECOND, 0, 100 * SECOND),
        ((1 << 63) - 1, 7, 100 * SECOND + 7),
        (-(1 << 63), 7, 100 * SECOND - WINDOW + 7),
    ],
)
def test_a_debt_passes_with_the_clock_and_has_an_end(paid: int, cost: int, until: int) -> None:
    account = SteppedAccount(Built(macros=("GUARD_STEPS",)))
    assert account.spend(paid, [(cost, 100 * SECOND)]) == [until]
