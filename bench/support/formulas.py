"""Formulas that are fitted to measurements: a sum of a constant and of amounts times a factor.

All factors are at least 0, because a larger cluster costs no less. The fit makes the relative
deviations small, not the absolute ones, and takes the fewest terms that come within `NEAR`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple

NEAR: Final = 0.01
"""The relative deviation of a fit that needs no further term."""
CONSTANT: Final = "1"

Point = Mapping[str, float]
"""Amounts by name, such as nodes and pods."""


class Formula(NamedTuple):
    """`factors` by amount; that of `CONSTANT` is added as it is."""

    factors: dict[str, float]

    def at(self, point: Point) -> float:
        return sum(
            factor * (1.0 if name == CONSTANT else point[name])
            for name, factor in self.factors.items()
        )


def fitted(points: Sequence[Point], values: Sequence[float], amounts: Sequence[str]) -> Formula:
    """The formula of `amounts` and a constant for `values`, one for each point.

    >>> fitted([{"pods": 1}, {"pods": 2}, {"pods": 4}], [3.0, 5.0, 9.0], ["pods"])
    Formula(factors={'1': 1.0, 'pods': 2.0})
    >>> fitted([{"pods": 1}, {"pods": 2}], [0.0, 0.0], ["pods"])
    Formula(factors={})
    """
    if not any(values):
        return Formula({})
    names = [CONSTANT, *amounts]
    best, least = Formula({CONSTANT: sum(values) / len(values)}), float("inf")
    for count in range(1, min(len(names), len(points)) + 1):
        for chosen in combinations(names, count):
            found = _least_squares(points, values, chosen)
            if found is None or any(factor < 0 for factor in found.factors.values()):
                continue
            worst = max(
                abs(found.at(point) - value) / (abs(value) or 1.0)
                for point, value in zip(points, values, strict=True)
            )
            if worst < least:
                best, least = found, worst
        if least <= NEAR:
            break
    return best


def _least_squares(
    points: Sequence[Point], values: Sequence[float], names: Sequence[str]
) -> Formula | None:
    """None if the points do not determine the factors."""
    weights = [1.0 / (abs(value) or 1.0) for value in values]
    rows = [
        [weight * (1.0 if name == CONSTANT else point[name]) for name in names]
        for point, weight in zip(points, weights, strict=True)
    ]
    wanted = [weight * value for value, weight in zip(values, weights, strict=True)]
    size = len(names)
    matrix = [
        [sum(row[i] * row[j] for row in rows) for j in range(size)]
        + [sum(row[i] * value for row, value in zip(rows, wanted, strict=True))]
        for i in range(size)
    ]
    for place in range(size):
        pivot = max(range(place, size), key=lambda row: abs(matrix[row][place]))
        matrix[place], matrix[pivot] = matrix[pivot], matrix[place]
        if abs(matrix[place][place]) <= 1e-12 * max(map(abs, matrix[place]), default=0.0):
            return None
        for row in range(size):
            if row != place:
                share = matrix[row][place] / matrix[place][place]
                matrix[row] = [
                    each - share * of for each, of in zip(matrix[row], matrix[place], strict=True)
                ]
    factors = [matrix[place][-1] / matrix[place][place] for place in range(size)]
    return Formula({name: round(each, 12) for name, each in zip(names, factors, strict=True)})
