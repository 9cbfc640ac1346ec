"""How would Go's encoding/json say that a body cannot be read? Decoding with the words and habits of the real API server.

Two habits matter: bytes that are no UTF-8 become U+FFFD instead of a fault, and a key that stands twice is read (the last one counts)
but can be told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

_SHOWN_BYTES: Final = 30
_AFTER: Final[Mapping[str, str]] = {
    "trailing characters": "after top-level value",
    "object keys must be strings": "looking for beginning of object key string",
    "invalid escape character in string": "in string escape code",
    "expected ':'": "after object key",
    "expected ',' or '}'": "after object key:value pair",
    "expected ',' or ']'": "after array element",
}


class JsonFault(ValueError):
    """Why a body is no JSON, as Go says it."""


def decode_json(body: bytes) -> Any:
    """The value of a JSON body. Raises JsonFault.

    >>> decode_json(b'{"a": 1}')
    {'a': 1}
    """
    try:
        try:
            return msgspec.json.decode(body)
        except UnicodeDecodeError:
            return msgspec.json.decode(body.decode(errors="replace"))
    except msgspec.DecodeError as error:
        raise JsonFault(_told(body, str(error))) from error


def _told(body: bytes, fault: str) -> str:
    if "truncated" in fault:
        return "unexpected end of JSON input"
    found = re.search(r"malformed: (.*) \(byte (\d+)\)", fault)
    at = int(found[2]) if found else len(body)
    if found and found[1] in ("trailing characters", "invalid escape character in string"):
        at -= 1  # msgspec has read it already
    if found is None or at >= len(body):
        return f"invalid character in JSON: {fault}"
    sign = {"'": r"'\''", "\t": r"'\t'", "\n": r"'\n'"}.get(chr(body[at]), f"'{chr(body[at])}'")
    inside = "in string literal" if body[at] < 0x20 else "looking for beginning of value"
    return f"invalid character {sign} {_AFTER.get(found[1], inside)}"


def summary(body: bytes) -> str:
    """The beginning of a body for a message; what is no object is shown in hexadecimal.

    >>> summary(b"[]"), summary(b'{"a"'), summary(b"")
    ('5b5d', '{"a"', '<empty>')
    """
    if not body:
        return "<empty>"
    head = body[:_SHOWN_BYTES]
    shown = head.decode(errors="replace") if head[:1] == b"{" else head.hex()
    return f"{shown} ..." if len(body) > _SHOWN_BYTES else shown


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


# --- keys that stand twice ---------------------------------------------------------------------------------------------------------


class _Object(dict[str, Any]):
    """An object that remembers which of its keys stood twice."""

    twice: tuple[str, ...] = ()


def duplicate_fields(body: bytes) -> list[str]:
    """The paths of the keys that stand more than once in a readable JSON body.

    >>> duplicate_fields(b'{"a": {"b": 1, "b": 2}, "c": [{"d": 1, "d": 2}]}')
    ['a.b', 'c[0].d']
    """
    found = False

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal found
        read = dict(pairs)
        if len(read) == len(pairs):
            return read
        found = True
        keys = [key for key, _ in pairs]
        told = _Object(read)
        told.twice = tuple(key for key in read if keys.count(key) > 1)
        return told

    value = json.loads(body.decode(errors="replace"), object_pairs_hook=collect)
    return _paths(value, "") if found else []


def _paths(value: Any, path: str) -> list[str]:
    if isinstance(value, list):
        return [told for index, item in enumerate(value) for told in _paths(item, f"{path}[{index}]")]
    if not isinstance(value, dict):
        return []
    own = [f"{path}.{key}".lstrip(".") for key in value.twice] if isinstance(value, _Object) else []
    return own + [told for key, item in value.items() for told in _paths(item, f"{path}.{key}".lstrip("."))]
