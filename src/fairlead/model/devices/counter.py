"""Rows of a counters CSV: which DCGM fields a page prints, in which order and under which name."""

from __future__ import annotations

from msgspec import Struct


class Counter(Struct, frozen=True, gc=False):
    """`name` is the name of the metric on the page.

    `field`: the DCGM field (it differs from `name` for names of other DCGM generations).
    `is_double`: the value is printed with decimals, even if it is whole. `type`: gauge, counter,
    histogram or summary; or label: the value becomes a label of every GPU metric.
    """

    name: str
    field: str
    type: str
    help: str
    is_double: bool = False

    @property
    def is_label(self) -> bool:
        return self.type == "label"


class RejectedRow(Struct, frozen=True, gc=False):
    """A row that was skipped: its line number in the file (from 1), its text, and the reason."""

    line: int
    text: str
    reason: str


class CounterSet(Struct, frozen=True, gc=False):
    """The rows of one CSV in order, and its malformed rows."""

    counters: tuple[Counter, ...] = ()
    rejected: tuple[RejectedRow, ...] = ()
