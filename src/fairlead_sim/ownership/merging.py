"""An applied configuration merged into an object, and fields taken out of one.

Nothing here changes its arguments: what did not change is shared with the result.
"""

from __future__ import annotations

from typing import Any

from fairlead_sim.ownership.comparison import ABSENT, chosen
from fairlead_sim.ownership.field_paths import ITSELF, Fields, item_step
from fairlead_sim.ownership.field_types import DEDUCED, FieldType, ListType, MapType


def merged(kind: FieldType, old: Any, new: Any) -> Any:
    """What `old` becomes when `new` is applied to it.

    Raises NoStep for an item that its list cannot have.
    """
    if new is ABSENT or old is ABSENT:
        return old if new is ABSENT else new
    form = chosen(kind, new if new is not None else old)
    if not old or not isinstance(new, type(old) | None):
        return new
    if form.map is not None and isinstance(old, dict) and not form.map.is_atomic:
        return _merged_map(form.map, old, new or {})
    if form.list is not None and isinstance(old, list) and not form.list.is_atomic:
        return _merged_list(form.list, old, new or [])
    return new


def _merged_map(kind: MapType, old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    result = dict(old)
    for name, value in new.items():
        result[name] = merged(kind.of(name) or DEDUCED, old.get(name, ABSENT), value)
    return result


def _merged_list(kind: ListType, old: list[Any], new: list[Any]) -> list[Any]:
    """Applied items stand in their own order; each of the others keeps its place before what it
    stood before.
    """
    old_steps = [item_step(kind, item) for item in old]
    wanted = {item_step(kind, item): item for item in new}
    held: dict[str, Any] = {}
    for step, item in zip(old_steps, old, strict=True):
        held[step] = ABSENT if step in held else item  # what is there twice merges with nothing
    waiting = list(wanted)
    shared = [step for step in waiting if step in held]
    items, result, done = kind.items(), [], set()
    at = 0

    def take(step: str) -> None:
        waiting.pop(0)
        done.add(step)
        result.append(merged(items, held.get(step, ABSENT), wanted[step]))
        if shared and shared[0] == step:
            shared.pop(0)

    while at < len(old) or waiting:
        if at < len(old):
            step = old_steps[at]
            if waiting and step == waiting[0]:
                take(step)
                at += 1
                continue
            if waiting and step in wanted and shared and shared[0] != step:
                at += 1
                continue
            if step not in wanted:
                result.append(old[at])
                at += 1
                continue
            if step in done:
                at += 1
        if waiting:
            take(waiting[0])
    return result


def without(kind: FieldType, value: Any, fields: Fields) -> Any:
    """The value without the paths of a `fieldsV1`; None if nothing is left."""
    form = chosen(kind, value)
    if form.map is not None:
        return _map_without(form.map, value, fields) if isinstance(value, dict) else None
    if form.scalar is not None:
        return value
    if form.list is not None and isinstance(value, list) and not form.list.is_atomic:
        return _list_without(form.list, value, fields)
    return None


def _map_without(kind: MapType, value: dict[str, Any], fields: Fields) -> dict[str, Any] | None:
    if kind.is_atomic:
        return None
    result = {}
    for name, inner in value.items():
        found = fields.get(f"f:{name}")
        if found is None:
            result[name] = inner
        elif found and ITSELF not in found:
            result[name] = without(kind.of(name) or DEDUCED, inner, found)
    return result or None


def _list_without(kind: ListType, value: list[Any], fields: Fields) -> list[Any] | None:
    result = []
    for item in value:
        found = fields.get(item_step(kind, item))
        if found is None:
            result.append(item)
        elif found and ITSELF not in found:
            result.append(without(kind.items(), item, found))
    return result or None
