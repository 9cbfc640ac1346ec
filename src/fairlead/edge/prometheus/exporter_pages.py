"""GPU values from the pages of GPU exporters (`ports.GpuReadings`), Fairlead's or dcgm-exporter's.

Each page has its own interval: one that hangs or fails delays no other, and is read less and less
often. Its last values stay until they are stale, and then disappear; they never become zero. One
page may have cards of many nodes; a card on several pages counts once.
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import count
from operator import attrgetter
from typing import Final, Protocol

import aiohttp
from msgspec import structs

from fairlead.edge.connection.pem import read_pem
from fairlead.edge.prometheus.followed_page import FollowedPage
from fairlead.edge.prometheus.page_address import page_address
from fairlead.edge.prometheus.page_fetch import (
    TIMEOUT_SECONDS,
    ExporterFailure,
    Fetch,
    fetch_page,
    in_thread,
    page_session,
)
from fairlead.edge.prometheus.read_counts import ReadCounts
from fairlead.edge.prometheus.read_slots import ReadSlots
from fairlead.model.devices.gpu import GpuReading
from fairlead.model.devices.page_tally import PageTally
from fairlead.model.snapshot import GPU_TELEMETRY
from fairlead.model.source import Source, SourceState
from fairlead.ports import Clock
from fairlead.wire.metrics.gpu_readings import with_idle_since
from fairlead.wire.metrics.one_reading import one_per_card

INTERVAL_SECONDS: Final = 5.0
STALE_AFTER_SECONDS: Final = 30.0
AT_ONCE: Final = 64
SILENT_PAGES_AT_ONCE: Final = 192
"""`AT_ONCE`: pages that are read at the same time; `SILENT_PAGES_AT_ONCE`: slow pages beside them.
New and failing pages have as many separate slots, so that they do not delay the others. The sum
limits the open sockets.
"""
KEPT_OPEN: Final = 256
"""Up to this number of pages, connections stay open between reads."""
SPREAD_SECONDS: Final = 0.005
"""Seconds between the first reads of two pages, if all first reads fit into one interval."""
PUBLISH_SECONDS_PER_PAGE: Final = 0.001
LONGEST_PUBLISH_SECONDS: Final = 1.0
MANY_CARDS: Final = 100
"""A page with at least this number of cards takes milliseconds, so a thread processes it."""
MANY_TOGETHER: Final = 2000
"""With at least this number of cards, the cards of all pages are joined in a thread."""
MOST_NAMED: Final = 20
"""Failing pages that the log names; when a network with thousands of them fails, a few suffice."""
_NO_CARD: Final = (
    "see whether its exporter finds the driver (`fairlead_exporter_nvml_up`), or name the page of "
    "a GPU exporter (port 9400)"
)
_MANY_HANG: Final = (
    "many pages are slow, so the slowest are left early; check the network and a firewall in "
    "between"
)
_PATIENCE: Final = attrgetter("patience_seconds")
_NAME_ONE: Final = (
    "name one exporter of each card; until then `fairlead_gpu_*` counts first, then what was read "
    "last"
)
_log = logging.getLogger("fairlead.exporter")


class PageFinder(Protocol):
    """Finds pages that are not named in the settings."""

    async def run(self) -> None: ...

    def pages(self) -> Mapping[str, str]:
        """The node of each page by its address; the same mapping object until something changes."""
        ...

    def source(self) -> Source:
        """How well the search works."""
        ...


class ExporterPages:
    """Reads pages while `run` runs; `latest` has what has arrived.

    `urls` end in `/metrics`; messages name them without a `user:password@` in them. `node_by_url`:
    the node of a page whose cards have none. `finder` finds further pages. `wall`: the reader's
    clock. `fetch` reads a page. `ca_file`: PEM of the authorities that sign `https` pages, "" =
    those of this machine. Raises UserError for an unusable address or file.
    """

    def __init__(
        self,
        urls: Sequence[str],
        clock: Clock,
        *,
        interval_seconds: float = INTERVAL_SECONDS,
        stale_after_seconds: float = STALE_AFTER_SECONDS,
        timeout_seconds: float = TIMEOUT_SECONDS,
        node_by_url: Mapping[str, str] | None = None,
        finder: PageFinder | None = None,
        wall: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
        fetch: Fetch = fetch_page,
        ca_file: str = "",
    ) -> None:
        addresses = {url: page_address(url) for url in urls}
        self._named = {
            address.url: (node_by_url or {}).get(url, "") for url, address in addresses.items()
        }
        self._logins = {address.url: address.login for address in addresses.values()}
        self._finder = finder
        self._found: Mapping[str, str] = {}
        self._clock = clock
        self._wall = wall
        self._rng = rng or random.Random()
        self._interval = interval_seconds
        self._stale_after = stale_after_seconds
        self._timeout = max(timeout_seconds, interval_seconds)
        self._pages: dict[str, FollowedPage] = {}
        self._leaving: list[FollowedPage] = []
        self._latest: tuple[GpuReading, ...] = ()
        self._counts = ReadCounts(_log)
        self._idle_before: Mapping[str, GpuReading] = {}
        self._is_dirty = False
        self._arrived = asyncio.Event()
        self._due: list[tuple[float, int, FollowedPage]] = []
        self._turn = asyncio.Event()
        self._numbers = count()
        self._sound, self._doubtful = (
            ReadSlots[FollowedPage](AT_ONCE, SILENT_PAGES_AT_ONCE, _PATIENCE) for _ in range(2)
        )
        self._fetch = fetch
        self._ca_pem = read_pem("--gpu-exporter-ca-file", None, ca_file or None)
        self._failing = 0
        self._add(self._named)

    async def run(self) -> None:
        self._begin(list(self._pages.values()))
        async with (
            page_session(self._timeout, self._ca_pem) as session,
            asyncio.TaskGroup() as group,
        ):
            if self._finder is not None:
                group.create_task(self._finder.run())
            group.create_task(self._publish_for_ever())
            await self._read_for_ever(session, group)

    def latest(self) -> tuple[GpuReading, ...]:
        return self._latest

    def source(self) -> Source:
        found = self._finder.source() if self._finder is not None else None
        if not self._pages:
            return found or Source(
                GPU_TELEMETRY,
                SourceState.OFF,
                "no GPU exporter is named",
                "name its page with `--gpu-exporter`",
            )
        pages = self._pages.values()
        good_at = min((page.good_at for page in pages if page.good_at is not None), default=None)
        failures = [page.failure for page in pages if page.failure is not None]
        if failures:
            more = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
            return Source(
                GPU_TELEMETRY,
                SourceState.FAILING,
                f"{failures[0].what}{more}",
                failures[0].hint,
                good_at,
            )
        if found is not None and found.has_failed:
            return structs.replace(found, good_at=good_at)
        state = SourceState.SYNCING if good_at is None else SourceState.OK
        clash = self._counts.clashes.sentence
        return Source(GPU_TELEMETRY, state, clash, _NAME_ONE if clash else "", good_at)

    def tally(self) -> PageTally:
        pages, now = self._pages.values(), self._wall()
        read_at = min(
            (page.read_at for page in pages if page.read_at is not None and page.cards.readings),
            default=None,
        )
        waiting = sum(page.read_at is None and not page.is_failing for page in pages)
        return self._counts.tally(
            read=len(self._pages) - self._failing - waiting,
            failing=self._failing,
            waiting=waiting,
            oldest_seconds=None if read_at is None else now - read_at,
            bad_lines={
                (page.url, reason.value): many
                for page in pages
                for reason, many in sorted(page.bad.items())
            },
        )

    # which pages exist

    def _follow(self, wanted: Mapping[str, str]) -> None:
        """Starts new pages and drops those that are gone.

        An address on another node is a new page, because pods reuse addresses.
        """
        gone = [
            self._pages.pop(url)
            for url, page in list(self._pages.items())
            if wanted.get(url) != page.node
        ]
        for page in gone:
            self._failing -= page.is_failing
            page.leave()
        self._leaving += gone
        self._is_dirty |= bool(gone)
        self._begin(self._add(wanted))

    def _add(self, wanted: Mapping[str, str]) -> list[FollowedPage]:
        new = {
            url: FollowedPage(url, node, self._interval, self._rng)
            for url, node in wanted.items()
            if url not in self._pages
        }
        self._pages |= new
        return list(new.values())

    def _begin(self, pages: Sequence[FollowedPage]) -> None:
        """Spreads first reads over an interval; each page keeps its place in the interval."""
        now, apart = self._wall(), min(self._interval / max(1, len(pages)), SPREAD_SECONDS)
        for number, page in enumerate(pages):
            page.due_at = now + number * apart
            self._put(page)

    def _put(self, page: FollowedPage) -> None:
        heapq.heappush(self._due, (page.due_at, next(self._numbers), page))
        self._turn.set()

    # reading

    async def _read_for_ever(
        self, session: aiohttp.ClientSession, group: asyncio.TaskGroup
    ) -> None:
        while True:
            self._turn.clear()
            now = self._wall()
            while self._due and self._due[0][0] <= now:
                page = heapq.heappop(self._due)[2]
                if not page.is_gone:
                    (self._sound if page.is_sound else self._doubtful).put(page)
            for slots in (self._sound, self._doubtful):
                beginning = slots.give_places(now)
                # before new reads, so that the limit of open connections holds
                for page in slots.too_many():
                    page.leave_read()
                for page in beginning:
                    page.reading = group.create_task(self._read(session, page))
                    page.reading.add_done_callback(partial(self._end, slots, page))
            next_at = [
                at for at in (self._sound.look_at(), self._doubtful.look_at()) if at is not None
            ]
            next_at += [self._due[0][0]] if self._due else []
            with suppress(TimeoutError):
                async with asyncio.timeout(min(next_at) - now if next_at else None):
                    await self._turn.wait()

    def _end(
        self, slots: ReadSlots[FollowedPage], page: FollowedPage, task: asyncio.Task[None]
    ) -> None:
        """Called when a read ends, including one that was cancelled before it began."""
        slots.end(page)
        is_left, page.is_left, page.reading = page.is_left and task.cancelled(), False, None
        if is_left:
            self._note_failure(
                page, ExporterFailure(f"page `{page.url}` did not answer in time", _MANY_HANG)
            )
        if not page.is_gone and (is_left or not task.cancelled()):
            self._put(page)
        self._turn.set()

    async def _read(self, session: aiohttp.ClientSession, page: FollowedPage) -> None:
        if page.is_gone:
            return
        was_failing, began = page.is_failing, self._wall()
        try:
            cards = await self._fetch(
                session,
                page.url,
                page.node,
                login=self._logins.get(page.url, ""),
                keeps_open=len(self._pages) <= KEPT_OPEN,
            )
            now = self._clock.now()
            cards_read = (
                cards.page_cards(page.url, now)
                if len(cards) < MANY_CARDS
                else await in_thread(cards.page_cards, page.url, now)
            )
            page.note_bad(cards.bad)
            if not cards_read.readings:
                raise ExporterFailure(f"page `{page.url}` has no GPU metrics", _NO_CARD)
        except ExporterFailure as failure:
            self._note_failure(page, failure)
            return
        except Exception:  # noqa: BLE001 - an error in one page must not stop the others
            _log.exception("page `%s` could not be read, and that is a fault of Fairlead", page.url)
            self._note_failure(
                page,
                ExporterFailure(
                    f"page `{page.url}` could not be read", "look into this server's log"
                ),
            )
            return
        if was_failing:
            self._failing -= not page.is_gone
            _log.info("page `%s` can be read again", page.url)
        page.good_at = now
        page.note(
            structs.replace(
                cards_read, readings=with_idle_since(cards_read.readings, self._idle_before)
            ),
            began,
            self._wall(),
        )
        self._counts.reads += 1
        self._is_dirty = True
        self._arrived.set()

    def _note_failure(self, page: FollowedPage, failure: ExporterFailure) -> None:
        is_news = page.failure is None or page.failure.what != failure.what
        if is_news:
            _log.log(
                logging.WARNING if self._failing < MOST_NAMED else logging.DEBUG,
                "%s",
                failure.log_line,
            )
        self._failing += not (page.is_failing or page.is_gone)
        page.note_failure(failure, self._wall())
        self._counts.failures += 1

    # publishing

    async def _publish_for_ever(self) -> None:
        """Publishes soon after data arrived, with many pages at most once a second.

        Publishing processes all cards.
        """
        while True:
            try:
                async with asyncio.timeout(min(LONGEST_PUBLISH_SECONDS, self._interval)):
                    await self._arrived.wait()
            except TimeoutError:
                pass
            self._arrived.clear()
            self._look_around()
            await self.publish()
            await asyncio.sleep(
                min(PUBLISH_SECONDS_PER_PAGE * len(self._pages), LONGEST_PUBLISH_SECONDS)
            )

    def _look_around(self) -> None:
        found = self._finder.pages() if self._finder is not None else self._found
        if found is not self._found:
            self._found = found
            self._follow({**found, **self._named})

    async def publish(self) -> None:
        """Makes `latest` from what has arrived, without stale values.

        It stays the same value if nothing has arrived.
        """
        now = self._wall()
        pages = [*self._pages.values(), *self._leaving]
        stale = [page for page in pages if page.drop_stale(now, self._stale_after)]
        self._leaving = [page for page in self._leaving if page.cards.readings]
        if not stale and not self._is_dirty:
            return
        self._is_dirty = False
        cards_read = [page.cards for page in pages if page.cards.readings]
        new = {page.url for page in pages if page.is_new}
        for page in pages:
            page.is_new = False
        cards = sum(len(each.readings) for each in cards_read)
        counted = (
            one_per_card(cards_read)
            if cards < MANY_TOGETHER
            else await in_thread(one_per_card, cards_read)
        )
        self._counts.note_clashes(counted.clashes, new)
        self._latest = counted.readings
        self._idle_before = {
            reading.uuid: reading for reading in counted.readings if reading.idle_since is not None
        }
