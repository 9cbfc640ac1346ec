"""The cluster exporter (`:9401`): follows the cluster and keeps a page of metrics ready.

Specification: docs/spec/telemetry.md#cluster-exporter.

A scrape causes no request. The page is made in a thread when the cluster or the readings changed,
at most once a second, and also while nothing changes, because durations grow. Before the first full
read the page has only self metrics. With several exporters only the holder of the Lease prints the
cluster, so that no sum counts a GPU twice; a standby follows the cluster, too, and can take over at
once.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Iterator
from typing import Final

from msgspec import Struct, structs
from starlette.requests import Request
from starlette.responses import Response

from fairlead import __version__, settings
from fairlead.apps.leader import Leader
from fairlead.apps.metrics_page import MetricsPage, PageResponse, make_page, process_metrics
from fairlead.apps.service import Probes, ServedApp, pages_app, together
from fairlead.kinds.instances import all_instances
from fairlead.model.devices.page_tally import PageTally
from fairlead.model.metric import Family
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.ports import Clock, Cluster, GpuReadings
from fairlead.rules.metrics.arena import arena_families
from fairlead.rules.metrics.cluster import native_families
from fairlead.rules.metrics.cluster_exporter import (
    ClusterExporterState,
    cluster_exporter_families,
    page_families,
)
from fairlead.rules.reports.cluster import summarize
from fairlead.wire.metrics.prom_text import render_page

COMPATIBILITIES: Final = ("arena",)
SHORTEST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 5.0
LEISURE: Final = 4.0
"""`LEISURE`: the shortest pause between pages, as a multiple of the last page's duration.

It keeps page making from using a whole core.
"""
LONGEST_LEISURE_SECONDS: Final = 30.0
"""A page that took very long, because the machine stood still for example, delays the next one by
this at most, so that `/healthz` does not report the exporter as stuck.
"""
STUCK_AFTER_SECONDS: Final = 60.0
_log = logging.getLogger(__name__)


class ClusterExporterSettings(Struct, frozen=True):
    """`compat`: families of the reference suite beside the native ones.

    `node`: the host of this process.

    `read_seconds`: how long a client may take to send a request.
    """

    compat: tuple[str, ...] = COMPATIBILITIES
    max_jobs: int = 5000
    node: str = ""
    read_seconds: float = settings.READ_SECONDS


def shortest_pause(page_seconds: float) -> float:
    """Seconds between a page that took `page_seconds` and the next one."""
    leisure = min(LEISURE * page_seconds, LONGEST_LEISURE_SECONDS)
    return max(SHORTEST_PAUSE_SECONDS, leisure)


def cluster_families(
    snapshot: ClusterSnapshot, now: float, chosen: ClusterExporterSettings
) -> Iterator[Family]:
    """All families of a cluster, the reference's first.

    A generator, so that the first half is rendered before the second is made.
    """
    summary = summarize(snapshot, all_instances(snapshot), now, chosen.max_jobs)
    if "arena" in chosen.compat:
        yield from arena_families(summary)
    yield from native_families(summary)


class ClusterExporter:
    """The loop and its page. `refresh` makes one page; `run` follows the cluster until cancelled.

    `leader`: with several exporters the holder of the Lease prints the cluster; None = there is
    only one.
    """

    def __init__(
        self,
        cluster: Cluster,
        readings: GpuReadings,
        clock: Clock,
        chosen: ClusterExporterSettings,
        leader: Leader | None = None,
    ) -> None:
        self._cluster = cluster
        self._readings = readings
        self._clock = clock
        self._chosen = chosen
        self._leader = leader
        self._state = ClusterExporterState(
            node=chosen.node or socket.gethostname(), version=__version__, is_synced=False
        )
        self._scrapes = 0
        self._refreshed_at = time.monotonic()
        self._whole: MetricsPage | None = None
        self._own = MetricsPage()
        self._one_refresh = asyncio.Lock()
        self.probes = Probes(self._trouble, self._unready)
        self.app = pages_app("cluster exporter", self.probes, self._metrics)

    def service(self, sock: socket.socket) -> ServedApp:
        """The caller runs `cluster.run()` and `readings.run()`
        beside it, since they may be shared.
        """
        return ServedApp(
            app=self.app,
            sock=sock,
            loops=(self.run,),
            probes=self.probes,
            read_seconds=self._chosen.read_seconds,
        )

    @property
    def page(self) -> MetricsPage:
        """The page for a scrape now: with the cluster only while the Lease is held."""
        return self._whole if self._whole is not None and self._leads() else self._own

    async def run(self) -> None:
        """Runs until cancelled, then releases the Lease, so that the next exporter takes over."""
        if self._leader is None:
            await self._refresh_for_ever()
            return
        try:
            await together(
                self._leader.run(), self._refresh_for_ever(), self._refresh_when_taken(self._leader)
            )
        finally:
            await self._leader.release()

    async def _refresh_for_ever(self) -> None:
        """Refresh on changes: at most once a second, at least every five seconds.

        `LEISURE` can make it less often.

        If a page cannot be made, the last one stays.
        """
        while True:
            version, readings, began, led = (
                self._cluster.version,
                self._readings.latest(),
                time.monotonic(),
                self._leads(),
            )
            await self._try_to_refresh()
            await asyncio.sleep(shortest_pause(time.monotonic() - began))
            for _ in range(int(LONGEST_PAUSE_SECONDS - SHORTEST_PAUSE_SECONDS)):
                if self._readings.latest() is not readings or self._leads() != led:
                    break
                if await self._cluster.wait_changed(version, SHORTEST_PAUSE_SECONDS) != version:
                    break

    async def _refresh_when_taken(self, leader: Leader) -> None:
        """The first page with the cluster does not wait for the next refresh, so that a rolling
        update leaves no gap.
        """
        while True:
            await leader.taken.wait()
            leader.taken.clear()
            await self._try_to_refresh()

    async def _try_to_refresh(self) -> None:
        try:
            await self.refresh()
        except Exception:  # noqa: BLE001 - a page that was right a moment ago is better than none
            _log.exception("the page could not be made; the last one stays")

    async def refresh(self) -> None:
        """Make one page in a thread and put it in place; readiness depends on the page.

        One at a time: the page that is put in place last has the latest state.
        """
        async with self._one_refresh:
            await self._refresh()

    async def _refresh(self) -> None:
        began = time.monotonic()
        # a kind that appears later never empties the page
        is_synced = self._state.is_synced or self._cluster.is_ready
        leads = self._leads()
        snapshot = self._cluster.snapshot().with_gpus(
            self._readings.latest(), self._readings.source()
        )
        state = structs.replace(
            self._state,
            is_synced=is_synced,
            is_leader=leads,
            scrapes=self._scrapes,
            page_bytes=self.page.size or None,
        )
        now, tally = self._clock.now(), self._readings.tally()
        if not leads:
            self._whole = None  # it is too old when the Lease comes back
        if self._leader is not None:
            self._own = await asyncio.to_thread(
                make_page,
                self._render(snapshot, now, structs.replace(state, is_leader=False), tally),
            )
        if leads:
            self._whole = await asyncio.to_thread(
                make_page, self._render(snapshot, now, state, tally)
            )
        self._refreshed_at = time.monotonic()
        self._state = structs.replace(state, render_seconds=self._refreshed_at - began)

    def _render(
        self,
        snapshot: ClusterSnapshot,
        now: float,
        state: ClusterExporterState,
        tally: PageTally | None,
    ) -> Iterator[bytes]:
        if state.is_synced and state.is_leader:
            yield from render_page(cluster_families(snapshot, now, self._chosen))
        yield from render_page(
            cluster_exporter_families(state, snapshot.main_sources.values(), now)
        )
        if tally is not None:
            yield from render_page(page_families(state.node, tally))
        yield process_metrics()

    async def _metrics(self, request: Request) -> Response:
        self._scrapes += 1
        return PageResponse(self.page, request)

    def _leads(self) -> bool:
        return self._leader is None or self._leader.is_held

    def _trouble(self) -> str:
        silent = time.monotonic() - self._refreshed_at
        return f"no page made for {silent:.0f} s" if silent > STUCK_AFTER_SECONDS else ""

    def _unready(self) -> str:
        if self._state.is_synced:
            return self._unled()
        if self._cluster.is_ready:
            return "the first page is being made"
        waiting = [
            source for source in self._cluster.snapshot().main_sources.values() if not source.is_ok
        ]
        return "\n".join(
            [
                "not yet read:",
                *(
                    (f"{source.name}: {source.state} {source.message}").rstrip()
                    for source in waiting
                ),
            ]
        )

    def _unled(self) -> str:
        """Why a standby is not ready: no exporter has the Lease. "" if one has it.

        Any other standby is ready, or a rolling update would never end.
        """
        leader = self._leader
        if leader is None or leader.is_held or leader.holder not in ("", leader.identity):
            return ""
        return leader.trouble or "no exporter holds the lease yet"
