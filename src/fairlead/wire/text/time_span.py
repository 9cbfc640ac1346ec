"""Durations such as `90s`, `20m`, `1h30m`, `2d`, in scenarios and on the command line."""

from __future__ import annotations

import re

_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")


def parse_span(text: str) -> float:
    """Seconds. Raises ValueError for other text; units must be in order, the largest first.

    >>> parse_span("1h30m"), parse_span("2d")
    (5400, 172800)
    """
    match = _SPAN.fullmatch(text)
    if not match or not text or not text.isascii():
        raise ValueError(f"`{text}` is not a length of time such as `90s`, `20m`, `1h30m`")
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
