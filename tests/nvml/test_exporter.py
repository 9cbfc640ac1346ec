"""`fairlead gpu-exporter` as a process on the stub library: its page with eight cards, and while
one of them hangs.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.nvml.exporting import SECONDS, Exporter, exporting
from tests.nvml.stub import MIB, StubState, uuid
from tests.waiting import HANG_SECONDS, wait_until

ENDS_WITHIN = 5.0
LOST, UNKNOWN = 15, 999


UNEVEN_TOTAL, UNEVEN_RESERVED = 15360 * MIB + 12_345, 281 * MIB + 12_346
"""Memory of one card: no whole MiB, and the rest of the reserve is larger than the rest of the
total.
"""


def busy(state: StubState, cards: int) -> None:
    state.show_cards(cards)
    state.say({"3.total": UNEVEN_TOTAL, "3.reserved": UNEVEN_RESERVED})
    state.say(
        {f"{card}.gpu": 10 + card for card in range(cards)}
        | {f"{card}.memory": 5 for card in range(cards)}
    )


@pytest.fixture
def exporter(library: Path, state: StubState, tmp_path: Path) -> Iterator[Exporter]:
    busy(state, 8)
    with exporting(library, state, tmp_path) as made:
        made.until("all cards answer", "fairlead_gpu_up", dict.fromkeys("01234567", 1.0))
        yield made


def test_what_the_page_prints_is_what_the_library_returns(exporter: Exporter) -> None:
    assert exporter.values("fairlead_exporter_build_info", "backend") == {"nvml": 1}
    assert exporter.values("fairlead_exporter_nvml_up", "node_name") == {"n1": 1}
    assert exporter.values("DCGM_FI_DEV_FB_FREE", "UUID").keys() == {
        uuid(card) for card in range(8)
    }
    cards = dict.fromkeys("01234567", 15360 * MIB)
    assert exporter.values("fairlead_gpu_memory_total_bytes") == cards | {"3": UNEVEN_TOTAL}, (
        "to the byte (docs/spec/telemetry.md#device-metrics)"
    )
    assert exporter.values("nvidia_gpu_memory_total_bytes", "minor_number")["3"] == UNEVEN_TOTAL
    grantable = (UNEVEN_TOTAL - UNEVEN_RESERVED) // MIB * MIB
    assert exporter.values("fairlead_gpu_memory_grantable_bytes")["3"] == grantable, (
        "shares are of whole MiB (docs/spec/gpu-sharing.md#units-and-the-proportional-grant)"
    )
    assert exporter.values("DCGM_FI_DEV_FB_RESERVED") == dict.fromkeys("01234567", 281)
    assert exporter.values("DCGM_FI_DEV_GPU_UTIL") == {str(card): 10 + card for card in range(8)}
    assert exporter.values("fairlead_gpu_healthy") == dict.fromkeys("01234567", 1)


def test_one_card_hangs_and_the_page_does_not(
    library: Path, state: StubState, tmp_path: Path
) -> None:
    """docs/spec/telemetry.md#isolation-of-a-failing-gpu, on the whole process. `bench` measures how
    long a scrape takes.
    """
    state.show_cards(0)
    others = {str(card) for card in range(8)} - {"2"}
    with exporting(library, state, tmp_path, "--call-timeout=1") as exporter:
        exporter.until(
            "there is a driver", "fairlead_exporter_nvml_up", {"n1": 1}, label="node_name"
        )
        tasks = Path(f"/proc/{exporter.process.pid}/task")
        allowed = len(list(tasks.iterdir())) + 8 + 2 + POOL
        busy(state, 8)
        exporter.until("all cards answer", "fairlead_gpu_up", dict.fromkeys("01234567", 1.0))
        state.say({"hang.nvmlDeviceGetUtilizationRates.2": 1})
        exporter.until("it is stuck", "fairlead_exporter_stuck_calls", {"n1": 1}, label="node_name")
        exporter.until(
            "it is down, the others are not",
            "fairlead_gpu_up",
            {**dict.fromkeys(others, 1.0), "2": 0.0},
        )
        for turn in (1, 2, 3):
            state.say({f"{card}.gpu": 20 * turn + card for card in range(8)})
            new = {gpu: 20.0 * turn + int(gpu) for gpu in others}
            wait_until(
                lambda new=new: (
                    f"what the others have now: {new}, is {exporter.values('DCGM_FI_DEV_GPU_UTIL')}"
                ),
                lambda new=new: (
                    {
                        gpu: value
                        for gpu, value in exporter.values("DCGM_FI_DEV_GPU_UTIL").items()
                        if gpu != "2"
                    }
                    == new
                ),
                SECONDS,
                0.02,
            )
            assert exporter.values("fairlead_gpu_up")["2"] == 0
        assert exporter.values("fairlead_exporter_collector_errors_total", error="timeout") == {
            "2": 1
        }, "counted once, asked nothing more"
        assert len(list(tasks.iterdir())) <= allowed, (
            "a thread for each card, and none for each beat"
        )
        exporter.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        assert exporter.process.wait(HANG_SECONDS) == 0
        assert time.monotonic() - began < ENDS_WITHIN
    state.say({"hang.nvmlDeviceGetUtilizationRates.2": None})


POOL = min(32, (os.cpu_count() or 1) + 4)
"""Threads of the event loop, which start when they are needed: they make pages and read files."""


def test_a_stuck_call_is_reported_after_its_time_and_the_card_comes_back(
    library: Path, state: StubState, tmp_path: Path
) -> None:
    busy(state, 2)
    with exporting(library, state, tmp_path, "--call-timeout=1", "--stale-after=2") as exporter:
        exporter.until("all cards answer", "fairlead_gpu_up", {"0": 1, "1": 1})
        state.say({"hang.nvmlDeviceGetUtilizationRates.0": 1})
        exporter.until("it is stuck", "fairlead_gpu_up", {"0": 0, "1": 1})
        exporter.until("one call", "fairlead_exporter_stuck_calls", {"n1": 1}, label="node_name")
        exporter.until(
            "stale values go",
            "fairlead_gpu_memory_used_bytes",
            {"1": exporter.values("fairlead_gpu_memory_used_bytes")["1"]},
        )
        assert exporter.values("fairlead_exporter_collector_errors_total", error="timeout") == {
            "0": 1
        }
        assert exporter.values("fairlead_exporter_nvml_up", "node_name") == {"n1": 1}
        state.say({"hang.nvmlDeviceGetUtilizationRates.0": None})
        exporter.until("it is back", "fairlead_gpu_up", {"0": 1, "1": 1})
        exporter.until("no call", "fairlead_exporter_stuck_calls", {"n1": 0}, label="node_name")


def test_a_lost_card_keeps_its_name_and_an_xid_is_an_alert_that_can_fire(
    exporter: Exporter, state: StubState
) -> None:
    state.report_xid(79, 4)
    state.fail("nvmlDeviceGetUtilizationRates", LOST, 4)
    exporter.until("it is down", "fairlead_gpu_up", {**dict.fromkeys("01234567", 1.0), "4": 0})
    exporter.until(
        "counted from 0",
        "fairlead_gpu_xid_errors_total",
        {**dict.fromkeys("01234567", 0.0), "4": 1},
        xid="79",
    )
    assert exporter.values("fairlead_gpu_healthy")["4"] == 0 and "4" not in exporter.values(
        "DCGM_FI_DEV_FB_FREE"
    )
    assert exporter.values("fairlead_exporter_collector_success", collector="device")["4"] == 0


def test_without_a_driver_the_page_reports_it_and_finds_it_later(
    library: Path, state: StubState, tmp_path: Path
) -> None:
    later = tmp_path / "later.so"
    with exporting(later, state, tmp_path) as exporter:
        assert exporter.values("fairlead_exporter_nvml_up", "node_name") == {"n1": 0}
        assert not [
            each for each in exporter.samples() if each.name.startswith(("fairlead_gpu_", "DCGM_"))
        ]
        shutil.copy(library, later)
        exporter.until("it is found", "fairlead_gpu_up", {"0": 1, "1": 1})
        assert exporter.values("fairlead_exporter_nvml_up", "node_name") == {"n1": 1}


def test_a_load_generator_without_a_card_moves_cards_that_nvml_shows(
    library: Path, state: StubState, tmp_path: Path
) -> None:
    state.show_h200(0)
    state.show_h200(1)
    state.say({f"{card}.{key}": 0 for card in (0, 1) for key in ("gpu", "gpm.1", "gpm.5")})
    folder = tmp_path / "loads"
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "FAIRLEAD_GPU_LOAD_DIR": str(folder)}
    argv = [
        sys.executable,
        "-m",
        "fairlead",
        "gpu-load",
        "--backend=sim",
        "--sim-gpus=2xNVIDIA-H200",
        "--no-dcgm-validation",
    ]
    with exporting(
        library, state, tmp_path, env={"FAIRLEAD_GPU_LOAD_DIR": str(folder)}
    ) as exporter:
        exporter.until("at rest", "DCGM_FI_DEV_GPU_UTIL", {"0": 0.0, "1": 0.0})
        generator = subprocess.Popen(
            [*argv, "-t 1004", "-d 600", "-r 10", "-i 1"],
            stdout=subprocess.DEVNULL,
            env=env,
        )
        try:
            exporter.until("at work", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", {"0": 0.0, "1": 0.87})
            exporter.until("at work", "DCGM_FI_DEV_GPU_UTIL", {"0": 0.0, "1": 98.0})
        finally:
            generator.kill()
            generator.wait(HANG_SECONDS)
        exporter.until(
            "its process is gone", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", {"0": 0.0, "1": 0.0}
        )


def test_a_row_of_links_between_cards_is_on_the_page(
    library: Path, state: StubState, tmp_path: Path
) -> None:
    state.say({"0.peer.1": 0, "1.peer.0": 5})
    rows = tmp_path / "counters.csv"
    rows.write_text("DCGM_EXP_P2P_STATUS, gauge, Links.\n", encoding="utf-8")
    with exporting(library, state, tmp_path, f"--collectors={rows}", "--slow-interval=1s") as made:
        made.until("both ways are reported", "DCGM_EXP_P2P_STATUS", {"0": 0.0, "1": 5.0})
        made.until("in words", "DCGM_EXP_P2P_STATUS", {"1": 5.0}, link_status="NS", peer_gpu="0")
