"""Quantities as the API server writes them.

Canonically: the largest suffix that leaves a whole number, in the family (decimal, binary,
exponent) in which it came. Amounts for computing are `wire/kube/quantity`'s; here only the text
changes.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache

_QUANTITY = re.compile(
    r"([+-]?)(\d++\.?\d*+|\.\d++)(?:([eE])([+-]?\d{1,3})|(n|u|m|k|M|G|T|P|E|[KMGTPE]i)?)"
)
_DECIMAL = ("n", "u", "m", "", "k", "M", "G", "T", "P", "E")  # 10^-9, 10^-6, …
_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


@lru_cache(maxsize=4096)
def canonical_quantity(text: str) -> str:
    """The canonical text of a quantity; what is finer than a thousandth is rounded up, as in
    resource lists. ValueError when it is none.

    >>> [canonical_quantity(text) for text in ("1.5", "1024Mi", "0.5Gi", "2000m", "1000")]
    ['1500m', '1Gi', '512Mi', '2', '1k']
    >>> [canonical_quantity(text) for text in ("1e3", "0.0001n", "-0", "100")]
    ['1e3', '1m', '0', '100']
    """
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is not a Kubernetes quantity")
    sign, digits, exponent_mark, exponent, suffix = match.groups()
    value = Fraction(digits)
    if exponent_mark:
        value *= Fraction(10) ** int(exponent)
    elif suffix and suffix.endswith("i"):
        value *= 1024 ** _BINARY.index(suffix)
    elif suffix:
        value *= Fraction(1000) ** (_DECIMAL.index(suffix) - _DECIMAL.index(""))
    if not value:
        return "0"
    minus = "-" if sign == "-" else ""
    if suffix and suffix.endswith("i") and value.denominator == 1:
        return minus + _binary(value.numerator)
    return minus + _decimal(value, is_exponent=bool(exponent_mark))


def _binary(value: int) -> str:
    level = 0
    while value % 1024 == 0 and level < len(_BINARY) - 1:
        value, level = value // 1024, level + 1
    return f"{value}{_BINARY[level]}"


def _decimal(value: Fraction, *, is_exponent: bool) -> str:
    number, level = -(-value * 1000 // 1), _DECIMAL.index("m")
    while number % 1000 == 0 and level < len(_DECIMAL) - 1:
        number, level = number // 1000, level + 1
    power = 3 * (level - _DECIMAL.index(""))
    if is_exponent:
        return f"{number}e{power}" if power else str(number)
    return f"{number}{_DECIMAL[level]}"
