"""How the pages of GPU exporters are being read: what a reader tells of itself."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

PageAndReason = tuple[str, str]


class PageTally(Struct, frozen=True):
    """Pages by how their last read went; `waiting`: not read yet. Totals count from the reader's start.

    `oldest_seconds`: age of the page that was read longest ago, of those that have values; None = none has.
    `bad_lines`: lines that counted for nothing, by page and reason. `twice`: cards that several pages speak
    of now; `duplicates`: their readings that were left out.
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
