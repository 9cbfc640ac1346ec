"""The cluster exporter (`:9401`): watch the cluster, keep one page ready, hand it to every scraper (telemetry contract 3).

What a newcomer gets wrong: a scrape asks nobody anything. The page is made in a thread when the cluster or the readings changed, at
most once a second, and also while nothing changes, because durations grow. Before the first full read there are self metrics only.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct, structs
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairlead import __version__, settings
from fairlead.apps.metrics_page import MetricsPage, PageResponse, make_page, process_metrics
from fairlead.apps.server import serve
from fairlead.kinds.instances import all_instances
from fairlead.model.metric import Family
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.model.source import Source
from fairlead.ports import Clock, Cluster, GpuReadings
from fairlead.rules.metrics.arena import arena_families
from fairlead.rules.metrics.cluster import native_families
from fairlead.rules.metrics.cluster_exporter import ClusterExporterState, cluster_exporter_families
from fairlead.rules.reports.cluster import summarize
from fairlead.wire.metrics.prom_text import render_page

COMPATIBILITIES: Final = ("arena",)
SHORTEST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 5.0
LEISURE: Final = 4.0
"""Pauses are so many times as long as making the last page took: a cluster that never rests does not keep a core busy."""
STUCK_AFTER_SECONDS: Final = 60.0
_log = logging.getLogger(__name__)


class ClusterExporterSettings(Struct, frozen=True):
    """`compat`: families of the reference suite beside the native ones. `node`: the host this process runs on.

    `read_seconds`: how long a client may take to send a request.
    """

    host: str = settings.LOOPBACK
    port: int = settings.CLUSTER_EXPORTER_PORT
    compat: tuple[str, ...] = COMPATIBILITIES
    max_jobs: int = 5000
    node: str = ""
    read_seconds: float = settings.READ_SECONDS


def cluster_families(snapshot: ClusterSnapshot, now: float, chosen: ClusterExporterSettings) -> Iterator[Family]:
    """All families of a cluster, the reference's first. Lazy, so that one half is rendered before the other is made."""
    summary = summarize(snapshot, all_instances(snapshot), now, chosen.max_jobs)
    if "arena" in chosen.compat:
        yield from arena_families(summary)
    yield from native_families(summary)


class ClusterExporter:
    """The loop and its page. `refresh` makes one page; `run` follows the cluster until cancelled."""

    def __init__(self, cluster: Cluster, readings: GpuReadings, clock: Clock, chosen: ClusterExporterSettings) -> None:
        self._cluster = cluster
        self._readings = readings
        self._clock = clock
        self._chosen = chosen
        self._state = ClusterExporterState(node=chosen.node or socket.gethostname(), version=__version__, is_synced=False)
        self._scrapes = 0
        self._refreshed_at = time.monotonic()
        self.page = MetricsPage()
        self.app = Starlette(
            routes=[
                Route("/metrics", self._metrics),
                Route("/healthz", self._healthz),
                Route("/readyz", self._readyz),
                Route("/", self._index),
            ]
        )

    async def run(self) -> None:
        """Refresh on changes, at most once a second, at least every five, or as much later as `LEISURE` asks for a page that takes long.

        A page that cannot be made leaves the last one.
        """
        while True:
            version, readings, began = self._cluster.version, self._readings.latest(), time.monotonic()
            try:
                await self.refresh()
            except Exception:  # noqa: BLE001 - whatever it is, a page that was right a moment ago beats none
                _log.exception("the page could not be made; the last one stays")
            await asyncio.sleep(max(SHORTEST_PAUSE_SECONDS, LEISURE * (time.monotonic() - began)))
            for _ in range(int(LONGEST_PAUSE_SECONDS - SHORTEST_PAUSE_SECONDS)):
                if self._readings.latest() is not readings:
                    break
                if await self._cluster.wait_changed(version, SHORTEST_PAUSE_SECONDS) != version:
                    break

    async def refresh(self) -> None:
        """Make one page in a thread and swap it in; ready is what the page shows, not what has been read."""
        began = time.monotonic()
        is_synced = self._state.is_synced or self._cluster.is_ready  # a kind that appears later never empties the page
        snapshot = self._cluster.snapshot().with_gpus(self._readings.latest(), self._readings.source())
        state = structs.replace(self._state, is_synced=is_synced, scrapes=self._scrapes, page_bytes=self.page.size or None)
        pieces = self._render(snapshot, self._clock.now(), state)
        self.page = await asyncio.to_thread(make_page, pieces)
        self._refreshed_at = time.monotonic()
        self._state = structs.replace(state, render_seconds=self._refreshed_at - began)

    def _render(self, snapshot: ClusterSnapshot, now: float, state: ClusterExporterState) -> Iterator[bytes]:
        if state.is_synced:
            yield from render_page(cluster_families(snapshot, now, self._chosen))
        yield from render_page(cluster_exporter_families(state, snapshot.main_sources.values(), now))
        yield process_metrics()

    async def _metrics(self, request: Request) -> Response:
        self._scrapes += 1
        return PageResponse(self.page, request)

    async def _healthz(self, request: Request) -> Response:
        silent = time.monotonic() - self._refreshed_at
        if silent > STUCK_AFTER_SECONDS:
            return PlainTextResponse(f"no page made for {silent:.0f} s\n", 503)
        return PlainTextResponse("ok\n")

    async def _readyz(self, request: Request) -> Response:
        if self._state.is_synced:
            return PlainTextResponse("ok\n")
        return PlainTextResponse(_unsynced(self._cluster.snapshot().main_sources.values()), 503)

    async def _index(self, request: Request) -> Response:
        return PlainTextResponse(f"Fairlead cluster exporter {__version__}\n/metrics\n/healthz\n/readyz\n")


def _unsynced(sources: Iterable[Source]) -> str:
    lines = [f"{source.name}: {source.state} {source.message}".rstrip() for source in sources if not source.is_ok]
    return "not yet read:\n" + "".join(f"{line}\n" for line in lines)


async def run(
    cluster: Cluster,
    readings: GpuReadings,
    clock: Clock,
    chosen: ClusterExporterSettings,
    *,
    sock: socket.socket | None = None,
    ready: asyncio.Event | None = None,
) -> None:
    """Serve until cancelled. Whoever calls runs `cluster.run()` and `readings.run()` beside it: they may be shared."""
    exporter = ClusterExporter(cluster, readings, clock, chosen)
    async with asyncio.TaskGroup() as group:
        group.create_task(exporter.run())
        group.create_task(serve(exporter.app, chosen.host, chosen.port, sock=sock, ready=ready, read_seconds=chosen.read_seconds))
