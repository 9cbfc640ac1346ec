"""The forms in which an API server sends objects: JSON with its parser, and how protobuf is asked for.

Apart from what reads protobuf (`protobuf`, `messages`), so that a command that never meets it loads neither.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from msgspec import Struct

Row = TypeVar("Row")

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"


class JsonForm(Struct, Generic[Row], frozen=True):
    """Objects that have a parser for JSON alone.

    `wire`: the struct to decode, with `metadata`; `parse` makes the row of one.
    """

    wire: type[Any]
    parse: Callable[[Any], Row]


class VersionedForm(Struct, Generic[Row], frozen=True):
    """The same of a kind that is served in several versions; `parse` takes the version, too."""

    wire: type[Any]
    parse: Callable[[Any, str], Row]

    def at(self, version: str) -> JsonForm[Row]:
        return JsonForm(self.wire, lambda wire: self.parse(wire, version))


class UnreadableProtobuf(ValueError):
    """Why bytes are no object."""
