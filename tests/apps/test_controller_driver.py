"""What every decider may rely on when `apps/controller` drives it, on a clock that jumps: new lists
under each Lease, the order of calls, and the end of the process.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

import pytest
from msgspec import structs
from tests.apps.leases import OneLease
from tests.jumping_loop import JumpingLoop

from fairlead.apps.controller import Controller, ControllerPace
from fairlead.model.actions import ObjectRef, Outcome, PatchObject, RecordObjectEvent, Result
from fairlead.model.changes import KIND_NODES, Changes, Observe, listed

Action = PatchObject | RecordObjectEvent


class Bug(Exception):
    pass


class Recorder:
    """A decider that looks as often as it may and returns `wanted` once. `log`: the calls that it
    received, each with the term of the Lease. `fails_in`: the method that raises.
    """

    def __init__(self) -> None:
        self.wanted: list[Action] = []
        self.log: list[tuple[str, int]] = []
        self.ended: list[tuple[str, Result]] = []
        self.fails_in = ""
        self.term: Callable[[], int] = lambda: 0
        self.is_rebuilt = False
        self.next_at = float("-inf")

    def _called(self, method: str) -> None:
        self.log.append((method, self.term()))
        if method == self.fails_in:
            raise Bug(method)

    def rebuild(self) -> None:
        self.is_rebuilt = False
        self._called("rebuild")

    def observe(self, changes: Changes[Any]) -> None:
        self.is_rebuilt = changes.is_list
        self._called("observe")

    def look(self, now: float) -> Iterable[Action]:
        self._called("look")
        wanted, self.wanted = self.wanted, []
        return wanted

    def done(self, action: Action, outcome: Outcome, now: float) -> Iterable[Action]:
        self._called("done")
        self.ended.append((action.target.name, outcome.result))
        return ()


class Scene:
    """A controller over one Lease. `sent`: the names of the objects of calls, in order; a call ends
    when `open` is set.
    """

    def __init__(self, pace: ControllerPace, *, follows_on_standby: bool = False) -> None:
        self.lease = OneLease()
        self.decider = Recorder()
        self.sent: list[str] = []
        self.open = asyncio.Event()
        self.open.set()
        loop = asyncio.get_running_loop()
        self.controller: Controller[Action] = Controller(
            self.decider,
            self._follow,
            self._apply,
            self.lease,
            "a",
            pace=pace,
            follows_on_standby=follows_on_standby,
            monotonic=loop.time,
            now=loop.time,
        )
        self.leader = self.controller.leader
        self.decider.term = lambda: self.leader.term
        self.running = asyncio.ensure_future(self.controller.run())

    async def _follow(self, observe: Observe) -> None:
        await asyncio.sleep(0.5)
        observe(listed(KIND_NODES, {}))
        await asyncio.Event().wait()

    async def _apply(self, action: Action, _left: object) -> Outcome:
        self.sent.append(action.target.name)
        await self.open.wait()
        return Outcome()

    async def until(self, is_so: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not is_so() and not self.running.done():  # noqa: ASYNC110 - of a clock that jumps
                await asyncio.sleep(0.01)
        assert is_so()

    async def lose_lease(self) -> None:
        """Another process takes the Lease and gives it back."""
        for holder, is_held in (("b", False), ("", True)):
            assert self.lease.record is not None
            self.lease.record = structs.replace(self.lease.record, holder=holder, renewed="b")
            await self.until(lambda is_held=is_held: self.leader.is_held is is_held)
        assert self.leader.term == 2

    async def end(self) -> None:
        self.running.cancel()
        with contextlib.suppress(asyncio.CancelledError, Bug):
            await self.running


def live(scene: Coroutine[Any, Any, None]) -> None:
    loop = JumpingLoop()
    try:
        loop.run_until_complete(scene)
    finally:
        while left := asyncio.all_tasks(loop):
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.wait(left))
        loop.close()


def change(name: str) -> PatchObject:
    return PatchObject(ObjectRef("v1", "Node", name, "", name, "nodes"), {})


def report(name: str) -> RecordObjectEvent:
    return RecordObjectEvent(ObjectRef("v1", "Node", name, "", name, "nodes"), "Reason", "message")


@pytest.mark.parametrize("follows_on_standby", [False, True])
def test_under_each_lease_everything_is_listed_before_the_first_look(
    follows_on_standby: bool,
) -> None:
    async def scene() -> None:
        pace = ControllerPace(full_look_seconds=0.02)
        one = Scene(pace, follows_on_standby=follows_on_standby)
        await one.until(lambda: ("look", 1) in one.decider.log)
        await one.lose_lease()
        await one.until(lambda: ("look", 2) in one.decider.log)
        for term in (1, 2):
            calls = [method for method, of in one.decider.log if of == term]
            assert calls[:3] == ["rebuild", "observe", "look"]
        await one.end()

    live(scene())


def test_what_was_decided_under_a_lost_lease_is_refused_and_not_sent() -> None:
    async def scene() -> None:
        one = Scene(ControllerPace(width=1))
        one.open.clear()
        one.decider.wanted = [change("running"), change("waiting")]
        await one.until(lambda: one.sent)
        await one.lose_lease()
        one.open.set()
        await one.until(lambda: len(one.decider.ended) == 2)
        assert one.sent == ["running"]
        assert one.decider.ended == [("running", Result.DONE), ("waiting", Result.REFUSED)]
        await one.end()

    live(scene())


def test_changes_go_before_reports() -> None:
    async def scene() -> None:
        one = Scene(ControllerPace(width=3, reports_width=2, reports_beside=1))
        one.open.clear()
        reports, changes = ["r1", "r2", "r3", "r4"], ["c1", "c2", "c3"]
        one.decider.wanted = [*map(report, reports), *map(change, changes)]
        await one.until(lambda: len(one.sent) == 3)
        assert one.sent == ["r1", "c1", "c2"]
        one.open.set()
        await one.until(lambda: len(one.decider.ended) == 7)
        assert one.sent.index("c3") < one.sent.index("r3")
        await one.end()

    live(scene())


def test_reports_have_their_own_width_and_the_oldest_that_wait_are_dropped() -> None:
    async def scene() -> None:
        one = Scene(ControllerPace(reports_width=1, reports_beside=1, waiting_reports=2))
        one.open.clear()
        one.decider.wanted = [report("first")]
        await one.until(lambda: one.sent)
        one.decider.wanted = [*map(report, ("old", "new", "newest")), change("change")]
        await one.until(lambda: "change" in one.sent)
        assert one.sent == ["first", "change"]
        one.open.set()
        await one.until(lambda: len(one.sent) == 4)
        assert one.sent[2:] == ["new", "newest"]
        await one.end()

    live(scene())


@pytest.mark.parametrize("method", ["rebuild", "observe", "look", "done"])
def test_a_bug_in_the_decider_ends_the_process(method: str) -> None:
    async def scene() -> None:
        one = Scene(ControllerPace())
        one.decider.fails_in = method
        one.decider.wanted = [change("node")]
        with pytest.raises(Bug, match=method):
            async with asyncio.timeout(60):
                await one.running

    live(scene())


def test_at_the_end_running_calls_are_finished_and_the_lease_is_released() -> None:
    async def scene() -> None:
        one = Scene(ControllerPace(width=1))
        one.open.clear()
        one.decider.wanted = [change("running"), change("waiting")]
        await one.until(lambda: one.sent)
        one.running.cancel()
        await asyncio.sleep(1)
        assert not one.running.done() and one.lease.record and one.lease.record.holder == "a"
        one.open.set()
        with pytest.raises(asyncio.CancelledError):
            await one.running
        assert one.decider.ended == [("running", Result.DONE)]
        assert one.sent == ["running"]
        assert one.lease.record.holder == ""

    live(scene())
