"""The file with which a load generator without a card sets the profiling fields of simulated cards.

It has lines `key value`, like the state file of the tests' NVML library, which is written in C:
`pid`, `pid_namespace`, `until`, `node`, `gpus` (separated by commas), and one line with a ratio for
each profiling field.
"""

from __future__ import annotations

from math import isfinite

from fairlead.model.devices.gpu_load import TESTED, SimulatedLoad
from fairlead.model.refusal import Refusal


def render_simulated_load(load: SimulatedLoad) -> bytes:
    rows: dict[str, object] = {
        "pid": load.pid,
        "pid_namespace": load.pid_namespace,
        "until": f"{load.until:.3f}",
    }
    if load.node:
        rows["node"] = load.node
    if load.gpus:
        rows["gpus"] = ",".join(load.gpus)
    rows |= {str(field): f"{ratio:.6f}" for field, ratio in sorted(load.parts.items())}
    return "".join(f"{key} {value}\n" for key, value in rows.items()).encode()


def parse_simulated_load(text: bytes) -> SimulatedLoad | Refusal:
    """The load; a Refusal names the first malformed line or the missing key."""
    rows: dict[str, str] = {}
    parts: dict[int, float] = {}
    for line in text.decode("utf-8", "replace").splitlines():
        key, _, value = line.partition(" ")
        if key.isascii() and key.isdigit():
            ratio = _number(value)
            if int(key) not in TESTED or ratio is None or not 0 <= ratio <= 1:
                return Refusal(f"`{line[:80]}` is no ratio from 0 to 1 of a profiling field")
            parts[int(key)] = ratio
        else:
            rows[key] = value
    until, pid = _number(rows.get("until", "")), rows.get("pid", "")
    if until is None or not (pid.isascii() and pid.isdigit()):
        return Refusal("it has no process (`pid`) or no end (`until`)")
    gpus = tuple(gpu for gpu in rows.get("gpus", "").split(",") if gpu)
    return SimulatedLoad(
        int(pid), rows.get("pid_namespace", ""), until, parts, gpus, rows.get("node", "")
    )


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None
