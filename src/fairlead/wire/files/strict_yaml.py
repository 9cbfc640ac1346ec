"""YAML in which a key may stand once: of two, one would be lost without a word (a second list of users).

PyYAML takes the last one. What guards a page or starts a program is read with this in place of it.
"""

from __future__ import annotations

from typing import Any

import yaml

from fairlead.wire.files.bounded import load_yaml


def load_strict_yaml(text: str | bytes) -> Any:
    """The one document of `text` as plain values, None for an empty one.

    Raises yaml.YAMLError for what cannot be read, is too deep, or names a key twice.
    """
    value = load_yaml(text)
    _refuse_twice(text)
    return value


def yaml_trouble(error: yaml.YAMLError) -> str:
    """In one line, with the place."""
    mark = getattr(error, "problem_mark", None)
    told = str(getattr(error, "problem", None) or error).splitlines()[0]
    return f"{told} (line {mark.line + 1})" if mark is not None else told


def _refuse_twice(text: str | bytes) -> None:
    """Look at the events alone: they do not recurse, and an alias's keys were looked at where it points."""
    open_nodes: list[set[str] | None] = []
    is_key: list[bool] = []
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if isinstance(event, yaml.CollectionEndEvent):
            open_nodes.pop()
            is_key.pop()
            continue
        if not isinstance(event, yaml.NodeEvent):
            continue
        if open_nodes and (names := open_nodes[-1]) is not None:
            if is_key[-1] and isinstance(event, yaml.ScalarEvent):
                if event.value in names:
                    mark: Any = event.start_mark  # of the C parser or of the Python one: alike, but not related
                    raise yaml.MarkedYAMLError(problem=f"key `{event.value}` stands there twice", problem_mark=mark)
                names.add(event.value)
            is_key[-1] = not is_key[-1]
        if isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append(set() if isinstance(event, yaml.MappingStartEvent) else None)
            is_key.append(True)
