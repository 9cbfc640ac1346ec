"""The same XID told twice, by NVML's event and by the kernel's log, is one (telemetry contract 1.7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.model.devices.xid import XidReport

SAME_SECONDS: Final = 2.0


def fresh_reports(told: Iterable[XidReport], known: Iterable[XidReport] = ()) -> tuple[XidReport, ...]:
    """Those of `told` that repeat neither a known one nor another of themselves, in order of time.

    A repeat has the same bus and XID within two seconds; of one whose time is not certain, of any time that
    it may have. Of two that are one the one that names a MIG instance is taken. Keep what is fresh among the
    known for that long.

    >>> [report.at for report in fresh_reports([XidReport("b", 79, at) for at in (12.0, 10.0, 12.1)])]
    [10.0, 12.1]
    """
    seen: dict[tuple[str, int], list[XidReport]] = {}
    for report in known:
        seen.setdefault((report.bus, report.xid), []).append(report)
    fresh: list[XidReport] = []
    for report in sorted(told, key=lambda each: (each.gpu_instance is None, each.at)):
        others = seen.setdefault((report.bus, report.xid), [])
        if not any(_is_same(report, other) for other in others):
            others.append(report)
            fresh.append(report)
    return tuple(sorted(fresh, key=lambda each: each.at))


def _is_same(one: XidReport, other: XidReport) -> bool:
    ends = [each.at if each.until is None else each.until for each in (one, other)]
    return one.at - ends[1] <= SAME_SECONDS and other.at - ends[0] <= SAME_SECONDS
