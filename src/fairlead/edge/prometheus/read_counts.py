"""Counters that all readers of GPU values have: reads of pages or Prometheus, duplicated cards."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping

from fairlead.model.devices.page_tally import PageAndReason, PageTally
from fairlead.wire.metrics.one_reading import Clashes


class ReadCounts:
    """Counts since the reader's start. The first duplicated card is logged."""

    def __init__(self, log: logging.Logger) -> None:
        self.reads = 0
        self.failures = 0
        self.clashes = Clashes()
        self._duplicates = 0
        self._log = log

    def note_clashes(self, clashes: Clashes, pages: Collection[str] | None = None) -> None:
        """Notes the present duplicates. `pages`: those read since the last call, None = all."""
        self._duplicates += sum(
            many for page, many in clashes.left_out.items() if pages is None or page in pages
        )
        if clashes.count and not self.clashes.count:
            self._log.warning("%s", clashes.sentence)
        self.clashes = clashes

    def tally(
        self,
        *,
        read: int,
        failing: int,
        waiting: int,
        oldest_seconds: float | None,
        bad_lines: Mapping[PageAndReason, int],
    ) -> PageTally:
        return PageTally(
            read=read,
            failing=failing,
            waiting=waiting,
            oldest_seconds=None if oldest_seconds is None else max(0.0, oldest_seconds),
            reads=self.reads,
            failures=self.failures,
            bad_lines=bad_lines,
            twice=self.clashes.count,
            duplicates=self._duplicates,
        )
