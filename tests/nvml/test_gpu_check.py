"""`make gpu-check` on the played driver: values that agree, values that differ, skipped checks, and
a lost card.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pynvml
import pytest
from tests.nvml.stub import MIB, StubState

pytestmark = pytest.mark.turns(2, 1)

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "gpu_check.py"
PLAYED = ("1001", "1004")
"""Tests of the load generator whose load the played driver shows."""
SMI: Mapping[str, str] = {
    "memory.total": "143771",
    "memory.used": "40000",
    "memory.free": "103150",
    "memory.reserved": "621",
    "utilization.gpu": "0",
    "utilization.memory": "12",
    "power.draw": "350.12",
    "enforced.power.limit": "601.00",
    "temperature.gpu": "51",
    "clocks.sm": "1980",
    "clocks.mem": "3201",
    "ecc.errors.corrected.volatile.total": "3",
    "ecc.errors.uncorrected.volatile.total": "4",
    "pcie.link.gen.current": "5",
    "pcie.link.width.current": "16",
    "pcie.link.gen.max": "6",
    "pcie.link.width.max": "[N/A]",
}


@pytest.fixture
def cards(state: StubState) -> StubState:
    """Two cards at rest."""
    for card in (0, 1):
        state.show_h200(card)
        rest = dict.fromkeys(("gpu", *(f"gpm.{metric}" for metric in range(1, 104))), 0)
        state.say(
            {
                f"{card}.{key}": value
                for key, value in (rest | {"energy": 83, "fv.83": "3:83"}).items()
            }
        )
    return state


def play_smi(folder: Path, answers: Mapping[str, str]) -> None:
    """An `nvidia-smi` that answers the queries in their order for two cards."""
    program = folder / "nvidia-smi"
    program.write_text(
        f"""#!{sys.executable}
import sys
answers = {dict(answers)!r}
asked = sys.argv[1].removeprefix("--query-gpu=").split(",")
assert sys.argv[2:] == ["--format=csv,noheader,nounits"], sys.argv
for card in range(2):
    print(", ".join((answers | {{"index": str(card)}})[query] for query in asked))
"""
    )
    program.chmod(0o755)


def play_cupy(folder: Path, more_mib: int) -> None:
    """A cupy for both cards: while its arrays exist, the played driver's memory in use is larger by
    this much.
    """
    (folder / "cupy.py").write_text(
        f"""import os, pathlib, types
on = [0]
def device(card):
    on[0] = card
    return __import__("contextlib").nullcontext()
def zeros(size, dtype):
    path = pathlib.Path(os.environ["STUB_NVML"], "state")
    rows = dict(line.split(" ", 1) for line in path.read_text().splitlines() if " " in line)
    rows[f"{{on[0]}}.used"] = str((40000 + {more_mib}) << 20)
    rows[f"{{on[0]}}.compute"] = f"{{os.getpid()}}:{{{more_mib} << 20}}"
    new = path.with_name("state.held")
    new.write_text("".join(f"{{key}} {{value}}\\n" for key, value in rows.items()) + "end\\n")
    new.replace(path)
    return path
sizes = dict(maxThreadsPerMultiProcessor=1, multiProcessorCount=1, sharedMemPerMultiprocessor=1)
runtime = types.SimpleNamespace(
    getDeviceCount=lambda: 2,
    getDeviceProperties=lambda card: dict(name="H200", major=9, minor=0, uuid=b"", **sizes),
    deviceGetAttribute=lambda attribute, card: 1,
    deviceCanAccessPeer=lambda card, other: 0,
)
stream = types.SimpleNamespace(synchronize=lambda: None)
cuda = types.SimpleNamespace(Device=device, runtime=runtime, get_current_stream=lambda: stream)
"""
    )


def check(
    library: Path, tmp_path: Path, *flags: str
) -> tuple[int, dict[tuple[str, str, str], dict[str, Any]], str]:
    """The exit status, the rows by check, card and subject, and the output."""
    report = tmp_path / "report.json"
    argv = [
        sys.executable,
        str(TOOL),
        f"--nvml-library={library}",
        f"--report={report}",
        "--load-backend=sim",
        "--sim-gpus=2xNVIDIA-H200",
        *flags,
    ]
    env = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(tmp_path),
        "FAIRLEAD_GPU_LOAD_DIR": str(tmp_path / "loads"),
    }
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300, check=False)
    rows = json.loads(report.read_text())["rows"] if report.exists() else []
    return (
        done.returncode,
        {(row["check"], row["card"], row["subject"]): row for row in rows},
        done.stdout + done.stderr,
    )


def test_cards_that_agree_pass_and_each_load_moves_its_field(
    library: Path, cards: StubState, tmp_path: Path
) -> None:
    play_smi(tmp_path, SMI)
    status, rows, printed = check(
        library, tmp_path, f"--loads={','.join(PLAYED)}", "--load-seconds=4"
    )
    assert status == 0, printed
    assert not [row for row in rows.values() if row["result"] == "differs"]
    assert {
        row["found"]
        for (name, _, subject), row in rows.items()
        if name == "agent" and subject == "cards"
    } == {"[0, 1]"}
    tensor = rows["load", "1", "1004 DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"]
    assert (tensor["result"], tensor["found"]) == ("ok", "0 to 0.87")
    assert (
        rows["nvidia-smi", "0", "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH (pcie.link.width.max)"]["result"]
        == "skipped"
    )
    assert rows["nvml", "0", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION (mJ)"]["result"] == "ok"
    guard = rows["guard", "", "all checks"]
    assert guard["result"] == "skipped", guard


def test_a_value_that_differs_and_a_load_that_moves_nothing_fail(
    library: Path, cards: StubState, tmp_path: Path
) -> None:
    """The driver plays nothing of PCIe under load, and one of nvidia-smi's numbers is different."""
    play_smi(tmp_path, {**SMI, "memory.reserved": "700"})
    status, rows, printed = check(library, tmp_path, "--loads=1009", "--load-seconds=2")
    assert status == 1
    assert {
        subject
        for (_, card, subject), row in rows.items()
        if row["result"] == "differs" and card == "0"
    } == {
        "DCGM_FI_DEV_FB_RESERVED (memory.reserved)",
        "1009 DCGM_FI_PROF_PCIE_TX_BYTES",
    }, printed
    reserved = rows["nvidia-smi", "0", "DCGM_FI_DEV_FB_RESERVED (memory.reserved)"]
    assert (reserved["wanted"], reserved["found"]) == ("700", f"{621 * MIB / MIB:g}")


def test_without_a_driver_or_nvidia_smi_it_names_what_is_skipped(
    library: Path, cards: StubState, tmp_path: Path
) -> None:
    status, rows, printed = check(tmp_path / "nothing.so", tmp_path)
    assert (status, rows) == (0, {}) and "has no NVIDIA driver" in printed
    status, rows, printed = check(library, tmp_path, "--loads=none")
    assert status == 0, printed
    assert rows["nvidia-smi", "", "all fields"]["result"] == "skipped"


def test_a_load_that_is_none_is_refused(library: Path, cards: StubState, tmp_path: Path) -> None:
    status, rows, printed = check(library, tmp_path, "--loads=1004,7")
    assert (status, rows) == (1, {})
    assert "`7` is no test of the load generator" in printed and "1001 to 1012" in printed


def test_memory_is_compared_while_a_process_holds_some(
    library: Path, cards: StubState, tmp_path: Path
) -> None:
    """The page has the process with its memory, and nvidia-smi's rows were read while it held the
    memory.
    """
    play_cupy(tmp_path, more_mib=1200)
    play_smi(tmp_path, {**SMI, "memory.used": "41200", "memory.free": "101950"})
    status, rows, printed = check(library, tmp_path, "--loads=none")
    assert status == 0, printed
    for card in ("0", "1"):
        held = rows["memory", card, "DCGM_FI_DEV_FB_USED with 1024 MiB held"]
        assert (held["result"], held["found"]) == ("ok", "40000 to 41200")
        process = rows[
            "memory", card, "fairlead_process_gpu_memory_used_bytes (MiB of one process)"
        ]
        assert (process["result"], process["wanted"], process["found"]) == ("ok", "1200", "1200")
        smi = rows["nvidia-smi", card, "DCGM_FI_DEV_FB_USED (memory.used)"]
        assert (smi["result"], smi["found"]) == ("ok", "41200")


def test_held_memory_that_the_page_does_not_show_fails(
    library: Path, cards: StubState, tmp_path: Path
) -> None:
    """The array library reports that it holds memory, and the driver shows less than that."""
    play_cupy(tmp_path, more_mib=900)
    status, rows, printed = check(library, tmp_path, "--loads=none")
    assert status == 1, printed
    held = rows["memory", "0", "DCGM_FI_DEV_FB_USED with 1024 MiB held"]
    assert (held["result"], held["found"]) == ("differs", "40000 to 40900")


def test_without_an_array_library_held_memory_is_skipped(
    library: Path, cards: StubState, tmp_path: Path
) -> None:
    _, rows, printed = check(library, tmp_path, "--loads=none")
    row = rows["memory", "", "1024 MiB held"]
    assert row["result"] == "skipped" and "is not installed" in row["note"], printed


def test_a_card_that_is_lost_is_a_row_with_the_reason_and_the_other_is_compared(
    library: Path, cards: StubState, tmp_path: Path
) -> None:
    cards.fail("nvmlDeviceGetHandleByIndex_v2", pynvml.NVML_ERROR_GPU_IS_LOST, 1)
    play_smi(tmp_path, SMI)
    status, rows, printed = check(library, tmp_path, "--loads=1001", "--load-seconds=2")
    assert status == 1, printed
    lost = rows["exporter", "1", "fairlead_gpu_up"]
    assert (lost["result"], lost["wanted"], lost["found"]) == ("differs", "1", "0")
    assert "lost" in lost["note"].lower(), lost
    assert rows["exporter", "0", "fairlead_gpu_up"]["result"] == "ok"
    assert rows["load", "0", "1001 DCGM_FI_PROF_GR_ENGINE_ACTIVE"]["result"] == "ok", printed


def test_a_card_without_values_is_a_row_with_the_exporters_reason(
    library: Path, cards: StubState, tmp_path: Path
) -> None:
    """NVML returns the card's identity, and no other value of it: the exporter counts the error."""
    cards.fail("nvmlDeviceGetTemperature", pynvml.NVML_ERROR_GPU_IS_LOST, 1)
    status, rows, printed = check(library, tmp_path, "--loads=none", "--start-seconds=2")
    row = rows["exporter", "1", "fairlead_gpu_up"]
    assert (status, row["result"], row["found"]) == (1, "differs", "0"), printed
    assert row["note"].startswith("device: "), row


def test_a_load_waits_for_cards_at_rest_and_names_a_field_that_is_not(
    library: Path, cards: StubState, tmp_path: Path
) -> None:
    """Another program keeps a card busy: the field that it changes is not counted as the load's."""
    cards.say({"0.gpm.1": 60})
    _, rows, printed = check(
        library, tmp_path, "--loads=1004", "--load-seconds=2", "--rest-seconds=1"
    )
    load = rows["load", "0", "1004 DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"]
    assert load["result"] == "ok" and load["note"].endswith("; before it: GR_ENGINE_ACTIVE 0.6"), (
        printed
    )
