"""Drives the usage recorder's decider over a made-up cluster and a ledger, at given times."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from typing import Any, TypeVar

from msgspec.structs import replace
from tests.usage.memory_ledger import MemoryLedger

from fairlead.kinds.job_marks import AllJobMarks
from fairlead.model.actions import Outcome, Result
from fairlead.model.changes import KIND_NODES, KIND_PODS, KIND_QUOTA_TREES, changed, listed
from fairlead.model.node import Condition, Node
from fairlead.model.pod import Container, ContainerState, ContainerStatus, Pod, PodPhase
from fairlead.model.resources import Amounts
from fairlead.model.usage.actions import ClaimLedger, FoldDay, UsageAction, WriteLedger
from fairlead.model.usage.ledger import DAY
from fairlead.rules.usage.recording.recorder import UsageRecorder
from fairlead.wire.usage.states import state_body

Value = TypeVar("Value")
T0 = 1_780_000_000.0
"""A whole hour and a fraction: 2026-05-28T20:26:40Z."""


class KilledError(Exception):
    """The recorder's process was killed."""


def at_once(coroutine: Coroutine[Any, Any, Value]) -> Value:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise AssertionError("it waits")


def utc_days(at: int) -> tuple[int, int]:
    return at - at % DAY, at - at % DAY + DAY


def never(_: UsageAction) -> None:
    """No fault."""


class Recording:
    """A cluster (`objects` by kind and uid), its ledger, and at most one recorder.

    `before` and `after` are called around each action that the ledger gets, and may raise.
    """

    def __init__(self, ledger: MemoryLedger | None = None, job_kinds: Collection[str] = ()) -> None:
        self._job_kinds = job_kinds
        self.ledger = MemoryLedger() if ledger is None else ledger
        self.objects: dict[str, dict[str, Any]] = {}
        self.before: Callable[[UsageAction], None] = never
        self.after: Callable[[UsageAction], None] = never
        self.is_down = False
        self.recorder: UsageRecorder | None = None
        self.writes = 0

    def begin(self, now: float) -> UsageRecorder:
        """A new recorder lists the cluster and claims the ledger."""
        made = UsageRecorder(self._job_kinds, (), state_body, AllJobMarks(), utc_days)
        self.recorder = made
        for kind in made.kinds:
            made.observe(listed(kind, dict(self.objects.get(kind, {}))))
        self.look(now)
        return made

    def kill(self) -> None:
        """Nothing of the process remains."""
        self.recorder = None

    def end(self, now: float) -> None:
        """In order."""
        assert self.recorder is not None
        self.look(now)
        for action in self.recorder.finish(now):
            self._apply(action, now)
        self.recorder = None

    def put(self, kind: str, row: Any, uid: str = "") -> None:
        uid = uid or row.uid
        self.objects.setdefault(kind, {})[uid] = row
        if self.recorder is not None:
            self.recorder.observe(changed(kind, uid, row))

    def drop(self, kind: str, uid: str) -> None:
        del self.objects[kind][uid]
        if self.recorder is not None:
            self.recorder.observe(changed(kind, uid, None))

    def look(self, now: float) -> None:
        """Look and write until nothing is left to do."""
        recorder = self.recorder
        if recorder is None:
            return
        for _ in range(100):
            waiting = [each for each in recorder.look(now) if each is not None]
            if not waiting:
                return
            while waiting:
                action = waiting.pop(0)
                waiting += recorder.done(action, self._apply(action, now), now)
            if self.is_down:
                return
        raise AssertionError("the recorder does not come to rest")

    def _apply(self, action: UsageAction, now: float) -> Outcome:
        self.before(action)
        outcome = (
            Outcome(Result.UNKNOWN, "down") if self.is_down else self._carried_out(action, now)
        )
        self.after(action)
        return outcome

    def _carried_out(self, action: UsageAction, now: float) -> Outcome:
        recorder, ledger = self.recorder, self.ledger
        assert recorder is not None
        self.writes += 1
        if isinstance(action, ClaimLedger):
            claim = at_once(ledger.claim_ledger("test", action.at))
            bounds = at_once(ledger.ledger_bounds())
            recorder.begin(claim, bounds.fold_from, now)
        elif isinstance(action, WriteLedger):
            at_once(ledger.write_ledger(recorder.epoch, action.batch))
        elif isinstance(action, FoldDay):
            at_once(ledger.fold_day(recorder.epoch, action.day, action.end))
        else:
            at_once(ledger.forget_ledger(recorder.epoch, action.records_before, action.days_before))
        return Outcome()


def a_node(name: str, created: float, *, uid: str = "", gpus: int = 8, **fields: Any) -> Node:
    amounts: Amounts = {"nvidia.com/gpu": gpus, "cpu": 64_000, "memory": 256 << 30}
    ready = (Condition("Ready", "True"),)
    made: dict[str, Any] = {"capacity": amounts, "allocatable": amounts, "conditions": ready}
    return Node(name, uid or f"node-{name}", created_at=created, **(made | fields))


def a_pod(
    name: str, node: str, bound: float, *, gpus: int = 1, cpu: int = 1000, **fields: Any
) -> Pod:
    """Bound at a whole second of the API server."""
    limits: Amounts = {"nvidia.com/gpu": gpus} if gpus else {}
    asked: Amounts = {"cpu": cpu, "memory": 1 << 30, **limits}
    is_bound = (Condition("PodScheduled", "True", at=float(int(bound))),) if node else ()
    made: dict[str, Any] = {
        "namespace": "ml",
        "uid": f"pod-{name}",
        "node": node,
        "phase": PodPhase.RUNNING if node else PodPhase.PENDING,
        "conditions": is_bound,
        "containers": (Container("main", requests=asked, limits=limits),),
        "created_at": float(int(bound)),
    }
    return Pod(name=name, **(made | fields))


def finished(pod: Pod, at: float) -> Pod:
    status = ContainerStatus("main", state=ContainerState.TERMINATED, finished_at=at)
    return replace(pod, phase=PodPhase.SUCCEEDED, statuses=(status,))


NODES, PODS, TREES = KIND_NODES, KIND_PODS, KIND_QUOTA_TREES
