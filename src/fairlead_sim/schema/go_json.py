"""JSON as Go reads it, names its values and prints them.

For what `kubectl patch` prints about a malformed patch.

Bytes that are no UTF-8 become U+FFFD instead of a fault.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

_AFTER: Final[Mapping[str, str]] = {
    "trailing characters": "after top-level value",
    "object keys must be strings": "looking for beginning of object key string",
    "invalid escape character in string": "in string escape code",
    "expected ':'": "after object key",
    "expected ',' or '}'": "after object key:value pair",
    "expected ',' or ']'": "after array element",
}


def decode_json(body: bytes) -> Any:
    """The value of a JSON body. Raises ValueError with Go's message.

    >>> decode_json(b'{"a": 1}')
    {'a': 1}
    """
    try:
        try:
            return msgspec.json.decode(body)
        except UnicodeDecodeError:
            return msgspec.json.decode(body.decode(errors="replace"))
    except msgspec.DecodeError as error:
        raise ValueError(_go_message(body, str(error))) from error


def _go_message(body: bytes, fault: str) -> str:
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


_ESCAPES: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)


def encode_json(value: Any) -> str:
    """A value as Go writes it: keys sorted, and what HTML would misread escaped.

    >>> encode_json({"b": "<a>", "a": 1})
    '{"a":1,"b":"\\\\u003ca\\\\u003e"}'
    """
    return msgspec.json.encode(value, order="sorted").decode().translate(_ESCAPES)


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
    return (
        "<nil>" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    )
