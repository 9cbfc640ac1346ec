"""Counters of a reader of GPU exporters' pages."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

PageAndReason = tuple[str, str]


class PageTally(Struct, frozen=True):
    """Numbers of pages by the result of their last read; `waiting`: not read yet.

    Totals since the start.

    `oldest_seconds`: age of the oldest page among those with values; None = none has values.
    `bad_lines`: numbers of ignored lines, by page and reason. `twice`: number of cards that several
    pages have now; `duplicates`: number of their readings that were left out.
    """

    read: int = 0
    failing: int = 0
    waiting: int = 0
    oldest_seconds: float | None = None
    reads: int = 0
    failures: int = 0
    bad_lines: Mapping[PageAndReason, int] = {}
    twice: int = 0
    duplicates: int = 0
