"""The driver of the sharing decider on a real cluster: questions of kube-scheduler go in, API calls
come out.

kube-scheduler tries a pod again when an extender returns `Error`. So an answer that is not certain
(without the Lease, or while the ledger is being built) is an error, never a guess.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from fairlead.apps.leader import Leader
from fairlead.apps.service import together
from fairlead.errors import OutsideError
from fairlead.model.actions import (
    BindPod,
    Outcome,
    RecordEvent,
    Result,
    SharingAction,
    TouchPod,
    WriteGrants,
)
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.refusal import Refusal
from fairlead.model.sharing import BindAsked
from fairlead.ports import SharingApi
from fairlead.rules.sharing.bindings import AnswerBind, ReadPod, Step
from fairlead.rules.sharing.ledger import Filtered, Ledger
from fairlead.rules.sharing.machine import SharingMachine
from fairlead.rules.sharing.placement import DEFAULT_POLICIES, SharePolicies
from fairlead.rules.sharing.preempt import Victims, plan_preemption
from fairlead.wire.sharing.scheduler_extender import FilterAsked, PreemptAsked

REBUILDING: Final = "GPU ledger is being rebuilt"
PATIENCE_SECONDS: Final = 4.0
"""How long a call waits for Lease and ledger; kube-scheduler waits 10 s for the answer."""
RETRY_SECONDS: Final = 5.0
"""The time after which a grant that could not be written is written again."""
SLICE_SECONDS: Final = 0.005
"""How long a loop may work before questions and the renewal of the Lease get their turn."""
WAITING_SECONDS: Final = 0.1
"""The time between two attempts of questions that wait on guarded nodes."""
# Events that may wait to be sent; the oldest is dropped for a new one
_WAITING_EVENTS: Final = 2000
_log = logging.getLogger(__name__)


class Extender:
    """`lease_name` is for messages.

    `trouble`: why calls are not answered, "" = they are. Times are seconds of `monotonic`.
    """

    def __init__(
        self,
        api: SharingApi,
        identity: str,
        *,
        lease_name: str,
        policies: SharePolicies = DEFAULT_POLICIES,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._changed = asyncio.Event()
        self.machine = SharingMachine(policies, self._changed.set)
        self.leader = Leader(api, identity, self._rebuild, self._is_idle, monotonic)
        self._api = api
        self._lease_name = lease_name
        self._monotonic = monotonic
        self._restart = asyncio.Event()
        self._answers: dict[BindAsked, asyncio.Future[str]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._undecided_until = float("-inf")
        self._to_tell: deque[RecordEvent] = deque(maxlen=_WAITING_EVENTS)
        self._has_words = asyncio.Event()
        self._has_waiting = asyncio.Event()

    @property
    def ledger(self) -> Ledger:
        return self.machine.ledger

    @property
    def trouble(self) -> str:
        if not self.leader.is_held:
            why = f": {self.leader.trouble}" if self.leader.trouble else ""
            return f"this extender does not hold the lease {self._lease_name}{why}"
        return self.unready

    @property
    def unready(self) -> str:
        return "" if self.machine.feed.is_rebuilt else REBUILDING

    async def run(self) -> None:
        """Run until cancelled; then finish the calls in flight and give the Lease back."""
        try:
            await self.leader.turn()
            await together(
                self.leader.run(),
                self._follow(),
                self._tell(),
                self._look_for_ever(),
                self._look_after_for_ever(),
                self._wait_on_guarded_nodes(),
            )
        finally:
            while self._tasks:
                await asyncio.wait(self._tasks)
            self._carry_out(
                self.machine.bindings.waited(self._monotonic(), ("this extender is stopping"))
            )
            await self.leader.release()

    # --- questions of kube-scheduler --------------------------------------------------------------

    async def filter(self, asked: FilterAsked) -> Filtered | Refusal:
        if why := await self._admit():
            return Refusal(why)
        answer = self.machine.filter(asked.pod, asked.names)
        if answer.passed:
            self.machine.hints.passed(asked.pod)
        else:
            self.machine.hints.refused(asked.pod, asked.names, self._monotonic())
        return answer

    async def prioritize(self, asked: FilterAsked) -> list[tuple[str, int]]:
        if await self._admit():
            return [(name, 0) for name in asked.names]
        return self.ledger.prioritize(asked.pod, asked.names)

    async def bind(self, asked: BindAsked) -> str:
        """Why the pod is not bound, "" = it is on the node, with its cards.

        The same question while one is under way waits for the same answer.
        """
        if why := await self._admit():
            return why
        answer = self._answers.get(asked)
        if answer is None:
            answer = self._answers[asked] = asyncio.get_running_loop().create_future()
            with self._failing(asked):
                self._carry_out(self.machine.bindings.ask(asked, self._monotonic()))
        return await asyncio.shield(answer)

    async def preempt(self, asked: PreemptAsked) -> dict[str, tuple[tuple[str, ...], int]]:
        """Without the Lease the answer names no node: no pod is evicted on a guess."""
        if await self._admit():
            return {}
        planned: dict[str, Victims] = {}
        pause = _Pauses(self._monotonic)
        for node, (uids, violations) in asked.victims.items():
            planned |= plan_preemption(self.ledger, asked.pod, {node: Victims(uids, violations)})
            await pause()
        return {node: (victims.uids, victims.violations) for node, victims in planned.items()}

    async def _admit(self) -> str:
        """Why this process may not answer, "" = it may. Waits up to `PATIENCE_SECONDS` until it
        may.
        """
        self.leader.called()
        if self.trouble:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while self.trouble:  # noqa: ASYNC110 - two loops change the two conditions
                        await asyncio.sleep(0.02)
        return self.trouble

    # --- steps of the decider ---------------------------------------------------------------------

    def _carry_out(self, steps: Iterable[Step | SharingAction]) -> None:
        if self.machine.bindings.has_waiting:
            self._has_waiting.set()
        for step in steps:
            if isinstance(step, AnswerBind):
                answer = self._answers.pop(step.asked, None)
                if answer is not None:
                    answer.set_result(step.why)
            elif isinstance(step, RecordEvent):
                self._to_tell.append(step)
                self._has_words.set()
            else:
                task = asyncio.ensure_future(self._try(step))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _try(self, step: BindPod | ReadPod | WriteGrants | TouchPod) -> None:
        """Make one call, and carry out the steps that follow from its outcome."""
        bindings = self.machine.bindings
        if isinstance(step, ReadPod):
            found = await self._read(step)
            if self.trouble and not step.unknown and not step.settles:
                found = Refusal(self.trouble)
            with self._failing(step.asked):
                self._carry_out(bindings.read(step, found, self._monotonic()))
            return
        outcome = await self._apply(step)
        if outcome.result is Result.UNKNOWN and isinstance(step, BindPod | WriteGrants):
            self._undecided_until = max(self._undecided_until, self.leader.held_until)
        if isinstance(step, BindPod):
            with self._failing(bindings.under_way[step.pod.uid]):
                self._carry_out(bindings.called(step, outcome, self._monotonic()))
        elif isinstance(step, WriteGrants):
            self.machine.adoption.written(step, outcome)
            if outcome.result in (Result.REFUSED, Result.UNKNOWN):
                _log.warning(
                    ("the cards of pod %s are not written yet: %s"), step.pod.key, outcome.reason
                )
        elif outcome.result is Result.DONE:
            _log.info(
                "pod %s was refused, and now there is room: scheduler asked to try again",
                step.pod.key,
            )
        elif outcome.result is not Result.GONE:
            _log.info("pod %s could not be touched: %s", step.pod.key, outcome.reason)

    @contextlib.contextmanager
    def _failing(self, asked: BindAsked) -> Iterator[None]:
        """Return an unexpected exception to the client, so that no question stays without an
        answer.
        """
        try:
            yield
        except Exception as error:
            self.machine.bindings.under_way.pop(asked.uid, None)
            answer = self._answers.pop(asked, None)
            if answer is None:
                raise
            answer.set_exception(error)

    async def _apply(self, action: SharingAction) -> Outcome:
        term = self.leader.term  # a decision of an earlier term is not written in a later one
        needs_lease = isinstance(action, BindPod | WriteGrants)
        try:
            return await self._api.apply(
                action,
                (lambda: self.leader.left() if self.leader.term == term else 0.0)
                if needs_lease
                else None,
            )
        except Exception as error:  # noqa: BLE001 - the API server may have received the call
            _log.warning(
                ("%s of %s ended in %r"), type(action).__name__, _subject(action).name, error
            )
            return Outcome(Result.UNKNOWN, str(error) or type(error).__name__)

    async def _read(self, read: ReadPod) -> Pod | Refusal | None:
        try:
            return await self._api.get_pod(read.asked.namespace, read.asked.name)
        except OutsideError as error:
            _log.info(
                "pod %s/%s could not be read: %s",
                read.asked.namespace,
                read.asked.name,
                error.log_line,
            )
            return Refusal(error.what)
        except Exception as error:  # noqa: BLE001 - each question must get an answer
            _log.warning(
                ("pod %s/%s could not be read: %r"), read.asked.namespace, read.asked.name, error
            )
            return Refusal(str(error) or type(error).__name__)

    async def _tell(self) -> None:
        """Send Events, one after another."""
        while True:
            while self._to_tell:
                event = self._to_tell.popleft()
                outcome = await self._apply(event)
                if outcome.result is not Result.DONE:
                    _log.info(
                        "Event %s of %s was not written: %s",
                        event.reason,
                        event.subject.name,
                        outcome.reason,
                    )
            self._has_words.clear()
            await self._has_words.wait()

    # --- loops ------------------------------------------------------------------------------------

    async def _follow(self) -> None:
        """Follow the cluster; after `_rebuild` list everything anew."""
        feed = self.machine.feed
        while True:
            self._restart.clear()
            feed.rebuild()
            feed.begin()
            following = asyncio.ensure_future(self._api.follow(feed.observe, feed.is_known))
            restarting = asyncio.ensure_future(self._restart.wait())
            try:
                done, _ = await asyncio.wait(
                    (following, restarting), return_when=asyncio.FIRST_COMPLETED
                )
                if following in done:
                    following.result()
            finally:
                for task in (following, restarting):
                    task.cancel()
                await asyncio.wait((following, restarting))

    def _rebuild(self) -> None:
        """This process has taken the Lease: its ledger may be out of date.

        No question is answered before everything is listed again.
        """
        self.machine.feed.rebuild()
        self._restart.set()

    async def _look_for_ever(self) -> None:
        adoption = self.machine.adoption
        while True:
            self._changed.clear()
            gives_way = self.leader.gives_way
            if not self.trouble and not gives_way:
                await self._carry_out_in_slices(adoption.look())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(
                    self._changed.wait(),
                    RETRY_SECONDS if adoption.has_unwritten or self.trouble or gives_way else None,
                )
            await asyncio.sleep(0.1)

    async def _look_after_for_ever(self) -> None:
        while True:
            await asyncio.sleep(1.0)
            self._carry_out(self.machine.bindings.due(self._monotonic()))
            if not self.trouble:
                await self._carry_out_in_slices(self.machine.hints.due(self._monotonic()))

    async def _wait_on_guarded_nodes(self) -> None:
        """Try questions again that wait until other containers have started. Other questions do not
        wait behind them.
        """
        bindings = self.machine.bindings
        while True:
            await self._has_waiting.wait()
            while bindings.has_waiting:
                await asyncio.sleep(WAITING_SECONDS)
                self._carry_out(bindings.waited(self._monotonic(), self.trouble))
            self._has_waiting.clear()

    async def _carry_out_in_slices(self, actions: Iterator[SharingAction | None]) -> None:
        """Carry the actions out; each None is a point at which other work may run."""
        pause = _Pauses(self._monotonic)
        for action in actions:
            if action is None:
                await pause()
            else:
                self._carry_out((action,))

    def _is_idle(self) -> bool:
        """Whether another process may take the Lease: no write is in flight, or may still be
        carried out.
        """
        machine = self.machine
        return (
            not machine.bindings.under_way
            and not machine.adoption.is_writing
            and self._monotonic() >= self._undecided_until
        )


class _Pauses:
    """Awaited between pieces of work: lets other tasks run after each `SLICE_SECONDS`."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._began = monotonic()

    async def __call__(self) -> None:
        if self._monotonic() - self._began > SLICE_SECONDS:
            await asyncio.sleep(0)
            self._began = self._monotonic()


def _subject(action: SharingAction) -> Pod | Node:
    return action.subject if isinstance(action, RecordEvent) else action.pod
