"""The stub library itself has no errors under the sanitizers while cards are read and the state
changes.

The sanitizers must be in a process from its start, so a program of its own reads the cards.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.nvml.conftest import ReaderOn
from tests.nvml.stub import MIB, StubState, build_stub
from tests.programs import run_program
from tests.waiting import HANG_SECONDS

CARDS = 8
_PROGRAM = """
import json, sys, threading
from fairlead.edge.nvml import gpm
from fairlead.edge.nvml.cards import shown_card
from fairlead.edge.nvml.library import close_library, open_library
from fairlead.edge.nvml.readings import CardReader
from fairlead.wire.devices.gpm_values import GPM_METRICS
from fairlead.wire.devices.nvml_values import BANDWIDTHS

gpm.SAMPLE_GAP_SECONDS = 0.0
open_library(sys.argv[1])
wanted = frozenset([*GPM_METRICS, *BANDWIDTHS, "DCGM_FI_DEV_PCIE_TX_THROUGHPUT"])
readers = [CardReader(shown_card(card), wanted=wanted) for card in range(int(sys.argv[2]))]
returned = [set() for _ in readers]

def read(card):
    reader = readers[card]
    for turn in range(int(sys.argv[3])):
        for reading in (reader.fast(), reader.slow(), reader.static()):
            assert not reading.failures, reading.failures
            fields = reading.fields
            returned[card] |= {fields[name] for name in ["DCGM_FI_DEV_GPU_UTIL"] if name in fields}
        reader.forget()

threads = [threading.Thread(target=read, args=(card,)) for card in range(len(readers))]
for thread in threads: thread.start()
for thread in threads: thread.join()
for reader in readers: reader.close()
close_library()
print(json.dumps([sorted(each) for each in returned]))
"""


@pytest.fixture
def moving(state: StubState) -> Iterator[StubState]:
    """Eight cards, two of them divided, and a state that is written all the time, in both ways."""
    state.show_cards(CARDS)
    for card in range(CARDS):
        state.show_h200(card)
        state.say({f"{card}.compute": f"{card + 1}:{MIB}", f"{card}.samples": "1:5:5,2:6:6"})
    state.divide(1)
    state.divide(6)
    is_over = threading.Event()

    def write() -> None:
        path = state.folder / "state"
        while not is_over.is_set():
            for utilization in (41, 42):
                state.say({f"{card}.gpu": utilization for card in range(CARDS)})
            whole = path.read_bytes()
            with path.open("wb") as torn:  # not atomic: the reader may read in between
                for at in range(0, len(whole), 1000):
                    torn.write(whole[at : at + 1000])
                    torn.flush()

    writer = threading.Thread(target=write)
    writer.start()
    yield state
    is_over.set()
    writer.join()


def _runtime(name: str) -> str | None:
    """The path of a sanitizer's library; None = this compiler has none."""
    found = run_program(["cc", f"-print-file-name={name}"], check=True).stdout.strip()
    return found if "/" in found else None


def test_all_calls_under_the_sanitizers_while_the_state_changes(
    moving: StubState, tmp_path: Path
) -> None:
    runtimes = [_runtime("libasan.so"), _runtime("libubsan.so")]
    if None in runtimes:
        pytest.skip("this compiler has no sanitizers")
    folder = tmp_path / "checked"
    folder.mkdir()
    built = build_stub(folder, is_checked=True)
    done = run_program(
        [sys.executable, "-c", _PROGRAM, str(built), str(CARDS), "4"],
        env={
            **os.environ,
            "LD_PRELOAD": ":".join(each for each in runtimes if each),
            "ASAN_OPTIONS": "detect_leaks=0",
        },
    )
    assert (done.returncode, done.stderr) == (0, "")
    printed = json.loads(done.stdout)
    assert len(printed) == CARDS
    assert all(each and set(each) <= {37, 41, 42} for each in printed)


def test_a_state_that_is_being_written_is_the_former_one(
    state: StubState, reader_on: ReaderOn
) -> None:
    state.show_h200()
    reader = reader_on(0)
    whole = (state.folder / "state").read_bytes()
    newer = whole.replace(b"0.gpu 37\n", b"0.gpu 99\n")
    lines = newer.splitlines(keepends=True)
    for torn in (
        b"",
        newer[: newer.index(b"0.gpu") + 8],
        newer[:-1],
        b"".join(lines[:-1]),
        b"".join(lines[:3]),
    ):
        (state.folder / "state").write_bytes(torn)
        assert reader.fast().fields["DCGM_FI_DEV_GPU_UTIL"] == 37
    (state.folder / "state").unlink()
    assert reader.fast().fields["DCGM_FI_DEV_GPU_UTIL"] == 37
    (state.folder / "state").write_bytes(whole + b"\0\n x\n" + b"y" * 100_000 + b"\n0.gpu 5\nend\n")
    assert reader.fast().fields["DCGM_FI_DEV_GPU_UTIL"] == 5


def test_a_card_of_which_no_call_comes_back(state: StubState, reader_on: ReaderOn) -> None:
    state.show_h200(0)
    state.show_h200(1)
    readers = [reader_on(card) for card in range(2)]
    state.say({"hang.*.0": 1})
    reported: list[object] = []
    thread = threading.Thread(
        target=lambda: reported.append(readers[0].fast().fields["DCGM_FI_DEV_GPU_UTIL"]),
        daemon=True,
    )
    thread.start()
    assert readers[1].fast().fields["DCGM_FI_DEV_GPU_UTIL"] == 37
    assert (reported, thread.is_alive()) == ([], True)
    state.say({"hang.*.0": None, "0.gpu": 8})
    thread.join(HANG_SECONDS)
    assert reported == [8]


def test_a_still_state_is_read_once(
    state: StubState, reader_on: ReaderOn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUB_NVML_STILL", "1")
    state.show_h200()
    reader = reader_on(0)
    state.say({"0.gpu": 99})
    assert reader.fast().fields["DCGM_FI_DEV_GPU_UTIL"] == 37
