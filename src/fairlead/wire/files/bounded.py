"""Limits for YAML and JSON from outside: nesting depth, and the amount that aliases may repeat.

The limits are checked before anything is built from the text: PyYAML's C loader and most functions
that walk over a document recurse once per level, so a few kilobytes of `[` would end the whole
process (SIGSEGV). Reading the parser's events, as this module does, does not recurse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import yaml

MAX_LEVELS: Final = 200
"""The deepest nesting that is accepted, in levels; three times what people write.

Recursive functions over such a document stay several times below Python's stack limit.
"""

MAX_REPEATED_CHARACTERS: Final = 3 * 1024 * 1024
"""The largest number of characters that all aliases of one document may expand to."""

Look = Callable[[yaml.Event], None]
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_UNREADABLE: Final = (ValueError, LookupError, AttributeError, TypeError, RecursionError)
"""Exceptions that PyYAML raises in addition to its own errors.

Causes: `2026-13-45`, a number of ten thousand digits, `!!bool maybe`, a long chain of merges.
"""


def load_yaml(text: str | bytes, look: Look = lambda event: None) -> Any:
    """The one document of `text` as plain values.

    `look` gets the parser's events before anything is built.

    Raises yaml.YAMLError for text that is malformed, too deep or repeats too much; errors of `look`
    pass.
    """
    try:
        _check_events(text, look=look)
        return yaml.load(text, Loader=_LOADER)
    except _UNREADABLE as error:
        raise yaml.YAMLError(f"a value cannot be read: {error}") from error


def load_yaml_documents(text: str | bytes, levels: int = MAX_LEVELS) -> list[Any]:
    """Every document of `text`, under the same limits; an empty document is None.

    `levels`: a higher limit for documents that are deep by design and read without recursion.
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
        children = (
            child for held in level for child in (held.values() if isinstance(held, dict) else held)
        )
        level = [child for child in children if isinstance(child, dict | list)]
    return bool(level)


def _check_events(
    text: str | bytes, levels: int = MAX_LEVELS, look: Look = lambda event: None
) -> None:
    """Reads the document without building it; raises yaml.YAMLError when it exceeds a limit.

    The size of a node is its characters plus its children's sizes, at least one each, so empty
    nodes count.
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
                raise _fault(
                    event, f"aliases repeat more than {MAX_REPEATED_CHARACTERS} characters"
                )
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
