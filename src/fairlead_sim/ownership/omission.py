"""What the real server leaves out of built-in objects: empty lists, maps and texts, zeros and
false, of fields that are `omitempty` in its Go types.
"""

from __future__ import annotations

from typing import Any, Final

from fairlead_sim.ownership.field_types import FieldType, MapType

_GONE: Final = object()


def without_empty(kind: FieldType, value: Any) -> Any:
    """The value without fields that an answer never shows; the same object if it has none."""
    if isinstance(value, dict) and kind.map is not None:
        return _map_without_empty(kind.map, value)
    if isinstance(value, list) and kind.list is not None and isinstance(_first(value), dict | list):
        items = kind.list.items()
        kept = [without_empty(items, item) for item in value]
        return kept if any(new is not old for new, old in zip(kept, value, strict=True)) else value
    return value


def _first(value: list[Any]) -> Any:
    return value[0] if value else None


def _map_without_empty(kind: MapType, value: dict[str, Any]) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    for name, inner in value.items():
        kept = inner
        if inner:
            if inner.__class__ is not dict and inner.__class__ is not list:
                continue  # most values
            of = kind.of(name)
            kept = inner if of is None else without_empty(of, inner)
        if not kept and kept is not None and name in kind.omitted:
            changed[name] = _GONE
        elif kept is not inner:
            changed[name] = kept
    if not changed:
        return value
    return {name: kept for name, kept in {**value, **changed}.items() if kept is not _GONE}
