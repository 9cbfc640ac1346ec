"""`make gpu-check` on the played driver: what agrees, what differs, and what is skipped."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.nvml.stub import MIB, StubState

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "gpu_check.py"
PLAYED = ("1001", "1004")
"""Of the tests of the load generator that the played driver shows."""
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
        state.say({f"{card}.{key}": value for key, value in (rest | {"energy": 83, "fv.83": "3:83"}).items()})
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
for _ in range(2):
    print(", ".join(answers[query] for query in asked))
"""
    )
    program.chmod(0o755)


def check(library: Path, tmp_path: Path, *flags: str) -> tuple[int, dict[tuple[str, str, str], dict[str, Any]], str]:
    """The status, the rows by check, card and subject, and what was printed."""
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
        "FAIRLEAD_GPU_LOAD_DIR": str(tmp_path / "loads"),
    }
    done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=300, check=False)
    rows = json.loads(report.read_text())["rows"] if report.exists() else []
    return done.returncode, {(row["check"], row["card"], row["subject"]): row for row in rows}, done.stdout + done.stderr


def test_cards_that_agree_pass_and_each_load_moves_its_field(library: Path, cards: StubState, tmp_path: Path) -> None:
    play_smi(tmp_path, SMI)
    status, rows, printed = check(library, tmp_path, f"--loads={','.join(PLAYED)}", "--load-seconds=4")
    assert status == 0, printed
    assert not [row for row in rows.values() if row["result"] == "differs"]
    assert {row["found"] for (name, _, subject), row in rows.items() if name == "agent" and subject == "cards"} == {"[0, 1]"}
    tensor = rows["load", "1", "1004 DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"]
    assert (tensor["result"], tensor["found"]) == ("ok", "0 to 0.87")
    assert rows["nvidia-smi", "0", "DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH (pcie.link.width.max)"]["result"] == "skipped"
    assert rows["nvml", "0", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION (mJ)"]["result"] == "ok"


def test_a_value_that_differs_and_a_load_that_moves_nothing_fail(library: Path, cards: StubState, tmp_path: Path) -> None:
    """The driver plays nothing of PCIe under load, and one of nvidia-smi's numbers is another."""
    play_smi(tmp_path, {**SMI, "memory.reserved": "700"})
    status, rows, printed = check(library, tmp_path, "--loads=1009", "--load-seconds=2")
    assert status == 1
    assert {subject for (_, card, subject), row in rows.items() if row["result"] == "differs" and card == "0"} == {
        "DCGM_FI_DEV_FB_RESERVED (memory.reserved)",
        "1009 DCGM_FI_PROF_PCIE_TX_BYTES",
    }, printed
    reserved = rows["nvidia-smi", "0", "DCGM_FI_DEV_FB_RESERVED (memory.reserved)"]
    assert (reserved["wanted"], reserved["found"]) == ("700", f"{621 * MIB / MIB:g}")


def test_without_a_driver_or_nvidia_smi_it_says_what_is_skipped(library: Path, cards: StubState, tmp_path: Path) -> None:
    status, rows, printed = check(tmp_path / "nothing.so", tmp_path)
    assert (status, rows) == (0, {}) and "has no NVIDIA driver" in printed
    status, rows, printed = check(library, tmp_path, "--loads=none")
    assert status == 0, printed
    assert rows["nvidia-smi", "", "all fields"]["result"] == "skipped"


def test_a_load_that_is_none_is_refused(library: Path, cards: StubState, tmp_path: Path) -> None:
    status, rows, printed = check(library, tmp_path, "--loads=1004,7")
    assert (status, rows) == (1, {})
    assert "`7` is no test of the load generator" in printed and "1001 to 1012" in printed
