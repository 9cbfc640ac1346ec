"""Lengths of time as kubectl prints them.

Two units at most, and fewer the longer it is: `95s`, `3m20s`, `47m`, `5h10m`, `3d4h`, `412d`, `3y20d`.
"""

from __future__ import annotations

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY


def render_duration(seconds: float) -> str:
    """The words of `duration.HumanDuration`. Up to two seconds in the future count as now, more is
    `<invalid>`.

    >>> [render_duration(s) for s in (119, 120, 135, 700, 8 * 3600 - 60, 30 * 3600, 50 * 3600, 9 * 86400, 1000 * 86400)]
    ['119s', '2m', '2m15s', '11m', '7h59m', '30h', '2d2h', '9d', '2y270d']
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(0, whole)
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole, _MINUTE, "m", 1, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole, _HOUR, "h", _MINUTE, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole, _DAY, "d", _HOUR, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole, _YEAR, "y", _DAY, "d")
    return f"{whole // _YEAR}y"


def _two(seconds: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = seconds % large // small
    return f"{seconds // large}{large_unit}" + (f"{rest}{small_unit}" if rest else "")
