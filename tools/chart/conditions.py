"""Conditions of templates: the shortest one found that holds at some points and not at others.

Its result elsewhere does not matter, so a condition within another does not repeat the outer one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, Final

from chart.fields import ANY, Field
from chart.recorded import Point

Cube = dict[str, tuple[Any, ...]]
"""Alternatives of each field; it holds where every field has one of its own."""
_ORDERS_MAX: Final = 5


def condition(on: Sequence[Point], off: Sequence[Point], fields: Mapping[str, Field]) -> str:
    """A pipeline of Go's templates that is true at each point of `on`, and at none of `off`."""
    on, off = _without_others(on, off, fields)
    left = list(on)
    cubes = _cubes(on, off, fields)
    chosen: list[Cube] = []
    while left:
        best = max(cubes, key=lambda cube: (_count(cube, left), -len(cube), -_width(cube)))
        chosen.append(best)
        left = [each for each in left if not _holds(best, each)]
    texts = [_all([_literal(fields[path], each) for path, each in cube.items()]) for cube in chosen]
    return texts[0] if len(texts) == 1 else f"or {' '.join(map(_nested, texts))}"


def _without_others(
    on: Sequence[Point], off: Sequence[Point], fields: Mapping[str, Field]
) -> tuple[Sequence[Point], Sequence[Point]]:
    """The points with those fields only by which the two differ, each point once."""
    for path in sorted(on[0], key=lambda path: -len(fields[path].alternatives)):
        fewer_on, fewer_off = (
            {
                tuple(value for name, value in point.items() if name != path): {
                    name: value for name, value in point.items() if name != path
                }
                for point in points
            }
            for points in (on, off)
        )
        if not fewer_on.keys() & fewer_off.keys():
            on, off = list(fewer_on.values()), list(fewer_off.values())
    return on, off


def _cubes(on: Sequence[Point], off: Sequence[Point], fields: Mapping[str, Field]) -> list[Cube]:
    """For each point the widest cubes around it that hold at no point of `off`."""
    found: dict[str, Cube] = {}
    for point in on:
        # Which fields are left depends on the order in which they are dropped.
        needed = dict.fromkeys(point)
        for order in permutations(needed) if len(needed) <= _ORDERS_MAX else [tuple(needed)]:
            cube = _widened({path: (point[path],) for path in point}, order, off, fields)
            found.setdefault(repr(sorted(cube.items(), key=str)), cube)
    return list(found.values())


def _widened(
    cube: Cube, order: Sequence[str], off: Sequence[Point], fields: Mapping[str, Field]
) -> Cube:
    for path in order:
        without = {name: each for name, each in cube.items() if name != path}
        if not any(_holds(without, point) for point in off):
            cube = without
            continue
        for value in fields[path].alternatives:
            wider = {**cube, path: _in_order(fields[path], {*cube[path], value})}
            if not any(_holds(wider, point) for point in off):
                cube = wider
    return cube


def _in_order(field: Field, values: set[Any]) -> tuple[Any, ...]:
    return tuple(each for each in field.alternatives if each in values)


def _holds(cube: Cube, point: Point) -> bool:
    return all(point[path] in values for path, values in cube.items())


def _count(cube: Cube, points: Sequence[Point]) -> int:
    return sum(_holds(cube, each) for each in points)


def _width(cube: Cube) -> int:
    return sum(map(len, cube.values()))


def _all(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"and {' '.join(map(_nested, texts))}"


def _nested(text: str) -> str:
    return f"({text})" if " " in text else text


def _literal(field: Field, values: tuple[Any, ...]) -> str:
    """That the field has one of the values.

    >>> _literal(Field("x", ".Values.x", (1, 2, 3)), (2, 3))
    'ge (int .Values.x) 2'
    """
    what, others = field.expression, [each for each in field.alternatives if each not in values]
    if values == (True,) or values == (ANY,) or others == [""]:
        return what
    if values == (False,) or values == ("",):
        return f"not {what}"
    if isinstance(values[0], int):
        return _of_numbers(f"(int {what})", values, field.alternatives)
    words = [json.dumps(each) for each in values]
    if len(words) == 1:
        return f"eq {what} {words[0]}"
    if len(others) == 1:
        return f"ne {what} {json.dumps(others[0])}"
    return f"has {what} (list {' '.join(words)})"


def _of_numbers(what: str, values: Sequence[int], all_: Sequence[int]) -> str:
    if len(values) == 1:
        return f"eq {what} {values[0]}"
    if tuple(values) == tuple(all_[-len(values) :]):
        return f"ge {what} {values[0]}"
    if tuple(values) == tuple(all_[: len(values)]):
        return f"le {what} {values[-1]}"
    return f"has {what} (list {' '.join(map(str, values))})"
