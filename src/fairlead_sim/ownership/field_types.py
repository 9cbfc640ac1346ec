"""How the fields of a kind merge: which lists have keys or are sets, what is atomic.

Of built-in kinds from tables of the real server's types, of custom ones from their definitions. A
type describes what a value may be; what is not described is deduced from the value itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from fairlead.wire.kube.fields import Field, fields_by_name, fields_by_number, message_of
from fairlead_sim.ownership.merge_table import MERGE_RULES
from fairlead_sim.schema.crd_schema import EMBEDDED, PRESERVE, Schema
from fairlead_sim.schema.resource import ResourceKind

STRING: Final = "string"
NUMERIC: Final = "numeric"
BOOLEAN: Final = "boolean"
UNTYPED: Final = "untyped"


@dataclass(frozen=True, eq=False, slots=True)
class ListType:
    """A list. `keys`: of its items, () for a set; `defaults`: of keys that an item may lack.

    Of an atomic list the items have no owners of their own.
    """

    items: Callable[[], FieldType]
    is_atomic: bool = True
    keys: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)


class MapType:
    """An object or a map: `named` are its declared fields, `other` is the type of all others (None:
    there may be none).

    `zeros` are the values of fields that no writer has set, as in the real server's Go types;
    `omitted` the fields that are left out when they are empty.
    """

    __slots__ = ("_find", "_known", "is_atomic", "omitted", "other", "zeros")

    def __init__(
        self,
        find: Callable[[str], FieldType | None],
        other: FieldType | None = None,
        *,
        is_atomic: bool = False,
        zeros: Mapping[str, Any] | None = None,
        omitted: frozenset[str] = frozenset(),
    ) -> None:
        self._find = find
        self._known: dict[str, FieldType | None] = {}
        self.other = other
        self.is_atomic = is_atomic
        self.zeros = zeros or {}
        self.omitted = omitted

    def named(self, name: str) -> FieldType | None:
        """The type of a declared field, None if it is not declared."""
        if name not in self._known:
            found = self._find(name)
            if found is None:
                return None  # not kept: a map has any number of such names
            self._known[name] = found
        return self._known[name]

    def of(self, name: str) -> FieldType | None:
        """The type of a field or of a map's value; None if there may be no such field."""
        return self.named(name) or self.other


@dataclass(frozen=True, eq=False, slots=True)
class FieldType:
    """What a value may be: a scalar of this kind, a list, an object, or several of them."""

    scalar: str | None = None
    list: ListType | None = None
    map: MapType | None = None


def _nothing(name: str) -> None:
    return None


_ATOMIC: Final[FieldType] = FieldType(
    UNTYPED, ListType(lambda: _ATOMIC), MapType(_nothing, None, is_atomic=True)
)
_DEDUCED_MAP: Final = MapType(_nothing)
DEDUCED: Final = FieldType(UNTYPED, ListType(lambda: _ATOMIC), _DEDUCED_MAP)
"""A value of which nothing is known: its objects are granular, its lists atomic."""
_DEDUCED_MAP.other = DEDUCED
assert _ATOMIC.map is not None
_ATOMIC.map.other = _ATOMIC

_STRING_TYPE: Final = FieldType(STRING)
_UNTYPED_TYPE: Final = FieldType(UNTYPED)
_SCALARS: Final = {
    "s": _STRING_TYPE,
    "y": _STRING_TYPE,
    "b": FieldType(BOOLEAN),
    "i": FieldType(NUMERIC),
    "l": FieldType(NUMERIC),
    "d": FieldType(NUMERIC),
    "q": _UNTYPED_TYPE,
    "o": _UNTYPED_TYPE,
    "t": _UNTYPED_TYPE,
    "T": _UNTYPED_TYPE,
    "f": DEDUCED,
    "r": DEDUCED,
    "j": DEDUCED,
    "x": FieldType(list=ListType(lambda: _STRING_TYPE)),
}
_STRUCTS: Final = "jrf"
"""Scalars that Go has as structs, which it never leaves out."""
_HEADER: Final = {"apiVersion": _STRING_TYPE, "kind": _STRING_TYPE}


@lru_cache(maxsize=512)
def kind_type(ref: ResourceKind) -> FieldType:
    """The type of the objects of a kind, in the version that `ref` shows."""
    if ref.custom is not None:
        return _with_metadata(ref.custom.schema)
    message = message_of(ref.api_version, ref.kind)
    if message is None or ref.is_custom:
        return _with_metadata({"type": "object", PRESERVE: True})
    return message_kind(message)


def message_kind(message: str) -> FieldType:
    """The type of the objects of a built-in kind."""
    own = message_type(message).map
    assert own is not None
    return FieldType(
        map=MapType(
            lambda name: _HEADER.get(name) or own.named(name),
            zeros=own.zeros,
            omitted=own.omitted,
        )
    )


# --- built-in kinds -------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _rules() -> Mapping[str, list[str]]:
    return {words[0]: words[1:] for words in map(str.split, MERGE_RULES.splitlines())}


@lru_cache(maxsize=1024)
def message_type(message: str) -> FieldType:
    """The type of a message of `wire.kube.fields`."""
    words = _rules().get(message, ())
    rules = dict(word.split("=", 1) for word in words if not word.startswith("+") and "=" in word)
    fields = fields_by_name(message)

    def find(name: str) -> FieldType | None:
        found = fields.get(name)
        return None if found is None else _declared(found, rules.get(name, ""))

    zeros = _zeros(message)
    omitted = frozenset(
        name
        for name, found in fields.items()
        if name not in zeros
        and name != "managedFields"  # `[]` forgets all owners
        and not found.is_kept_empty
        and (found.shape or (found.message is None and found.type not in _STRUCTS))
    )
    return FieldType(map=MapType(find, is_atomic="!" in words, zeros=zeros, omitted=omitted))


@lru_cache(maxsize=1024)
def _zeros(message: str) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for inline in fields_by_number(message).values():
        if inline.is_inline:
            found |= _zeros(inline.type)
    for word in _rules().get(message, ()):
        if word.startswith("+"):
            name, mark, value = word[1:].partition(":")
            known = fields_by_name(message).get(name)
            found[name] = (
                json.loads(value) if mark else dict(_zeros(known.type)) if known is not None else {}
            )
    return found


def _declared(found: Field, rule: str) -> FieldType:
    one = _SCALARS.get(found.type) or message_type(found.type)
    if found.shape == "*":
        return FieldType(list=_list(lambda: one, rule))
    if found.shape == "%":
        return FieldType(map=MapType(_nothing, one, is_atomic=rule == "!"))
    if rule == "granular" and one.map is not None:
        return FieldType(map=MapType(one.map.named, zeros=one.map.zeros))
    return one


def _list(items: Callable[[], FieldType], rule: str) -> ListType:
    if not rule:
        return ListType(items)
    if rule == "*":
        return ListType(items, is_atomic=False)
    keys = [key.partition(":") for key in rule.split(",")]
    defaults = {name: json.loads(value) for name, mark, value in keys if mark}
    return ListType(
        items, is_atomic=False, keys=tuple(name for name, _, _ in keys), defaults=defaults
    )


# --- custom kinds ---------------------------------------------------------------------------------


def _with_metadata(schema: Schema) -> FieldType:
    own = _object(schema, is_open=False)
    metadata = message_type("meta.ObjectMeta")
    known = {**_HEADER, "metadata": metadata}
    return FieldType(map=MapType(lambda name: known.get(name) or own.named(name), own.other))


def schema_type(schema: Schema | None, *, is_open: bool = False) -> FieldType:
    """The type of a structural schema. `is_open`: something around it keeps unknown fields."""
    if schema is None:
        return DEDUCED
    is_open = is_open or bool(schema.get(PRESERVE))
    kind = schema.get("type") or ""
    if kind == "object":
        return FieldType(map=_object(schema, is_open=is_open))
    if kind == "array":
        return FieldType(list=_schema_list(schema, is_open=is_open))
    if kind in ("integer", "number"):
        return _SCALARS["i"]
    if kind == "boolean":
        return _SCALARS["b"]
    if kind == "string":
        is_plain = schema.get("format") in (None, "", "byte")
        return _STRING_TYPE if is_plain else _UNTYPED_TYPE
    return FieldType(
        UNTYPED, _schema_list(schema, is_open=is_open), _object(schema, is_open=is_open)
    )


def _object(schema: Schema, *, is_open: bool) -> MapType:
    is_open = is_open or bool(schema.get(PRESERVE))
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")

    def find(name: str) -> FieldType | None:
        if schema.get(EMBEDDED) and name in ("apiVersion", "kind", "metadata"):
            return _HEADER.get(name) or message_type("meta.ObjectMeta")
        return schema_type(properties[name], is_open=is_open) if name in properties else None

    if isinstance(more, Mapping):
        other: FieldType | None = schema_type(more, is_open=is_open)
    elif more is None:
        other = DEDUCED if is_open or not properties else None
    else:
        other = DEDUCED if more else None
    return MapType(find, other, is_atomic=schema.get("x-kubernetes-map-type") == "atomic")


def _schema_list(schema: Schema, *, is_open: bool) -> ListType:
    items = schema.get("items")

    @lru_cache(maxsize=1)
    def item() -> FieldType:
        return _ATOMIC if items is None else schema_type(items, is_open=is_open)

    relation = schema.get("x-kubernetes-list-type")
    if relation == "set":
        return ListType(item, is_atomic=False)
    if relation == "map":
        keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
        return ListType(item, is_atomic=False, keys=keys, defaults=dict(_defaults(items, keys)))
    return ListType(item)


def _defaults(items: Schema | None, keys: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    properties = (items or {}).get("properties") or {}
    for key in keys:
        if "default" in properties.get(key, ()):
            yield key, properties[key]["default"]
