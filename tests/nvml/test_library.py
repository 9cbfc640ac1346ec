"""How the loader finds the library: by name, absent, not whole, and another version after an
upgrade.

`LD_LIBRARY_PATH` counts only for a program that starts with it, so the driver runs in a process of
its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.nvml.stub import SONAME, StubState, uuid
from tests.waiting import HANG_SECONDS

from fairlead.edge.nvml.driver import NvmlDriver
from fairlead.errors import OutsideError

MISMATCH = 18
_PROGRAM = """
import json, sys
from fairlead.edge.nvml.driver import NvmlDriver
from fairlead.errors import OutsideError
driver = NvmlDriver()
for line in sys.stdin:
    try:
        answer = [[card.uuid, card.memory_mib] for card in driver.cards()]
    except OutsideError as failed:
        answer = {"system": failed.system, "what": failed.what, "hint": failed.hint}
    print(json.dumps(answer), flush=True)
driver.close()
"""


class OtherProgram:
    """`NvmlDriver().cards()` in a program whose loader looks into `folder` first."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            env={**os.environ, "LD_LIBRARY_PATH": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def cards(self) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> int:
        self._process.communicate(timeout=HANG_SECONDS)
        return self._process.returncode


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "lib"
    found.mkdir()
    return found


@pytest.fixture
def program(folder: Path, state: StubState) -> Iterator[OtherProgram]:
    other = OtherProgram(folder)
    yield other
    assert other.end() == 0


def test_a_driver_comes_and_another_follows_it(
    program: OtherProgram, folder: Path, library: Path, old_library: Path, state: StubState
) -> None:
    missing = program.cards()
    assert (
        missing["system"],
        SONAME in missing["what"],
        "install NVIDIA's driver" in missing["hint"],
    ) == ("nvml", True, True)
    shutil.copy(old_library, folder / "new")
    (folder / "new").rename(folder / SONAME)
    assert program.cards() == [[uuid(0), 15360], [uuid(1), 15360]]
    shutil.copy(library, folder / "new")
    (folder / "new").rename(folder / SONAME)
    assert program.cards() == [[uuid(0), 15360], [uuid(1), 15360]]
    state.fail("nvmlDeviceGetCount_v2", MISMATCH)
    assert "version mismatch" in program.cards()["what"]
    state.fail("nvmlDeviceGetCount_v2", None)
    assert program.cards() == [[uuid(0), 15079], [uuid(1), 15079]]


def test_a_file_that_is_no_library(program: OtherProgram, folder: Path, library: Path) -> None:
    (folder / SONAME).write_text("not a library")
    assert SONAME in program.cards()["what"]
    (folder / SONAME).unlink()
    shutil.copy(library, folder / SONAME)
    assert len(program.cards()) == 2


def test_a_library_that_is_none_of_nvidias(state: StubState) -> None:
    driver = NvmlDriver("libm.so.6")
    for _ in range(2):
        with pytest.raises(OutsideError, match="Function Not Found"):
            driver.cards()
    driver.close()


def test_calls_of_several_threads_take_turns(driver: NvmlDriver, state: StubState) -> None:
    failed: list[BaseException] = []

    def work(call: Callable[[], object]) -> None:
        try:
            for _ in range(30):
                call()
        except BaseException as error:  # noqa: BLE001 - reported by the test
            failed.append(error)

    calls = (
        driver.cards,
        driver.xids,
        driver.processes,
        driver.means,
        driver.close,
        lambda: driver.probe(uuid(0)),
    )
    threads = [threading.Thread(target=work, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    driver.close()
    assert failed == []
    assert state.calls().count("init") == state.calls().count("shutdown")
    assert not any("waits" in call for call in state.calls())
