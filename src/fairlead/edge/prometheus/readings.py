"""GPU values from a Prometheus (`ports.GpuReadings`), by one instant query for all metrics they need.

Prometheus answers with its last sample for up to five minutes, so a sample's own time decides whether it is
stale, not the time of the answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import Final

from fairlead.edge.connection.backoff import Backoff
from fairlead.edge.prometheus.answer import PrometheusFailure, PrometheusSample
from fairlead.edge.prometheus.client import Prometheus
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.metric import Sample
from fairlead.model.snapshot import GPU_TELEMETRY
from fairlead.model.source import Source, SourceState
from fairlead.ports import Clock
from fairlead.wire.metrics.gpu_readings import METRICS, parse_readings, with_idle_since

INTERVAL_SECONDS: Final = 15.0
STALE_AFTER_SECONDS: Final = 60.0
QUERY: Final = f'{{__name__=~"{"|".join(METRICS)}"}}'
_log = logging.getLogger("fairlead.prometheus")


class PrometheusReadings:
    """Asks on a steady beat while `run` runs. The client is closed by whoever made it."""

    def __init__(self, prometheus: Prometheus, clock: Clock, *, interval_seconds: float = INTERVAL_SECONDS) -> None:
        self._prometheus = prometheus
        self._clock = clock
        self._interval = interval_seconds
        self._latest: tuple[GpuReading, ...] = ()
        self._failure: PrometheusFailure | None = None
        self._good_at: float | None = None

    async def run(self) -> None:
        backoff = Backoff()
        while True:
            if await self.read_once():
                backoff.reset()
                await asyncio.sleep(self._interval)
            else:
                await asyncio.sleep(backoff.next_delay())

    async def read_once(self) -> bool:
        """Ask once; whether an answer came. Old readings stay until they are stale."""
        now = self._clock.now()
        try:
            found = await self._prometheus.query(QUERY)
        except PrometheusFailure as failure:
            if self._failure is None or self._failure.what != failure.what:
                _log.warning("%s", failure.log_line)
            self._failure = failure
            if self._good_at is not None and now - self._good_at > STALE_AFTER_SECONDS:
                self._latest = ()
            return False
        before = {reading.uuid: reading for reading in self._latest}
        self._latest = with_idle_since(readings_of(found, now), before)
        self._failure, self._good_at = None, now
        return True

    def latest(self) -> tuple[GpuReading, ...]:
        return self._latest

    def source(self) -> Source:
        if self._failure is not None:
            return Source(GPU_TELEMETRY, SourceState.FAILING, self._failure.what, self._failure.hint, self._good_at)
        if self._good_at is not None and not self._latest:
            what = f"Prometheus `{self._prometheus.address}` has no GPU metrics"
            return Source(GPU_TELEMETRY, SourceState.FAILING, what, "let it scrape a GPU exporter (port 9400)", self._good_at)
        return Source(GPU_TELEMETRY, SourceState.SYNCING if self._good_at is None else SourceState.OK, good_at=self._good_at)


def readings_of(found: Iterable[PrometheusSample], now: float) -> tuple[GpuReading, ...]:
    """Readings of one answer, without samples that are older than a minute."""
    fresh = (each for each in found if now - each.at <= STALE_AFTER_SECONDS)
    return parse_readings([Sample(each.labels.get("__name__", ""), each.labels, each.value) for each in fresh], now)
