"""The counters of a ConfigMap, followed while the exporter runs (`--configmap-data`).

A ConfigMap that is missing at the start is logged, and the file counts until it appears. If it is
deleted, forbidden or broken later, only the self metrics change: the last good counters stay.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from fairlead.apps.configuration.counters_file import CountersInForce, counters_of
from fairlead.errors import FairleadError, UserError
from fairlead.model.devices.counter import CounterSet
from fairlead.model.repeat_filter import RepeatFilter
from fairlead.ports import TextSource

LOOK_SECONDS: Final = 30.0
KEY: Final = "metrics"
"""Key of the ConfigMap's data, as dcgm-exporter has it."""
_log = logging.getLogger(__name__)


class CountersMap:
    """`name`: `namespace:name` as written. `fallback`: the counters until the map exists."""

    def __init__(
        self,
        source: TextSource,
        name: str,
        fallback: CountersInForce,
        look_seconds: float = LOOK_SECONDS,
    ) -> None:
        self._source = source
        self._what = f"ConfigMap `{name}`"
        self._fallback = fallback
        self._look_seconds = look_seconds
        self._own: CounterSet | None = None
        self._text: str | None = None
        self._parsed: str | None = None
        self._trouble = RepeatFilter()
        self._fault = ""
        self._is_reading = False
        self._is_asked = asyncio.Event()

    @property
    def counters(self) -> CounterSet:
        return self._fallback.counters if self._own is None else self._own

    @property
    def reload_succeeded(self) -> bool:
        return (
            not self._trouble.what
            and not self._fault
            and (self._own is not None or self._fallback.reload_succeeded)
        )

    @property
    def is_reloading(self) -> bool:
        return self._is_reading or self._fallback.is_reloading

    async def follow(self, news: Callable[[], None]) -> None:
        """Check until cancelled; call `news` when the map has other counters, or none any more."""
        await asyncio.gather(self._follow_map(news), self._fallback.follow(news))

    async def _follow_map(self, news: Callable[[], None]) -> None:
        while True:
            self._is_asked.clear()
            if await self.look():
                news()
            # spread over the nodes of a cluster
            seconds = self._look_seconds * random.uniform(0.8, 1.2)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_asked.wait(), seconds)

    def ask_now(self) -> None:
        self._is_asked.set()

    async def look(self) -> bool:
        """Ask once. Returns whether the answer differs from the last one."""
        try:
            text = await self._source.read_text()
        except FairleadError as error:
            return self._log_once(error.log_line)
        if text is None:
            return self._log_once(f"{self._what} does not exist, or has no `{KEY}`")
        is_news = text != self._text or bool(self._trouble.what)
        self._text = text
        self._trouble.is_news("")
        return is_news

    def read_strictly(self) -> None:
        """Raises UserError for a map that was received and has an unusable row."""
        if self._text is not None:
            counters_of(self._text, self._what, is_strict=True)

    def reload_if_changed(self, *, is_asked: bool = False) -> None:
        text = self._text
        if text is not None and text != self._parsed:
            self._parsed, self._fault, self._is_reading = text, "", True
            try:
                self._own = counters_of(text, self._what)
                _log.info("counters read from %s: %d rows", self._what, len(self._own.counters))
            except UserError as error:
                self._fault = error.log_line
                _log.warning("%s: %s", self._stays, error.log_line)
            finally:
                self._is_reading = False
        if self._own is None:
            self._fallback.reload_if_changed(is_asked=is_asked)

    @property
    def _stays(self) -> str:
        return (
            "counters stay as they were"
            if self._own is not None
            else "the counters file counts until then"
        )

    def _log_once(self, trouble: str) -> bool:
        is_news = self._trouble.is_news(trouble)
        if is_news:
            _log.warning("%s: %s", self._stays, trouble)
        return is_news
