"""Request bodies in Kubernetes' protobuf, read into plain values.

Go clients, `kubectl create` among them, send the built-in kinds so and take JSON for an answer, so only
reading is needed. Go writes every field that is no pointer, empty or not; such fields are left out when they
are empty, as their JSON would leave them out.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from fairlead.wire.kube.time import render_micro_time, render_time
from fairlead_sim.schema.fields import fields_by_number, message_of
from fairlead_sim.schema.status import bad_request

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_DEEPEST = 64
# A number where bytes should stand and the other way round show themselves as type errors.
_UNREADABLE = (IndexError, TypeError, AttributeError, ValueError, OverflowError, struct.error, msgspec.DecodeError)
_VARINT, _BYTES = 0, 2
_FIXED_LENGTHS = {1: 8, 5: 4}


def parse_protobuf(body: bytes) -> dict[str, Any]:
    """The object in a request body, as its JSON would be. Raises 400 for broken bytes and for kinds that
    are not known."""
    if not body.startswith(_MAGIC):
        raise bad_request("the body is not in the protobuf form of Kubernetes: it does not begin with `k8s\\0`")
    try:
        envelope = _parts(body[len(_MAGIC) :])
        type_meta = _parts(envelope.get(1, b""))
        api_version, kind = (type_meta.get(number, b"").decode() for number in (1, 2))
        message = message_of(api_version, kind)
        if message is None:
            raise bad_request(f'no kind "{kind}" is registered for version "{api_version}" in protobuf: send JSON')
        return {"apiVersion": api_version, "kind": kind, **_message(message, envelope.get(2, b""), 0)}
    except _UNREADABLE as error:
        raise bad_request(f"the protobuf body cannot be read: {error or type(error).__name__}") from error


def _read(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """(field number, wire type, value) of one message; lengths that go beyond its end are an IndexError."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire == _BYTES:
            length, at = _varint(data, at)
        else:
            length = _FIXED_LENGTHS.get(wire, len(data))
        if at + length > len(data):
            raise IndexError(f"field {number} is cut off")
        yield number, wire, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise IndexError("a number is too long")


def _message(message: str, data: bytes, depth: int) -> dict[str, Any]:
    if depth > _DEEPEST:
        raise IndexError("nested too deeply")
    fields, found = fields_by_number(message), dict[str, Any]()
    for number, wire, value in _read(data):
        field = fields.get(number)
        if field is None:
            continue
        if field.is_inline:
            found |= _message(field.type, value, depth + 1)
        elif field.shape == "*":
            items = _packed(value) if field.type in ("i", "l") and wire == _BYTES else (value,)
            found.setdefault(field.name, []).extend(_value(field.type, item, depth) for item in items)
        elif field.shape == "%":
            entry = {key: held for key, _, held in _read(value)}
            empty = 0 if field.type in "ilb" else b""
            found.setdefault(field.name, {})[entry.get(1, b"").decode()] = _value(field.type, entry.get(2, empty), depth)
        else:
            plain = _value(field.type, value, depth)
            if field.is_kept_empty or plain not in ("", 0, False, None, {}, []):
                found[field.name] = plain
    return found


def _packed(data: bytes) -> Iterator[int]:
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        yield value


def _value(kind: str, value: Any, depth: int) -> Any:
    convert = _SCALARS.get(kind)
    return convert(value) if convert else _message(kind, value, depth + 1)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _strings(data: bytes) -> list[str]:
    return [value.decode() for _, _, value in _read(data)]


def _parts(data: bytes) -> dict[int, Any]:
    return {number: value for number, _, value in _read(data)}


def _seconds(data: bytes) -> float | None:
    parts = _parts(data)
    return _signed(parts.get(1, 0)) + parts.get(2, 0) / 1e9 if data else None


def _time(data: bytes) -> str | None:
    seconds = _seconds(data)
    return None if seconds is None else render_time(seconds)


def _micro_time(data: bytes) -> str | None:
    seconds = _seconds(data)
    return None if seconds is None else render_micro_time(seconds)


def _int_or_string(data: bytes) -> int | str:
    parts = _parts(data)
    return str(parts.get(3, b"").decode()) if parts.get(1) else _signed(parts.get(2, 0))


def _raw_json(data: bytes) -> Any:
    raw = _parts(data).get(1, b"")
    return msgspec.json.decode(raw) if raw else None


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "s": lambda value: value.decode(),
    "i": _signed,
    "l": _signed,
    "b": bool,
    "d": lambda value: struct.unpack("<d", value)[0],
    "y": lambda value: base64.b64encode(value).decode(),
    "q": lambda value: _parts(value).get(1, b"0").decode(),
    "t": _time,
    "T": _micro_time,
    "o": _int_or_string,
    "f": _raw_json,
    "r": _raw_json,
    "j": _raw_json,
    "x": _strings,
}
