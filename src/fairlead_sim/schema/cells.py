"""The language of the tables that kubectl prints.

Each column has a JSONPath or a function; words such as `<none>` stand for absent values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.wire.kube.time import parse_time
from fairlead_sim.schema.duration import render_duration
from fairlead_sim.schema.jsonpath import find_first
from fairlead_sim.schema.selector import render_label_selector

Object = Mapping[str, Any]
Column = dict[str, Any]
Fill = Callable[[Object, float], Any]
"""What makes a cell of an object and the cluster's time."""

NAME = "Name:name"
NONE = "<none>"


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of a kind and how one object fills them.

    `condition` gives (reason, message) of a row that is over and done.
    """

    columns: tuple[Column, ...]
    cells: Callable[[Object, float], list[Any]]
    condition: Callable[[Object], tuple[str, str] | None] | None = None


def layout(shown: Mapping[str, str | Fill]) -> Layout:
    """A table from `{Title or Title:type: path or function}`; `+Title` is a wide column, the name
    is first unless it is wide.

    A path is a JSONPath. What is found becomes a text, in columns of integers and booleans one of
    those; `#.spec.a` is an integer in any column, `.spec.a|<none>` a text with the word that is
    shown if nothing is found.
    """
    shown = shown if f"+{NAME}" in shown else {NAME: ".metadata.name", **shown}
    fills = [
        fill if callable(fill) else _read(title.partition(":")[2], fill)
        for title, fill in shown.items()
    ]
    return Layout(columns(shown), lambda obj, now: [fill(obj, now) for fill in fills])


def columns(titles: Iterable[str]) -> tuple[Column, ...]:
    """Column definitions from `Title` or `Title:type` (`name` is a string in the format of a name);
    `+Title` has priority 1."""
    return tuple(_column(title.removeprefix("+"), int(title.startswith("+"))) for title in titles)


def _column(title: str, priority: int) -> Column:
    name, _, kind = title.partition(":")
    is_plain = kind in ("", "name")
    return {
        "name": name,
        "type": "string" if is_plain else kind,
        "format": kind if kind == "name" else "",
        "description": "",
        "priority": priority,
    }


def _read(kind: str, path: str) -> Fill:
    path, has_default, default = path.partition("|")
    if path.startswith("#") or (kind == "integer" and not has_default):
        path = path.removeprefix("#")
        return lambda obj, now: int(find_first(path, obj) or 0)
    if kind == "boolean" and not has_default:
        return lambda obj, now: bool(find_first(path, obj))

    def text_of(obj: Object, now: float) -> str:
        value = find_first(path, obj)
        return default if value is None or value == "" else str(value)

    return text_of


# --- functions that many tables fill cells with ---------------------------------------------------


def since(text: Any, now: float) -> str:
    """How long ago a time of the API was, `<unknown>` when it is not set or not a time."""
    try:
        return render_duration(now - parse_time(str(text))) if text else "<unknown>"
    except ValueError:
        return "<unknown>"


def age(obj: Object, now: float) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


def created_at(obj: Object, now: float) -> Any:
    """The time itself, which kinds without a printer of their own show."""
    return obj["metadata"].get("creationTimestamp")


def count_of(path: str) -> Fill:
    """How many items or keys there are at the path."""
    return lambda obj, now: len(find_first(path, obj) or ())


def labels_of(path: str) -> Fill:
    """The labels at the path."""
    return lambda obj, now: (
        ",".join(f"{key}={value}" for key, value in sorted((find_first(path, obj) or {}).items()))
        or NONE
    )


def selector_of(path: str, default: str = NONE) -> Fill:
    """The label selector at the path."""
    return lambda obj, now: render_label_selector(find_first(path, obj)) or default


def containers_of(path: str, key: str) -> Fill:
    """A field of all containers of the pod spec at the path."""
    return lambda obj, now: ",".join(
        str(container.get(key, "")) for container in find_first(f"{path}.containers", obj) or ()
    )


def first_few(shown: list[str], limit: int, default: str, comma: str = ",") -> str:
    """The first of them, and how many more there are."""
    more = f" + {len(shown) - limit} more..." if len(shown) > limit else ""
    return comma.join(shown[:limit]) + more if shown else default


def part(obj: Any, *path: str) -> Any:
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


def true_condition(obj: Object, kind: str) -> bool:
    return any(
        condition.get("type") == kind and condition.get("status") == "True"
        for condition in part(obj, "status", "conditions") or ()
    )
