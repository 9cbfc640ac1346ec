"""Cells of tables, spelt as arena does: lengths of time, moments in local time, counts, sizes."""

from __future__ import annotations

import time
from typing import Final

NOTHING: Final = "N/A"
_GIB: Final = 1 << 30


def short_duration(seconds: float) -> str:
    """One unit. One second in the future is now, more is `<invalid>`.

    >>> [short_duration(each) for each in (-2, -1, 59.9, 60, 3599, 86399, 86400 * 364, 86400 * 730)]
    ['<invalid>', '0s', '59s', '1m', '59m', '23h', '364d', '2y']
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    for size, unit in ((365 * 86400, "y"), (86400, "d"), (3600, "h"), (60, "m")):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{max(0, whole)}s"


def local_time(at: float | None) -> str:
    """`2006-01-02 15:04:05`; "" for None."""
    return "" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def count(gpus: float) -> str:
    """An integer when whole, else one decimal.

    >>> count(2), count(2.0), count(0.8)
    ('2', '2', '0.8')
    """
    return str(int(gpus)) if gpus == int(gpus) else f"{gpus:.1f}"


def gib(amount: float) -> str:
    """Bytes as GiB with one decimal.

    >>> gib(15079 << 20)
    '14.7'
    """
    return f"{amount / _GIB:.1f}"
