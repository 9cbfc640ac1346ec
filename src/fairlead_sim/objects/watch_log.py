"""The writes to the objects of one kind in order, and the cursors that read along.

A reader has no queue of its own: it is a cursor into one bounded log, so a reader that never reads
costs nothing; when the log has moved past its cursor it gets 410 (`Gone`) and starts anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from fairlead.model.changes import ChangeType
from fairlead_sim.schema.status import ApiStatus, too_old

Object = dict[str, Any]
Objects = list[Object]  # for classes in which `list` is a method
Predicate = Callable[[Object], bool]

ADDED, MODIFIED, DELETED = ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED


@dataclass(slots=True, eq=False)
class LoggedChange:
    """One write. `previous` is the object before it (None at ADDED); at DELETED `object` is the
    last state under a new version.
    """

    type: ChangeType
    object: Object
    previous: Object | None
    resource_version: int


class EventLog:
    """The newest `capacity` events of one kind (up to twice as many between two trims)."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._events: list[LoggedChange] = []
        self._first = 0  # index, counted since the beginning of time, of _events[0]
        self.forgotten_version = 0  # the highest resourceVersion that is no longer kept
        self._subscriptions: dict[Subscription, None] = {}

    @property
    def end(self) -> int:
        return self._first + len(self._events)

    @property
    def readers(self) -> int:
        return len(self._subscriptions)

    def append(self, event: LoggedChange) -> None:
        self._events.append(event)
        if len(self._events) >= 2 * self._capacity:
            self.forget(len(self._events) - self._capacity)
        for subscription in self._subscriptions:
            subscription.wake()

    def forget(self, count: int) -> None:
        """Drop the oldest `count` events, as the real store does when it compacts."""
        if count <= 0:
            return
        dropped = self._events[:count]
        del self._events[:count]
        self._first += len(dropped)
        self.forgotten_version = dropped[-1].resource_version

    def read(self, cursor: int, limit: int) -> list[LoggedChange] | None:
        """At most `limit` events from `cursor` on.

        None when the log no longer goes back that far.
        """
        start = cursor - self._first
        return None if start < 0 else self._events[start : start + limit]

    def cursor_after(self, version: int) -> int:
        """The start of a reader that knows everything up to `version`.

        Raises 410 when that is too long ago.
        """
        if version < self.forgotten_version:
            raise too_old(version, self.forgotten_version)
        low, high = 0, len(self._events)
        while low < high:
            middle = (low + high) // 2
            if self._events[middle].resource_version <= version:
                low = middle + 1
            else:
                high = middle
        return self._first + low

    def join(self, subscription: Subscription) -> None:
        self._subscriptions[subscription] = None

    def leave(self, subscription: Subscription) -> None:
        self._subscriptions.pop(subscription, None)


class Subscription:
    """One reader of a log.

    `poll` for what is there, or iterate asynchronously for ever (until `close`).

    With a filter, an object that starts to match is ADDED and one that stops matching is DELETED,
    whatever really happened.
    """

    def __init__(
        self, log: EventLog, cursor: int, matches: Predicate | None, version: Callable[[], int]
    ) -> None:
        self._log = log
        self._cursor = cursor
        self._matches = matches
        self._version = version
        self._news = asyncio.Event()
        self._closed = False
        log.join(self)

    def wake(self) -> None:
        self._news.set()

    def close(self) -> None:
        self._closed = True
        self._log.leave(self)
        self._news.set()

    def bookmark_version(self) -> int:
        """The resourceVersion up to which this reader has seen everything, also while something
        waits to be read.
        """
        unread = self._log.read(self._cursor, 1)
        if unread is None:
            raise self._fallen_behind()
        return unread[0].resource_version - 1 if unread else self._version()

    def poll(self, limit: int = 500) -> list[LoggedChange]:
        """The next events, oldest first, without waiting; empty when the reader is up to date.

        Raises 410 when it fell behind.
        """
        changes: list[LoggedChange] = []
        while not changes:
            events = self._log.read(self._cursor, limit)
            if events is None:
                raise self._fallen_behind()
            if not events:
                break
            self._cursor += len(events)
            changes = [seen for event in events if (seen := self._as_filtered(event)) is not None]
        return changes

    def _fallen_behind(self) -> ApiStatus:
        return ApiStatus(
            410,
            "Expired",
            f"too old resource version: the watcher was too slow ({self._log.forgotten_version})",
        )

    def _as_filtered(self, event: LoggedChange) -> LoggedChange | None:
        matches = self._matches
        if matches is None:
            return event
        before = event.previous is not None and matches(event.previous)
        after = event.type != DELETED and matches(event.object)
        if not before and not after:
            return None
        if before and after:
            return event
        if after:
            return (
                event
                if event.type == ADDED
                else LoggedChange(ADDED, event.object, event.previous, event.resource_version)
            )
        if event.type == DELETED:
            return event
        return LoggedChange(DELETED, _last_matching(event), event.previous, event.resource_version)

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for news (True) or the end of `seconds` of real time (False)."""
        if self._closed or self._cursor < self._log.end:
            return True
        self._news.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            return self._cursor < self._log.end  # news may come together with the end
        return True

    async def __aiter__(self) -> AsyncIterator[LoggedChange]:
        while not self._closed:
            for event in self.poll():
                yield event
            await self.wait()


def _last_matching(event: LoggedChange) -> Object:
    """The object in a filtered watch's event when it stops matching.

    It is the last state that matched, under the new version.
    """
    previous = event.previous or event.object
    return {
        **previous,
        "metadata": {**previous["metadata"], "resourceVersion": str(event.resource_version)},
    }
