"""The interface of a decider: the pure half of a controller, which a driver connects to a cluster.

A decider holds all state of its controller and touches nothing outside. A driver gives it what the
cluster shows, asks it what is to be done, carries the actions out, and returns how each ended. Two
drivers exist: `apps/controller` for a real cluster and `run/hooks/simulated_controller` for a
simulated one, so the laptop and the real cluster run the same decisions.
docs/project/new-controller.md shows how to write one.

The rules for every decider:

- Time is the argument `now`; it may jump forwards, and after a change of the clock backwards.
- `look` may be called at any time, also when nothing has changed, and then returns little or
  nothing.
- The driver calls `done` exactly once for each action that it has been given, unless the process
  ends or loses the Lease first. After `rebuild` no answer may be relied on: what must survive is in
  the API server.
- Actions of one `look` are in the order in which they must be sent, but they run side by side. An
  action that must not be sent before another has ended comes from `done` of the first, or from a
  later `look`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, TypeVar

from fairlead.model.actions import Outcome
from fairlead.model.changes import Changes

Action = TypeVar("Action")


class Decider(Protocol[Action]):
    """Decides for one controller. `Action`: the union of what it can ask for."""

    @property
    def is_rebuilt(self) -> bool:
        """Whether every followed kind has been listed since the last `rebuild`.

        Until then, `look` waits.
        """
        ...

    @property
    def next_at(self) -> float | None:
        """When the next look is due, in seconds of `now`; a time that has passed: now.

        None: only a change or an outcome may call for one. `observe` and `done` may bring it
        forward.
        """
        ...

    def rebuild(self) -> None:
        """Doubt all that is known: the driver lists every kind anew."""
        ...

    def observe(self, changes: Changes[Any]) -> None:
        """Take what a list or a watch reported of one kind."""
        ...

    def look(self, now: float) -> Iterable[Action | None]:
        """The next actions.

        None: the driver may let other work run before it takes the next action.
        """
        ...

    def done(self, action: Action, outcome: Outcome, now: float) -> Iterable[Action]:
        """Take how an action ended; return the actions that follow from it."""
        ...
