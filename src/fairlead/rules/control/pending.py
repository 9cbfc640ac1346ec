"""Calls that the watch does not show yet.

A decider must not decide twice about the same object only because the watch is late. So each call
is kept from the moment at which it is sent until its effect is seen, and the decider lays it over
what the watch shows. The life of a call:

- **in flight** until the driver returns its outcome, or until a new listing: the process that sent
  it may have been cut off from its answers, so the outcome is then unknown;
- **unknown**: it counts as carried out and is repeated after a pause that doubles. Repeating does
  no harm, because calls name the uid of their object and, where it matters, the state that they
  change. A repetition that is refused shows that the first call was not carried out, but only when
  `SETTLE_SECONDS` have passed: before that the first may still be on its way;
- **done**: kept until the watch shows its effect, or a list that was requested after the answer
  does not show it;
- **refused** (certainly not carried out): forgotten, and its object is left alone for a pause
  (`Pauses`).

Invariants: a call in flight is never forgotten and never repeated; `repeat_at` is set only while
the outcome is unknown and nothing is in flight; `listing` is set only when the outcome is known, or
must be by now.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Final, TypeVar

from msgspec import Struct

from fairlead.model.actions import Outcome, Result

SETTLE_SECONDS: Final = 15.0
"""How long after a call without an answer the API server may still carry it out: its request ends
with the Lease (3 s at most), and etcd may be later.
"""
FIRST_PAUSE_SECONDS: Final = 1.0
LONGEST_PAUSE_SECONDS: Final = 30.0


class PendingCall(Struct):
    """One call. `is_in_flight`: its answer has not arrived. `unknown_since`: when a sending of it
    ended without an answer, the last time. `repeat_at`: when it is sent again; `pause` seconds lie
    before the next repetition. `listing`: the number of the newest listing when its outcome became
    known; a later listing shows the truth. `is_shown`: the watch has shown its effect.
    """

    sent_at: float
    is_in_flight: bool = True
    unknown_since: float | None = None
    repeat_at: float | None = None
    pause: float = FIRST_PAUSE_SECONDS
    listing: int | None = None
    is_shown: bool = False

    def repeat_later(self, now: float) -> None:
        """Send it again after its pause, which doubles."""
        self.repeat_at = now + self.pause
        self.pause = min(2 * self.pause, LONGEST_PAUSE_SECONDS)

    def is_settled(self, now: float) -> bool:
        """Whether a sending without an answer can no longer be carried out."""
        return self.unknown_since is not None and now >= self.unknown_since + SETTLE_SECONDS


Call = TypeVar("Call", bound=PendingCall)


class PendingCalls(dict[str, Call]):
    """Calls of one sort by the uid of their object: at most one for each.

    `refusal_is_final`: whether a refused repetition shows that the call was not carried out. It
    does not where the API server also refuses what is done already.
    """

    def __init__(self, *, refusal_is_final: bool = True) -> None:
        super().__init__()
        self._refusal_is_final = refusal_is_final

    def ended(self, uid: str, outcome: Outcome, now: float, listing: int) -> bool:
        """Take the outcome of a call.

        Whether it was certainly not carried out, and is forgotten.
        """
        call = self[uid]
        call.is_in_flight = False
        call.repeat_at = None
        if outcome.result is Result.UNKNOWN:
            call.unknown_since = now
            call.repeat_later(now)
        elif outcome.result is not Result.REFUSED:
            call.unknown_since = None
            call.listing = listing
        elif call.unknown_since is None or (self._refusal_is_final and call.is_settled(now)):
            del self[uid]
            return True
        else:
            call.repeat_later(now)
        return False

    def repeats(self, now: float, without: Container[str] = ()) -> Iterator[Call]:
        """The calls that are to be sent again now; they are in flight from now on."""
        for uid, call in self.items():
            if (
                call.repeat_at is not None
                and call.repeat_at <= now
                and not call.is_in_flight
                and uid not in without
            ):
                call.is_in_flight, call.repeat_at = True, None
                yield call

    def cut_off(self, now: float) -> None:
        """A new listing has begun: the outcomes of calls in flight may never arrive."""
        for call in self.values():
            if call.is_in_flight:
                call.is_in_flight, call.unknown_since, call.repeat_at = (
                    False,
                    now,
                    now + SETTLE_SECONDS,
                )

    def shown(self, uid: str) -> None:
        """The watch shows the effect of the call.

        Another client may undo it before the next `forget`.
        """
        if uid in self:
            self[uid].is_shown = True

    def forget(
        self, now: float, listing: int, is_shown: Callable[[str, Call], bool]
    ) -> list[tuple[str, Call]]:
        """Forget calls that the watch shows, or a later listing disproves.

        Return the shown ones.
        """
        shown: list[tuple[str, Call]] = []
        for uid, call in list(self.items()):
            if call.is_in_flight:
                continue
            if call.is_shown or is_shown(uid, call):
                shown.append((uid, call))
            elif not _is_disproved(call, now, listing):
                continue
            del self[uid]
        return shown

    def step_back(self, now: float) -> None:
        """The clock was set back: no pause lasts longer because of it."""
        for call in self.values():
            call.sent_at = min(call.sent_at, now)
            call.repeat_at = None if call.repeat_at is None else now
            call.unknown_since = None if call.unknown_since is None else now

    def times(self) -> Iterator[float]:
        """When the clock alone calls for a repetition."""
        return (call.repeat_at for call in self.values() if call.repeat_at is not None)


class Pauses:
    """Objects that are not acted on for a while because a call about them was refused.

    Each refusal doubles the pause.
    """

    def __init__(self) -> None:
        self._until: dict[str, tuple[float, float]] = {}

    def __contains__(self, uid: str) -> bool:
        """Whether there was a refusal lately, also when its pause is over."""
        return uid in self._until

    def is_paused(self, uid: str, now: float) -> bool:
        return uid in self._until and now < self._until[uid][0]

    def pause(self, uid: str, now: float) -> None:
        pause = (
            min(2 * self._until[uid][1], LONGEST_PAUSE_SECONDS)
            if uid in self._until
            else FIRST_PAUSE_SECONDS
        )
        self._until[uid] = now + pause, pause

    def end(self, uid: str) -> None:
        """A call about the object was carried out: its next pause is the shortest one."""
        self._until.pop(uid, None)

    def forget(self, now: float) -> None:
        """Forget pauses that were over long ago."""
        for uid in [
            uid for uid, (until, _) in self._until.items() if now >= until + LONGEST_PAUSE_SECONDS
        ]:
            del self._until[uid]

    def step_back(self) -> None:
        """The clock was set back: no pause lasts longer because of it."""
        self._until.clear()

    def times(self) -> Iterator[float]:
        """When pauses end."""
        return (until for until, _ in self._until.values())


def _is_disproved(call: PendingCall, now: float, listing: int) -> bool:
    """Whether a listing that was requested after the call had ended does not show it."""
    if call.listing is None and call.is_settled(now):
        call.listing = listing
    return call.listing is not None and listing > call.listing
