"""Aligns tab-separated lines into columns, as Go's `text/tabwriter` does with padding 2 and blanks.

See docs/spec/arena-cli.md#tables. Text after the last tab of a line belongs to no column: it is
neither padded nor measured. A column ends with the run of consecutive lines that have its cell, so
two tables with a plain line between them never align.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fairlead.wire.text.terminal_text import join_cells

PADDING: Final = 2


def render_rows(rows: Iterable[Sequence[str]], padding: int = PADDING) -> str:
    """Aligned lines of cells as a terminal may show them, each ending with a newline.

    The last cell of a row is not padded.

    >>> print(render_rows([("NAME", "GPU"), ("node-1", "4")]), end="")
    NAME    GPU
    node-1  4
    """
    return align("".join(join_cells(row) + "\n" for row in rows), padding)


def align(text: str, padding: int = PADDING) -> str:
    """The text with its tab-terminated cells padded.

    Widths count code points; lines without tabs are not changed.

    >>> align("a\\tb\\nlonger\\tc\\t\\n")
    'a       b\\nlonger  c  \\n'
    """
    lines = [line.split("\t") for line in text.split("\n")]
    widths: list[list[int]] = [[] for _ in lines]
    runs = [(0, len(lines), 0)]
    while runs:  # no recursion: a node may report thousands of GPUs
        runs += _measure(lines, widths, *runs.pop(), padding)
    return "\n".join(_padded(cells, width) for cells, width in zip(lines, widths, strict=True))


def _measure(
    lines: list[list[str]], widths: list[list[int]], start: int, end: int, column: int, padding: int
) -> list[tuple[int, int, int]]:
    """Appends the width of `column` for the lines of one run to `widths`.

    Returns the runs of the column to its right.
    """
    runs = []
    first = start
    while first < end:
        last = first
        while last < end and column < len(lines[last]) - 1:
            last += 1
        if last > first:
            width = max(len(lines[index][column]) for index in range(first, last)) + padding
            for index in range(first, last):
                widths[index].append(width)
            runs.append((first, last, column + 1))
        first = max(last, first + 1)
    return runs


def _padded(cells: list[str], widths: list[int]) -> str:
    return (
        "".join(cell.ljust(width) for cell, width in zip(cells, widths, strict=False)) + cells[-1]
    )
