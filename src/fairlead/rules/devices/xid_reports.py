"""The same XID told twice, by NVML's event and by the kernel's log, is one (telemetry contract 1.7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.model.devices.xid import XidReport

SAME_SECONDS: Final = 2.0


def fresh_reports(told: Iterable[XidReport], known: Iterable[XidReport] = ()) -> tuple[XidReport, ...]:
    """Those of `told` that repeat neither a known one nor an earlier one of themselves, in order of time.

    A repeat has the same bus and XID within two seconds. Keep what is fresh among the known for that long.

    >>> fresh_reports([XidReport("b", 79, 12.0), XidReport("b", 79, 10.0), XidReport("b", 79, 12.1)])
    (XidReport(bus='b', xid=79, at=10.0), XidReport(bus='b', xid=79, at=12.1))
    """
    seen: dict[tuple[str, int], list[float]] = {}
    for report in known:
        seen.setdefault((report.bus, report.xid), []).append(report.at)
    fresh: list[XidReport] = []
    for report in sorted(told, key=lambda each: each.at):
        times = seen.setdefault((report.bus, report.xid), [])
        if all(abs(report.at - at) > SAME_SECONDS for at in times):
            times.append(report.at)
            fresh.append(report)
    return tuple(fresh)
