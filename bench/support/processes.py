"""What a process costs: wall time, CPU time and memory."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

MIB = 1024
BYTECODE = Path(__file__).resolve().parents[2] / "build" / "bench-bytecode"
"""The image and pip compile all modules once. A checkout may not, and then each start compiles."""


class Cost(NamedTuple):
    """`mib` is the peak, as /proc last reported it (read every few milliseconds): the value of
    `wait4` includes the memory of the process that started it.

    On a busy machine CPU seconds are the ones to trust: wall time counts what others do, too.
    """

    wall: float
    cpu: float
    mib: float


def run(
    command: Sequence[str], env: Mapping[str, str] | None = None, statuses: Sequence[int] = (0,)
) -> Cost:
    """Its exit status must be one of `statuses`. Python keeps bytecode, as in an installation."""
    own = {**(os.environ if env is None else env), "PYTHONPYCACHEPREFIX": str(BYTECODE)}
    own.pop("PYTHONDONTWRITEBYTECODE", None)
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=own)
    assert process.stderr is not None
    peak = [0.0]
    watching = threading.Thread(target=_watch_peak, args=(process.pid, peak))
    watching.start()
    errors = process.stderr.read()
    watching.join()
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - started
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in statuses, (command, errors.decode())
    return Cost(wall, used.ru_utime + used.ru_stime, peak[0])


def _watch_peak(pid: int, peak: list[float]) -> None:
    """Until it is gone, or has given its memory back."""
    while True:
        try:
            text = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return
        found = re.search(r"VmHWM:\s+(\d+) kB", text)
        if found is None:
            return
        peak[0] = max(peak[0], int(found[1]) / 1024)
        time.sleep(0.003)


def alternating(
    commands: Mapping[str, Sequence[str]],
    runs: int,
    env: Mapping[str, Mapping[str, str]] | None = None,
) -> dict[str, Cost]:
    """The median of each; one round of all comes first and is not counted.

    `env` by command, else this process's.
    """
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for number in range(runs + 1):
        for name, command in commands.items():
            cost = run(command, (env or {}).get(name))
            if number:
                costs[name].append(cost)
    return {
        name: Cost(*(statistics.median(column) for column in zip(*rows, strict=True)))
        for name, rows in costs.items()
    }


def print_costs(costs: Mapping[str, Cost], against: Sequence[str], runs: int) -> None:
    """A table; the ratios are of wall and CPU time to each of `against`."""
    print(f"\nmedian of {runs} alternating runs; load {os.getloadavg()[0]:.1f}")
    print(
        f"{'command':44}{'wall s':>8}{'CPU s':>8}{'MiB':>6}"
        + "".join(f"{'x ' + name:>30}" for name in against)
    )
    for name, cost in costs.items():
        ratios = (
            f"{cost.wall / costs[base].wall:.2f} wall {cost.cpu / costs[base].cpu:.2f} CPU"
            for base in against
        )
        print(
            f"{name:44}{cost.wall:>8.2f}{cost.cpu:>8.2f}{cost.mib:>6.0f}"
            + "".join(f"{ratio:>30}" for ratio in ratios)
        )


def cpu_seconds(pid: int) -> float:
    """User and system seconds of a process, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory(pid: int, field: str) -> float:
    """`VmRSS`, `RssFile` or `VmHWM` in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / MIB for line in lines if line.startswith(field))
