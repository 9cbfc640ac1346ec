"""The limits file: what a container may use of its cards, for the memory guard in it.

Specification: docs/spec/gpu-sharing.md#limits-file-and-region.

It is text with one line per card. The guard allows no allocation when it cannot read a line, so
this parser accepts nothing that native/guard/limits.c refuses.
"""

from __future__ import annotations

import re
from typing import Final

from fairlead.model.devices.kubelet import CardLimit, ContainerLimits
from fairlead.model.refusal import Refusal

_MIB: Final = 1024 * 1024
_NUMBER: Final = r"(0|[1-9]\d{0,17})"
"""A number without leading zeros, which some parsers would read as octal."""
_MOST_CARDS: Final = 32
_MOST_UUID_BYTES: Final = 63
_MOST_PATH_BYTES: Final = 255
_REGION: Final = re.compile(r"region (/[^\x00-\x1f\x7f]*)")
_CARD: Final = re.compile(
    (
        rf"gpu (GPU-[^\x00-\x20\x7f]+) limit_bytes {_NUMBER} core_percent "
        rf"{_NUMBER} context_bytes {_NUMBER}"
    ),
    re.ASCII,
)
_VERSION: Final = "version 1"
_VIEW: Final = "view"


def render_limits(limits: ContainerLimits) -> bytes:
    r"""The text of the file.

    >>> render_limits(ContainerLimits((CardLimit("GPU-a", 4301),), "/r")).decode().split("\n")[1]
    'gpu GPU-a limit_bytes 4509925376 core_percent 0 context_bytes 0'
    """
    view = [_VIEW] if limits.is_view_only else []
    lines = [_VERSION, *view, *map(_card_line, limits.cards), f"region {limits.region}"]
    return ("\n".join(lines) + "\n").encode()


def parse_limits(text: bytes) -> ContainerLimits | Refusal:
    """The limits; a Refusal names the first unexpected line."""
    try:
        lines = text.decode().split("\n")
    except UnicodeError:
        return Refusal("the limits file is no text")
    if lines.pop():
        return Refusal("the limits file ends within a line")
    if not lines:
        return Refusal("the limits file is empty")
    if lines[0] != _VERSION:
        return Refusal(f"the limits file begins with `{lines[0]}`, not with `{_VERSION}`")
    cards: list[CardLimit] = []
    region, is_view_only = "", False
    for number, line in enumerate(lines[1:], 2):
        card, path = _parse_card(line), _parse_region(line)
        is_new = card is not None and all(card.uuid != other.uuid for other in cards)
        if card is not None and is_new and len(cards) < _MOST_CARDS:
            cards.append(card)
        elif path and not region:
            region = path
        elif line == _VIEW and not is_view_only:
            is_view_only = True
        else:
            return Refusal(f"line {number} of the limits file is not understood: `{line}`")
    return (
        ContainerLimits(tuple(cards), region, is_view_only)
        if region
        else Refusal("the limits file names no region")
    )


def _parse_card(line: str) -> CardLimit | None:
    """The limit of one card. Fairlead writes whole MiB; the guard accepts other numbers as well."""
    match = _CARD.fullmatch(line)
    if match is None or int(match[2]) % _MIB or int(match[3]) > 100 or int(match[4]) % _MIB:
        return None
    if len(match[1].encode()) > _MOST_UUID_BYTES:
        return None
    return CardLimit(match[1], int(match[2]) // _MIB, int(match[3]), int(match[4]) // _MIB)


def _parse_region(line: str) -> str:
    match = _REGION.fullmatch(line)
    return match[1] if match and len(match[1].encode()) <= _MOST_PATH_BYTES else ""


def _card_line(card: CardLimit) -> str:
    bounds = f"limit_bytes {card.memory_mib * _MIB} core_percent {card.core_percent}"
    return f"gpu {card.uuid} {bounds} context_bytes {card.context_mib * _MIB}"
