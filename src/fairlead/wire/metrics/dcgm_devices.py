"""The GPUs that dcgm-exporter's `--devices` names: `f`, `g[:0,2-4]`, `i[:…]` or `g…+i…`.

See docs/spec/telemetry.md#flags-and-environment-variables. `i` names MIG instances: it names
nothing if no card is divided into instances.
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.model.devices.device import DeviceChoice

_PARTS: Final = re.compile(
    r"f|(?P<g>g(?::(?P<cards>[0-9,-]+))?)?(?P<plus>\+)?(?P<i>i(?::(?P<instances>[0-9,-]+))?)?"
)
_RANGE: Final = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")


def parse_devices(text: str) -> DeviceChoice:
    """The chosen GPUs and MIG instances. Raises ValueError for other text.

    >>> parse_devices("f") == parse_devices("g") == DeviceChoice()
    True
    >>> sorted(parse_devices("g:0,2-4").cards)
    [0, 2, 3, 4]
    >>> parse_devices("i:0-1").cards, sorted(parse_devices("i:0-1").instances)
    (frozenset(), [0, 1])
    """
    found = _PARTS.fullmatch(text)
    if found is None or not text or bool(found["plus"]) is not bool(found["g"] and found["i"]):
        raise ValueError(text)
    if text == "f":
        return DeviceChoice()
    cards = _listed(found["cards"]) if found["g"] else frozenset[int]()
    return DeviceChoice(cards, _listed(found["instances"]), bool(found["i"]))


def _listed(text: str | None) -> frozenset[int] | None:
    return (
        None
        if text is None
        else frozenset(index for part in text.split(",") for index in _range(part))
    )


def _range(part: str) -> range:
    found = _RANGE.fullmatch(part)
    if found is None or int(found[2] or found[1]) < int(found[1]):
        raise ValueError(part)
    return range(int(found[1]), int(found[2] or found[1]) + 1)
