"""The Lease that says which of several processes may write; one that is called without it asks for it.

Time is this machine's own monotonic clock, never the times in the Lease. A holder stops serving before others
may think that it has, gives way only when nothing of its own is under way, and a Lease counts as expired only
when it was seen unchanged for its whole length. What is left: a process whose clock stands still inside one
system call, between its look at the Lease and the sending of a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Final

from msgspec import Struct, structs

from fairlead.errors import OutsideError
from fairlead.ports import LeaseApi, LeaseRecord

LEASE_SECONDS: Final = 4
SAFE_SECONDS: Final = 3.0
"""So long after a renewal was *sent* its holder serves; a second less than others wait."""
RENEW_SECONDS: Final = 1.0
CALLED_SECONDS: Final = 3.0
"""A holder that was not called for so long gives way to one that was."""
FENCE_SECONDS: Final = SAFE_SECONDS
"""By then all is decided that a dead holder of our name had on its way: it ended with its Lease."""
_log = logging.getLogger(__name__)


class LeaseTimes(Struct, frozen=True):
    """In seconds. `length`: others take it when it was not renewed for so long. `safe`: so long after a
    renewal was sent its holder may write. `renew`: between renewals. `patience`: for one look at it.

    `fence`: by then all is decided that a dead holder of our name had on its way.
    """

    length: int = LEASE_SECONDS
    safe: float = SAFE_SECONDS
    renew: float = RENEW_SECONDS
    patience: float = SAFE_SECONDS
    fence: float = FENCE_SECONDS


BRIEF: Final = LeaseTimes()
"""For who answers others, and must not keep them waiting."""
UNHURRIED: Final = LeaseTimes(length=15, safe=10.0, renew=2.0, patience=4.0, fence=3.0)
"""For who works by itself: an API server that is restarted costs nobody the Lease."""


class Leader:
    """`on_taken` is called when the Lease comes to this process, not when it is renewed.

    `trouble`: why the Lease cannot be had.
    `is_idle`: whether nothing is under way that only its holder may do. `held_until`: of `monotonic`. `term`:
    how often it has come to us. `holder`: who was last seen with it, "" = nobody.
    """

    def __init__(
        self,
        api: LeaseApi,
        identity: str,
        on_taken: Callable[[], None] = lambda: None,
        is_idle: Callable[[], bool] = lambda: True,
        monotonic: Callable[[], float] = time.monotonic,
        times: LeaseTimes = BRIEF,
    ) -> None:
        self.identity = identity
        self.trouble = ""
        self.holder = ""
        self._times = times
        self._api = api
        self._on_taken = on_taken
        self._is_idle = is_idle
        self._monotonic = monotonic
        self.held_until = float("-inf")
        self.term = 0
        self._is_wanted = False
        self._called_at = float("-inf")
        self._written: LeaseRecord | None = None
        self._seen: tuple[str, str] = ("", "")
        self._seen_at = float("-inf")
        self._wake = asyncio.Event()

    @property
    def is_held(self) -> bool:
        return self._monotonic() < self.held_until

    @property
    def gives_way(self) -> bool:
        """Whether another is called and this one is not: nothing new should be begun."""
        return self._is_wanted and not self._is_called

    def left(self) -> float:
        """Seconds for which this process may still write: the `timeout` of a request that is sent now."""
        return max(0.0, self.held_until - self._monotonic())

    def called(self) -> None:
        """Somebody has asked this process."""
        self._called_at = self._monotonic()
        if not self.is_held:
            self._wake.set()

    async def run(self) -> None:
        """Take it when it is free, renew it, give it to who needs it."""
        while True:
            self._wake.clear()
            await self.turn()
            renew = self._times.renew
            pause = renew if self.is_held or not self._is_called else renew / 4
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause)
            if not self.is_held:
                await asyncio.sleep(renew / 8)  # a row of calls does not make a row of requests

    async def release(self) -> None:
        """Give it back at a clean end, so that the next need not wait.

        While something may still come true, it runs out by itself.
        """
        was_held, self.held_until = self.is_held, float("-inf")
        if was_held and self._written is not None and self._is_idle():
            with contextlib.suppress(OutsideError, TimeoutError):
                async with asyncio.timeout(self._times.patience):
                    await self._api.put_lease(structs.replace(self._written, holder="", wanted_by=""))

    async def turn(self) -> None:
        """One look at the lease, and one write if it is ours to write."""
        try:
            async with asyncio.timeout(self._times.patience):
                await self._turn()
        except OutsideError as error:
            self._note(error.what)
        except TimeoutError:
            self._note("the API server does not answer")

    async def _turn(self) -> None:
        record = await self._api.get_lease() or LeaseRecord()
        self._observe(record)
        self._is_wanted = record.wanted_by not in ("", self.identity)
        if self._written is not None and record.holder == self.identity and record.renewed == self._written.renewed:
            yields = self.gives_way and self._is_idle()
            await (self._give(record) if yields else self._write(record, is_new=False))
        elif record.holder == self.identity:
            if self._monotonic() - self._seen_at >= self._times.fence:
                await self._write(record, is_new=True)
        elif (not record.holder and record.wanted_by in ("", self.identity)) or self._is_expired(record):
            await self._write(record, is_new=True)
        else:
            self._lose(record)
            if self._is_called and record.wanted_by != self.identity:
                await self._api.put_lease(structs.replace(record, wanted_by=self.identity))

    async def _write(self, record: LeaseRecord, *, is_new: bool) -> None:
        began = self._monotonic()
        transitions = record.transitions + (record.holder != self.identity)
        wanted_by = "" if is_new or record.wanted_by == self.identity else record.wanted_by
        asked = LeaseRecord(self.identity, self._times.length, "", wanted_by, transitions, record.version)
        written = await self._api.put_lease(asked)
        if written is None:
            return  # somebody was quicker; the next turn sees who
        self._written, self.trouble = written, ""
        if is_new:
            _log.info("took the lease as %s", self.identity)
            self.term += 1
            self._on_taken()
        self.held_until = began + self._times.safe

    async def _give(self, record: LeaseRecord) -> None:
        self.held_until = float("-inf")
        self._written = None
        _log.info("gave the lease to %s, which is called", record.wanted_by)
        await self._api.put_lease(structs.replace(record, holder=""))

    def _lose(self, record: LeaseRecord) -> None:
        self.held_until = float("-inf")
        self._written = None
        self._note(f"{record.holder or record.wanted_by} holds the lease")

    def _observe(self, record: LeaseRecord) -> None:
        self.holder = record.holder
        seen = (record.holder, record.renewed)
        if seen != self._seen:
            self._seen, self._seen_at = seen, self._monotonic()

    def _is_expired(self, record: LeaseRecord) -> bool:
        return self._monotonic() - self._seen_at > max(record.seconds, self._times.length)

    @property
    def _is_called(self) -> bool:
        return self._monotonic() - self._called_at < CALLED_SECONDS

    def _note(self, trouble: str) -> None:
        if trouble != self.trouble:
            _log.warning("without the lease: %s", trouble)
        self.trouble = trouble
