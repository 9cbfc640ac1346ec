"""The file in which a load generator without a card tells simulated ones what to show.

Lines `key value`, as the state of the tests' NVML library has them, so that C reads it in a few
lines: `pid`, `pid_namespace`, `until`, `node`, `gpus` (by comma), and a line per profiling field
with its ratio.
"""

from __future__ import annotations

from math import isfinite

from fairlead.model.devices.gpu_load import TESTED, SimulatedLoad
from fairlead.model.refusal import Refusal


def render_simulated_load(told: SimulatedLoad) -> bytes:
    rows: dict[str, object] = {"pid": told.pid, "pid_namespace": told.pid_namespace, "until": f"{told.until:.3f}"}
    if told.node:
        rows["node"] = told.node
    if told.gpus:
        rows["gpus"] = ",".join(told.gpus)
    rows |= {str(field): f"{ratio:.6f}" for field, ratio in sorted(told.parts.items())}
    return "".join(f"{key} {value}\n" for key, value in rows.items()).encode()


def parse_simulated_load(text: bytes) -> SimulatedLoad | Refusal:
    """A refusal says which line cannot be believed."""
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
        return Refusal("it does not say whose load it is (`pid`) and until when (`until`)")
    gpus = tuple(gpu for gpu in rows.get("gpus", "").split(",") if gpu)
    return SimulatedLoad(int(pid), rows.get("pid_namespace", ""), until, parts, gpus, rows.get("node", ""))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None
