"""Whole numbers in a request or annotation, as Go's `strconv.ParseInt(text, 10, 64)` reads them.

Trap: `str.isdigit()` followed by `int()` fails for `²`, for digits of other scripts that Go
refuses, and for more than 4,300 digits.
"""

from __future__ import annotations

import re
from typing import Final

_WHOLE: Final = re.compile(r"([+-]?)(?:0*+([1-9][0-9]*+)|0++)", re.ASCII)
_DIGITS_MAX: Final = 19
LARGEST: Final = (1 << 63) - 1


class OutOfRange(ValueError):
    """The text is a whole number, and 64 bits do not hold it."""


def parse_whole(text: str) -> int:
    """Raises OutOfRange for a number that 64 bits do not hold, ValueError for what is no number.

    >>> parse_whole("-007"), parse_whole("+5")
    (-7, 5)
    """
    found = _WHOLE.fullmatch(text)
    if found is None:
        raise ValueError(f"`{text[:80]}` is not a whole number")
    sign, digits = found.groups(default="0")
    if len(digits) > _DIGITS_MAX or int(digits) > LARGEST + (sign == "-"):
        raise OutOfRange(f"`{text[:80]}` is not a number of 64 bits")
    return -int(digits) if sign == "-" else int(digits)


def whole_or_none(text: str) -> int | None:
    """The number, or None for a text that is none.

    >>> whole_or_none("3"), whole_or_none("²"), whole_or_none("9" * 5000)
    (3, None, None)
    """
    try:
        return parse_whole(text)
    except ValueError:
        return None
