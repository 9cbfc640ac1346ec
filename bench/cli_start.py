"""How soon a command answers: `arena version` and help against `kubectl version --client`.

    .venv/bin/python bench/cli_start.py [--runs 21] [--kubectl PATH]

Each in fresh processes. Runs alternate, so that a busy machine is busy for both; medians are compared.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

AIM_MILLISECONDS, AIM_RATIO = 100, 1.5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=21)
    parser.add_argument("--kubectl", default=default_kubectl())
    arguments = parser.parse_args()
    here = Path(sys.executable).parent
    commands = {
        "kubectl version --client": [arguments.kubectl, "version", "--client"],
        "arena version": [str(here / "arena"), "version"],
        "arena --help": [str(here / "arena"), "--help"],
        "fairlead --help": [str(here / "fairlead"), "--help"],
        "fairlead up --help": [str(here / "fairlead"), "up", "--help"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    medians = measure(commands, arguments.runs)
    base = medians["kubectl version --client"]
    print(f"\nmedian of {arguments.runs} alternating runs; kubectl: {arguments.kubectl}")
    print(f"{'command':28}{'ms':>8}{'x kubectl':>12}")
    for name, seconds in medians.items():
        print(f"{name:28}{seconds * 1000:>8.0f}{seconds / base:>12.2f}")
    ours = medians["arena version"]
    print(f"\naim: `arena version` <= {AIM_MILLISECONDS} ms and <= {AIM_RATIO} x kubectl: {ours * 1000:.0f} ms, {ours / base:.2f} x")


def measure(commands: dict[str, list[str]], runs: int) -> dict[str, float]:
    """Median seconds per command; one round of each first, unmeasured, to warm the page cache."""
    seconds: dict[str, list[float]] = {name: [] for name in commands}
    for number in range(runs + 1):
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if number:
                seconds[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in seconds.items()}


def default_kubectl() -> str:
    """The one that tests build, else the machine's."""
    built = sorted(Path("~/.cache/fairlead/bin").expanduser().glob("kubectl-*"))
    return str(built[-1]) if built else shutil.which("kubectl") or "kubectl"


if __name__ == "__main__":
    main()
