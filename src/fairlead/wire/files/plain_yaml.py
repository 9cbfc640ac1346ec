"""A fast reader for simple YAML that a program wrote: block mappings and lists of plain words.

For anything else it returns None, and PyYAML reads the text: this is no YAML parser and must not
become one. It exists because importing PyYAML takes longer than an API request, and nearly every
kubeconfig is written by `kubectl config`. Everything else (comments, lists of words, block scalars,
most quotes, numbers) is left to PyYAML; `tests/properties/test_plain_yaml.py` compares the two.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

_MAX_CHARACTERS: Final = 200_000
_MAX_INDENT: Final = 60
_LINE: Final = re.compile(
    r'( *)(- )?([A-Za-z][A-Za-z0-9_-]*):(?: ([A-Za-z/][A-Za-z0-9+/=._:@-]*|"[A-Za-z0-9 '
    r'+/=._:@-]*"|\{\}))?'
)
_MEANT_OTHERWISE: Final = frozenset(("yes", "no", "on", "off", "null", "true", "false"))
"""Words that YAML 1.1 reads as a boolean or as null, in any case."""
_TRUTHS: Final = {"true": True, "false": False}


class _Line(NamedTuple):
    """One line of the text. `value` None: the value is in the lines below.

    `indent` is the column of the key; the first key of a list item is two columns right of its
    dash.
    """

    indent: int
    is_item: bool
    key: str
    value: Any


class _UnsupportedYamlError(Exception):
    pass


def parse_plain_yaml(text: str) -> dict[str, Any] | None:
    """The parsed text; None when the text is not that simple.

    >>> parse_plain_yaml("users:\\n- name: a\\n  user:\\n    token: x\\ncurrent-context: a\\n")
    {'users': [{'name': 'a', 'user': {'token': 'x'}}], 'current-context': 'a'}
    >>> parse_plain_yaml("a: 1") is parse_plain_yaml("a: [b]") is None
    True
    """
    if len(text) > _MAX_CHARACTERS:
        return None
    try:
        lines = [_line(line) for line in text.split("\n") if line]
        document, end = _mapping(lines, 0, 0)
    except _UnsupportedYamlError:
        return None
    return document if lines and end == len(lines) else None


def _line(text: str) -> _Line:
    found = _LINE.fullmatch(text)
    if found is None:
        raise _UnsupportedYamlError
    spaces, dash, key, word = found.groups()
    indent = len(spaces) + (2 if dash else 0)
    if indent > _MAX_INDENT or key.lower() in _MEANT_OTHERWISE:
        raise _UnsupportedYamlError
    return _Line(indent, dash is not None, key, None if word is None else _value(word))


def _value(word: str) -> Any:
    if word == "{}":
        return {}
    if word[0] == '"':
        return word[1:-1]
    if word in _TRUTHS:
        return _TRUTHS[word]
    if word.lower() in _MEANT_OTHERWISE or word.endswith(":"):
        raise _UnsupportedYamlError
    return word


def _mapping(lines: list[_Line], at: int, indent: int) -> tuple[dict[str, Any], int]:
    """The mapping with keys at column `indent` from line `at` on, and the line number after it.

    The first key may begin a list item; a later dash ends the mapping.
    """
    found: dict[str, Any] = {}
    while at < len(lines) and lines[at].indent == indent and not (lines[at].is_item and found):
        key, value = lines[at].key, lines[at].value
        at += 1
        if value is None:
            value, at = _below(lines, at, indent)
        found[key] = value
    return found, at


def _below(lines: list[_Line], at: int, indent: int) -> tuple[Any, int]:
    """The value in the lines below a key, and the number of the line after it.

    It is a list (its dash may be in the column of the key), a mapping, or None.
    """
    if at < len(lines) and lines[at].is_item and lines[at].indent >= indent + 2:
        return _items(lines, at, lines[at].indent)
    if at < len(lines) and not lines[at].is_item and lines[at].indent > indent:
        return _mapping(lines, at, lines[at].indent)
    return None, at


def _items(lines: list[_Line], at: int, indent: int) -> tuple[list[Any], int]:
    items = []
    while at < len(lines) and lines[at].is_item and lines[at].indent == indent:
        item, at = _mapping(lines, at, indent)
        items.append(item)
    return items, at
