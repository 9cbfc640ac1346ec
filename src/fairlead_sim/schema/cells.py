"""What do the tables of all kinds share: column definitions, ages, the `<none>` words?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.wire.kube.time import parse_time
from fairlead_sim.schema.duration import render_duration
from fairlead_sim.schema.selector import render_label_selector

Object = Mapping[str, Any]
Column = dict[str, Any]

NAME = "Name:name"
NONE = "<none>"


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a kind and how one object fills them. `condition` gives (reason, message) of a row that is over and done."""

    columns: tuple[Column, ...]
    cells: Callable[[Object, float], list[Any]]
    condition: Callable[[Object], tuple[str, str] | None] | None = None


def columns(*shown: str, wide: Iterable[str] = ()) -> tuple[Column, ...]:
    """Column definitions from `Title` or `Title:type` (`name` is a string in the format of a name); `wide` ones have priority 1."""
    return (*(_column(title, 0) for title in shown), *(_column(title, 1) for title in wide))


def _column(title: str, priority: int) -> Column:
    name, _, kind = title.partition(":")
    plain = kind in ("", "name")
    return {
        "name": name,
        "type": "string" if plain else kind,
        "format": kind if kind == "name" else "",
        "description": "",
        "priority": priority,
    }


def since(text: Any, now: float) -> str:
    """How long ago a time of the API was, `<unknown>` when it is not set or not a time."""
    try:
        return render_duration(now - parse_time(str(text))) if text else "<unknown>"
    except ValueError:
        return "<unknown>"


def age(obj: Object, now: float) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def part(obj: Object, *path: str) -> Any:
    """The field at `path`, None when anything on the way is missing, null or not an object."""
    value: Any = obj
    for key in path:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def number(obj: Object, *path: str) -> int:
    return int(part(obj, *path) or 0)


def text(obj: Object, *path: str, default: str = "") -> str:
    value = part(obj, *path)
    return default if value is None or value == "" else str(value)


def containers_and_images(pod_spec: Any) -> list[str]:
    containers = part(pod_spec or {}, "containers") or ()
    return [",".join(str(container.get(key, "")) for container in containers) for key in ("name", "image")]


def selector_cell(selector: Any) -> str:
    return render_label_selector(selector) or NONE


def labels_cell(labels: Any) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted((labels or {}).items())) or NONE


def true_condition(obj: Object, kind: str) -> bool:
    return any(condition.get("type") == kind and condition.get("status") == "True" for condition in part(obj, "status", "conditions") or ())
