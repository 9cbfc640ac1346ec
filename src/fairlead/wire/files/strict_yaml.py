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
    return load_yaml(text, _KeysOnce().look)


def yaml_trouble(error: yaml.YAMLError) -> str:
    """In one line, with the place."""
    mark = getattr(error, "problem_mark", None)
    told = str(getattr(error, "problem", None) or error).splitlines()[0]
    return f"{told} (line {mark.line + 1})" if mark is not None else told


class _KeysOnce:
    """Looks at a parser's events: they do not recurse, and an alias's keys were looked at where it points."""

    def __init__(self) -> None:
        self._open: list[set[str] | None] = []
        self._is_key: list[bool] = []

    def look(self, event: yaml.Event) -> None:
        """Raises yaml.YAMLError for a key that its mapping has already."""
        if isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
            self._is_key.pop()
        elif isinstance(event, yaml.NodeEvent):
            self._note(event)
            if isinstance(event, yaml.CollectionStartEvent):
                self._open.append(set() if isinstance(event, yaml.MappingStartEvent) else None)
                self._is_key.append(True)

    def _note(self, event: yaml.NodeEvent) -> None:
        if not self._open or (names := self._open[-1]) is None:
            return
        if self._is_key[-1] and isinstance(event, yaml.ScalarEvent):
            if event.value in names:
                mark: Any = event.start_mark  # of the C parser or of the Python one: alike, but not related
                raise yaml.MarkedYAMLError(problem=f"key `{event.value}` stands there twice", problem_mark=mark)
            names.add(event.value)
        self._is_key[-1] = not self._is_key[-1]
