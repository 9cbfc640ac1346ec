"""GPU values from the pages of GPU exporters (`ports.GpuReadings`), ours or dcgm-exporter's.

One page may speak for many nodes, and a page that fails does not empty the others: its last values stay until
they are stale, then they are gone, never zero.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from typing import Final

import aiohttp
from msgspec import Struct

from fairlead import __version__
from fairlead.edge.connection.connection_failure import explain_connection
from fairlead.edge.connection.lines import LineSplitter
from fairlead.edge.connection.proxy import is_loopback
from fairlead.errors import OutsideError, UserError
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.snapshot import GPU_TELEMETRY
from fairlead.model.source import Source, SourceState
from fairlead.ports import Clock
from fairlead.wire.metrics.gpu_readings import METRICS, CardsOfPage, with_idle_since
from fairlead.wire.metrics.prom_text import KnownLabels, parse_page

INTERVAL_SECONDS: Final = 5.0
FIRST_INTERVAL_SECONDS: Final = 0.5
TIMEOUT_SECONDS: Final = 10.0
STALE_AFTER_SECONDS: Final = 30.0
LARGEST_PAGE_BYTES: Final = 256 << 20
PIECE_BYTES: Final = 1 << 20
AT_ONCE: Final = 64
_log = logging.getLogger("fairlead.exporter")


class ExporterFailure(OutsideError):
    """A page could not be had or read."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__("exporter", what, hint)


class _PageState(Struct):
    """What is known of one page. `read_at` is the reader's clock, `good_at` the world's."""

    url: str
    readings: tuple[GpuReading, ...] = ()
    failure: ExporterFailure | None = None
    read_at: float | None = None
    good_at: float | None = None


class ExporterPages:
    """Scrapes pages on a steady beat while `run` runs.

    `urls` end in `/metrics`; `node_by_url` names the node of a page that does not.
    """

    def __init__(
        self,
        urls: Sequence[str],
        clock: Clock,
        *,
        interval_seconds: float = INTERVAL_SECONDS,
        stale_after_seconds: float = STALE_AFTER_SECONDS,
        node_by_url: dict[str, str] | None = None,
        wall: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall = wall
        for url in urls:
            if not url.startswith(("http://", "https://")):
                raise UserError(f"`{url}` is no address of an exporter's page", "write it whole, for example `http://gpu-1:9400/metrics`")
        self._pages = [_PageState(url) for url in urls]
        self._clock = clock
        self._interval = interval_seconds
        self._stale_after = stale_after_seconds
        self._node_by_url = node_by_url or {}
        self._latest: tuple[GpuReading, ...] = ()

    async def run(self) -> None:
        timeout = aiohttp.ClientTimeout(total=max(TIMEOUT_SECONDS, self._interval))
        async with aiohttp.ClientSession(timeout=timeout, headers={"User-Agent": f"fairlead/{__version__}"}) as session:
            while True:
                began = self._wall()
                await self.read_once(session)
                elapsed = self._wall() - began
                interval = self._interval if self._latest else min(self._interval, FIRST_INTERVAL_SECONDS)
                await asyncio.sleep(max(0.0, interval - elapsed))

    async def read_once(self, session: aiohttp.ClientSession) -> None:
        """Read every page once, then publish what is not stale."""
        gate = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(self._read(session, page, gate) for page in self._pages))
        now = self._wall()
        for page in self._pages:
            if page.read_at is not None and now - page.read_at > self._stale_after:
                page.readings = ()
        self._latest = tuple(reading for page in self._pages for reading in page.readings)

    def latest(self) -> tuple[GpuReading, ...]:
        return self._latest

    def source(self) -> Source:
        if not self._pages:
            return Source(GPU_TELEMETRY, SourceState.OFF, "no GPU exporter is named", "name its page with `--gpu-exporter`")
        good_at = min((page.good_at for page in self._pages if page.good_at is not None), default=None)
        failed = [page for page in self._pages if page.failure is not None]
        if failed:
            first = failed[0].failure
            assert first is not None
            more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
            return Source(GPU_TELEMETRY, SourceState.FAILING, f"{first.what}{more}", first.hint, good_at)
        return Source(GPU_TELEMETRY, SourceState.SYNCING if good_at is None else SourceState.OK, good_at=good_at)

    async def _read(self, session: aiohttp.ClientSession, page: _PageState, gate: asyncio.Semaphore) -> None:
        try:
            async with gate:
                cards = await _fetch(session, page.url, self._node_by_url.get(page.url, ""))
            now = self._clock.now()
            parsed = await asyncio.to_thread(cards.readings, now)
            if not parsed:
                raise ExporterFailure(f"page `{page.url}` has no GPU metrics", "name the page of a GPU exporter (port 9400)")
        except ExporterFailure as failure:
            if page.failure is None or page.failure.what != failure.what:
                _log.warning("%s", failure.log_line)
            page.failure = failure
            return
        if page.failure is not None:
            _log.info("page `%s` can be read again", page.url)
        before = {reading.uuid: reading for reading in page.readings}
        page.readings = with_idle_since(parsed, before)
        page.failure, page.good_at, page.read_at = None, now, self._wall()


async def _fetch(session: aiohttp.ClientSession, url: str, node: str) -> CardsOfPage:
    """What the page says; raises ExporterFailure."""
    try:
        plain = {"Accept-Encoding": "identity"} if is_loopback(url) else {}  # there unpacking costs more than carrying
        async with session.get(url, headers=plain) as response:
            if response.status != 200:
                raise ExporterFailure(f"page `{url}` answered {response.status}", "check the address of the exporter")
            return await _read_limited(response, url, CardsOfPage(node))
    except (aiohttp.ClientError, OSError, ValueError) as error:
        what, hint = explain_connection(f"GPU exporter `{url}`", "of `--gpu-exporter`", url, error)
        raise ExporterFailure(what, hint) from error


async def _read_limited(response: aiohttp.ClientResponse, url: str, cards: CardsOfPage) -> CardsOfPage:
    """Note the page's samples piece by piece, in a thread: a page of many nodes is neither held as a whole
    nor a pause for others.
    """
    splitter, known, size = LineSplitter(), KnownLabels(), 0
    with contextlib.closing(response):
        async for piece in response.content.iter_chunked(PIECE_BYTES):
            size += len(piece)
            if size > LARGEST_PAGE_BYTES:
                raise ExporterFailure(f"page `{url}` is larger than {LARGEST_PAGE_BYTES >> 20} MiB", "name one exporter per node")
            await asyncio.to_thread(_note, cards, splitter.feed(piece), known)
    _note(cards, splitter.feed(b"\n"), known)
    return cards


def _note(cards: CardsOfPage, lines: bytes, known: KnownLabels) -> None:
    cards.note(parse_page(lines.decode("utf-8", "replace"), METRICS, known).samples)
