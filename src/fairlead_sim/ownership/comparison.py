"""Which fields an object has, and in which two objects differ, by the types of its kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from fairlead_sim.ownership.field_paths import NoStep, Path, Paths, item_step, shown_path
from fairlead_sim.ownership.field_types import (
    BOOLEAN,
    DEDUCED,
    NUMERIC,
    STRING,
    FieldType,
    ListType,
    MapType,
)
from fairlead_sim.schema.go_json import go_type, go_value

ABSENT: Final = object()
"""No value at all, which is not null."""


def chosen(kind: FieldType, value: Any) -> FieldType:
    """Of a type that allows several forms the form that the value has."""
    if isinstance(value, dict):
        return FieldType(map=kind.map) if kind.map and (kind.scalar or kind.list) else kind
    if isinstance(value, list):
        return FieldType(list=kind.list) if kind.list and (kind.scalar or kind.map) else kind
    if value is not None and value is not ABSENT and kind.scalar and (kind.list or kind.map):
        return FieldType(kind.scalar)
    return kind


# --- two objects ----------------------------------------------------------------------------------


@dataclass(slots=True)
class Comparison:
    """The paths that only the new object has, that both have with different values, and that only
    the old one has.
    """

    added: Paths = field(default_factory=set)
    modified: Paths = field(default_factory=set)
    removed: Paths = field(default_factory=set)

    def without(self, tops: tuple[Path, ...]) -> Comparison:
        """The same without the paths that are one of `tops` or below it."""
        if not tops:
            return self
        kept = (
            {path for path in paths if not any(path[: len(top)] == top for top in tops)}
            for paths in (self.added, self.modified, self.removed)
        )
        return Comparison(*kept)


def compare(kind: FieldType, old: Any, new: Any) -> Comparison:
    """Raises NoStep for an item that its list cannot have."""
    found = Comparison()
    _compare(kind, old, new, (), found)
    return found


def _compare(kind: FieldType, old: Any, new: Any, path: Path, found: Comparison) -> None:
    if old is new or (old is not ABSENT and new is not ABSENT and old == new):
        return
    forms = [chosen(kind, old if new is ABSENT else new)]
    if old is not ABSENT and new is not ABSENT and type(old) is not type(new):
        before = chosen(kind, old)
        if before is not kind and _form(before) != _form(forms[0]):
            forms.insert(0, before)
    is_leaf = False
    for form in forms:
        is_leaf = _compare_form(form, old, new, path, found)
    if not is_leaf and path:
        if old is ABSENT:
            found.added.add(path)
        elif new is ABSENT:
            found.removed.add(path)


def _form(kind: FieldType) -> str:
    return "map" if kind.map else "scalar" if kind.scalar else "list"


def _compare_form(kind: FieldType, old: Any, new: Any, path: Path, found: Comparison) -> bool:
    """Returns whether the value is a leaf: a whole for its owner."""
    if kind.map is not None:
        left = old if isinstance(old, dict) else None
        right = new if isinstance(new, dict) else None
        if not kind.map.is_atomic and (left or right or kind.map.zeros):
            _compare_maps(kind.map, left, right, path, found)
            return False
    elif kind.list is not None and kind.scalar is None:
        before = old if isinstance(old, list) else []
        after = new if isinstance(new, list) else []
        if not kind.list.is_atomic and (before or after):
            _compare_lists(kind.list, before, after, path, found)
            return False
    if path:
        if old is ABSENT:
            found.added.add(path)
        elif new is ABSENT:
            found.removed.add(path)
        elif old != new:
            found.modified.add(path)
    return True


def _compare_maps(
    kind: MapType,
    old: dict[str, Any] | None,
    new: dict[str, Any] | None,
    path: Path,
    found: Comparison,
) -> None:
    before, after = _filled(kind, old), _filled(kind, new)
    for name in {**before, **after} if before and after else before or after:
        _compare(
            kind.of(name) or DEDUCED,
            before.get(name, ABSENT),
            after.get(name, ABSENT),
            (*path, f"f:{name}"),
            found,
        )


def _filled(kind: MapType, value: dict[str, Any] | None) -> dict[str, Any]:
    if value is None:
        return {}
    return {**kind.zeros, **value} if kind.zeros else value


def _compare_lists(
    kind: ListType, old: list[Any], new: list[Any], path: Path, found: Comparison
) -> None:
    """Items that a list has more than once are compared as a whole."""
    before, after, items = _by_step(kind, old), _by_step(kind, new), kind.items()
    for step in {**before, **after}:
        left, right, place = before.get(step, []), after.get(step, []), (*path, step)
        if len(left) <= 1 and len(right) <= 1:
            _compare(
                items, left[0] if left else ABSENT, right[0] if right else ABSENT, place, found
            )
        elif len(left) > 1 and len(right) > 1:
            if left != right:
                found.modified.add(place)
        elif len(left) > 1:
            if right:
                _compare(items, ABSENT, right[0], place, found)
            found.removed.add(place)
        else:
            if left:
                _compare(items, left[0], ABSENT, place, found)
            found.added.add(place)


def _by_step(kind: ListType, items: list[Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(item_step(kind, item), []).append(item)
    return found


# --- one object -----------------------------------------------------------------------------------


def field_paths(kind: FieldType, value: Any) -> Paths:
    """The paths that a writer of exactly this object owns."""
    found: Paths = set()
    _add_paths(kind, value, (), found)
    return found


def _add_paths(kind: FieldType, value: Any, path: Path, found: Paths) -> None:
    form = chosen(kind, value)
    if form.map is not None:
        if form.map.is_atomic:
            found.add(path)
        elif isinstance(value, dict):
            _add_map_paths(form.map, value, path, found)
    elif form.scalar is not None or (form.list is not None and form.list.is_atomic):
        found.add(path)
    elif form.list is not None and isinstance(value, list):
        _add_list_paths(form.list, value, path, found)


def _add_map_paths(kind: MapType, value: dict[str, Any], path: Path, found: Paths) -> None:
    for name, inner in value.items():
        place = (*path, f"f:{name}")
        named = kind.named(name)
        _add_paths(named or kind.other or DEDUCED, inner, place, found)
        if inner is None or inner == {} or named is None:
            found.add(place)


def _add_list_paths(kind: ListType, value: list[Any], path: Path, found: Paths) -> None:
    for step, items in _by_step(kind, value).items():
        place = (*path, step)
        if len(items) == 1:
            _add_paths(kind.items(), items[0], place, found)
        found.add(place)


def named_paths(kind: FieldType, paths: Paths) -> Paths:
    """The paths, and all declared fields that they lead through."""
    found = set(paths)
    for path in paths:
        here: FieldType | None = kind
        for depth, step in enumerate(path[:-1], 1):
            named = None
            if here is None:
                break
            if step.startswith("f:"):
                named = here.map.named(step[2:]) if here.map else None
                if named is not None:
                    found.add(path[:depth])
                here = named or (here.map.other if here.map else None)
            else:
                here = here.list.items() if here.list else None
    return found


# --- faults ---------------------------------------------------------------------------------------


def type_faults(kind: FieldType, value: Any) -> list[str]:
    """What of the value its type does not allow, each with its path."""
    return [f"{shown_path(path)}: {why}" if path else why for path, why in _faults(kind, value, ())]


def _faults(kind: FieldType, value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    form = chosen(kind, value)
    if value is None:
        return
    if form.map is not None:
        if not isinstance(value, dict):
            yield path, f"expected map, got &{{{go_value(value)}}}"
            return
        for name, inner in value.items():
            named = form.map.of(name)
            if named is None:
                yield (*path, f"f:{name}"), "field not declared in schema"
                return
            yield from _faults(named, inner, (*path, f"f:{name}"))
    elif form.scalar is not None:
        yield from ((path, why) for why in _scalar_faults(form.scalar, value))
    elif form.list is not None:
        if not isinstance(value, list):
            yield path, f"expected list, got &{{{go_value(value)}}}"
            return
        yield from _list_faults(form.list, value, path)


def _list_faults(kind: ListType, value: list[Any], path: Path) -> Iterator[tuple[Path, str]]:
    seen: set[str] = set()
    for number, item in enumerate(value):
        step = f"i:{number}"
        if not kind.is_atomic:
            try:
                step = item_step(kind, item)
            except NoStep as error:
                yield path, f"element {number}: {error}"
                return
            if step in seen:
                yield path, f"duplicate entries for key {shown_path((step,))}"
            seen.add(step)
        yield from _faults(kind.items(), item, (*path, step))


def _scalar_faults(wanted: str, value: Any) -> Iterator[str]:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if wanted == NUMERIC and not is_number:
        yield f"expected numeric (int or float), got {go_type(value)}"
    elif wanted == STRING and not isinstance(value, str):
        yield f"expected string, got &value.valueUnstructured{{Value:{json.dumps(value)}}}"
    elif wanted == BOOLEAN and not isinstance(value, bool):
        yield f"expected boolean, got &{{{go_value(value)}}}"
    elif isinstance(value, dict | list):
        yield f"expected any scalar, got &{{{go_value(value)}}}"
