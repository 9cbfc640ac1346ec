"""The Lease that names which of several processes may write.

A process that is called without the Lease asks the holder for it.

Times are those of this machine's monotonic clock, never the times in the Lease. A holder stops
serving before another process may regard the Lease as expired, and gives the Lease to another
process only when no write of its own is under way. A Lease counts as expired only if it was seen
unchanged for its whole length. A process that stands still between its look at the Lease and the
sending of a request does not notice: the API server refuses such requests by their term
(`edge/kube/lease`).
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
"""How long a holder serves after a renewal was *sent*: a second less than other processes wait
before they take the Lease.
"""
RENEW_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 0.4
"""A Lease that was given back is taken within this time and two requests."""
UNCALLED_SECONDS: Final = 3.0
"""A holder that was not called for this time gives way to a process that was."""
FENCE_SECONDS: Final = SAFE_SECONDS
"""The time after which no request of an ended process with the same identity can still be carried
out: its requests ended with its Lease.
"""
_log = logging.getLogger(__name__)


class LeaseTimes(Struct, frozen=True):
    """Times in seconds.

    `length`: another process takes the Lease when it was not renewed for this time. `safe`: for
    this time after a renewal was sent the holder may write. `renew`: between two renewals. `look`:
    between two looks of a process without the Lease. `patience`: the time limit of one look.

    `fence`: after this time no request of an ended process with the same identity can still be
    carried out.
    """

    length: int = LEASE_SECONDS
    safe: float = SAFE_SECONDS
    renew: float = RENEW_SECONDS
    look: float = LOOK_SECONDS
    patience: float = SAFE_SECONDS
    fence: float = FENCE_SECONDS


BRIEF: Final = LeaseTimes()
"""For a process that answers requests: its clients must not wait for the Lease."""
BACKGROUND_LEASE_TIMES: Final = LeaseTimes(length=5, safe=4.0, patience=2.0)
"""For a process without clients: its holder keeps the Lease while one request hangs. When it dies,
the next one takes the Lease within `length` and two looks.
"""
PATIENT_LEASE_TIMES: Final = LeaseTimes(length=15, safe=10.0, renew=2.0, patience=5.0)
"""For a process without clients that may be away for some seconds: the times that Kubernetes' own
controllers have. Its holder keeps the Lease on a busy machine, where requests take seconds.
"""


class Leader:
    """`on_taken` is called when the Lease comes to this process, not when it is renewed.

    `trouble`: why this process does not have the Lease. `is_idle`: whether no write is under way
    that only the holder may make. `held_until`: a time of `monotonic`. `term`: how many times this
    process has taken the Lease. `holder`: the identity last seen in it, "" = none; `is_renewed`:
    whether that other process was seen to renew it, so that it lives. `taken`: is set with each new
    term; the reader clears it.
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
        self.is_renewed = False
        self._times = times
        self._api = api
        self._on_taken = on_taken
        self._is_idle = is_idle
        self._monotonic = monotonic
        self.held_until = float("-inf")
        self.term = 0
        self.taken = asyncio.Event()
        self._is_wanted = False
        self._called_at = float("-inf")
        self._written: LeaseRecord | None = None
        # whether the Lease may have come to this process by a write that it got no answer to
        self._is_unanswered = False
        self._seen: tuple[str, str] = ("", "")
        self._seen_at = float("-inf")
        self._wake = asyncio.Event()

    @property
    def is_held(self) -> bool:
        return self._monotonic() < self.held_until

    @property
    def gives_way(self) -> bool:
        """Whether another process is called and this one is not: no new work should begin."""
        return self._is_wanted and not self._is_called

    def left(self) -> float:
        """The `timeout` of the next request in seconds; 0 = this process may not write.

        It ends with the Lease, and within `fence`, so that no process of the same name regards the
        request as decided too early.
        """
        return max(0.0, min(self.held_until - self._monotonic(), self._times.fence))

    def called(self) -> None:
        """Note that a client has called this process."""
        self._called_at = self._monotonic()
        if not self.is_held:
            self._wake.set()

    async def run(self) -> None:
        """Take the Lease when it is free, renew it, and give it to a process that is called."""
        while True:
            self._wake.clear()
            await self.turn()
            renew = self._times.renew
            waits = renew / 4 if self._is_called else self._times.look
            pause = renew if self.is_held else waits
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), pause)
            if not self.is_held:
                await asyncio.sleep(renew / 8)  # many calls in a row do not cause a request each

    async def release(self) -> None:
        """Give the Lease back at a clean end, so that the next holder need not wait.

        While a write may still be carried out, the Lease is left to expire.
        """
        self.held_until = float("-inf")
        if (self._written is not None or self._is_unanswered) and self._is_idle():
            with contextlib.suppress(OutsideError, TimeoutError):
                async with asyncio.timeout(self._times.patience):
                    await self._give_back()

    async def _give_back(self) -> None:
        """A write whose answer was not awaited may have changed the Lease: it is read then."""
        record = self._written or await self._api.get_lease()
        while record is not None and record.holder == self.identity:
            free = structs.replace(record, holder="", wanted_by="")
            if await self._api.put_lease(free) is not None:
                return
            record = await self._api.get_lease()

    async def turn(self) -> None:
        """Look at the Lease once, and write it once if this process may write it."""
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
        if (
            self._written is not None
            and record.holder == self.identity
            and record.renewed == self._written.renewed
        ):
            yields = self.gives_way and self._is_idle()
            await (self._give(record) if yields else self._write(record, is_new=False))
        elif record.holder == self.identity:
            if self._monotonic() - self._seen_at >= self._times.fence:
                await self._write(record, is_new=True)
        elif (not record.holder and record.wanted_by in ("", self.identity)) or self._is_expired(
            record
        ):
            await self._write(record, is_new=True)
        else:
            self._lose(record)
            if self._is_called and record.wanted_by != self.identity:
                await self._api.put_lease(structs.replace(record, wanted_by=self.identity))

    async def _write(self, record: LeaseRecord, *, is_new: bool) -> None:
        began = self._monotonic()
        transitions = record.transitions + (record.holder != self.identity)
        wanted_by = "" if is_new or record.wanted_by == self.identity else record.wanted_by
        asked = LeaseRecord(
            self.identity, self._times.length, "", wanted_by, transitions, record.version
        )
        self._is_unanswered = True
        written = await self._api.put_lease(asked)
        self._is_unanswered = False
        if written is None:
            return  # another process was faster; the next turn shows which
        self._written, self.trouble = written, ""
        if is_new:
            _log.info("took the lease as %s", self.identity)
            self.term += 1
            self._on_taken()
        self.held_until = began + self._times.safe
        if is_new:
            self.taken.set()

    async def _give(self, record: LeaseRecord) -> None:
        self.held_until = float("-inf")
        self._written = None
        _log.info("gave the lease to %s, which is called", record.wanted_by)
        await self._api.put_lease(structs.replace(record, holder=""))

    def _lose(self, record: LeaseRecord) -> None:
        """To wait for another process is no fault: only a lost Lease is a warning."""
        was_held = self._written is not None
        self.held_until = float("-inf")
        self._written, self._is_unanswered = None, False
        trouble = f"{record.holder or record.wanted_by} holds the lease"
        self._note(trouble, logging.WARNING if was_held else logging.INFO)

    def _observe(self, record: LeaseRecord) -> None:
        self.holder = record.holder
        seen = (record.holder, record.renewed)
        if seen != self._seen:
            is_other = record.holder not in ("", self.identity)
            self.is_renewed = is_other and record.holder == self._seen[0]
            self._seen, self._seen_at = seen, self._monotonic()

    def _is_expired(self, record: LeaseRecord) -> bool:
        return self._monotonic() - self._seen_at > max(record.seconds, self._times.length)

    @property
    def _is_called(self) -> bool:
        return self._monotonic() - self._called_at < UNCALLED_SECONDS

    def _note(self, trouble: str, level: int = logging.WARNING) -> None:
        if trouble != self.trouble:
            _log.log(level, "without the lease: %s", trouble)
        self.trouble = trouble
