"""The forms in which an API server sends objects: JSON with its parser, and protobuf.

The readers of protobuf are other modules (`protobuf`, `messages`), so that a command without
protobuf loads neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

Row = TypeVar("Row")

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"


class JsonForm(Struct, Generic[Row], frozen=True):
    """Objects that have a parser for JSON only.

    `wire`: the struct to decode, with `metadata`; `parse` makes the row of an object.
    """

    wire: type[Any]
    parse: Callable[[Any], Row]


class VersionedForm(Struct, Generic[Row], frozen=True):
    """The form of a kind with several versions; `parse` also takes the version."""

    wire: type[Any]
    parse: Callable[[Any, str], Row]

    def at(self, version: str) -> JsonForm[Row]:
        return JsonForm(self.wire, lambda wire: self.parse(wire, version))


class UnreadableProtobuf(ValueError):
    """The bytes are no object; the text has the reason."""
