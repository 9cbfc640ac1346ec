"""The rows of a counters CSV: which DCGM fields a page prints, in which order and under which name."""

from __future__ import annotations

from msgspec import Struct


class Counter(Struct, frozen=True, gc=False):
    """`name` is printed.

    `field` is the DCGM field it stands for (they differ for names of other DCGM generations). `is_double`:
    the field has fractions, and a whole value of it prints some too. `type`: gauge, counter, histogram,
    summary; or label: the value becomes a label of every GPU metric.
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
    """A row that was skipped: its line in the file (from 1), its text, and why."""

    line: int
    text: str
    reason: str


class CounterSet(Struct, frozen=True, gc=False):
    """The rows of one CSV in their order, and those that were not understood."""

    counters: tuple[Counter, ...] = ()
    rejected: tuple[RejectedRow, ...] = ()
