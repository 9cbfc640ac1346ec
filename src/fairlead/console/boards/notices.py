"""Warnings and staleness of a page: what is missing on it, and how old it is.

Both follow from how well each source was read. A source that could not be read is never an empty
cluster: its state becomes a warning with the address tried and the setting.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from fairlead.console.pages.envelope import Warning, counted, listed
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.occupancy import NodeOccupancy
from fairlead.model.snapshot import GPU_TELEMETRY, ClusterSnapshot
from fairlead.model.source import Source, SourceState
from fairlead.rules.usage.past import NOT_KEPT, PAST

STALE_SECONDS: Final = 30.0
NAMED_NODES: Final = 3
"""Nodes with missing figures that are named; the others are counted."""
_BY_STATE: Final = {
    SourceState.SYNCING: ("cache-syncing", "`{source}` is still being read"),
    SourceState.FAILING: (
        "cache-syncing",
        "`{source}` cannot be read now; the last good state is shown",
    ),
    SourceState.MISSING: ("crd-missing", "this cluster does not serve `{source}`"),
    SourceState.FORBIDDEN: ("forbidden", "this server is not allowed to read `{source}`"),
}
_NO_TELEMETRY: Final = {SourceState.OFF: "no source of GPU telemetry is configured"}
_CORE: Final = ("nodes", "pods", PAST)


def warnings_of(
    sources: Mapping[str, Source], page: str, without: Collection[str] = ()
) -> list[Warning]:
    """Warnings of the sources that the page needs,
    in the order of their names, but of those in `without`.
    """
    shown = (
        (name, source)
        for name, source in sorted(sources.items())
        if needs(page, name) and name not in without
    )
    needed = (source for _, source in shown if not _is_plain_absence(page, source))
    return [warning for source in needed if (warning := _warning(source)) is not None]


def _is_plain_absence(page: str, source: Source) -> bool:
    """Whether the source's absence is shown only on its own board.

    A job kind or a quota tree that the cluster does not have needs no warning on the Cluster board.
    """
    return page == "overview" and source.is_missing and source.name != GPU_TELEMETRY


def needs(page: str, source: str) -> bool:
    """Whether a page (`overview`, `nodes`, `gpus`, `jobs`, `quota`, `serving`) shows something of
    the source.

    >>> needs("quota", "elasticquotatrees"), needs("quota", "mpijobs")
    (True, False)
    >>> needs("jobs", "mpijobs"), needs("nodes", "pods")
    (True, True)
    """
    if source in _CORE:
        return True
    is_quota = source.startswith("elasticquota")
    is_telemetry = source == GPU_TELEMETRY
    if page == "quota":
        return is_quota
    if page in ("nodes", "gpus"):
        return is_telemetry
    if page == "jobs":
        return not is_quota
    return page != "serving"


def warnings_beside(sources: Mapping[str, Source]) -> list[Warning]:
    """Warnings of sources that a page reads itself; a kind that is not served has none."""
    return [
        warning
        for _, source in sorted(sources.items())
        if not source.is_missing and (warning := _warning(source)) is not None
    ]


def is_stale(snapshot: ClusterSnapshot, page: str, now: float, speed: float = 1.0) -> bool:
    """Whether a needed source was last known good more than 30 s ago.

    30 s of wall time: the cluster's clock runs at `speed`.
    """
    limit = STALE_SECONDS * max(1.0, speed)
    times = (
        source.good_at
        for name, source in snapshot.main_sources.items()
        if needs(page, name) and source.state in (SourceState.OK, SourceState.FAILING)
    )
    return any(good_at is not None and now - good_at > limit for good_at in times)


def series_missing(nodes: Iterable[NodeOccupancy]) -> Warning | None:
    """The warning if only some of the GPUs that should report do, else None.

    `over`: number of cards in the means, including broken ones that report
    (docs/spec/console.md#cluster-page).
    """
    counts = [(each, *reporting_cards(each)) for each in nodes]
    reporting, total = (
        sum(reported for _, reported, _ in counts),
        sum(expected for _, _, expected in counts),
    )
    if not 0 < reporting < total:
        return None
    over = sum(each.gpus_reporting for each, _, _ in counts)
    means = (
        "the GPUs that report"
        if over == reporting
        else f"all {counted(over, 'GPU')} that report, {over - reporting} of them broken"
    )
    some = listed(
        [each.node.name for each, reported, expected in counts if reported < expected], NAMED_NODES
    )
    return Warning(
        code="series-missing",
        source=GPU_TELEMETRY,
        message=(
            f"{reporting} of {total} working GPUs report utilization and memory, not all GPUs of "
            f"{some}; means cover {means}"
        ),
        hint="check the GPU exporters of these nodes",
        values={"reporting": reporting, "total": total, "nodes": some, "over": over},
    )


def reporting_cards(occupied: NodeOccupancy) -> tuple[int, int]:
    """Number of a node's cards that report utilization, and number of those that should.

    A card that is known to be broken is counted in neither.
    """
    expected = max(0, occupied.gpus_total - occupied.gpus_unhealthy)
    broken = sum(card.is_healthy is False and _reports(card.reading) for card in occupied.cards)
    return min(occupied.gpus_reporting - broken, expected), expected


def _reports(reading: GpuReading | None) -> bool:
    return reading is not None and reading.utilization_ratio is not None


def _left_out(source: Source) -> Warning:
    """The source was read, except for some malformed objects."""
    return Warning(
        code="truncated",
        source=source.name,
        message=f"`{source.name}`: {source.message}",
        hint=source.hint,
        values={"source": source.name, "message": source.message},
    )


def _warning(source: Source) -> Warning | None:
    if source.is_ok:
        return _left_out(source) if source.message else None
    is_telemetry = source.name == GPU_TELEMETRY
    code, default = _BY_STATE.get(source.state, ("", ""))
    if is_telemetry and source.state != SourceState.SYNCING:
        code, default = (
            "prometheus-unreachable",
            _NO_TELEMETRY.get(source.state, "GPU telemetry cannot be read"),
        )
    if source.name == PAST:
        code = "past-gap"
    elif is_telemetry and source.message == NOT_KEPT:
        code = "not-kept"
    if not code:
        return None
    text = source.message or default.format(source=source.name)
    return Warning(
        code=code,
        source=source.name,
        message=text,
        hint=source.hint,
        values={"source": source.name, "state": source.state, "message": text},
    )
