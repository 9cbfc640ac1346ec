"""Joins reports of the same XID by NVML's event and by the kernel's log.

Specification: docs/spec/telemetry.md#xid-errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fairlead.model.devices.xid import JoinedXids, XidReport

SAME_SECONDS: Final = 2.0


def joined_reports(reports: Iterable[XidReport], known: Iterable[XidReport] = ()) -> JoinedXids:
    """Pairs each report with at most one of the other source that is the same XID.

    The unpaired ones happened, too.

    A pair has the same bus and XID within two seconds, one from each source: what one source
    reports twice happened twice. If several fit, the earliest is taken. If the time of a report is
    not certain, any of its possible times counts. Of a pair the earlier one counts; of two reported
    together the one with a MIG instance. `known`: reports of earlier calls that have no pair.

    >>> found = [XidReport("b", 79, 12.0), XidReport("b", 79, 10.0)]
    >>> found.append(XidReport("b", 79, 12.1, source="nvml"))
    >>> [report.at for report in joined_reports(found).fresh]
    [10.0, 12.0]
    """
    alone: dict[tuple[str, int], list[XidReport]] = {}
    for report in sorted(known, key=lambda each: each.at):
        alone.setdefault((report.bus, report.xid), []).append(report)
    fresh: list[XidReport] = []
    for report in sorted(reports, key=lambda each: (each.gpu_instance is None, each.at)):
        others = alone.setdefault((report.bus, report.xid), [])
        pair = next((other for other in others if _is_same(report, other)), None)
        if pair is not None:
            others.remove(pair)
            continue
        others.append(report)
        fresh.append(report)
    return JoinedXids(
        tuple(sorted(fresh, key=lambda each: each.at)),
        tuple(each for group in alone.values() for each in group),
    )


def _is_same(one: XidReport, other: XidReport) -> bool:
    ends = [each.at if each.until is None else each.until for each in (one, other)]
    return (
        one.source != other.source
        and one.at - ends[1] <= SAME_SECONDS
        and other.at - ends[0] <= SAME_SECONDS
    )
