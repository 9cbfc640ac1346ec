"""What the cluster exporter says about itself and its sources, such as how old each input is.

When the API server cannot be reached, the numbers of the cluster stay as they were; only these families show
that they are old.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from fairlead.model.metric import NO_LABELS, Family, MetricName
from fairlead.model.source import Source, SourceState

_SOURCE: Final = ("source",)


class ClusterExporterState(Struct, frozen=True, gc=False):
    """What the process knows of itself. Seconds and bytes; None = not yet measured."""

    node: str
    version: str
    is_synced: bool
    render_seconds: float | None = None
    scrapes: int = 0
    page_bytes: int | None = None


def _metric(name: str, type: str, help: str, *labels: str) -> MetricName:
    return MetricName(f"fairlead_exporter_{name}", type, labels, help)


BUILD_INFO: Final = _metric("build_info", "gauge", "1; the version that runs.", "node_name", "version")
SYNCED: Final = _metric("synced", "gauge", "1 when every source that exists has been read once.")
SOURCE_UP: Final = _metric("source_up", "gauge", "1 when the source's last read succeeded.", *_SOURCE)
SOURCE_AGE: Final = _metric("source_age_seconds", "gauge", "How long ago the source was last known to be current.", *_SOURCE)
RENDER: Final = _metric("render_duration_seconds", "gauge", "How long the page before this one took to make.")
PAGE_BYTES: Final = _metric("page_bytes", "gauge", "Size of the page before this one, uncompressed.")
SCRAPES: Final = _metric("scrapes_total", "counter", "Answered scrapes.")
NAMES: Final = (BUILD_INFO, SYNCED, SOURCE_UP, SOURCE_AGE, RENDER, PAGE_BYTES, SCRAPES)


def cluster_exporter_families(state: ClusterExporterState, sources: Iterable[Source], now: float) -> list[Family]:
    """The exporter's own families. Sources that are switched off or do not exist are left out."""
    watched = sorted(
        (source for source in sources if source.state not in (SourceState.OFF, SourceState.MISSING)), key=lambda source: source.name
    )
    names = [(source.name,) for source in watched]
    return [
        Family(BUILD_INFO, [(state.node, state.version)], [1]),
        Family(SYNCED, NO_LABELS, [int(state.is_synced)]),
        Family(SOURCE_UP, names, [int(source.is_ok) for source in watched]),
        Family(SOURCE_AGE, names, [None if s.good_at is None else max(0.0, now - s.good_at) for s in watched]),
        Family(RENDER, NO_LABELS, [state.render_seconds]),
        Family(PAGE_BYTES, NO_LABELS, [state.page_bytes]),
        Family(SCRAPES, NO_LABELS, [state.scrapes]),
    ]
