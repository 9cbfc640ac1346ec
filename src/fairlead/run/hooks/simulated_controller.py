"""Drives a decider in simulated time: `apps/controller` for a cluster whose calls end at once.

The history before a laptop's start and a run to a later time pass faster than any client could
follow over HTTP. So deciders are driven here step by step, as simulated kubelets are, on the timers
of the world.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Generic, TypeVar

from fairlead.model.actions import Outcome, Result
from fairlead.model.changes import Changes
from fairlead.rules.control.decider import Decider
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.time.timers import Timer, Timers

COALESCE_SECONDS: Final = 0.05
"""How long changes gather before the decider looks, as on a real cluster."""
Action = TypeVar("Action")


class SimulatedController(Generic[Action]):
    """Drives `decider` on `timers`.

    `apply` carries one action out; it raises ApiStatus if refused.
    """

    def __init__(
        self, decider: Decider[Action], apply: Callable[[Action], Outcome], timers: Timers
    ) -> None:
        self._decider = decider
        self._apply = apply
        self._timers = timers
        self._next: Timer | None = None

    def observe(self, changes: Changes[Any]) -> None:
        """Give the changes to the decider, and let it look soon if they matter to it."""
        self._decider.observe(changes)
        self._look_if_due()

    def _look_if_due(self) -> None:
        due, now = self._decider.next_at, self._timers.clock.now()
        if due is not None and due <= now:
            self._look_at(now + COALESCE_SECONDS)

    def _look_at(self, moment: float) -> None:
        if self._next is not None and self._next.callback is not None and self._next.at <= moment:
            return
        if self._next is not None:
            self._next.cancel()
        self._next = self._timers.at(moment, self._look)

    def _look(self) -> None:
        self._next = None
        now = self._timers.clock.now()
        carry_out(self._decider, self._decider.look(now), self._apply, now, self._look_if_due)
        if (due := self._decider.next_at) is not None:
            self._look_at(max(due, now + COALESCE_SECONDS))


def carry_out(
    decider: Decider[Action],
    actions: Iterable[Action | None],
    apply: Callable[[Action], Outcome],
    now: float,
    after: Callable[[], None] = lambda: None,
) -> None:
    """Carry these actions out, and those that follow from their outcomes, until none is left.

    `after` is called after each outcome.
    """
    waiting = deque(actions)
    while waiting:
        action = waiting.popleft()
        if action is not None:
            waiting.extend(decider.done(action, outcome_of(apply, action), now))
            after()


def outcome_of(apply: Callable[[Action], Outcome], action: Action) -> Outcome:
    """The outcome of one call; a refusal of the simulated API server becomes one."""
    try:
        return apply(action)
    except ApiStatus as refusal:
        is_gone = refusal.code == 404 or (refusal.code == 409 and "recondition" in refusal.message)
        if is_gone:
            return Outcome(Result.GONE, refusal.message)
        return Outcome(Result.REFUSED, refusal.message, is_busy=refusal.code == 429)
