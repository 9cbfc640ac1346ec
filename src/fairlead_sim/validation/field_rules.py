"""Rules of an object's fields, so that those of a kind are a table and not a program.

A rule takes a field's name and its value and lists its faults, in the order of its table. Only
`needs` reports a missing or null field. Types are not checked: what comes over HTTP has the right
ones, and what a controller copies out of a custom resource may have any; a value of another type
than a rule is about has no faults here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairlead_sim.schema.names import label_value_faults, port_name_faults, qualified_name_faults
from fairlead_sim.schema.status import (
    FieldError,
    duplicate,
    forbidden_field,
    required,
    unsupported,
    wrong_value,
)

Rule = Callable[[str, Any], list[FieldError]]


def fields(
    rules: Mapping[str, Rule], *, needs: Sequence[str] = (), also: Rule | None = None
) -> Rule:
    """An object whose fields follow `rules`; those of `needs` may not be missing or empty; `also`
    looks at the whole.
    """

    table = {**dict.fromkeys(needs, _anything), **rules}

    def check(field: str, value: Any) -> list[FieldError]:
        errors: list[FieldError] = []
        if not isinstance(value, dict):
            return errors
        for key, rule in table.items():
            held = value.get(key)
            if key in needs and held in (None, "", 0):
                errors.append(required(f"{field}.{key}"))
            elif held is not None:
                errors += rule(f"{field}.{key}", held)
        return [*errors, *also(field, value)] if also else errors

    return check


def _anything(field: str, value: Any) -> list[FieldError]:
    return []


def each(rule: Rule, *, unique: str | None = None) -> Rule:
    """A list whose items follow `rule`; `unique` names a field whose text may not come twice."""

    def check(field: str, value: Any) -> list[FieldError]:
        errors, seen = [], set()
        for index, item in enumerate(value if isinstance(value, list | tuple) else ()):
            here = f"{field}[{index}]"
            errors += rule(here, item)
            mark = item.get(unique) if unique is not None and isinstance(item, dict) else None
            if not isinstance(mark, str):
                continue
            if mark and mark in seen:
                errors.append(duplicate(f"{here}.{unique}", mark))
            seen.add(mark)
        return errors

    return check


def one_of(*known: str) -> Rule:
    return lambda field, value: [] if value in known else [unsupported(field, value, known)]


def at_least(least: int) -> Rule:
    why = f"must be greater than or equal to {least}"
    return lambda field, value: (
        [wrong_value(field, value, why)] if isinstance(value, int) and value < least else []
    )


def between(least: int, most: int) -> Rule:
    why = f"must be between {least} and {most}, inclusive"
    return lambda field, value: (
        [wrong_value(field, value, why)]
        if isinstance(value, int) and not least <= value <= most
        else []
    )


_port_number = between(1, 65535)


def port_or_name(field: str, value: Any) -> list[FieldError]:
    """A port as probes and Services name it."""
    return (
        _port_number(field, value)
        if isinstance(value, int)
        else spelled(port_name_faults)(field, value)
    )


def spelled(faults: Callable[[str], list[str]]) -> Rule:
    """A text with the faults that a function of `schema.names` finds in it."""
    return lambda field, value: (
        [wrong_value(field, value, why) for why in faults(value)] if isinstance(value, str) else []
    )


def share(field: str, value: Any) -> list[FieldError]:
    """A number of pods or a percentage of them."""
    if isinstance(value, int):
        return at_least(0)(field, value)
    if not isinstance(value, str) or re.fullmatch("[0-9]+%", value):
        return []
    rule = "a valid percent string must be a numeric string followed by an ending '%'"
    return [
        wrong_value(
            field, value, f"{rule} (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
        )
    ]


def bounded_share(field: str, value: Any) -> list[FieldError]:
    errors = share(field, value)
    if not errors and isinstance(value, str) and int(value[:-1]) > 100:
        return [wrong_value(field, value, "must not be greater than 100%")]
    return errors


def labels(field: str, value: Any) -> list[FieldError]:
    errors = []
    for key, text in value.items() if isinstance(value, dict) else ():
        errors += [wrong_value(field, key, why) for why in qualified_name_faults(key)]
        errors += [
            wrong_value(field, text, why)
            for why in (label_value_faults(text) if isinstance(text, str) else ())
        ]
    return errors


_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def requirement(operators: Sequence[str]) -> Rule:
    """A term of `matchExpressions`."""

    def check(field: str, term: Any) -> list[FieldError]:
        if not isinstance(term, dict):
            return []
        operator, values, key = (term.get(name) or "" for name in ("operator", "values", "key"))
        if operator not in operators:
            return [wrong_value(f"{field}.operator", operator, "not a valid selector operator")]
        if operator in ("In", "NotIn") and not values:
            return [
                required(f"{field}.values", "must be specified when `operator` is 'In' or 'NotIn'")
            ]
        if operator in ("Exists", "DoesNotExist") and values:
            return [
                forbidden_field(
                    f"{field}.values",
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                )
            ]
        return spelled(qualified_name_faults)(f"{field}.key", key)

    return check


selector: Rule = fields({"matchLabels": labels, "matchExpressions": each(requirement(_OPERATORS))})


def objects_of(owner: Any, key: str) -> list[dict[str, Any]]:
    """The objects in a list of objects."""
    held = owner.get(key) if isinstance(owner, dict) else None
    return [item for item in held if isinstance(item, dict)] if isinstance(held, list) else []


def object_of(owner: Any, key: str) -> dict[str, Any]:
    """The object in a field; an empty one where there is none."""
    held = owner.get(key) if isinstance(owner, dict) else None
    return held if isinstance(held, dict) else {}


def frozen(field: str, value: Any, why: str = "field is immutable") -> FieldError:
    return wrong_value(field, value, why)
