"""The GPUs that dcgm-exporter's `--devices` names: `f`, `g[:0,2-4]`, `i[:…]` or `g…+i…`.

Telemetry contract 1.2. `i` names MIG instances: where no card is divided into instances, it names nothing.
"""

from __future__ import annotations

import re
from typing import Final

_PARTS: Final = re.compile(r"f|g(?::(?P<g>[0-9,-]+))?|i(?::[0-9,-]+)?|g(?::(?P<both>[0-9,-]+))?\+i(?::[0-9,-]+)?")
_RANGE: Final = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")


def parse_devices(text: str) -> frozenset[int] | None:
    """Indexes of the cards, None = all. Raises ValueError for anything else.

    >>> sorted(parse_devices("g:0,2-4")), parse_devices("f"), parse_devices("g+i"), parse_devices("i:0")
    ([0, 2, 3, 4], None, None, frozenset())
    """
    found = _PARTS.fullmatch(text)
    if found is None:
        raise ValueError(text)
    if text.startswith("i"):
        return frozenset()
    listed = found["g"] or found["both"]
    return None if listed is None else frozenset(index for part in listed.split(",") for index in _range(part))


def _range(part: str) -> range:
    found = _RANGE.fullmatch(part)
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise ValueError(part)
    return range(int(found[1]), int(found[2] or found[1]) + 1)
