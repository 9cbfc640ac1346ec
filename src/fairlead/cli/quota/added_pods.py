"""What `--add ns=N,count=5,cpu=5,priority=P,gang=4` asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from fairlead.errors import UserError

if TYPE_CHECKING:
    from fairlead.rules.quota.what_if import AddedPods

MOST_PODS: Final = 1000
_NUMBERS: Final = {"count": 1, "gang": 0, "priority": -(2**31)}
_HINT: Final = "write it as `--add ns=team,count=5,cpu=5`; priority= and gang= may follow"


def added_pods(text: str) -> AddedPods:
    """Raises UserError for what is no such wish."""
    from fairlead.rules.quota.what_if import AddedPods
    from fairlead.wire.kube.quantity import parse_amount, parse_quantity

    given: dict[str, str] = {}
    for part in text.split(","):
        key, equals, value = part.partition("=")
        if not equals or not key.strip() or not value.strip():
            raise UserError(f"`{part}` in `--add {text}` is not KEY=VALUE", _HINT)
        if key.strip() in given:
            raise UserError(f"`--add {text}` contains {key.strip()} twice", _HINT)
        given[key.strip()] = value.strip()
    namespace = given.pop("ns", "")
    numbers = {key: _number(text, key, given.pop(key)) for key in tuple(_NUMBERS) if key in given}
    count = numbers.get("count", 1)
    if not namespace:
        raise UserError(f"`--add {text}` has no namespace", _HINT)
    if not given:
        raise UserError(f"the pods of `--add {text}` request nothing", _HINT)
    if count > MOST_PODS:
        raise UserError(
            f"`--add {text}`: {count} pods are too many", f"up to {MOST_PODS} at a time"
        )
    for resource, quantity in given.items():
        try:
            if parse_quantity(quantity) <= 0 and parse_quantity(quantity, scale=3) <= 0:
                raise ValueError(f"`{quantity}` is not an amount that a pod can request")
        except ValueError as error:
            raise UserError(f"`--add {text}`: {resource}: {error}", _HINT) from None
    request = {resource: parse_amount(resource, quantity) for resource, quantity in given.items()}
    return AddedPods(namespace, count, request, numbers.get("priority", 0), numbers.get("gang", 0))


def _number(text: str, key: str, value: str) -> int:
    try:
        number = int(value)
    except ValueError:
        raise UserError(
            f"`--add {text}`: {key} is `{value}` and not a whole number", _HINT
        ) from None
    if number < _NUMBERS[key] or number > 2**31 - 1:
        raise UserError(f"`--add {text}`: {key} cannot be {value}", _HINT)
    return number
