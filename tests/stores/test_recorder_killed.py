"""The usage recorder is killed at every write, on each engine: nothing is doubled, and nothing that
the API server still shows is lost.

The recorder's process is a child that kills itself right before or after a write, or right before
one of its statements or commits. Another recorder goes on in the same second, from what is stored.
The oracle is a recorder that was never killed. Of a pod or node that went in the second of the kill
the new recorder has seen nothing: it ends at the heartbeat, and is marked so. Rows of hours that
were counted and not stored are lost, as time of an hour without a row is unknown. The hour of the
kill is counted anew for nodes (docs/spec/usage.md#hours).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import Engine, event
from tests.stores.killed import WRITES, end, started
from tests.stores.stored_ledger import StoredLedger, emptied
from tests.turns import in_turn
from tests.usage.manifest_rows import JOB, JOBS, row
from tests.usage.recording import NODES, PODS, T0, Recording, a_node, a_pod, finished

from fairlead.edge.store.address import StoreAddress
from fairlead.edge.store.migrate import migrate
from fairlead.model.usage.actions import UsageAction
from fairlead.model.usage.ledger import DAY, HOUR, OPEN, ClosedBy, StateKind
from fairlead.model.usage.sums import UsageSum

Step = tuple[float, Callable[[Recording], None]]
"""Seconds after the start, and what happens then."""
RUNNING: Final = replace(JOB, word="RUNNING")
STORY: Final[tuple[Step, ...]] = (
    (0, lambda each: each.put(NODES, a_node("n", T0 - 100))),
    (5, lambda each: each.put(PODS, a_pod("a", "n", T0 + 5))),
    (7, lambda each: each.put(JOBS, row(replicas=1), "uid-1")),
    (20, lambda each: each.put(PODS, a_pod("b", "n", T0 + 19, gpus=2))),
    (31, lambda each: each.put(JOBS, row(RUNNING, replicas=1), "uid-1")),
    (42, lambda each: each.put(PODS, finished(a_pod("a", "n", T0 + 5), T0 + 40))),
    (53, lambda each: (each.put(NODES, a_node("m", T0 + 50)), each.drop(PODS, "pod-b"))),
    (3700, lambda each: each.put(PODS, a_pod("c", "m", T0 + 3699))),
    (3715, lambda each: (each.drop(JOBS, "uid-1"), each.drop(NODES, "node-n"))),
    (60_000, lambda each: None),
)
GONE: Final = {6: {"pod-b"}, 8: {"node-n", "uid-1"}}
"""By the number of the step: what goes in it."""
POINTS: Final = 8
"""Of the places at which the recorder can be killed, each run takes every eighth one."""


class Life:
    """Counts the places at which the recorder can be killed. `steps`: in which step each is."""

    def __init__(self, number: int = 0) -> None:
        self.number = number
        self.step = 0
        self.steps: list[int] = []

    def place(self, *_: object) -> None:
        self.steps.append(self.step)
        if len(self.steps) == self.number:
            end()

    def statement(self, _connection: object, _cursor: object, text: str, *_: object) -> None:
        if text.split()[0].upper() in WRITES:
            self.place()

    def action(self, _: UsageAction) -> None:
        self.place()


def live(address: StoreAddress, life: Life, first: int = 0) -> StoredLedger:
    """Play the story to its end. A recorder begins in the step `first`, which has happened."""
    ledger = StoredLedger(address)
    recording: Any = Recording(ledger, job_kinds=(JOBS,))  # type: ignore[arg-type]
    recording.before = recording.after = life.action
    for number, (at, happens) in enumerate(STORY):
        life.step = number
        happens(recording)
        if number == first:
            recording.begin(T0 + at)
        elif number > first:
            recording.look(T0 + at)
    return ledger


def rows_of(ledger: StoredLedger) -> dict[str, Any]:
    """All that is stored, in a form that can be compared."""
    start, far = int(T0) * 1000 - DAY, OPEN
    jobs = ledger.ask("ledger_jobs", 0, far)
    return {
        "pods": {each.pod_uid: each for each in ledger.ask("pod_intervals", start, far)},
        "nodes": {each.node_uid: each for each in ledger.ask("node_intervals", start, far)},
        "jobs": {each.uid: each for each in jobs},
        "counts": [
            len(ledger.ask("pod_intervals", start, far)),
            len(ledger.ask("node_intervals", start, far)),
            len(jobs),
        ],
        "hours": ledger.ask("pod_hours", start, start + 4 * DAY),
        "node hours": ledger.ask("node_hours", start, start + 4 * DAY),
        "days": ledger.ask("usage_days", start - DAY, start + 4 * DAY),
        "states": [
            [
                (each.kind, each.uid, each.body)
                for each in ledger.ask("states_at", int(T0 + at) * 1000 + 999, tuple(StateKind))
            ]
            for at, _ in STORY
        ],
    }


def held(day: UsageSum) -> tuple[Any, ...]:
    """What a folded day has besides how busy GPUs were."""
    whole = day.integral
    return day.day, day.by, day.job, whole.gpu, whole.cpu, whole.memory, day.pods


def killed(address: StoreAddress, number: int, folder: Path) -> None:
    """A recorder that ends at this place."""

    def work() -> None:
        life = Life(number)
        event.listen(Engine, "before_cursor_execute", life.statement)
        event.listen(Engine, "commit", life.place)
        live(address, life)

    done = folder / "done"
    os.waitpid(started(work, done), 0)
    assert not done.exists(), f"it was not killed at place {number}"


def test_killed_at_any_write_the_ledger_is_that_of_a_recorder_that_lived_on(
    address: StoreAddress, tmp_path: Path
) -> None:
    migrate(address)
    life = Life()
    event.listen(Engine, "before_cursor_execute", life.statement)
    event.listen(Engine, "commit", life.place)
    try:
        ledger = live(address, life)
    finally:
        event.remove(Engine, "before_cursor_execute", life.statement)
        event.remove(Engine, "commit", life.place)
    whole = rows_of(ledger)
    ledger.close()
    assert whole["counts"] == [3, 2, 1] and whole["hours"] and whole["days"]
    for number in in_turn(range(1, len(life.steps) + 1), POINTS):
        emptied(address)
        killed(address, number, tmp_path)
        step = life.steps[number - 1]
        ledger = live(address, Life(), step)
        try:
            compare(rows_of(ledger), whole, step, f"killed at place {number}, in step {step}")
        finally:
            ledger.close()


def compare(found: dict[str, Any], whole: dict[str, Any], step: int, what: str) -> None:
    assert found["counts"] == whole["counts"], what
    until = (T0 + STORY[step][0]) * 1000
    lost = set(whole["hours"]) - set(found["hours"])
    assert all(each.hour <= until for each in lost), (what, lost)
    if step not in GONE:
        assert set(found["hours"]) <= set(whole["hours"]), what
        assert set(found["node hours"]) >= {
            each for each in whole["node hours"] if each.hour + HOUR > until
        }, what
    if step not in GONE:
        assert found["states"] == whole["states"], what
        assert [held(each) for each in found["days"]] == [held(each) for each in whole["days"]]
    for name in ("pods", "nodes", "jobs"):
        assert found[name].keys() == whole[name].keys(), (what, name)
        for uid, stored in found[name].items():
            if stored == whole[name][uid]:
                continue
            assert uid in GONE.get(step, ()), (what, uid)
            if name == "jobs":
                assert stored.deleted_at <= whole[name][uid].deleted_at, (what, uid)
                continue
            assert stored.closed_by == ClosedBy.INFERRED, (what, uid)
            assert stored.ended_at <= whole[name][uid].ended_at, (what, uid)
