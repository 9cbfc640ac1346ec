"""The fields of Kubernetes' built-in kinds: names, protobuf numbers, types.

The table is generated (`tools/kube_fields.py`); the fields of a message are parsed when they are
first asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from fairlead.wire.kube.fields_table import KINDS, MESSAGES


class Field(NamedTuple):
    """A field.

    `shape` is "" (one value), "*" (list) or "%" (map with string keys); `type` a scalar's letter or
    a message.

    `merge_key`: the field by which a strategic merge patch identifies the items of a list, "" for a
    set of plain values; None if the patch replaces the field.
    """

    name: str
    shape: str
    type: str
    is_kept_empty: bool
    is_inline: bool
    merge_key: str | None

    @property
    def message(self) -> str | None:
        return self.type if "." in self.type else None


def message_of(api_version: str, kind: str) -> str | None:
    """The message of a kind, None if it has none.

    `DeleteOptions` has the version of the deleted object.
    """
    return _tables()[0].get(("v1" if kind == "DeleteOptions" else api_version, kind))


@lru_cache(maxsize=1)
def _tables() -> tuple[Mapping[tuple[str, str], str], Mapping[str, str]]:
    """The message of each (API version, kind), and the text of the fields of each message."""
    named = {
        (version, kind): message for version, kind, message in map(str.split, KINDS.splitlines())
    }
    return named, {
        message: fields
        for message, _, fields in (line.partition(" ") for line in MESSAGES.splitlines())
    }


@lru_cache(maxsize=512)
def fields_by_number(message: str) -> Mapping[int, Field]:
    fields = {}
    for text in _tables()[1][message].split():
        head, _, kind = text.partition(":")
        digits = len(head) - len(head.lstrip("0123456789"))
        flag, name = head[digits], head[digits + 1 :]
        shape = kind[0] if kind[0] in "*%" else ""
        code, mark, merge_key = kind.removeprefix(shape).partition("@")
        fields[int(head[:digits])] = Field(
            name, shape, code, flag == "!", flag == ">", merge_key if mark else None
        )
    return fields


@lru_cache(maxsize=512)
def fields_by_name(message: str | None) -> Mapping[str, Field]:
    """The fields by their JSON names, with those of inlined messages; {} for an unknown message."""
    fields: dict[str, Field] = {}
    for field in fields_by_number(message).values() if message else ():
        fields |= fields_by_name(field.type) if field.is_inline else {field.name: field}
    return fields
