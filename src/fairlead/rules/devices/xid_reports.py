"""The same XID told twice, by NVML's event and by the kernel's log, is one (telemetry contract 1.7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.model.devices.xid import XidReport

SAME_SECONDS: Final = 2.0


def fresh_reports(told: Iterable[XidReport], known: Iterable[XidReport] = ()) -> tuple[XidReport, ...]:
    """Those of `told` that repeat no report of the other source, known or told, in order of time.

    A repeat has the same bus and XID within two seconds, from the other source: what one source tells twice
    happened twice. Of a report whose time is not certain, any time counts that it may have. Of two that are
    one the one that names a MIG instance is taken. Keep what is fresh among the known for that long.

    >>> told = [XidReport("b", 79, 12.0), XidReport("b", 79, 10.0), XidReport("b", 79, 12.1, source="nvml")]
    >>> [report.at for report in fresh_reports(told)]
    [10.0, 12.0]
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
    return one.source != other.source and one.at - ends[1] <= SAME_SECONDS and other.at - ends[0] <= SAME_SECONDS
