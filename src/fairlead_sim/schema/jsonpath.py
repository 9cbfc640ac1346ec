"""The JSONPath of printer columns and scale subresources.

The simple paths that CustomResourceDefinitions may use: fields, indices, slices, `*` and filters.
What is missing is no error: it finds nothing.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

Step = Callable[[Any], Iterable[Any]]

_TOKEN = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\]\\])+)"""
    r"""|\[(?P<quoted>'[^']*'|"[^"]*")\]"""
    r"""|\[\?\((?P<filter>[^\]]*)\)\]"""
    r"""|\[(?P<place>\*|-?\d*(?::-?\d*)?)\]"""
)
_FILTER = re.compile(r"@(?P<path>[^=!<>\s]*+)\s*+(?:(?P<sign>==|!=|<=|>=|<|>)\s*+(?P<value>.++))?+")
_SIGNS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@lru_cache(maxsize=1024)
def parse_json_path(text: str) -> tuple[Step, ...]:
    """The steps of `.status.conditions[?(@.type=="Ready")].status`.

    Raises ValueError for what is no such path.
    """
    steps, at = [], 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise ValueError(f"`{text}` cannot be read from `{text[at:]}` on")
        steps.append(_step(token))
        at = token.end()
    return tuple(steps)


def find_all(path: str, obj: Any) -> list[Any]:
    """Everything that the path leads to, in order.

    >>> find_all(".a[*].b", {"a": [{"b": 1}, {}, {"b": 2}]})
    [1, 2]
    """
    found = [obj]
    for step in parse_json_path(path):
        found = [value for item in found for value in step(item)]
    return found


def find_first(path: str, obj: Any) -> Any:
    """The first thing that the path leads to; None when there is none, or the path is none."""
    try:
        found = find_all(path, obj)
    except ValueError:
        return None
    return found[0] if found else None


def _step(token: re.Match[str]) -> Step:
    name, quoted, place = token["name"], token["quoted"], token["place"]
    if name == "*" or place == "*":
        return _everything
    if name is not None or quoted is not None:
        key = quoted[1:-1] if quoted else re.sub(r"\\(.)", r"\1", name)
        return lambda value: [value[key]] if isinstance(value, Mapping) and key in value else []
    if token["filter"] is not None:
        return _filter(token["filter"])
    if ":" in place:
        start, stop = (int(bound) if bound else None for bound in place.split(":"))
        return lambda value: value[start:stop] if isinstance(value, list) else []
    index = int(place)
    return lambda value: (
        [value[index]] if isinstance(value, list) and -len(value) <= index < len(value) else []
    )


def _everything(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return [value[key] for key in sorted(value)]
    return value if isinstance(value, list) else []


def _filter(text: str) -> Step:
    parts = _FILTER.fullmatch(text.strip())
    if parts is None:
        raise ValueError(f"`{text}` is no filter")
    path = parts["path"]
    parse_json_path(path)
    if parts["sign"] is None:
        return lambda value: [item for item in _everything(value) if find_all(path, item)]
    holds, wanted = _SIGNS[parts["sign"]], _literal(parts["value"])

    def chosen(value: Any) -> list[Any]:
        return [
            item
            for item in _everything(value)
            if any(_compares(holds, found, wanted) for found in find_all(path, item)[:1])
        ]

    return chosen


def _compares(holds: Callable[[Any, Any], bool], found: Any, wanted: Any) -> bool:
    try:
        return bool(holds(found, wanted))
    except TypeError:
        return False


def _literal(text: str) -> Any:
    if text[:1] == text[-1:] == "'":
        return text[1:-1]
    try:
        return msgspec.json.decode(text.encode())
    except msgspec.DecodeError as error:
        raise ValueError(f"`{text}` is no value to compare with") from error
