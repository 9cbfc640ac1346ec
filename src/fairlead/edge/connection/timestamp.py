"""Parses and renders RFC 3339 times, and compares a server's `Date` with this machine's clock.

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


def parse_http_date(text: str) -> float | None:
    """Epoch seconds of the header `Date`; None for other text."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp()
    except ValueError:
        return None


def clock_offset(date: str | None, asked_at: float, seconds: float) -> float | None:
    """How far a server's `Date` is outside the interval in which it was written; 0 within it.

    HTTP has whole seconds, cut off: 12:00:00 may mean 12:00:00.999.

    >>> date = "Thu, 01 Jan 1970 00:01:40 GMT"
    >>> [clock_offset(date, asked_at, 0.5) for asked_at in (90.0, 100.2, 105.0)]
    [9.5, 0.0, -4.0]
    >>> clock_offset("soon", 0.0, 0.0)
    """
    read = parse_http_date(date or "")
    if read is None:
        return None
    return max(0.0, read - (asked_at + seconds)) or min(0.0, read + 1.0 - asked_at)
