"""YAML in which a repeated key is an error: of two lists of users, one would silently be lost.

PyYAML alone keeps the last of them. Files that protect a page or start a program are read with this
module.
"""

from __future__ import annotations

from typing import Any

import yaml

from fairlead.wire.files.bounded import load_yaml


def load_strict_yaml(text: str | bytes) -> Any:
    """The one document of `text` as plain values, None for an empty one.

    Raises yaml.YAMLError for text that is malformed or too deep, or repeats a key.
    """
    return load_yaml(text, _KeysOnce().look)


def yaml_trouble(error: yaml.YAMLError) -> str:
    """The error in one line, with the line number."""
    mark = getattr(error, "problem_mark", None)
    problem = str(getattr(error, "problem", None) or error).splitlines()[0]
    return f"{problem} (line {mark.line + 1})" if mark is not None else problem


class _KeysOnce:
    """Checks keys in the parser's events, which do not recurse; keys behind an alias only once."""

    def __init__(self) -> None:
        self._open: list[set[str] | None] = []
        self._is_key: list[bool] = []

    def look(self, event: yaml.Event) -> None:
        """Raises yaml.YAMLError for a key that its mapping already has."""
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
                # of the C parser or of the Python one: alike, but not related
                mark: Any = event.start_mark
                raise yaml.MarkedYAMLError(
                    problem=f"key `{event.value}` occurs twice", problem_mark=mark
                )
            names.add(event.value)
        self._is_key[-1] = not self._is_key[-1]
