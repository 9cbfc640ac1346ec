"""Durations in Go's format: `10s`, `1m30s`, `500ms`, `1.5h`; Go has no unit for days."""

from __future__ import annotations

import re
from typing import Final

_UNITS: Final = {
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "μs": 1e-6,
    "ns": 1e-9,
}
_PART: Final = re.compile(r"(\d++\.?\d*+|\.\d++)(ms|us|µs|μs|ns|h|m|s)", re.ASCII)
_SECONDS_MAX: Final = (2**63 - 1) / 1e9
"""The largest duration in Go, 63 bits of nanoseconds: 292 years."""


def parse_go_duration(text: str) -> float:
    """Seconds, not negative. Raises ValueError for other text.

    >>> parse_go_duration("1m30s"), parse_go_duration("500ms"), parse_go_duration("0")
    (90.0, 0.5, 0.0)
    """
    if text == "0":
        return 0.0
    parts, end = [], 0
    while found := _PART.match(text, end):
        parts.append(float(found[1]) * _UNITS[found[2]])
        end = found.end()
    if not parts or end != len(text) or sum(parts) > _SECONDS_MAX:
        raise ValueError(f"`{text}` is not a length of time such as `10s`, `500ms`, `1m30s`")
    return sum(parts)
