"""Protobuf by hand: a message is a list of (field number, value). The tests use it so that they do
not read with the code under test.
"""

from __future__ import annotations

Value = str | bytes | int
Message = list[tuple[int, Value]]


def packed(*fields: tuple[int, Value]) -> bytes:
    """The bytes of a message; strings and nested messages are length-delimited, numbers are
    varints.
    """
    written = b""
    for number, value in fields:
        if isinstance(value, int):
            written += _varint(number << 3) + _varint(value)
        else:
            raw = value.encode() if isinstance(value, str) else value
            written += _varint(number << 3 | 2) + _varint(len(raw)) + raw
    return written


def unpacked(raw: bytes) -> Message:
    """The fields of a message; length-delimited fields stay bytes."""
    fields: Message = []
    position = 0
    while position < len(raw):
        key, position = _read_varint(raw, position)
        size, position = _read_varint(raw, position)
        if key & 7 == 0:
            fields.append((key >> 3, size))
            continue
        assert key & 7 == 2
        fields.append((key >> 3, raw[position : position + size]))
        position += size
    return fields


def _varint(number: int) -> bytes:
    written = b""
    while number > 127:
        written += bytes([number & 127 | 128])
        number >>= 7
    return written + bytes([number])


def _read_varint(raw: bytes, position: int) -> tuple[int, int]:
    number = shift = 0
    while raw[position] & 128:
        number |= (raw[position] & 127) << shift
        shift, position = shift + 7, position + 1
    return number | raw[position] << shift, position + 1
