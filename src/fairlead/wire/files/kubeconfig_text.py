"""Inserts and removes entries in the text of a kubeconfig; other lines and comments stay.

The file is not rendered from its parsed form. Edits are made at the positions that the YAML parser
reports; the result is parsed again and compared with what was wanted, and on any difference the
file stays as it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

import yaml

from fairlead.wire.files.bounded import load_yaml

SECTIONS: Final = ("clusters", "contexts", "users")
CURRENT: Final = "current-context"
_WIDE: Final = 1 << 30
_NULL: Final = "tag:yaml.org,2002:null"
_NOT_ALONE: Final = "it is laid out in a way that does not let entries be changed alone"

Entries = Mapping[str, Mapping[str, Any]]
"""One entry of Fairlead for each section: a mapping with its `name`."""


class _Edit(NamedTuple):
    """Replaces the characters from `start` to `end` with `text`."""

    start: int
    end: int
    text: str


def with_entries(text: str, entries: Entries, current: str = "") -> str:
    """The text with `entries`, which replace entries of the same names.

    `current` becomes current-context; "" keeps the present one. Raises ValueError when the layout
    does not allow changing one entry, yaml.YAMLError when the text is no YAML.
    """
    names = {section: str(entry["name"]) for section, entry in entries.items()}
    before = load_yaml(text)
    with _edits_that_are_yaml():
        kept = _edited(text, _removals(text, names))
        after = _edited(kept, _insertions(kept, entries))
        if current:
            after = _edited(after, _current_edits(after, current))
        wanted = {section: (entries[section],) for section in SECTIONS}
        _check(before, after, names, wanted, current or _current(before))
    return after


def without_entries(text: str, names: Mapping[str, str], current: str = "") -> str:
    """The text without the entries of these names, by section.

    `current` becomes current-context if the present one is removed. Raises as `with_entries`.
    """
    before = load_yaml(text)
    with _edits_that_are_yaml():
        after = _edited(text, _removals(text, names))
        if is_current := _current(before) == names["contexts"]:
            after = _edited(after, _current_edits(after, current))
        _check(before, after, names, {}, current if is_current else _current(before))
    return after


@contextmanager
def _edits_that_are_yaml() -> Iterator[None]:
    """Turns a YAML error after an edit into a ValueError.

    The cause is the layout of the file, not a mistake that the file's owner could correct.
    """
    try:
        yield
    except yaml.YAMLError as error:
        raise ValueError(_NOT_ALONE) from error


def _check(
    before: Any,
    after: str,
    names: Mapping[str, str],
    wanted: Mapping[str, Sequence[Any]],
    current: str,
) -> None:
    """Raises ValueError unless the edited text differs only by the wanted entries.

    The wanted entries come first in their sections.
    """
    old, new = before or {}, load_yaml(after) or {}
    for section in SECTIONS:
        others = [entry for entry in old.get(section) or () if entry.get("name") != names[section]]
        if [*wanted.get(section, ()), *others] != list(new.get(section) or ()):
            raise ValueError(
                f"its `{section}` are laid out in a way that does not let one be changed alone"
            )
    if _current(new) != current:
        raise ValueError(
            f"its `{CURRENT}` is laid out in a way that does not let it be changed alone"
        )
    edited = {*SECTIONS, CURRENT}
    if {key: value for key, value in old.items() if key not in edited} != {
        key: value for key, value in new.items() if key not in edited
    }:
        raise ValueError(_NOT_ALONE)


def _current(document: Any) -> str:
    return str((document or {}).get(CURRENT) or "")


# --- positions ------------------------------------------------------------------------------------


def _root(text: str) -> yaml.MappingNode | None:
    """The mapping of the whole document; None for a text with nothing but comments."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    return node if isinstance(node, yaml.MappingNode) else None


def _pairs(root: yaml.MappingNode | None) -> dict[str, tuple[yaml.Node, yaml.Node]]:
    return {key.value: (key, value) for key, value in root.value} if root is not None else {}


def _name(item: yaml.Node) -> str:
    return (
        next((value.value for key, value in item.value if key.value == "name"), "")
        if isinstance(item, yaml.MappingNode)
        else ""
    )


def _end(node: yaml.Node) -> int:
    """The position behind the node's last character.

    PyYAML's own end of a block is the beginning of the next token, after any comments.
    """
    if isinstance(node, yaml.CollectionNode) and node.value and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, yaml.MappingNode) else last)
    return int(node.end_mark.index)


def _line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


def _next_line(text: str, index: int) -> int:
    found = text.find("\n", index)
    return len(text) if found < 0 else found + 1


# --- edits ----------------------------------------------------------------------------------------


def _edited(text: str, edits: Sequence[_Edit]) -> str:
    for edit in sorted(edits, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _removals(text: str, names: Mapping[str, str]) -> list[_Edit]:
    pairs = _pairs(_root(text))
    edits: list[_Edit] = []
    for section, name in names.items():
        sequence = pairs[section][1] if section in pairs else None
        if isinstance(sequence, yaml.SequenceNode):
            places = [place for place, item in enumerate(sequence.value) if _name(item) == name]
            edits += [
                _flow_removal(sequence.value, place) for place in places if sequence.flow_style
            ]
            edits += [
                _block_removal(text, sequence.value[place])
                for place in places
                if not sequence.flow_style
            ]
    return edits


def _flow_removal(items: Sequence[yaml.Node], place: int) -> _Edit:
    """Removes an item together with the comma between it and its neighbour."""
    if place + 1 < len(items):
        return _Edit(items[place].start_mark.index, items[place + 1].start_mark.index, "")
    begin = items[place - 1].end_mark.index if place else items[place].start_mark.index
    return _Edit(begin, items[place].end_mark.index, "")


def _block_removal(text: str, item: yaml.Node) -> _Edit:
    return _Edit(_line_start(text, item.start_mark.index), _next_line(text, _end(item)), "")


def _insertions(text: str, entries: Entries) -> list[_Edit]:
    root = _root(text)
    pairs = _pairs(root)
    if root is not None and root.flow_style:
        edits = [
            _into_flow(pairs[section], entry)
            for section, entry in entries.items()
            if section in pairs
        ]
        missing = [
            f"{json.dumps(section)}: [{json.dumps(entry)}]"
            for section, entry in entries.items()
            if section not in pairs
        ]
        return [*edits, _first_in_root(root, missing)] if missing else edits
    column = root.start_mark.column if root is not None else 0
    there = {section: pairs[section] for section in entries if section in pairs}
    edits = [
        edit
        for section, pair in there.items()
        for edit in _into_block(text, pair, entries[section])
    ]
    lacking = "".join(
        _block(text, {section: [entry]}, column)
        for section, entry in entries.items()
        if section not in there
    )
    return [*edits, _appended(text, lacking)] if lacking else edits


def _into_block(
    text: str, pair: tuple[yaml.Node, yaml.Node], entry: Mapping[str, Any]
) -> list[_Edit]:
    """Inserts the entry first in its section, below the key: comments keep their places."""
    key, value = pair
    if isinstance(value, yaml.SequenceNode) and value.flow_style:
        return [_first_in_flow(value, entry)]
    column = (
        value.start_mark.column if isinstance(value, yaml.SequenceNode) else key.start_mark.column
    )
    under = _next_line(text, key.end_mark.index)
    new_line = "" if under == 0 or text[under - 1] == "\n" else _new_line(text)
    edits = [_Edit(under, under, new_line + _block(text, [entry], column))]
    if value.tag == _NULL and value.value:
        edits.append(_Edit(value.start_mark.index, value.end_mark.index, ""))
    return edits


def _into_flow(pair: tuple[yaml.Node, yaml.Node], entry: Mapping[str, Any]) -> _Edit:
    """Inserts JSON into a JSON document."""
    if pair[1].tag == _NULL:
        return _Edit(pair[1].start_mark.index, pair[1].end_mark.index, f"[{json.dumps(entry)}]")
    return _first_in_flow(pair[1], entry)


def _first_in_root(root: yaml.MappingNode, pairs: Sequence[str]) -> _Edit:
    begin = root.start_mark.index + 1
    return _Edit(begin, begin, ", ".join(pairs) + (", " if root.value else ""))


def _first_in_flow(sequence: yaml.Node, entry: Mapping[str, Any]) -> _Edit:
    items: Sequence[yaml.Node] = sequence.value
    begin = items[0].start_mark.index if items else sequence.start_mark.index + 1
    return _Edit(begin, begin, json.dumps(entry) + (", " if items else ""))


def _current_edits(text: str, current: str) -> list[_Edit]:
    root, written = _root(text), json.dumps(current, ensure_ascii=False)
    pair = _pairs(root).get(CURRENT)
    if pair is not None:
        start, end = pair[1].start_mark.index, pair[1].end_mark.index
        return [_Edit(start, end, (" " if start == end else "") + written)]
    if root is not None and root.flow_style:
        return [_first_in_root(root, [f"{json.dumps(CURRENT)}: {written}"])]
    return [
        _appended(
            text,
            _block(text, {CURRENT: current}, root.start_mark.column if root is not None else 0),
        )
    ]


def _appended(text: str, block: str) -> _Edit:
    end = len(text)
    return _Edit(end, end, ("" if not text or text.endswith("\n") else _new_line(text)) + block)


def _block(text: str, value: Any, column: int) -> str:
    """YAML in `kubectl config`'s style, indented to this column, with the text's line ends."""
    lines = yaml.safe_dump(
        value, default_flow_style=False, allow_unicode=True, sort_keys=False, width=_WIDE
    ).splitlines()
    return "".join(" " * column + line + _new_line(text) for line in lines)


def _new_line(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
