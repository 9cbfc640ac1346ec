"""Follows one resource: list, watch, and after a failure wait and go on where it stopped.

A failure empties nothing. The observer keeps what it has, and `good_at` is the time until which
that was current; only a new list replaces it. A watch that broke is resumed at the last delivered
version, so nothing is skipped or reported twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, Generic, TypeVar

from fairlead.collector import quiet_collector
from fairlead.edge.connection.backoff import Backoff
from fairlead.edge.kube.api_failure import (
    ApiFailure,
    ForbiddenByServer,
    Gone,
    NotServed,
    Unreachable,
)
from fairlead.edge.kube.api_page import Change, ItemReader
from fairlead.edge.kube.api_request import EVERYTHING, Selection
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.errors import FairleadError
from fairlead.model.changes import Changes, ChangeType, Observe, listed

log = logging.getLogger("fairlead.kubernetes")

Row = TypeVar("Row")

_DELETED: Final = ChangeType.DELETED
# a wait follows a watch that the server ends sooner without events
SHORT_WATCH_SECONDS = 1.0


class Mirror(Generic[Row]):
    """The rows of one resource as the last changes left them.

    `order` is the sort key of rows; sorting happens on demand, once per change.
    """

    def __init__(self, order: Callable[[Row], Any]) -> None:
        self._order = order
        self._rows: dict[str, Row] = {}
        self._sorted: tuple[Row, ...] | None = ()

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self) -> tuple[Row, ...]:
        if self._sorted is None:
            self._sorted = tuple(sorted(self._rows.values(), key=self._order))
        return self._sorted

    def observe(self, changes: Changes[Row]) -> None:
        """Take what was reported; the rows of a whole list become the mirror's own."""
        if changes.is_list:
            rows = changes.all_rows()
            for key in changes.unreadable:
                if key in self._rows:
                    rows[key] = self._rows[key]
            self._rows = rows
            self._sorted = None
            return
        for key, row in changes.rows.items():
            if row is not None:
                self._rows[key] = row
                self._sorted = None
            elif self._rows.pop(key, None) is not None:
                self._sorted = None

    def clear(self) -> None:
        self._rows = {}
        self._sorted = None


class Reflector(Generic[Row]):
    """Follows one resource and reports its changes to `observe`, under the name `kind`.

    `run` never returns and raises only what is a bug (or CancelledError). `is_synced`: it was
    listed once. `is_current`: a watch is open, so the observer is current. `good_at`: the time, by
    `now`, until which it was. `last_error` stands from a failure to the next success. `unreadable`:
    objects that exist and make no row, with reasons.
    """

    def __init__(
        self,
        api: KubeApi,
        reader: ItemReader[Row],
        kind: str,
        observe: Observe,
        *,
        selection: Selection = EVERYTHING,
        now: Callable[[], float] = time.time,
        rng: random.Random | None = None,
        sleep: Callable[[float], Awaitable[Any]] = asyncio.sleep,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self.reader = reader
        self.is_synced = False
        self.is_current = False
        self.last_error: FairleadError | None = None
        self.unreadable: dict[str, str] = {}
        self.lists_total = 0
        self.events_total = 0
        self._api = api
        self._kind = kind
        self._observe = observe
        self._selection = selection
        self._now = now
        self._sleep = sleep
        self._on_change = on_change
        self._backoff = Backoff(rng)
        self._good_at: float | None = None
        self._version = ""
        self._listed_at = 0.0

    @property
    def good_at(self) -> float | None:
        return self._now() if self.is_current else self._good_at

    async def run(self) -> None:
        while True:
            try:
                await self._list()
                await self._follow()
            except FairleadError as error:
                await self._wait_after(error)

    async def _list(self) -> None:
        with quiet_collector(is_first=not self.is_synced):
            listing = await self._api.list_all(self.reader, self._selection)
            self.unreadable = {
                each.key: f"{each.label}: {each.reason}" for each in listing.malformed
            }
            self._observe(listed(self._kind, listing.rows, self.unreadable))
        self._version = listing.resource_version
        self._listed_at = time.monotonic()
        self.lists_total += 1
        self.is_synced = True
        self._succeeded()

    async def _follow(self) -> None:
        """Watches in a loop. Returns when the version is gone, raises any other failure."""
        while True:
            try:
                await self._watch_once()
            except Gone as error:
                log.info(
                    "watch of %s: %s; listing again", self.reader.resource.label, error.message
                )
                # gone, though just listed: wait, or this loop would not end
                if time.monotonic() - self._listed_at < SHORT_WATCH_SECONDS:
                    await self._sleep(self._backoff.next_delay())
                return
            except ApiFailure as error:
                if not _is_resumable(error):
                    raise
                await self._wait_after(error)

    async def _watch_once(self) -> None:
        opened_at = time.monotonic()
        delivered = 0
        try:
            async with contextlib.aclosing(
                self._api.watch(self.reader, self._version, self._selection)
            ) as batches:
                async for batch in batches:
                    if not self.is_current:
                        self.is_current = True
                        self._succeeded()
                    if batch:
                        self._apply(batch)
                        delivered += len(batch)
        finally:
            self._lost()
            if delivered or time.monotonic() - opened_at >= SHORT_WATCH_SECONDS:
                self._backoff.reset()
        if not delivered and time.monotonic() - opened_at < SHORT_WATCH_SECONDS:
            await self._sleep(self._backoff.next_delay())

    def _apply(self, batch: list[Change[Row]]) -> None:
        """Report a batch as one value.

        An object that changed twice in it begins another, so that each of its states is reported.
        """
        rows: dict[str, Row | None] = {}
        for change in batch:
            key, row = change.key, change.row
            if change.malformed is not None:
                self.unreadable[key] = f"{change.malformed.label}: {change.malformed.reason}"
            elif row is not None or change.type == _DELETED:
                if key in rows:
                    self._observe(Changes(self._kind, rows))
                    rows = {}
                rows[key] = row
            if self.unreadable and change.malformed is None:
                self.unreadable.pop(key, None)
            if change.resource_version:
                self._version = change.resource_version
        self.events_total += len(batch)
        if rows:
            self._observe(Changes(self._kind, rows))
            self._on_change()

    def _succeeded(self) -> None:
        if self.last_error is not None:
            log.info(
                "%s: read again after %d failures",
                self.reader.resource.label,
                self._backoff.failures,
            )
        self.last_error = None
        self._good_at = self._now()
        self._on_change()

    def _lost(self) -> None:
        """The watch is over: what was true until now may be old from here on."""
        if self.is_current:
            self.is_current = False
            self._good_at = self._now()

    async def _wait_after(self, error: FairleadError) -> None:
        self._lost()
        is_news = self.last_error is None or self.last_error.what != error.what
        self.last_error = error
        delay = self._backoff.next_delay(getattr(error, "retry_after", None))
        level = logging.WARNING if is_news else logging.DEBUG
        log.log(
            level,
            "%s cannot be read, next try in %.1f s: %s",
            self.reader.resource.label,
            delay,
            error.log_line,
        )
        self._on_change()
        await self._sleep(delay)


def _is_resumable(error: ApiFailure) -> bool:
    """Whether the watch may go on where it stopped.

    A long outage alone is no reason to read everything again.
    """
    if isinstance(error, (ForbiddenByServer, NotServed)):
        return False
    return isinstance(error, Unreachable) or error.status in (429, 502, 503, 504)
