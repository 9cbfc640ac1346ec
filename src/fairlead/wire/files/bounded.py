"""Bounds for YAML and JSON from outside: how deep it may be nested, how much aliases may repeat.

Checked before anything is built from it: PyYAML's C loader and most walks over a document call themselves
once per level, so a few kilobytes of `[` would end the process (SIGSEGV), not only the request. Looking at
the parser's events, as here, does not recurse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import yaml

MAX_LEVELS: Final = 200
"""Three times the deepest object that people write.

Every walk over one fits Python's stack several times over.
"""

MAX_REPEATED_CHARACTERS: Final = 3 * 1024 * 1024
"""What all aliases of one document may stand for, written out."""

Look = Callable[[yaml.Event], None]
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_UNREADABLE: Final = (ValueError, LookupError, AttributeError, TypeError, RecursionError)
"""What PyYAML lets through beside its own errors.

For `2026-13-45`, ten thousand digits, `!!bool maybe`, and a long chain of merges.
"""


def load_yaml(text: str | bytes, look: Look = lambda event: None) -> Any:
    """The one document of `text` as plain values. `look` sees the parser's events before anything is built.

    Raises yaml.YAMLError for what cannot be read, is too deep or repeats too much, and what `look` raises.
    """
    try:
        _check_events(text, look=look)
        return yaml.load(text, Loader=_LOADER)
    except _UNREADABLE as error:
        raise yaml.YAMLError(f"a value cannot be read: {error}") from error


def load_yaml_documents(text: str | bytes, levels: int = MAX_LEVELS) -> list[Any]:
    """Every document of `text`, under the same bounds; an empty one is None.

    `levels`: for what is nested by nature, and is walked over without recursion.
    """
    try:
        _check_events(text, levels)
        return list(yaml.load_all(text, Loader=_LOADER))
    except _UNREADABLE as error:
        raise yaml.YAMLError(f"a value cannot be read: {error}") from error


def is_too_deep(value: Any) -> bool:
    """Whether plain values are nested in more than `MAX_LEVELS` lists and objects.

    >>> is_too_deep([[{"a": 1}]])
    False
    """
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MAX_LEVELS):
        children = (child for held in level for child in (held.values() if isinstance(held, dict) else held))
        level = [child for child in children if isinstance(child, dict | list)]
    return bool(level)


def _check_events(text: str | bytes, levels: int = MAX_LEVELS, look: Look = lambda event: None) -> None:
    """Read through the document without building it.

    A node's size is its characters and its children's, one each at least, so that empty ones count as well.
    """
    sizes: dict[str, int] = {}
    open_nodes: list[tuple[str | None, int]] = []
    seen = repeated = 0
    for event in yaml.parse(text, Loader=_LOADER):
        look(event)
        if isinstance(event, yaml.AliasEvent):
            size = sizes.get(event.anchor or "", 0)
            seen, repeated = seen + size, repeated + size
            if repeated > MAX_REPEATED_CHARACTERS:
                raise _fault(event, f"aliases repeat more than {MAX_REPEATED_CHARACTERS} characters")
            if any(anchor == event.anchor for anchor, _ in open_nodes):
                raise _fault(event, f"alias `{event.anchor}` stands inside what it repeats")
        elif isinstance(event, yaml.ScalarEvent):
            size = 1 + len(event.value)
            seen += size
            if event.anchor:
                sizes[event.anchor] = size
        elif isinstance(event, yaml.CollectionStartEvent):
            open_nodes.append((event.anchor, seen))
            seen += 1
            if len(open_nodes) > levels:
                raise _fault(event, f"nested more than {levels} levels deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, before = open_nodes.pop()
            if anchor:
                sizes[anchor] = seen - before


def _fault(event: yaml.Event, problem: str) -> yaml.MarkedYAMLError:
    mark: Any = event.start_mark  # of the C parser or of the Python one: alike, but not related
    return yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
