"""GPU values from Prometheus (`ports.GpuReadings`), with one instant query for all metrics.

Prometheus returns its last sample for up to five minutes, so the time of the sample decides whether
it is stale, not the time of the answer.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from fairlead.edge.connection.backoff import Backoff
from fairlead.edge.prometheus.answer import PrometheusFailure, PrometheusSample
from fairlead.edge.prometheus.client import Prometheus
from fairlead.edge.prometheus.read_counts import ReadCounts
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.devices.page_tally import PageTally
from fairlead.model.devices.plausible_values import BadLine
from fairlead.model.metric import Sample
from fairlead.model.snapshot import GPU_TELEMETRY
from fairlead.model.source import Source, SourceState
from fairlead.ports import Clock
from fairlead.wire.metrics.gpu_readings import METRICS, CardsOfPage, with_idle_since
from fairlead.wire.metrics.one_reading import Clashes, twice_scraped

INTERVAL_SECONDS: Final = 15.0
STALE_AFTER_SECONDS: Final = 60.0
QUERY: Final = f'{{__name__=~"{"|".join(METRICS)}"}}'
_log = logging.getLogger("fairlead.prometheus")


class PrometheusReadings:
    """Queries at a fixed interval while `run` runs. The caller closes the client."""

    def __init__(
        self, prometheus: Prometheus, clock: Clock, *, interval_seconds: float = INTERVAL_SECONDS
    ) -> None:
        self._prometheus = prometheus
        self._clock = clock
        self._interval = interval_seconds
        self._latest: tuple[GpuReading, ...] = ()
        self._failure: PrometheusFailure | None = None
        self._good_at: float | None = None
        self._counts = ReadCounts(_log)
        self._bad: Counter[BadLine] = Counter()

    async def run(self) -> None:
        backoff = Backoff()
        while True:
            if await self.read_once():
                backoff.reset()
                await asyncio.sleep(self._interval)
            else:
                await asyncio.sleep(backoff.next_delay())

    async def read_once(self) -> bool:
        """Queries once; whether there was an answer. Old readings stay until they are stale."""
        now = self._clock.now()
        try:
            found = await self._prometheus.query(QUERY)
        except PrometheusFailure as failure:
            if self._failure is None or self._failure.what != failure.what:
                _log.warning("%s", failure.log_line)
            self._failure = failure
            self._counts.failures += 1
            if self._good_at is not None and now - self._good_at > STALE_AFTER_SECONDS:
                self._latest = ()
                self._counts.note_clashes(Clashes())
            return False
        before = {reading.uuid: reading for reading in self._latest}
        answer = cards_of(found, now)
        self._latest = with_idle_since(answer.readings, before)
        self._bad += answer.bad
        self._counts.note_clashes(answer.clashes)
        self._counts.reads += 1
        self._failure, self._good_at = None, now
        return True

    def latest(self) -> tuple[GpuReading, ...]:
        return self._latest

    def tally(self) -> PageTally:
        """The counts, with Prometheus as one page."""
        is_failing, is_waiting = self._failure is not None, self._good_at is None
        return self._counts.tally(
            read=int(not is_failing and not is_waiting),
            failing=int(is_failing),
            waiting=int(is_waiting and not is_failing),
            oldest_seconds=None
            if self._good_at is None or not self._latest
            else self._clock.now() - self._good_at,
            bad_lines={
                (self._prometheus.address, reason.value): many
                for reason, many in sorted(self._bad.items())
            },
        )

    def source(self) -> Source:
        if self._failure is not None:
            return Source(
                GPU_TELEMETRY,
                SourceState.FAILING,
                self._failure.what,
                self._failure.hint,
                self._good_at,
            )
        if self._good_at is not None and not self._latest:
            what = f"Prometheus `{self._prometheus.address}` has no GPU metrics"
            return Source(
                GPU_TELEMETRY,
                SourceState.FAILING,
                what,
                "let it scrape a GPU exporter (port 9400)",
                self._good_at,
            )
        state = SourceState.SYNCING if self._good_at is None else SourceState.OK
        clash = self._counts.clashes.sentence
        return Source(
            GPU_TELEMETRY,
            state,
            clash,
            "let it scrape each card once" if clash else "",
            self._good_at,
        )


class AnsweredCards(Struct, frozen=True):
    """The content of one answer.

    Each card once, the cards that several targets have, and the ignored samples.
    """

    readings: tuple[GpuReading, ...]
    clashes: Clashes
    bad: Counter[BadLine]


def cards_of(found: Iterable[PrometheusSample], now: float) -> AnsweredCards:
    """The cards of one answer, without samples older than a minute; the newer of two counts."""
    fresh = sorted(
        (each for each in found if now - each.at <= STALE_AFTER_SECONDS), key=lambda each: each.at
    )
    samples = [Sample(each.labels.get("__name__", ""), each.labels, each.value) for each in fresh]
    cards = CardsOfPage()
    cards.note(samples)
    return AnsweredCards(cards.readings(now), twice_scraped(samples), cards.bad)
