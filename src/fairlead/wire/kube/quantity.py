"""Kubernetes quantities: parses text to exact integers and renders integers.

The rules are the API's: suffixes n u m k M G T P E and Ki..Ei, decimal exponents, always rounded
up. `parse_amount` returns the unit in which each resource is kept (cpu in millicores, memory in
bytes, all others in whole units).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from fairlead.model.resources import CPU, NOTHING, Amounts, amount_text

_QUANTITY: Final = re.compile(
    r"([+-]?)(\d*)(?:\.(\d*))?(?:([eE][+-]?\d+)|(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei))?", re.ASCII
)
_TENS: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_TWOS: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_MAX_EXPONENT: Final = 60


def parse_quantity(text: str, scale: int = 0) -> int:
    """The quantity times 10**scale, rounded up (away from zero for positive values) to an integer.

    Raises ValueError with the text for anything the API would refuse.

    >>> parse_quantity("1.5Gi"), parse_quantity("100m", scale=3)
    (1610612736, 100)
    >>> parse_quantity("0.0001n"), parse_quantity("1e3")
    (1, 1000)
    """
    match = _QUANTITY.fullmatch(text)
    if match is None or not (match[2] or match[3]):
        raise ValueError(f"quantity `{text}` is not a Kubernetes quantity")
    sign, whole, fraction, exponent, suffix = match.groups()
    fraction = fraction or ""
    digits = int((whole or "") + fraction or "0")
    tens = scale - len(fraction) + _TENS.get(suffix or "", 0)
    if exponent:
        power = int(exponent[1:])
        if abs(power) > _MAX_EXPONENT:
            raise ValueError(f"quantity `{text}` has an exponent beyond ±{_MAX_EXPONENT}")
        tens += power
    digits <<= _TWOS.get(suffix or "", 0)
    value = digits * int(10**tens) if tens >= 0 else -(-digits // int(10**-tens))
    return -value if sign == "-" else value


def parse_amount(resource: str, text: str | int | float) -> int:
    """An amount in the unit that `model/resources` uses for this resource.

    Negative amounts count as 0.

    >>> parse_amount("cpu", "0.5")
    500
    >>> parse_amount("memory", "1Ki")
    1024
    >>> parse_amount("nvidia.com/gpu", "2")
    2
    """
    return max(0, parse_quantity(str(text), scale=3 if resource == CPU else 0))


def parse_amounts(texts: Mapping[str, str | int | float] | None) -> Amounts:
    """Amounts of a ResourceList; raises ValueError naming the resource and its text."""
    if not texts:
        return NOTHING
    amounts: dict[str, int] = {}
    for name, text in texts.items():
        try:
            amounts[name] = parse_amount(name, text)
        except ValueError as error:
            raise ValueError(f"resource `{name}`: {error}") from None
    return amounts


def render_amount(resource: str, amount: int) -> str:
    """See `amount_text`.

    >>> render_amount("cpu", 1500), render_amount("memory", 16 << 30)
    ('1500m', '16Gi')
    """
    return amount_text(resource, amount)


def render_amounts(amounts: Amounts) -> dict[str, str]:
    return {resource: amount_text(resource, amount) for resource, amount in sorted(amounts.items())}
