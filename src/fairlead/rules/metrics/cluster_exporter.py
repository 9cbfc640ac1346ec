"""The cluster exporter's metrics of itself and of its sources, such as the age of each input.

When the API server cannot be reached, the numbers of the cluster stay unchanged; only these
families show that they are old.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

from fairlead.model.devices.page_tally import PageTally
from fairlead.model.metric import Family, Key, MetricName
from fairlead.model.source import Source, SourceState

_SOURCE: Final = ("source",)


class ClusterExporterState(Struct, frozen=True, gc=False):
    """Measurements of the process itself, in seconds and bytes; None = not yet measured.

    `node`: the node on which it runs. `is_leader`: whether it, of several exporters, prints the
    cluster.
    """

    node: str
    version: str
    is_synced: bool
    is_leader: bool = True
    render_seconds: float | None = None
    scrapes: int = 0
    page_bytes: int | None = None


def _metric(name: str, type: str, help: str, *labels: str) -> MetricName:
    return MetricName(f"fairlead_exporter_{name}", type, ("node_name", *labels), help)


BUILD_INFO: Final = _metric("build_info", "gauge", "1; the version that runs.", "version")
LEADER: Final = _metric(
    "leader",
    "gauge",
    "1 when this exporter prints the series of the cluster; a standby prints its own only.",
)
SYNCED: Final = _metric("synced", "gauge", "1 when every source that exists has been read once.")
SOURCE_UP: Final = _metric(
    "source_up", "gauge", "1 when the source's last read succeeded.", *_SOURCE
)
SOURCE_AGE: Final = _metric(
    "source_age_seconds",
    "gauge",
    "How long ago the source was last known to be current.",
    *_SOURCE,
)
RENDER: Final = _metric(
    "render_duration_seconds", "gauge", "How long the page before this one took to make."
)
PAGE_BYTES: Final = _metric(
    "page_bytes", "gauge", "Size of the page before this one, uncompressed."
)
SCRAPES: Final = _metric("scrapes_total", "counter", "Answered scrapes.")
GPU_PAGES: Final = _metric(
    "gpu_pages", "gauge", "Pages of GPU exporters, by how their last read went.", "state"
)
GPU_PAGE_READS: Final = _metric(
    "gpu_page_reads_total", "counter", "Reads of pages of GPU exporters.", "result"
)
GPU_PAGE_AGE: Final = _metric(
    "gpu_oldest_page_age_seconds", "gauge", "Age of the oldest page whose values are shown."
)
GPU_BAD_LINES: Final = _metric(
    "gpu_bad_lines_total",
    "counter",
    "Lines of pages of GPU exporters that count for nothing.",
    "page",
    "reason",
)
GPUS_TWICE: Final = _metric(
    "gpus_told_twice", "gauge", "GPUs that more than one page speaks of; each counts once."
)
GPU_DUPLICATES: Final = _metric(
    "gpu_duplicate_readings_total",
    "counter",
    "Readings left out because another page speaks of the same GPU.",
)
NAMES: Final = (
    *(BUILD_INFO, LEADER, SYNCED, SOURCE_UP, SOURCE_AGE, RENDER, PAGE_BYTES, SCRAPES),
    *(GPU_PAGES, GPU_PAGE_READS, GPU_PAGE_AGE, GPU_BAD_LINES, GPUS_TWICE, GPU_DUPLICATES),
)


def cluster_exporter_families(
    state: ClusterExporterState, sources: Iterable[Source], now: float
) -> list[Family]:
    """The exporter's own families, without sources that are switched off or do not exist."""
    watched = sorted(
        (
            source
            for source in sources
            if source.state not in (SourceState.OFF, SourceState.MISSING)
        ),
        key=lambda source: source.name,
    )
    own: Sequence[Key] = [(state.node,)]
    names = [(state.node, source.name) for source in watched]
    return [
        Family(BUILD_INFO, [(state.node, state.version)], [1]),
        Family(LEADER, own, [int(state.is_leader)]),
        Family(SYNCED, own, [int(state.is_synced)]),
        Family(SOURCE_UP, names, [int(source.is_ok) for source in watched]),
        Family(
            SOURCE_AGE,
            names,
            [None if s.good_at is None else max(0.0, now - s.good_at) for s in watched],
        ),
        Family(RENDER, own, [state.render_seconds]),
        Family(PAGE_BYTES, own, [state.page_bytes]),
        Family(SCRAPES, own, [state.scrapes]),
    ]


def page_families(node: str, tally: PageTally) -> list[Family]:
    """Families about reading the pages of GPU exporters. `node`: the host of this process."""
    states = {"read": tally.read, "failing": tally.failing, "waiting": tally.waiting}
    host = [(node,)]
    return [
        Family(GPU_PAGES, [(node, state) for state in states], list(states.values())),
        Family(GPU_PAGE_READS, [(node, "read"), (node, "failed")], [tally.reads, tally.failures]),
        Family(GPU_PAGE_AGE, host, [tally.oldest_seconds]),
        Family(
            GPU_BAD_LINES,
            [(node, *each) for each in tally.bad_lines],
            list(tally.bad_lines.values()),
        ),
        Family(GPUS_TWICE, host, [tally.twice]),
        Family(GPU_DUPLICATES, host, [tally.duplicates]),
    ]
