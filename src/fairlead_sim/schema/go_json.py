"""JSON values as Go's messages name and print them."""

from __future__ import annotations

from typing import Any


def go_type(value: Any) -> str:
    """What Go calls the JSON type of a value."""
    if isinstance(value, bool):
        return "bool"
    names = {str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")


def go_value(value: Any) -> str:
    """A value as Go's `%v` prints it.

    >>> go_value({"b": [1, True], "a": {"c": "x"}})
    'map[a:map[c:x] b:[1 true]]'
    """
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{go_value(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(go_value(item) for item in value)}]"
    return "<nil>" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
