"""Loads of simulated cards: a file each, valid while its process lives and its time has
not passed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.waiting import HANG_SECONDS

from fairlead.edge.files.simulated_backend import SimulatedBackend
from fairlead.edge.files.simulated_loads import (
    load_folder,
    own_pid_namespace,
    read_simulated_loads,
    simulated_loads,
)
from fairlead.errors import OutsideError
from fairlead.model.devices.gpu_chip import CHIPS, LoadCard
from fairlead.model.devices.gpu_load import LoadTest, SimulatedLoad
from fairlead.model.refusal import Refusal
from fairlead.wire.gpus.simulated_load import parse_simulated_load, render_simulated_load

CARDS = (
    LoadCard(0, "GPU-a", "Tesla T4", CHIPS["Tesla T4"]),
    LoadCard(1, "", "Tesla T4", CHIPS["Tesla T4"]),
)


def backend(folder: Path, seen: list[SimulatedLoad], at: float = 100.0) -> SimulatedBackend:
    """A backend that reads the folder while it waits."""
    return SimulatedBackend(
        folder,
        CARDS,
        "n1",
        now=lambda: at,
        sleep=lambda _: seen.extend(read_simulated_loads(folder, at)[0]),
    )


def test_a_slice_of_a_test_is_announced_and_taken_back(tmp_path: Path) -> None:
    seen: list[SimulatedLoad] = []
    reported = backend(tmp_path / "new", seen)
    (done, _) = reported.work(CARDS, LoadTest(1004, 120.0), 0.87, 2.0)
    (load,) = seen
    assert load.parts[1004] == 0.87 and load.parts[1001] == 0.98
    assert (load.gpus, load.node, load.pid) == (("GPU-a", "1"), "n1", os.getpid())
    assert load.until == 105.0, "a little longer than the slice"
    assert done.flops is not None and done.flops / done.seconds == pytest.approx(27.95e12)
    reported.end()
    assert not list((tmp_path / "new").iterdir())


def test_a_folder_that_cannot_be_written_is_reported_with_its_variable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OutsideError) as caught:
        backend(tmp_path / "file" / "loads", []).work(CARDS, LoadTest(1001, 1.0), 0.5, 1.0)
    before, _, after = caught.value.what.rpartition("/")
    assert before == (f"the load of simulated cards cannot be written to `{tmp_path}/file/loads")
    assert after.endswith(f"-{os.getpid()}.load`: Not a directory")
    assert "FAIRLEAD_GPU_LOAD_DIR" in caught.value.hint


def test_a_load_ends_by_itself(tmp_path: Path) -> None:
    reported = backend(tmp_path, [])
    reported.work(CARDS, LoadTest(1001, 120.0), 0.5, 2.0)
    assert read_simulated_loads(tmp_path, 104.9)[0] and read_simulated_loads(tmp_path, 105.0) == (
        [],
        [],
    )


def test_a_load_whose_process_is_gone_holds_no_longer(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait(timeout=HANG_SECONDS)
    for name, namespace in (("ours", own_pid_namespace()), ("theirs", "pid:[1]")):
        load = SimulatedLoad(gone.pid, namespace, time.time() + 60, {1001: 1.0})
        (tmp_path / f"{name}.load").write_bytes(render_simulated_load(load))
    (left,) = read_simulated_loads(tmp_path, time.time())[0]
    assert left.pid_namespace == "pid:[1]", "of another container's processes nothing is known here"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"pid 1\n",
        b"pid one\nuntil 9\n",
        b"pid 1\nuntil inf\n",
        b"pid 1\nuntil 9\n1004 1.5\n",
        b"pid 1\nuntil 9\n1004 nan\n",
        b"\xff\x00",
        b"pid 1\nuntil 9\n9999 1\n",
    ],
)
def test_what_makes_no_sense_is_left_out_and_reported_once(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.load").write_bytes(text)
    printed: list[str] = []
    read = simulated_loads(tmp_path, printed.append)
    assert [list(read()), list(read())] == [[], []]
    assert len(printed) == 1 and "x.load" in printed[0]


def test_strange_files_stop_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.load")
    (tmp_path / "big.load").write_bytes(b"x" * 100_000)
    (tmp_path / "folder.load").mkdir()
    (tmp_path / "other").write_text("no load")
    loads, faults = read_simulated_loads(tmp_path, 0.0)
    assert loads == [] and len(faults) == 3
    assert read_simulated_loads(tmp_path / "none", 0.0) == ([], [])


def test_the_folder_is_named_or_beside_the_laptops() -> None:
    assert load_folder({"FAIRLEAD_GPU_LOAD_DIR": "/x", "HOME": "/home/ann"}) == Path("/x")
    assert load_folder({"HOME": "/home/ann"}) == Path("/home/ann/.local/state/fairlead/gpu-load")


names = st.text("abcXYZ019-", min_size=1, max_size=20)


@given(
    st.builds(
        SimulatedLoad,
        st.integers(0, 1 << 22),
        st.just("pid:[4026531836]"),
        st.integers(0, 1 << 40).map(lambda ms: ms / 1000),
        st.dictionaries(st.integers(1001, 1012), st.integers(0, 1_000_000).map(lambda n: n / 1e6)),
        st.lists(names, max_size=3).map(tuple),
        names | st.just(""),
    )
)
def test_what_is_written_is_read(load: SimulatedLoad) -> None:
    read = parse_simulated_load(render_simulated_load(load))
    assert not isinstance(read, Refusal) and read == load
