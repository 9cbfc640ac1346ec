"""Lengths of time as kubectl prints them.

Two units at most, and fewer the longer it is: `95s`, `3m20s`, `47m`, `5h10m`, `3d4h`, `412d`,
`3y20d`.
"""

from __future__ import annotations

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY


def render_duration(seconds: float) -> str:
    """The words of `duration.HumanDuration`.

    Up to two seconds in the future count as now, more is `<invalid>`.

    >>> [render_duration(s) for s in (119, 120, 135, 700, 8 * 3600 - 60)]
    ['119s', '2m', '2m15s', '11m', '7h59m']
    >>> [render_duration(s) for s in (30 * 3600, 50 * 3600, 9 * 86400, 1000 * 86400)]
    ['30h', '2d2h', '9d', '2y270d']
    """
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    whole = max(0, whole)
    for end, large, large_unit, small, small_unit in _SHAPES:
        if whole < end:
            rest = whole % large // small if small else 0
            return f"{whole // large}{large_unit}" + (f"{rest}{small_unit}" if rest else "")
    return f"{whole // _YEAR}y"


# Up to which length: the larger unit, and the smaller one where it is printed.
_SHAPES = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)
