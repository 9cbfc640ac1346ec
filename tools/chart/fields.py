"""The fields of a typed value: the alternatives that each may have, and its name in a template."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

ANY: Final = object()
"""The alternative of a text that stands for every text that is not empty."""
_INTEGERS_MAX: Final = 32
_DANGEROUS: Final = "\"'\\\n\r\t {}#&*!|>%@`,[]:?"
"""Characters that may end a text of YAML, or change what it means."""
_HARMLESS: Final = frozenset(":")


class Inexpressible(Exception):
    """A template cannot do what the function does with the value."""


class Field(Struct, frozen=True):
    """`path`: names in the type, joined by dots. `expression`: what a template writes for it.

    `alternatives`: all values between which functions may distinguish; () = none, a text that is
    only written. `is_safe`: no value can end or change the text of YAML in which it is written.
    `is_list`: a list of texts, of which functions write each in the same way.
    """

    path: str
    expression: str
    alternatives: tuple[Any, ...]
    is_safe: bool = False
    is_list: bool = False

    @property
    def written(self) -> str:
        """What writes the value, or an item of the list: then the dot."""
        return "." if self.is_list else self.expression


def fields_of(type_: type[Struct], named: Mapping[str, str]) -> dict[str, Field]:
    """All fields by path, those of structs within structs in their place.

    `named`: expressions of fields that are no values of the chart. Raises Inexpressible for a field
    of another kind than texts, bounded integers, truth values and words.
    """
    return {each.path: each for each in _fields(type_, "", ".Values", dict(named))}


def _fields(
    type_: type[Struct], prefix: str, place: str, named: Mapping[str, str]
) -> Iterator[Field]:
    hints = msgspec.inspect.type_info(type_)
    assert isinstance(hints, msgspec.inspect.StructType)
    for each in hints.fields:
        path = f"{prefix}{each.name}"
        expression = named.get(path, f"{place}.{each.encode_name}")
        if isinstance(each.type, msgspec.inspect.StructType):
            yield from _fields(each.type.cls, f"{path}.", expression, named)
        else:
            yield _field(path, expression, each.type)


def _field(path: str, expression: str, kind: msgspec.inspect.Type) -> Field:
    inspect = msgspec.inspect
    if isinstance(kind, inspect.BoolType):
        return Field(path, expression, (False, True))
    if isinstance(kind, inspect.LiteralType):
        return Field(path, expression, tuple(sorted(kind.values)), all(map(_is_plain, kind.values)))
    if isinstance(kind, inspect.IntType) and kind.ge is not None and kind.le is not None:
        numbers = tuple(range(kind.ge, kind.le + 1))
        if len(numbers) <= _INTEGERS_MAX:
            return Field(path, expression, numbers, is_safe=True)
    if isinstance(kind, inspect.StrType):
        may_be_empty = not kind.min_length and (
            kind.pattern is None or re.search(kind.pattern, "") is not None
        )
        # In a schema `$` is the end of the text. In Python a line's end may come after it.
        pattern = re.sub(r"\$$", r"\\Z", kind.pattern or "")
        is_safe = bool(pattern) and not any(
            re.search(pattern, text)
            for mark in _DANGEROUS
            if mark not in _HARMLESS
            for text in (mark, f"a{mark}a", f"a{mark}", f"{mark}a")
        )
        return Field(path, expression, ("", ANY) if may_be_empty else (), is_safe)
    if isinstance(kind, inspect.VarTupleType):
        item = _field(path, expression, kind.item_type)
        if item.is_safe:
            return Field(path, expression, ("", ANY), is_safe=True, is_list=True)
    raise Inexpressible(f"no template can distinguish the values of `{path}`")


def _is_plain(word: object) -> bool:
    return isinstance(word, str) and re.fullmatch(r"[a-z][-a-z0-9]*|", word) is not None
