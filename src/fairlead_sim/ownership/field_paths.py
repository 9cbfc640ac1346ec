"""Paths of fields: as sets, as the `fieldsV1` of a managed-fields entry, and as people read them.

A path is a tuple of steps: `f:NAME` is a field or a map's key, `k:{…}` an item by its keys, `v:…`
an item of a set. Steps are written as in `fieldsV1`, so a set and its written form differ in their
shape alone.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from fairlead_sim.ownership.field_types import ListType
from fairlead_sim.schema.go_json import encode_json

Path = tuple[str, ...]
Paths = set[Path]
Fields = dict[str, Any]

ITSELF: Final = "."
_LEAF: Final[Fields] = {}
"""The content of every last step; shared, because there are very many."""


class NoStep(ValueError):
    """Why an item of a list has no place in it by key or value."""


def item_step(kind: ListType, item: Any) -> str:
    """The step to an item of a list that is no atomic one.

    Raises NoStep for an item without a key, and for an item of a set that is no scalar.

    >>> ports = ListType(lambda: None, False, ("port", "protocol"), {"protocol": "TCP"})
    >>> item_step(ports, {"port": 80, "name": "web"})
    'k:{"port":80,"protocol":"TCP"}'
    """
    if not kind.keys:
        if isinstance(item, dict):
            raise NoStep("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise NoStep("not supported: associative list with lists as elements")
        if item is None:
            raise NoStep("associative list without keys has an element that's an explicit null")
        return f"v:{encode_json(item)}"
    if item is None:
        raise NoStep("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise NoStep("associative list with keys may not have non-map elements")
    found = {
        key: item[key] if key in item else kind.defaults[key]
        for key in kind.keys
        if key in item or key in kind.defaults
    }
    if not found:
        names = " ".join(json.dumps(key) for key in kind.keys)
        raise NoStep(
            f"associative list with keys has an element that omits all key fields [{names}] (and "
            "doesn't have default values for any key fields)"
        )
    return f"k:{encode_json(found)}"


def paths_of(fields: Mapping[str, Any]) -> Paths:
    """The paths of a `fieldsV1`.

    Raises ValueError for what is none.
    """
    found: Paths = set()
    _collect(fields, (), found)
    return found


def _collect(fields: Mapping[str, Any], prefix: Path, found: Paths) -> None:
    for step, inner in fields.items():
        if not isinstance(inner, Mapping):
            raise ValueError(f"`{step}` is no object")
        if step == ITSELF:
            found.add(prefix)
        elif inner:
            _collect(inner, (*prefix, step), found)
        else:
            found.add((*prefix, step))


def has_path(fields: Mapping[str, Any], path: Path) -> bool:
    """Whether a `fieldsV1` has a path itself.

    >>> has_path({"f:data": {"f:a": {}}}, ("f:data",))
    False
    """
    node: Any = fields
    for step in path:
        node = node.get(step)
        if node is None:
            return False
    return not node or ITSELF in node


def fields_of(paths: Iterable[Path]) -> Fields:
    """The `fieldsV1` of paths.

    >>> fields_of([("f:data",), ("f:data", "f:a")])
    {'f:data': {'.': {}, 'f:a': {}}}
    """
    root: Fields = {}
    for path in sorted(paths):
        node = root
        for step in path[:-1]:
            inner = node.get(step)
            if inner is None or inner is _LEAF:
                inner = node[step] = {} if inner is None else {ITSELF: _LEAF}
            node = inner
        node.setdefault(path[-1], _LEAF)
    return root


def canonical(fields: Mapping[str, Any]) -> Fields:
    """A client's `fieldsV1` with the texts of its steps as the server writes them.

    Raises ValueError for steps that are none.
    """
    return {_step(step): canonical(inner) if inner else _LEAF for step, inner in fields.items()}


def _step(step: str) -> str:
    if step == ITSELF or step.startswith("f:"):
        return step
    if step.startswith(("k:", "v:")):
        return f"{step[:2]}{encode_json(json.loads(step[2:]))}"
    if step.startswith("i:") and step[2:].isdecimal():
        return step
    raise ValueError(f"`{step}` is no step of a path")


def shown_path(path: Path) -> str:
    """A path in messages.

    >>> shown_path(("f:spec", "f:containers", 'k:{"name":"main"}', "f:image"))
    '.spec.containers[name="main"].image'
    """
    return "".join(_shown_step(step) for step in path)


def _shown_step(step: str) -> str:
    content = step[2:]
    if step.startswith("f:"):
        return f".{content}"
    if step.startswith("k:"):
        keys = json.loads(content)
        return f"[{','.join(f'{name}={_shown(value)}' for name, value in keys.items())}]"
    return f"[={_shown(json.loads(content))}]" if step.startswith("v:") else f"[{content}]"


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def in_order(paths: Iterable[Path]) -> list[Path]:
    """The paths as the real server lists them: what ends at an object, then what leads deeper;
    fields by name, items by their keys' values.
    """
    return sorted(
        paths,
        key=lambda path: [(at < len(path), *_rank(step)) for at, step in enumerate(path, 1)],
    )


def _rank(step: str) -> tuple[int, Any]:
    content = step[2:]
    if step.startswith("f:"):
        return 0, content
    if step.startswith("k:"):
        return 1, [(name, *_value_rank(value)) for name, value in json.loads(content).items()]
    return 2, _value_rank(json.loads(content))


def _value_rank(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return 2, value
    return (0, value) if isinstance(value, int | float) else (1, str(value))


def below(paths: Iterable[Path], tops: Iterable[Path]) -> Iterator[Path]:
    """Those of the paths that are one of `tops` or below it."""
    marks = tuple(tops)
    return (path for path in paths if any(path[: len(top)] == top for top in marks))
