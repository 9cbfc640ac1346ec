"""Money: exact fractions until it is shown, then whole micro-units that add up.

Specification: docs/spec/usage.md#cost.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from math import floor
from typing import Final

from fairlead.errors import UserError

MICRO: Final = 1_000_000
_PLACES: Final = 6
_AMOUNT: Final = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,6})?", re.ASCII)


def parse_money(text: str) -> int:
    """Micro-units of a decimal amount. Raises UserError.

    >>> parse_money("12.5"), parse_money("-0.000001")
    (12500000, -1)
    """
    if not _AMOUNT.fullmatch(text):
        raise UserError(
            f"`{text[:40]}` is no amount of money",
            "write it as 12.5: digits, a point, at most six places, and no currency",
        )
    whole, _, part = text.lstrip("-").partition(".")
    amount = int(whole) * MICRO + int(part.ljust(_PLACES, "0"))
    return -amount if text.startswith("-") else amount


def render_money(micro: int) -> str:
    """The decimal amount of micro-units.

    >>> render_money(12_500_000), render_money(-1)
    ('12.500000', '-0.000001')
    """
    whole, part = divmod(abs(micro), MICRO)
    return f"{'-' if micro < 0 else ''}{whole}.{part:06d}"


def rounded(amount: Fraction) -> int:
    """The nearest whole number; halves up.

    >>> rounded(Fraction(5, 2)), rounded(Fraction(7, 3))
    (3, 2)
    """
    return floor(amount + Fraction(1, 2))


def apportioned(amounts: Sequence[Fraction]) -> list[int]:
    """The amounts as whole numbers that add up to the rounded total, by largest remainders.

    Ties: the order of the amounts.

    >>> third = Fraction(1, 3)
    >>> apportioned([third, third, third]), apportioned([third, 2 * third, 2 * third])
    ([1, 0, 0], [0, 1, 1])
    """
    whole = [floor(each) for each in amounts]
    left = rounded(sum(amounts, Fraction(0))) - sum(whole)
    by_rest = sorted(range(len(amounts)), key=lambda place: whole[place] - amounts[place])
    for place in by_rest[:left]:
        whole[place] += 1
    return whole
