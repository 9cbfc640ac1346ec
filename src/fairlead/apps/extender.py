"""The extender: a controller of grants that also answers questions of kube-scheduler.

`apps/controller` drives the sharing decider (`rules/sharing/machine`). A question of kube-scheduler
about a binding starts steps of the same decider: they are sent as its other actions are, and the
last of them is the answer. So `Extender` itself is the decider that the controller drives: it
passes every call on to the sharing decider and takes the answers out of the steps.

kube-scheduler tries a pod again when an extender returns `Error`. So an answer that is not certain
(without the Lease, or while the ledger is being built) is an error, never a guess.

A process without the Lease follows the API as well, so that it can answer soon after it takes the
Lease. Events are sent one after another, because bindings share the limit of requests with them.

Invariant: `_answers` contains every question that waits for its answer. It has at least one step in
flight or waits on a guarded node, or the process ends and `_stop` answers it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from fairlead.apps.controller import Controller, ControllerHooks, ControllerPace, Left, Slices
from fairlead.apps.service import together
from fairlead.errors import OutsideError
from fairlead.model.actions import BindPod, Outcome, RecordEvent, Result, TouchPod, WriteGrants
from fairlead.model.changes import Changes
from fairlead.model.pod import Pod
from fairlead.model.refusal import Refusal
from fairlead.model.sharing import BindAsked
from fairlead.ports import SharingApi
from fairlead.rules.sharing.bindings import AnswerBind, ReadOutcome, ReadPod
from fairlead.rules.sharing.ledger import Filtered, Ledger
from fairlead.rules.sharing.machine import SharingMachine, SharingStep
from fairlead.rules.sharing.placement import DEFAULT_POLICIES, SharePolicies
from fairlead.rules.sharing.preempt import Victims, plan_preemption
from fairlead.wire.sharing.scheduler_extender import FilterAsked, PreemptAsked

REBUILDING: Final = "GPU ledger is being rebuilt"
PATIENCE_SECONDS: Final = 4.0
"""How long a call waits for Lease and ledger; kube-scheduler waits 10 s for the answer."""
WAITING_SECONDS: Final = 0.1
"""The time between two attempts of questions that wait on guarded nodes."""
STOPPING: Final = "this extender is stopping"
PACE: Final = ControllerPace(
    coalesce_seconds=0.1,
    full_look_seconds=1.0,
    longest_rest_seconds=0.1,
    width=10_000,
    reports_width=1,
    reports_beside=1,
    waiting_reports=2000,
)
"""`width` limits nothing: kube-scheduler limits the number of bindings that are under way, and the
API client limits the rate of requests. One Event is sent at a time, at most 2000 wait.
"""
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
        self.machine = SharingMachine(policies)
        self._controller: Controller[SharingStep] = Controller(
            self,
            lambda observe: api.follow(observe, self.machine.feed.is_known),
            self._apply,
            api,
            identity,
            pace=PACE,
            hooks=ControllerHooks(
                ended=_log_outcome,
                needs_lease=lambda step: isinstance(step, BindPod | WriteGrants),
                is_idle=lambda: not self.machine.bindings.under_way,
                drained=self._stop,
            ),
            follows_on_standby=True,
            monotonic=monotonic,
            now=monotonic,
        )
        self.leader = self._controller.leader
        self._api = api
        self._lease_name = lease_name
        self._monotonic = monotonic
        self._answers: dict[BindAsked, asyncio.Future[str]] = {}
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
        return "" if self._controller.is_rebuilt else REBUILDING

    async def run(self) -> None:
        """Run until cancelled; then finish the calls in flight, answer the questions that are left,
        and give the Lease back.
        """
        await together(self._controller.run(), self._wait_on_guarded_nodes())

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
                self._controller.send(
                    self._without_answers(self.machine.bindings.ask(asked, self._monotonic()))
                )
        return await asyncio.shield(answer)

    async def preempt(self, asked: PreemptAsked) -> dict[str, tuple[tuple[str, ...], int]]:
        """Without the Lease the answer names no node: no pod is evicted on a guess."""
        if await self._admit():
            return {}
        planned: dict[str, Victims] = {}
        pause = Slices(self._monotonic)
        for node, (uids, violations) in asked.victims.items():
            planned |= plan_preemption(self.ledger, asked.pod, {node: Victims(uids, violations)})
            await pause()
        return {node: (victims.uids, victims.violations) for node, victims in planned.items()}

    async def _admit(self) -> str:
        """Why this process may not answer; "" if it may.

        Waits up to `PATIENCE_SECONDS` until it may.
        """
        self.leader.called()
        if self.trouble:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(PATIENCE_SECONDS):
                    while self.trouble:  # noqa: ASYNC110 - two loops change the two conditions
                        await asyncio.sleep(0.02)
        return self.trouble

    # --- the decider that the controller drives ---------------------------------------------------

    @property
    def is_rebuilt(self) -> bool:
        return self.machine.is_rebuilt

    @property
    def next_at(self) -> float | None:
        return self.machine.next_at

    def rebuild(self) -> None:
        self.machine.rebuild()

    def observe(self, changes: Changes[Any]) -> None:
        self.machine.observe(changes)

    def look(self, now: float) -> Iterator[SharingStep | None]:
        return self.machine.look(now)

    def done(self, step: SharingStep, outcome: Outcome, now: float) -> list[SharingStep]:
        with self._failing(self._asked_by(step)):
            return self._without_answers(self.machine.done(step, outcome, now))
        return []

    def _asked_by(self, step: SharingStep) -> BindAsked | None:
        """The question that the step belongs to, None = it belongs to none."""
        if isinstance(step, BindPod):
            return self.machine.bindings.under_way[step.pod.uid]
        return step.asked if isinstance(step, ReadPod) else None

    def _without_answers(self, steps: Iterable[SharingStep]) -> list[SharingStep]:
        """Answer the questions that are decided; return the other steps."""
        if self.machine.bindings.has_waiting:
            self._has_waiting.set()
        left: list[SharingStep] = []
        for step in steps:
            if not isinstance(step, AnswerBind):
                left.append(step)
            elif (answer := self._answers.pop(step.asked, None)) is not None and not answer.done():
                answer.set_result(step.why)
        return left

    @contextlib.contextmanager
    def _failing(self, asked: BindAsked | None) -> Iterator[None]:
        """Return an unexpected exception to the client, so that no question stays without an
        answer. If no client waits for an answer, it is raised.
        """
        try:
            yield
        except Exception as error:
            answer = self._answers.pop(asked, None) if asked is not None else None
            if asked is None or answer is None:
                raise
            self.machine.bindings.under_way.pop(asked.uid, None)
            answer.set_exception(error)

    async def _apply(self, step: SharingStep, left: Left) -> Outcome:
        if isinstance(step, ReadPod):
            return await self._read(step)
        assert not isinstance(step, AnswerBind), "answers are no calls"
        return await self._api.apply(step, left)

    async def _read(self, read: ReadPod) -> ReadOutcome:
        """Without the Lease the pod decides a doubt, but begins no new binding."""
        found = await self._find(read.asked)
        is_new = not read.unknown and not read.settles
        return ReadOutcome(found=Refusal(self.trouble) if is_new and self.trouble else found)

    async def _find(self, asked: BindAsked) -> Pod | Refusal | None:
        try:
            return await self._api.get_pod(asked.namespace, asked.name)
        except OutsideError as error:
            _log.info(
                "pod %s/%s could not be read: %s", asked.namespace, asked.name, error.log_line
            )
            return Refusal(error.what)
        except Exception as error:  # noqa: BLE001 - each question must get an answer
            _log.warning("pod %s/%s could not be read: %r", asked.namespace, asked.name, error)
            return Refusal(str(error) or type(error).__name__)

    async def _wait_on_guarded_nodes(self) -> None:
        """Try questions again that wait until other containers have started.

        Other questions do not wait behind them.
        """
        bindings = self.machine.bindings
        while True:
            await self._has_waiting.wait()
            while bindings.has_waiting:
                await asyncio.sleep(WAITING_SECONDS)
                self._controller.send(
                    self._without_answers(bindings.waited(self._monotonic(), self.trouble))
                )
            self._has_waiting.clear()

    def _stop(self) -> None:
        """Answer the questions that are left: no further step is carried out."""
        bindings = self.machine.bindings
        self._without_answers(bindings.waited(self._monotonic(), STOPPING))
        for asked, answer in self._answers.items():
            bindings.under_way.pop(asked.uid, None)
            if not answer.done():
                answer.set_result(STOPPING)
        self._answers.clear()


def _log_outcome(step: SharingStep, outcome: Outcome) -> None:
    if isinstance(step, WriteGrants) and outcome.result in (Result.REFUSED, Result.UNKNOWN):
        _log.warning("the cards of pod %s are not written yet: %s", step.pod.key, outcome.reason)
    elif isinstance(step, TouchPod) and outcome.result is Result.DONE:
        _log.info(
            "pod %s was refused, and now there is room: scheduler asked to try again",
            step.pod.key,
        )
    elif isinstance(step, TouchPod) and outcome.result is not Result.GONE:
        _log.info("pod %s could not be touched: %s", step.pod.key, outcome.reason)
    elif isinstance(step, RecordEvent) and outcome.result is not Result.DONE:
        _log.info(
            "Event %s of %s was not written: %s", step.reason, step.subject.name, outcome.reason
        )
