"""Which fields do Kubernetes' built-in kinds have, and of which types?

The table itself is generated (`kube_protobuf_fields`); here it becomes values, one message at a time and only when asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from fairlead_sim.schema.protobuf_fields import KINDS, MESSAGES


class Field(NamedTuple):
    """`shape` is "" (one), "*" (list) or "%" (map from strings); `type` a scalar's letter or a message."""

    name: str
    shape: str
    type: str
    is_kept_empty: bool
    is_inline: bool


def message_of(api_version: str, kind: str) -> str | None:
    """The message behind a kind, None for those without one; `DeleteOptions` come under the version of what is deleted."""
    return KINDS.get(("v1" if kind == "DeleteOptions" else api_version, kind))


@lru_cache(maxsize=512)
def fields_by_number(message: str) -> Mapping[int, Field]:
    fields = {}
    for text in MESSAGES[message].split():
        head, _, kind = text.partition(":")
        digits = len(head) - len(head.lstrip("0123456789"))
        flag, name = head[digits], head[digits + 1 :]
        shape = kind[0] if kind[0] in "*%" else ""
        fields[int(head[:digits])] = Field(name, shape, kind.removeprefix(shape), flag == "!", flag == ">")
    return fields


@lru_cache(maxsize=512)
def fields_by_name(message: str) -> Mapping[str, Field]:
    """As JSON sees them: the fields of inlined messages stand among the message's own."""
    fields: dict[str, Field] = {}
    for field in fields_by_number(message).values():
        fields |= fields_by_name(field.type) if field.is_inline else {field.name: field}
    return fields
