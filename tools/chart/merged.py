"""One tree of the trees that a function returns: what they share once, the rest with a condition.

A mapping's entries and a list's items keep their order. Items that have a name, and objects, are
compared by it; all other items by their content.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from chart.conditions import condition
from chart.fields import Field, Inexpressible
from chart.recorded import MARK, MarkedNumber, MarkedText, Point


class Number(Struct, frozen=True):
    """The number of a field."""

    path: str


class When(Struct, frozen=True):
    """`on`: points at which the condition holds, of those `among` which it decides."""

    expression: str
    on: frozenset[int]
    among: frozenset[int]


class Entry(Struct, frozen=True):
    """An entry of a mapping, or an item of a list: then `key` is "". `when` None = always."""

    when: When | None
    key: str
    value: Any


class Entries(Struct, frozen=True):
    rows: tuple[Entry, ...]
    is_mapping: bool


def merged_objects(
    results: Sequence[tuple[Point, Any]], fields: Mapping[str, Field]
) -> tuple[Entry, ...]:
    """The objects of all results, each with the condition under which it is there."""
    merge = _Merge([point for point, _ in results], fields)
    return merge.items({number: _plain(tree) for number, (_, tree) in enumerate(results)})


class _Merge:
    def __init__(self, points: Sequence[Point], fields: Mapping[str, Field]) -> None:
        self._points = points
        self._fields = fields

    def items(self, lists: Mapping[int, list[Any]]) -> tuple[Entry, ...]:
        named = {number: _named(each) for number, each in lists.items()}
        return tuple(
            Entry(self._when(group, lists), "", self._merged(group))
            for name in _in_one_order(named.values())
            for group in _alike({n: each[name] for n, each in named.items() if name in each})
        )

    def _merged(self, trees: Mapping[int, Any]) -> Any:
        """Of trees that are alike: mappings, lists or one scalar."""
        first = next(iter(trees.values()))
        if isinstance(first, dict) and first:
            rows = tuple(
                Entry(self._when(group, trees), key, self._merged(group))
                for key in _in_one_order(trees.values())
                for group in _alike({n: each[key] for n, each in trees.items() if key in each})
            )
            return Entries(rows, is_mapping=True)
        if isinstance(first, list) and first:
            return Entries(self.items(trees), is_mapping=False)
        return first

    def _when(self, group: Mapping[int, Any], among: Mapping[int, Any]) -> When | None:
        if len(group) == len(among):
            return None
        on = [self._points[number] for number in group]
        off = [self._points[number] for number in among if number not in group]
        text = condition(on, off, self._fields)
        return When(text, frozenset(group), frozenset(among))


def _alike(trees: Mapping[int, Any]) -> Iterable[dict[int, Any]]:
    """Groups of trees that can be one: mappings, lists, and each scalar with its equals."""
    groups: dict[Hashable, dict[int, Any]] = {}
    for number, tree in trees.items():
        is_deep = isinstance(tree, dict | list) and tree
        key = (type(tree).__name__, "" if is_deep else repr(tree))
        groups.setdefault(key, {})[number] = tree
    return groups.values()


def _named(items: Sequence[Any]) -> dict[Hashable, Any]:
    """The items by what they are compared by; equal ones are counted."""
    found: dict[Hashable, Any] = {}
    for each in items:
        name, count = _name(each), 0
        while (name, count) in found:
            count += 1
        found[(name, count)] = each
    return found


def _name(item: Any) -> Hashable:
    if isinstance(item, dict):
        if "kind" in item and "metadata" in item:
            meta = item["metadata"]
            return (item["apiVersion"], item["kind"], meta.get("namespace"), meta["name"])
        if isinstance(item.get("name"), str):
            return ("", item["name"])
    return repr(item)


def _in_one_order(sequences: Iterable[Iterable[Any]]) -> list[Any]:
    """All members; each sequence is in order in it."""
    found: list[Any] = []
    for sequence in sequences:
        place = -1
        for each in sequence:
            if each not in found:
                found.insert(place + 1, each)
            elif found.index(each) < place:
                raise Inexpressible(f"the place of {each} depends on a value")
            place = found.index(each)
    return found


def _plain(tree: Any) -> Any:
    """The tree with texts that have marks, and `Number` where a field's number is written."""
    if type(tree) is str:
        return tree
    if isinstance(tree, dict):
        for key in tree:
            if MARK.search(format(key)):
                raise Inexpressible(f"a value is written as the key {json.dumps(format(key))}")
        return {str(key): _plain(each) for key, each in tree.items()}
    if isinstance(tree, list | tuple):
        return [_plain(each) for each in tree]
    if isinstance(tree, MarkedNumber):
        return Number(tree.path)
    return str(tree) if isinstance(tree, MarkedText) else tree
