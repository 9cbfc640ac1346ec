"""Reads any built-in kind of Kubernetes' protobuf completely into plain values, slowly.

Go writes every field that is no pointer, empty or not; this module omits such empty fields, as JSON
does, so the result equals the object's JSON. Objects by the thousand are read with `messages`; this
module reads what clients send, and single unusual objects.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from fairlead.wire.kube.fields import fields_by_number, message_of
from fairlead.wire.kube.forms import MAGIC, UnreadableProtobuf
from fairlead.wire.kube.time import render_micro_time, render_time

_DEEPEST = 64
# Bytes in place of a number, or a number in place of bytes, raise a type error.
_UNREADABLE = (
    IndexError,
    TypeError,
    AttributeError,
    ValueError,
    OverflowError,
    struct.error,
    msgspec.DecodeError,
)
_VARINT, _BYTES = 0, 2
_LIST_META, _LIST_ITEM = 1 << 3 | _BYTES, 2 << 3 | _BYTES
_FIXED_LENGTHS = {1: 8, 5: 4}


class EnvelopedObject(NamedTuple):
    """The envelope of an object: its API version and kind, and the object's own bytes."""

    api_version: str
    kind: str
    raw: bytes


def parse_envelope(body: bytes) -> EnvelopedObject:
    """The envelope in `body`. Raises UnreadableProtobuf."""
    if not body.startswith(MAGIC):
        raise UnreadableProtobuf(
            "the body is not in the protobuf form of Kubernetes: it does not begin with `k8s\\0`"
        )
    try:
        envelope = _parts(body[len(MAGIC) :])
        type_meta = _parts(envelope.get(1, b""))
        api_version, kind = (_text(type_meta.get(number, b"")) for number in (1, 2))
        raw = envelope.get(2)
        made = EnvelopedObject(api_version, kind, b"" if raw is None else bytes(raw))
    except _UNREADABLE as error:
        raise _unreadable(error) from error
    if raw is None:  # an empty object is present in the body too
        raise UnreadableProtobuf("the protobuf body has no object in it")
    return made


def usual_begin(kind: str) -> bytes:
    """The first bytes of an enveloped object of the core API, up to the length of the object."""
    made = b"\n\2v1\x12%c%b" % (len(kind), kind.encode())
    return MAGIC + b"\n%c%b\x12" % (len(made), made)


def span_behind(begin: bytes, body: bytes) -> tuple[int, int] | None:
    """Begin and end of the object's bytes after its `usual_begin`; None when the body begins
    otherwise or is cut off.
    """
    if not body.startswith(begin):
        return None
    try:
        length, at = _varint(body, len(begin))
    except IndexError:
        return None
    return (at, at + length) if at + length <= len(body) else None


def parse_protobuf(body: bytes) -> dict[str, Any]:
    """The object in a body, equal to its JSON.

    Raises UnreadableProtobuf for malformed bytes and for unknown kinds.
    """
    envelope = parse_envelope(body)
    message = message_of(envelope.api_version, envelope.kind)
    if message is None:
        raise UnreadableProtobuf(
            f'no kind "{envelope.kind}" is registered for version "{envelope.api_version}" in '
            "protobuf: send JSON"
        )
    return {
        "apiVersion": envelope.api_version,
        "kind": envelope.kind,
        **parse_message(message, envelope.raw),
    }


def parse_status(body: bytes) -> dict[str, Any]:
    """The `Status` in a body: message, reason, code. Raises UnreadableProtobuf."""
    return parse_message("meta.Status", parse_envelope(body).raw)


def metadata_span(raw: bytes) -> tuple[int, int]:
    """Begin and end of an object's metadata, its first field.

    The end may be beyond the object. Raises IndexError.
    """
    return _part_at(raw, 0, 1)


def list_spans(body: bytes, at: int, end: int) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """The metadata of a list between `at` and `end`, and begin and end of each item, of any kind.

    Raises UnreadableProtobuf.
    """
    meta: dict[str, Any] = {}
    spans: list[tuple[int, int]] = []
    try:
        while at < end:
            tag, length = body[at], body[at + 1]
            at += 2
            if length > 0x7F:
                length, at = _varint(body, at - 1)
            if tag & 7 != _BYTES or tag > 0x7F or at + length > end:
                raise IndexError(f"field {tag >> 3} is cut off, or none of a list's")
            if tag == _LIST_ITEM:
                spans.append((at, at + length))
            elif tag == _LIST_META:
                meta = _message("meta.ListMeta", body[at : at + length], 0)
            at += length
    except _UNREADABLE as error:
        raise _unreadable(error) from error
    return meta, spans


def early_token(body: bytes) -> str:
    """The token of the next page, read before the page is decoded; "" = not in the first bytes."""
    try:
        _, at = _part_at(body, len(MAGIC), 1)  # the kind
        begin, _ = _part_at(body, at, 2)  # the list
        begin, end = _part_at(body, begin, 1)  # its metadata
        token: str = _message("meta.ListMeta", body[begin:end], 0).get("continue", "")
    except _UNREADABLE:
        return ""
    return token


def _part_at(data: bytes, at: int, number: int) -> tuple[int, int]:
    """Begin and end of the part at `at`, which must have this number.

    The end may be beyond the data.
    """
    if data[at] != number << 3 | _BYTES:
        raise IndexError(f"field {number} is not where it should be")
    length, at = _varint(data, at + 1)
    return at, at + length


def parse_message(message: str, data: bytes) -> dict[str, Any]:
    """The fields of a message of `fields` by their JSON names. Raises UnreadableProtobuf."""
    try:
        return _message(message, data, 0)
    except _UNREADABLE as error:
        raise _unreadable(error) from error


def parse_text_entry(data: bytes) -> tuple[str, str]:
    """Key and value of an entry in a map of strings. Raises UnreadableProtobuf."""
    return _entry(data, _text)


def parse_quantity_entry(data: bytes) -> tuple[str, str]:
    """Key and value, as spelled, of an entry in a map of quantities. Raises UnreadableProtobuf."""
    return _entry(data, _quantity)


def _entry(data: bytes, value: Callable[[bytes], str]) -> tuple[str, str]:
    try:
        entry = _parts(data)
        return _text(entry.get(1, b"")), value(entry.get(2, b""))
    except _UNREADABLE as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> UnreadableProtobuf:
    return UnreadableProtobuf(f"the protobuf body cannot be read: {error or type(error).__name__}")


def _read(data: bytes) -> Iterator[tuple[int, int, Any]]:
    """(field number, wire type, value) of one message.

    Raises IndexError for a length beyond its end.
    """
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
            found.setdefault(field.name, []).extend(
                _value(field.type, item, depth) for item in items
            )
        elif field.shape == "%":
            entry = {key: held for key, _, held in _read(value)}
            empty = 0 if field.type in "ilb" else b""
            found.setdefault(field.name, {})[_text(entry.get(1, b""))] = _value(
                field.type, entry.get(2, empty), depth
            )
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


def _text(data: bytes) -> str:
    """The text of bytes; malformed UTF-8 is replaced, as in Go's JSON."""
    return data.decode("utf-8", "replace")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _strings(data: bytes) -> list[str]:
    return [_text(value) for _, _, value in _read(data)]


def _parts(data: bytes) -> dict[int, Any]:
    return {number: value for number, _, value in _read(data)}


def _quantity(data: bytes) -> str:
    return _text(_parts(data).get(1, b"0"))


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
    return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))


def _raw_json(data: bytes) -> Any:
    raw = _parts(data).get(1, b"")
    return msgspec.json.decode(raw) if raw else None


_SCALARS: dict[str, Callable[[Any], Any]] = {
    "s": lambda value: _text(value),
    "i": _signed,
    "l": _signed,
    "b": bool,
    "d": lambda value: struct.unpack("<d", value)[0],
    "y": lambda value: base64.b64encode(value).decode(),
    "q": lambda value: _quantity(value),
    "t": _time,
    "T": _micro_time,
    "o": _int_or_string,
    "f": _raw_json,
    "r": _raw_json,
    "j": _raw_json,
    "x": _strings,
}
