"""Drives a decider on a real cluster: the shell in which controllers run.

docs/project/new-controller.md describes how to write one.

A controller decides in a pure `Decider` (`rules/control/decider`); this module does everything
else:

- **Lease.** Only the process that holds the Lease writes. When the Lease arrives, also when it
  arrives again after a loss, all that was known is doubted and listed anew before the first
  decision. An action that was decided under an earlier Lease is refused instead of sent.
- **Following.** The API is followed while the Lease is held, or always (`follows_on_standby`).
- **Looking.** Changes gather for `coalesce_seconds`, then the decider looks once at all of them.
  Without changes it looks at its `next_at`. A long look is followed by an equally long rest, in
  which the calls of the process make progress.
- **Sending.** At most `width` calls run side by side, in the order in which the decider returned
  them. Changes to the cluster go before reports (conditions, Events, status): while a change waits
  for its turn, at most `reports_beside` reports run.
- **Outcomes.** Every action ends with exactly one `done`, whatever exception ended the call. An
  exception means that the API server may have carried the call out (UNKNOWN). Such a call keeps the
  Lease in this process for `write_seconds`: within that time the API server decides it.
- **Bugs.** An exception in the decider ends the process; a restarted process lists anew.
- **End.** No new call is sent, running calls are finished, and the Lease is released.

Invariants: `_calls` contains every running call; `_reports_running` is the part of it that reports,
and `_writes_running` the part that needs the Lease. `_is_new` is True from the arrival of the Lease
until the decider has been rebuilt for it; meanwhile nothing is decided.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec import Struct

from fairlead.apps.leader import BRIEF, Leader, LeaseTimes
from fairlead.apps.service import together
from fairlead.model.actions import (
    Outcome,
    RecordEvent,
    RecordObjectEvent,
    Result,
    SetPodCondition,
    WriteTreeStatus,
)
from fairlead.model.changes import Changes, Observe
from fairlead.ports import LeaseApi
from fairlead.rules.control.decider import Decider

STANDBY_SECONDS: Final = 0.1
"""How often a process without the Lease checks whether it has arrived."""
SLICE_SECONDS: Final = 0.005
"""How long a look may work before other tasks and the Lease get their turn."""
LONG_LOOK_SECONDS: Final = 0.2
"""A look that takes longer is followed by an equally long rest."""
LISTING: Final = "the cluster is being listed"
NO_HOLDER: Final = "no process holds the lease yet"
_LEASE_LOST: Final = Outcome(Result.REFUSED, "the lease has run out")
_REPORTS: Final = SetPodCondition | RecordEvent | RecordObjectEvent | WriteTreeStatus
_EVENTS: Final = RecordEvent | RecordObjectEvent
_SUBJECTS: Final = ("target", "pod", "subject", "tree", "asked")
_log = logging.getLogger(__name__)

Action = TypeVar("Action")
Left = Callable[[], float] | None
"""Seconds for which a call may still be decided; None: the call needs no Lease."""


def is_report(action: object) -> bool:
    """Whether the action only reports: a condition, an Event, a status."""
    return isinstance(action, _REPORTS)


def needs_lease(action: object) -> bool:
    """Whether only the holder of the Lease may send it: all but Events."""
    return not isinstance(action, _EVENTS)


class ControllerPace(Struct, frozen=True):
    """How fast a controller works. Times in seconds.

    `coalesce_seconds`: how long changes gather before a look. `full_look_seconds`: the longest time
    between two looks. `longest_rest_seconds`: after a long look. `width`: calls that run at the
    same time. `reports_width`: how many of them may be reports; `reports_beside`: while a change
    waits. `waiting_reports`: at most this number of reports waits for its turn; older ones are
    dropped without `done`. None: no limit. `write_seconds`: the API server decides a write within
    this time, so that no write of a dead process comes true later.
    """

    coalesce_seconds: float = 0.03
    full_look_seconds: float = 30.0
    longest_rest_seconds: float = 1.0
    width: int = 80
    reports_width: int = 80
    reports_beside: int = 4
    waiting_reports: int | None = None
    write_seconds: float = 3.0


DEFAULT_PACE: Final = ControllerPace()


async def _nothing() -> None:
    """No last action."""


class ControllerHooks(Struct, Generic[Action], frozen=True):
    """What a controller adds to the driver.

    `looked`: called with the actions of a look and its duration in seconds. `ended`: called with
    each action and its outcome, before the decider gets it. `is_report` and `needs_lease` classify
    actions. `is_idle`: whether the controller has no other work under way that only the holder of
    the Lease may do. `finish`: awaited at the end, after the last call. `drained`: called then,
    before the release of the Lease.
    """

    looked: Callable[[Sequence[Action], float], None] = lambda _actions, _seconds: None
    ended: Callable[[Action, Outcome], None] = lambda _action, _outcome: None
    is_report: Callable[[Action], bool] = is_report
    needs_lease: Callable[[Action], bool] = needs_lease
    is_idle: Callable[[], bool] = lambda: True
    finish: Callable[[], Awaitable[None]] = _nothing
    drained: Callable[[], None] = lambda: None


class _Sending(NamedTuple, Generic[Action]):
    """An action that waits for its turn. `term`: of the Lease under which it was decided."""

    action: Action
    term: int


class Controller(Generic[Action]):
    """Drives `decider`. `follow` lists and watches until cancelled; `apply` carries one action out.

    `lease` and `identity`: where the Lease is, and the name of this process in it.
    `follows_on_standby`: follow also without the Lease. `monotonic`: seconds of a clock that
    nothing sets; `now`: epoch seconds.
    """

    def __init__(
        self,
        decider: Decider[Action],
        follow: Callable[[Observe], Awaitable[None]],
        apply: Callable[[Action, Left], Awaitable[Outcome]],
        lease: LeaseApi,
        identity: str,
        *,
        times: LeaseTimes = BRIEF,
        pace: ControllerPace = DEFAULT_PACE,
        hooks: ControllerHooks[Action] | None = None,
        follows_on_standby: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.leader = Leader(lease, identity, self._taken, self._is_idle, monotonic, times)
        self._decider = decider
        self._follow = follow
        self._apply = apply
        self._pace = pace
        self._hooks = ControllerHooks() if hooks is None else hooks
        self._follows_on_standby = follows_on_standby
        self._monotonic = monotonic
        self._now = now
        self._changed = asyncio.Event()
        self._relist = asyncio.Event()
        self._is_new = False
        self._is_ending = False
        self._changes: deque[_Sending[Action]] = deque()
        self._reports: deque[_Sending[Action]] = deque(maxlen=pace.waiting_reports)
        self._calls: set[asyncio.Task[None]] = set()
        self._reports_running: set[asyncio.Task[None]] = set()
        self._writes_running: set[asyncio.Task[None]] = set()
        self._rest = pace.coalesce_seconds
        self._undecided_until = float("-inf")
        self._bugs: asyncio.Queue[BaseException] = asyncio.Queue()

    @property
    def is_rebuilt(self) -> bool:
        """Whether the decider knows the cluster as it is under the present Lease."""
        return not self._is_new and self._decider.is_rebuilt

    @property
    def unready(self) -> str:
        """Why the process does not work; "" = it works, or another process holds the Lease."""
        leader = self.leader
        if leader.is_held:
            return "" if self.is_rebuilt else LISTING
        return "" if leader.holder not in ("", leader.identity) else leader.trouble or NO_HOLDER

    async def run(self) -> None:
        """Until cancelled; then running calls are finished and the Lease is released."""
        try:
            # a free Lease is taken before the first list, which is then the only one
            await self.leader.turn()
            await together(
                self.leader.run(), self._follow_for_ever(), self._look_for_ever(), self._fail()
            )
        finally:
            self._is_ending = True
            while self._calls:
                await asyncio.wait(self._calls)
            await self._hooks.finish()
            self._hooks.drained()
            await self.leader.release()

    # --- following --------------------------------------------------------------------------------

    async def _follow_for_ever(self) -> None:
        """Each arrival of the Lease begins with new lists."""
        while True:
            while not self._may_follow:  # noqa: ASYNC110 - the Lease runs out by time alone
                await asyncio.sleep(STANDBY_SECONDS)
            self._relist.clear()
            self._is_new = False
            self._decider.rebuild()
            tasks = (
                asyncio.ensure_future(self._follow(self._observe)),
                asyncio.ensure_future(self._until_over()),
            )
            try:
                done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                if tasks[0] in done:
                    tasks[0].result()
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    def _observe(self, changes: Changes[Any]) -> None:
        self._decider.observe(changes)
        self._look_if_due()

    def _look_if_due(self) -> None:
        due = self._decider.next_at
        if due is not None and due <= self._now():
            self._changed.set()

    @property
    def _may_follow(self) -> bool:
        return self._follows_on_standby or self.leader.is_held

    async def _until_over(self) -> None:
        """Until the Lease is lost, or has arrived again."""
        while self._may_follow and not self._relist.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STANDBY_SECONDS):
                    await self._relist.wait()

    def _taken(self) -> None:
        self._is_new = True
        self._relist.set()

    # --- looking ----------------------------------------------------------------------------------

    async def _look_for_ever(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._pause()):
                    await self._changed.wait()
            await asyncio.sleep(self._rest)
            self._changed.clear()
            if self._may_act:
                await self._look()

    @property
    def _may_act(self) -> bool:
        return self.leader.is_held and not self.leader.gives_way and self.is_rebuilt

    def _pause(self) -> float:
        """Seconds until the next look if nothing changes."""
        longest = self._pace.full_look_seconds
        due = self._decider.next_at if self._may_act else None
        return longest if due is None else min(max(due - self._now(), 0.0), longest)

    async def _look(self) -> None:
        pause = Slices(self._monotonic)
        began = time.perf_counter()
        actions: list[Action] = []
        sent = 0
        for action in self._decider.look(self._now()):
            if action is not None:
                actions.append(action)
                continue
            self.send(actions[sent:])
            sent = len(actions)
            await pause()
        took = time.perf_counter() - began
        rest = min(took, self._pace.longest_rest_seconds) if took > LONG_LOOK_SECONDS else 0.0
        self._rest = max(rest, self._pace.coalesce_seconds)
        self._hooks.looked(actions, took)
        self.send(actions[sent:])

    # --- sending ----------------------------------------------------------------------------------

    def send(self, actions: Iterable[Action]) -> None:
        """Carry these out as soon as it is their turn."""
        for action in actions:
            (self._reports if self._hooks.is_report(action) else self._changes).append(
                _Sending(action, self.leader.term)
            )
        pace = self._pace
        while len(self._calls) < pace.width and not self._is_ending:
            if self._reports and len(self._reports_running) < (
                pace.reports_beside if self._changes else pace.reports_width
            ):
                self._reports_running.add(self._call(self._reports.popleft()))
            elif self._changes:
                self._call(self._changes.popleft())
            else:
                return

    def _call(self, sending: _Sending[Action]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(self._try(sending))
        self._calls.add(task)
        if self._hooks.needs_lease(sending.action):
            self._writes_running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._calls.discard(task)
        self._reports_running.discard(task)
        self._writes_running.discard(task)
        bug = task.exception()
        if bug is not None:
            self._bugs.put_nowait(bug)
        self.send(())

    async def _fail(self) -> None:
        """A bug that a call met ends the process."""
        raise await self._bugs.get()

    async def _try(self, sending: _Sending[Action]) -> None:
        """One call, and what follows from its outcome."""
        action = sending.action
        is_write = self._hooks.needs_lease(action)
        outcome = await self._outcome(sending, is_write=is_write)
        if outcome.result is Result.UNKNOWN and is_write:
            self._undecided_until = max(
                self._undecided_until, self._monotonic() + self._pace.write_seconds
            )
        self._hooks.ended(action, outcome)
        self.send(self._decider.done(action, outcome, self._now()))
        self._look_if_due()

    async def _outcome(self, sending: _Sending[Action], *, is_write: bool) -> Outcome:
        """Refused without a call when the Lease under which it was decided is lost."""
        action = sending.action

        def left() -> float:
            return (
                min(self.leader.left(), self._pace.write_seconds)
                if self.leader.term == sending.term
                else 0.0
            )

        if not left() and (is_write or not self._follows_on_standby):
            return _LEASE_LOST
        try:
            outcome = await self._apply(action, left if is_write else None)
        except Exception as error:  # noqa: BLE001 - whatever ended the call (credentials, a key), the API server may have it
            _log.warning("%s of %s ended with %r", type(action).__name__, _name(action), error)
            return Outcome(Result.UNKNOWN, str(error) or type(error).__name__)
        if outcome.result in (Result.REFUSED, Result.UNKNOWN):
            _log.info("%s of %s: %s", type(action).__name__, _name(action), outcome.reason)
        return outcome

    def _is_idle(self) -> bool:
        """Whether the Lease may go to another process: no write runs or has an unknown outcome."""
        return (
            not self._writes_running
            and self._monotonic() >= self._undecided_until
            and self._hooks.is_idle()
        )


class Slices:
    """Awaited between pieces of a long turn: lets other tasks run when `SLICE_SECONDS` are over."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._began = monotonic()

    async def __call__(self) -> None:
        if self._monotonic() - self._began > SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = self._monotonic()


def _name(action: object) -> str:
    """The namespace and name of the object that the action is about."""
    subject: Any = next(
        (getattr(action, each) for each in _SUBJECTS if hasattr(action, each)), None
    )
    namespace = getattr(subject, "namespace", "")
    return f"{namespace}/{subject.name}" if namespace else str(getattr(subject, "name", action))
