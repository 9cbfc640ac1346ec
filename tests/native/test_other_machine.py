"""The guard for the other architecture: its programs run on an emulator, one instruction after the
other as that machine would, with the C library of the cross compiler.

The emulator shows that calls, structures, look-ups and atomic words are right there; it does not
reorder memory as a real machine may.
"""

from __future__ import annotations

import platform
import shutil
from pathlib import Path

import pytest
from tests.native.driver import MIB, WAYS, Machine

OTHER = {"x86_64": "aarch64", "aarch64": "x86_64"}[platform.machine()]
LIMIT = 64 * MIB
CONTEXT = 8 * MIB
BLOCK = 4 * MIB
MORE = 40

pytestmark = pytest.mark.skipif(
    shutil.which(f"qemu-{OTHER}-static") is None,
    reason=f"qemu-{OTHER}-static is not installed",
)


@pytest.mark.parametrize("way", WAYS)
def test_every_allocator_and_look_up_is_as_on_this_machine(tmp_path: Path, way: str) -> None:
    found = []
    for architecture in (platform.machine(), OTHER):
        folder = tmp_path / architecture
        folder.mkdir()
        machine = Machine(folder, LIMIT, CONTEXT, architecture=architecture)
        found.append((machine.run(way, "fill", "all", BLOCK, MORE), machine.count()))
    assert found[0] == found[1]
    assert found[1][1].peak <= LIMIT < found[1][1].peak + BLOCK


def test_without_the_guard_there_is_no_limit(tmp_path: Path) -> None:
    machine = Machine(tmp_path, LIMIT, CONTEXT, has_guard=False, architecture=OTHER)
    machine.run("dlsym", "fill", "all", BLOCK, MORE)
    assert machine.count().peak > LIMIT


def test_racing_threads_never_exceed_the_limit(tmp_path: Path) -> None:
    """Of one process: the emulator shows a process another start time of its own than others see,
    so each would regard the others as gone.
    """
    knobs = {"FAIRLEAD_STUB_DELAY_US": "500", "FAIRLEAD_STUB_FAIL_EVERY": "7"}
    machine = Machine(tmp_path, LIMIT, knobs=knobs, architecture=OTHER)
    assert machine.run("link", "storm", 1, 8, 120, 12 * MIB) == ["done"]
    count = machine.count()
    assert 0 < count.peak <= LIMIT and count.used_peak <= LIMIT
    assert count.denied > 0 and count.used == 0
