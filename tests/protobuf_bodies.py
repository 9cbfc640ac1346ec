"""Objects in Kubernetes' protobuf, written as Go writes them: fields that are not pointers always,
maps sorted by key.

Numbers and types come from the table that Fairlead's reader uses, so only the tests with a real API
server show whether it is right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from fairlead.wire.kube.fields import Field, fields_by_number

_EMPTY: Mapping[str, Any] = {"s": "", "i": 0, "l": 0, "b": False}


def varint(value: int) -> bytes:
    value %= 1 << 64
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def part(number: int, data: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(data)) + data


def number_of(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def envelope(kind: str, raw: bytes, api_version: str = "v1") -> bytes:
    reported = part(1, api_version.encode()) + part(2, kind.encode())
    return b"k8s\0" + part(1, reported) + part(2, raw) + part(3, b"") + part(4, b"")


def list_body(kind: str, items: Iterable[bytes], *, version: str = "7", token: str = "") -> bytes:
    """The answer to a list. `items`: encoded objects."""
    meta = part(1, b"") + part(2, version.encode()) + part(3, token.encode())
    return envelope(f"{kind}List", part(1, meta) + b"".join(part(2, item) for item in items))


def frame(type: str, body: bytes) -> bytes:
    """An event of a watch around an object in its envelope."""
    event = part(1, type.encode()) + part(2, part(1, body))
    return len(event).to_bytes(4, "big") + event


def encoded(message: str, plain: Mapping[str, Any]) -> bytes:
    """The bytes of an object that is given as JSON."""
    out = b""
    for number, field in sorted(fields_by_number(message).items()):
        value = plain.get(field.name)
        if field.is_inline:
            out += part(number, encoded(field.type, plain))
        elif field.shape == "*":
            out += b"".join(_one(number, field, each) for each in value or ())
        elif field.shape == "%":
            entries = (
                part(1, key.encode()) + _one(2, field, each)
                for key, each in sorted((value or {}).items())
            )
            out += b"".join(part(number, entry) for entry in entries)
        elif value is not None:
            out += _one(number, field, value)
        elif not field.is_kept_empty:
            out += _unset(number, field)
    return out


def _unset(number: int, field: Field) -> bytes:
    if field.message:
        return part(number, encoded(field.type, {}))
    if field.type in "tT":
        return part(number, b"")
    return _one(number, field, _EMPTY[field.type]) if field.type in _EMPTY else b""


def _one(number: int, field: Field, value: Any) -> bytes:
    kind = field.type
    if field.message:
        return part(number, encoded(kind, value))
    if kind == "s":
        return part(number, value.encode("utf-8", "surrogateescape"))
    if kind in "ilb":
        return number_of(number, int(value))
    if kind == "q":
        return part(number, part(1, str(value).encode()))
    if kind in "tT":
        return part(number, _time(value))
    if kind == "o":
        return part(
            number,
            number_of(1, 1) + part(3, value.encode())
            if isinstance(value, str)
            else number_of(1, 0) + number_of(2, value),
        )
    return part(number, part(1, json.dumps(value).encode()))


def _time(text: str) -> bytes:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return number_of(1, int(moment.timestamp() // 1)) + number_of(2, moment.microsecond * 1000)
