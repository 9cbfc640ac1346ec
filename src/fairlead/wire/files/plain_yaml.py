"""A quick reader of YAML that a program wrote: mappings and lists in blocks, of plain words.

It gives None for anything else, which PyYAML then reads: this is no YAML parser, and must not become one. It
exists because importing PyYAML takes longer than a request of an API server, and nearly every kubeconfig is
what `kubectl config` writes. Whatever is not exactly that (comments, lists of words, block scalars, most
quotes, a number) is left to the real one; `tests/properties/test_plain_yaml.py` holds the two together.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

_MAX_CHARACTERS: Final = 200_000
_MAX_INDENT: Final = 60
_LINE: Final = re.compile(r'( *)(- )?([A-Za-z][A-Za-z0-9_-]*):(?: ([A-Za-z/][A-Za-z0-9+/=._:@-]*|"[A-Za-z0-9 +/=._:@-]*"|\{\}))?')
_MEANT_OTHERWISE: Final = frozenset(("yes", "no", "on", "off", "null", "true", "false"))
"""Words that YAML 1.1 takes for a truth or for nothing, in any case."""
_TRUTHS: Final = {"true": True, "false": False}


class _Line(NamedTuple):
    """One line. `value` None: what follows is the value.

    `indent` is the key's column, so an item's first key stands two to the right of its dash.
    """

    indent: int
    is_item: bool
    key: str
    value: Any


class _NotPlain(Exception):
    pass


def parse_plain_yaml(text: str) -> dict[str, Any] | None:
    """What the text says; None when it is not plain.

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
    except _NotPlain:
        return None
    return document if lines and end == len(lines) else None


def _line(text: str) -> _Line:
    found = _LINE.fullmatch(text)
    if found is None:
        raise _NotPlain
    spaces, dash, key, word = found.groups()
    indent = len(spaces) + (2 if dash else 0)
    if indent > _MAX_INDENT or key.lower() in _MEANT_OTHERWISE:
        raise _NotPlain
    return _Line(indent, dash is not None, key, None if word is None else _value(word))


def _value(word: str) -> Any:
    if word == "{}":
        return {}
    if word[0] == '"':
        return word[1:-1]
    if word in _TRUTHS:
        return _TRUTHS[word]
    if word.lower() in _MEANT_OTHERWISE or word.endswith(":"):
        raise _NotPlain
    return word


def _mapping(lines: list[_Line], at: int, indent: int) -> tuple[dict[str, Any], int]:
    """The keys at this column from line `at` on, and the line after them.

    The first may be an item's; any later dash is the next item's.
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
    """What stands under a key without a value.

    A list (whose dash may stand under the key itself), a mapping, or nothing.
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
