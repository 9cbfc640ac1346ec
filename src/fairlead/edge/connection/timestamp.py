"""Parses and renders RFC 3339 times.

`datetime` is imported when a time is parsed, because most commands parse none.
"""

from __future__ import annotations


def parse_rfc3339(text: str) -> float:
    """Epoch seconds; raises ValueError for other text, including a time without a zone.

    >>> parse_rfc3339("1970-01-01T00:01:00Z"), parse_rfc3339("1970-01-01T01:00:00.5+01:00")
    (60.0, 0.5)
    """
    from datetime import datetime

    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None or len(text) < len("1970-01-01T00:00:00Z"):
        raise ValueError(f"`{text}` has no time zone")
    return moment.timestamp()


def render_rfc3339(at: float) -> str:
    """
    >>> render_rfc3339(60.0)
    '1970-01-01T00:01:00Z'
    """
    import time

    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
