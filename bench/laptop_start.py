"""How long it takes from `fairlead up` to the first board, and how much memory the laptop then holds.

    .venv/bin/python bench/laptop_start.py [--scenario default] [--runs 3] [--settle 10] [--kept]

Aims: the default scenario's first board within 5 s; `large` ready within 15 s and 1.5 GiB. Each run is a
process of its own. CPU seconds (all threads) stand beside wall seconds: on a busy machine only they compare.
`--kept`: with a state directory, so that the world is written to disk, too.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from fairlead.console.pages.endpoints import BASE

COMMAND = [sys.executable, "-m", "fairlead", "up"]
PORTS = [word for name in ("", "gpu-exporter-", "cluster-exporter-", "api-") for word in (f"--{name}port", "0")]
PAUSE_SECONDS = 0.05
MIB = 1024
COLUMNS = ("ready s", "ready CPU s", "board s", "board CPU s", "board MiB", "settled MiB", "peak MiB", "then CPU %")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenario", default="default")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--settle",
        type=float,
        default=10.0,
        help="seconds after the first board until `settled MiB` is read; `then CPU %%` is what they used of one core",
    )
    parser.add_argument("--kept", action="store_true", help="with a state directory")
    parser.add_argument("--log", type=Path, help="where the laptop's stderr goes")
    args = parser.parse_args()
    rows = []
    for _ in range(args.runs):
        rows.append(measure(args))
        print("   ".join(f"{name} {value:.1f}" for name, value in zip(COLUMNS, rows[-1], strict=True)), flush=True)
    best = [min(column) for column in zip(*rows, strict=True)]
    print(f"\nscenario {args.scenario}, best of {args.runs}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("".join(f"{name:>14}" for name in COLUMNS))
    print("".join(f"{value:>14.1f}" for value in best))


def measure(args: argparse.Namespace) -> tuple[float, ...]:
    """One life of a laptop, as the values of `COLUMNS`."""
    with tempfile.TemporaryDirectory(prefix="fairlead-bench-") as directory:
        ready = Path(directory, "ready.json")
        command = [*COMMAND, "--scenario", args.scenario, "--ready-file", str(ready), *PORTS]
        command += ["--state-dir", directory] if args.kept else []
        environment = {**os.environ, "XDG_STATE_HOME": directory}
        with (args.log or Path(os.devnull)).open("ab") as stderr:
            started = time.perf_counter()
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=stderr, env=environment)
            try:
                while not ready.exists():
                    if process.poll() is not None:
                        raise SystemExit(f"the laptop ended with status {process.returncode} before it was ready")
                    time.sleep(PAUSE_SECONDS)
                at_ready = (time.perf_counter() - started, cpu_seconds(process.pid))
                console = json.loads(ready.read_text())["console"].rstrip("/")
                with urllib.request.urlopen(f"{console}{BASE}/nodes", timeout=120) as answer:
                    assert json.load(answer)["total"], "the board is empty"
                at_board = (time.perf_counter() - started, cpu_seconds(process.pid), memory(process.pid, "VmRSS"))
                time.sleep(args.settle)
                busy = (cpu_seconds(process.pid) - at_board[1]) / max(args.settle, 0.01)
                return (*at_ready, *at_board, memory(process.pid, "VmRSS"), memory(process.pid, "VmHWM"), busy * 100)
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(30)


def cpu_seconds(pid: int) -> float:
    """User and system seconds of a process, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int, field: str) -> float:
    """`VmRSS` or `VmHWM` in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / MIB for line in lines if line.startswith(field))


if __name__ == "__main__":
    main()
