"""The same XID told twice, by NVML's event and by the kernel's log, is one.

See docs/spec/telemetry.md#xid-errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.model.devices.xid import JoinedXids, XidReport

SAME_SECONDS: Final = 2.0


def joined_reports(told: Iterable[XidReport], known: Iterable[XidReport] = ()) -> JoinedXids:
    """Pairs each report with at most one of the other source, which is the same XID; the rest happened too.

    Two are a pair that have the same bus and XID within two seconds, one from each source: what one source
    tells twice happened twice. Of several that it could be, the earliest is taken. Of a report whose time is
    not certain, any time counts that it may have. Of a pair the one counts that came first, of two told
    together the one that names a MIG instance. `known`: of earlier calls, those without a pair.

    >>> told = [XidReport("b", 79, 12.0), XidReport("b", 79, 10.0), XidReport("b", 79, 12.1, source="nvml")]
    >>> [report.at for report in joined_reports(told).fresh]
    [10.0, 12.0]
    """
    alone: dict[tuple[str, int], list[XidReport]] = {}
    for report in sorted(known, key=lambda each: each.at):
        alone.setdefault((report.bus, report.xid), []).append(report)
    fresh: list[XidReport] = []
    for report in sorted(told, key=lambda each: (each.gpu_instance is None, each.at)):
        others = alone.setdefault((report.bus, report.xid), [])
        pair = next((other for other in others if _is_same(report, other)), None)
        if pair is not None:
            others.remove(pair)
            continue
        others.append(report)
        fresh.append(report)
    return JoinedXids(tuple(sorted(fresh, key=lambda each: each.at)), tuple(each for group in alone.values() for each in group))


def _is_same(one: XidReport, other: XidReport) -> bool:
    ends = [each.at if each.until is None else each.until for each in (one, other)]
    return one.source != other.source and one.at - ends[1] <= SAME_SECONDS and other.at - ends[0] <= SAME_SECONDS
