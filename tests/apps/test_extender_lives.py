"""Regressions of the scheduler extender: calls that wait, Leases that are lost and regained,
answers that fail. On a clock that jumps.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest
from tests.apps.broken_extender import patient
from tests.apps.share_fakes import FakeServer, FakeSharingApi
from tests.apps.share_storm import ExtenderMaker
from tests.jumping_loop import JumpingLoop
from tests.rules.sharing import node, pod

from fairlead.apps.extender import Extender
from fairlead.errors import OutsideError, UserError
from fairlead.model.actions import Action, BindPod, Outcome, Result, TouchPod, WriteGrants
from fairlead.model.pod import Pod
from fairlead.model.sharing import BindAsked
from fairlead.rules.sharing.adoption import AT_ONCE
from fairlead.wire.sharing.scheduler_extender import FilterAsked

HOUR = 3600.0


class TroubledApi(FakeSharingApi):
    """`put_off`: seconds that a binding waits before it is sent. `is_late`: it is decided at the
    end of its time. `is_cut`: reads of the Lease fail. `failure`: raised by every GET.
    """

    def __init__(self, server: FakeServer) -> None:
        super().__init__(server, random.Random(1))
        self.put_off = 0.0
        self.is_cut = False
        self.failure: Exception | None = None
        self.gate: asyncio.Event | None = None
        self.loses = self.is_late = False
        self.grant_seconds = self.answer_seconds = 0.0
        self.writing = self.writing_most = 0
        self.touched = 0
        self.refused: set[str] = set()
        self.touching = Outcome()

    async def apply(self, action: Action, left: Callable[[], float]) -> Outcome:
        if isinstance(action, BindPod) and self.loses:
            return Outcome(Result.UNKNOWN, "connection reset")
        if isinstance(action, BindPod):
            await asyncio.sleep(self.put_off)
        if isinstance(action, WriteGrants):
            self.writing += 1
            self.writing_most = max(self.writing_most, self.writing)
            await asyncio.sleep(self.grant_seconds)
            self.writing -= 1
            if action.pod.name in self.refused:
                return Outcome(Result.REFUSED, "forbidden")
        if isinstance(action, TouchPod):
            self.touched += 1
            if self.touching != Outcome():
                return self.touching
        outcome = await super().apply(action, left)
        if isinstance(action, WriteGrants):
            await asyncio.sleep(self.answer_seconds)
        return outcome

    async def _commit(self, action: BindPod, ends_at: float) -> Outcome:
        if self.is_late:
            await asyncio.sleep(ends_at - asyncio.get_running_loop().time() - 0.05)
        return await super()._commit(action, ends_at)

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return await super().get_pod(namespace, name)

    async def get_lease(self) -> Any:
        if self.is_cut:
            raise OutsideError("kubernetes", "connection refused")
        return await super().get_lease()


class Scene:
    """A server with one node, by default with one card of 8 units, and extenders for it."""

    def __init__(self, cards: tuple[int, ...] = (8,)) -> None:
        self.loop = asyncio.get_running_loop()
        self.server = FakeServer(
            random.Random(1), {"n1": msgspec.structs.replace(node("n1", cards), uid="n1")}
        )
        self.running: list[asyncio.Task[None]] = []

    async def extender(
        self, name: str, make: ExtenderMaker = Extender
    ) -> tuple[Extender, TroubledApi]:
        api = TroubledApi(self.server)
        made = make(api, name, lease_name="ns/lease", monotonic=self.loop.time)
        self.running.append(asyncio.ensure_future(made.run()))
        return made, api

    async def leading(self, driver: Extender) -> None:
        while driver.trouble:
            driver.leader.called()
            await asyncio.sleep(0.05)


def live(scene: Callable[[], Coroutine[Any, Any, None]]) -> None:
    loop = JumpingLoop()
    try:
        loop.run_until_complete(scene())
    finally:
        while left := asyncio.all_tasks(loop):
            for task in left:
                task.cancel()
            loop.run_until_complete(asyncio.wait(left, timeout=HOUR))


def asked(row: Pod, name: str = "n1") -> BindAsked:
    return BindAsked(row.namespace, row.name, row.uid, name)


def test_a_call_that_waited_while_the_lease_went_and_came_back_is_not_sent() -> None:
    async def scene() -> None:
        one = Scene()
        first, api = await one.extender("a")
        await one.leading(first)
        p, q = pod("p", 8), pod("q", 8)
        one.server.write(p)
        one.server.write(q)
        await asyncio.sleep(1)
        api.put_off = 20.0
        waiting = asyncio.ensure_future(first.bind(asked(p)))
        await asyncio.sleep(0.1)
        api.is_cut = True
        second, other = await one.extender("b")
        await one.leading(second)
        assert await second.bind(asked(q)) == ""
        other.kill()
        api.is_cut = False
        await one.leading(first)
        assert await waiting != ""
        assert (one.server.faults, one.server.pods[p.uid].node) == ([], "")

    live(scene)


def test_a_binding_that_is_decided_late_is_decided_before_another_extender_binds() -> None:
    async def scene() -> None:
        one = await decided_late(Extender)
        assert (one.server.faults, one.server.bindings) == ([], {"uid-p": 1})

    live(scene)


def test_a_binding_that_may_be_decided_after_the_lease_sells_a_card_twice() -> None:
    """The scene finds the fault: the test above does not pass by chance."""

    async def scene() -> None:
        one = await decided_late(patient)
        assert one.server.faults[0] == "16 of 8 units of GPU-n1-0 are granted"

    live(scene)


async def decided_late(make: ExtenderMaker) -> Scene:
    """The API server decides each binding of a process at the end of its time, while the Lease goes
    to another process. There is room for one pod of two.
    """
    one = Scene()
    first, api = await one.extender("a", make)
    api.is_late = True
    await one.leading(first)
    p, q = pod("p", 8), pod("q", 8)
    one.server.write(p)
    one.server.write(q)
    await asyncio.sleep(1)
    waiting = asyncio.ensure_future(first.bind(asked(p)))
    await asyncio.sleep(0.1)
    api.is_cut = True
    second, _ = await one.extender("b")
    await one.leading(second)
    await second.bind(asked(q))
    await waiting
    return one


def test_a_pod_looked_up_while_the_lease_went_and_came_back_is_bound_when_the_ledger_stands() -> (
    None
):
    async def scene() -> None:
        one = Scene()
        first, api = await one.extender("a")
        await one.leading(first)
        p = pod("p", 8)
        api.gate = asyncio.Event()
        waiting = asyncio.ensure_future(first.bind(asked(p)))
        await asyncio.sleep(0.1)
        one.server.write(p)
        first.machine.feed.rebuild()  # the Lease was lost and regained
        api.gate.set()
        assert await waiting == "GPU ledger is being rebuilt"

    live(scene)


def test_the_lease_stays_while_a_grant_is_being_written_and_while_it_may_still_come_true() -> None:
    async def scene() -> None:
        one = Scene((8, 8))
        first, api = await one.extender("a")
        await one.leading(first)
        await asyncio.sleep(3.5)  # not called for a while
        api.grant_seconds = 2.0
        one.server.write(pod("x", 4, node="n1"))
        while not api.writing:  # noqa: ASYNC110 - on a clock that jumps
            await asyncio.sleep(0.05)
        second, _ = await one.extender("b")
        while api.writing:
            second.leader.called()
            assert not second.leader.is_held
            await asyncio.sleep(0.05)
        await one.leading(second)

    live(scene)


def test_a_question_is_answered_and_a_doubt_settled_whatever_a_get_ends_in() -> None:
    async def scene() -> None:
        one = Scene()
        driver, api = await one.extender("a")
        await one.leading(driver)
        api.failure = UserError("the token file is empty", "write it")
        answer = await asyncio.wait_for(
            driver.bind(BindAsked("default", "ghost", "uid-ghost", "n1")), 30
        )
        assert answer.startswith("the token file is empty")
        api.failure = None
        assert await driver.bind(BindAsked("default", "ghost", "uid-ghost", "n1")) == (
            'pods "ghost" not found'
        )
        p = pod("p", 4)
        one.server.write(p)
        await asyncio.sleep(1)
        api.loses = True
        assert "is not known yet" in await driver.bind(asked(p))
        api.failure = ValueError("unreadable amounts")
        await asyncio.sleep(60)
        api.failure = None
        await asyncio.sleep(60)
        assert driver.ledger.reserved() == []

    live(scene)


def test_the_same_uid_under_another_name_gets_an_answer_of_its_own() -> None:
    async def scene() -> None:
        one = Scene()
        driver, api = await one.extender("a")
        await one.leading(driver)
        p = pod("p", 4)
        one.server.write(p)
        await asyncio.sleep(1)
        api.put_off = 1.0
        first = asyncio.ensure_future(driver.bind(asked(p)))
        await asyncio.sleep(0.1)
        second = await asyncio.wait_for(driver.bind(BindAsked("default", "q", p.uid, "n1")), 30)
        assert second == "pod default/p is being bound to node n1"
        assert await first == ""

    live(scene)


def test_many_adoptions_are_written_a_few_at_a_time() -> None:
    async def scene() -> None:
        one = Scene((100,))
        driver, api = await one.extender("a")
        await one.leading(driver)
        api.grant_seconds = 0.2
        for number in range(60):
            one.server.write(pod(f"d{number}", 1, node="n1"))
        async with asyncio.timeout(HOUR):
            while not all(each.grants for each in one.server.pods.values()):  # noqa: ASYNC110 - on a clock that jumps
                await asyncio.sleep(0.5)
        assert api.writing_most == AT_ONCE

    live(scene)


def test_grants_that_are_never_taken_do_not_hold_up_the_others() -> None:
    async def scene() -> None:
        one = Scene((100,))
        driver, api = await one.extender("a")
        await one.leading(driver)
        api.refused = {f"d{number}" for number in range(2 * AT_ONCE)}
        for number in range(3 * AT_ONCE):
            one.server.write(pod(f"d{number}", 1, node="n1"))
        await asyncio.sleep(60)
        assert {each.name for each in one.server.pods.values() if not each.grants} == api.refused

    live(scene)


def test_a_pod_that_could_not_be_touched_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        one = Scene()
        driver, api = await one.extender("a")
        await one.leading(driver)
        first, late = pod("first", 8), pod("late", 8)
        for row in (first, late):
            one.server.write(row)
        await asyncio.sleep(1)
        assert await driver.bind(asked(first)) == ""
        assert not (await driver.filter(FilterAsked(late, ["n1"]))).passed  # type: ignore[union-attr]
        api.touching = Outcome(Result.REFUSED, "forbidden")
        one.server.remove(first.uid)
        await asyncio.sleep(5)
        assert api.touched == 1

    caplog.set_level("INFO")
    live(scene)
    assert "pod default/late could not be touched: forbidden" in caplog.text


def test_a_pod_in_doubt_is_not_touched_before_its_doubt_is_settled() -> None:
    async def scene() -> None:
        one = Scene()
        one.server.nodes["n2"] = msgspec.structs.replace(node("n2", (8,)), uid="n2")
        driver, api = await one.extender("a")
        await one.leading(driver)
        p = pod("p", 4)
        one.server.write(p)
        await asyncio.sleep(1)
        api.loses = True
        assert "is not known yet" in await driver.bind(asked(p))
        assert not (await driver.filter(FilterAsked(p, ["n2"]))).passed  # type: ignore[union-attr]
        await asyncio.sleep(10)
        assert api.touched == 0
        await asyncio.sleep(20)
        assert (api.touched, driver.ledger.reserved()) == (1, [])

    live(scene)


def test_the_end_comes_also_while_old_lists_are_being_given_up() -> None:
    async def scene() -> None:
        one = Scene()
        driver, api = await one.extender("a")
        follow = api.follow

        async def closes_slowly(*asked: Any) -> None:
            try:
                await follow(*asked)
            finally:
                await asyncio.sleep(0.05)

        api.follow = closes_slowly  # type: ignore[method-assign]
        await one.leading(driver)
        await asyncio.sleep(1)
        one.server.lease = None  # the same extender takes it again
        while driver.machine.feed.is_rebuilt:  # noqa: ASYNC110 - on a clock that jumps
            await asyncio.sleep(0.005)
        (running,) = one.running
        running.cancel()
        done, _ = await asyncio.wait({running}, timeout=HOUR)
        assert done

    live(scene)


def test_grants_that_are_damaged_again_while_the_answer_is_on_its_way_are_written_again() -> None:
    async def scene() -> None:
        one = Scene()
        driver, api = await one.extender("a")
        await one.leading(driver)
        row = pod("p", 4)
        one.server.write(row)
        await asyncio.sleep(1)
        assert await driver.bind(asked(row)) == ""
        await asyncio.sleep(1)
        bound = one.server.pods[row.uid]
        api.answer_seconds = 2.0
        one.server.write(msgspec.structs.replace(bound, grants={}))
        await asyncio.sleep(1)
        assert one.server.pods[row.uid].grants, "written, and the answer is not here yet"
        one.server.write(msgspec.structs.replace(bound, grants={}))
        await asyncio.sleep(60)
        assert one.server.pods[row.uid].grants == bound.grants

    live(scene)


def guarded_scene() -> tuple[Scene, list[Pod]]:
    scene = Scene((8, 8))
    scene.server.nodes["n1"] = msgspec.structs.replace(
        scene.server.nodes["n1"], annotations={"fairlead.io/gpu-identity": "guarded"}
    )
    rows = [pod("first", 5), pod("second", 5), pod("small", 1)]
    for row in rows:
        scene.server.write(row)
    return scene, rows


def test_a_binding_on_a_guarded_node_waits_for_others_of_its_size_and_delays_no_binding() -> None:
    async def scene() -> None:
        scene, (first, second, small) = guarded_scene()
        driver, _ = await scene.extender("a")
        await scene.leading(driver)
        assert await driver.bind(asked(first)) == ""
        began = scene.loop.time()
        waiting = asyncio.ensure_future(driver.bind(asked(second)))
        await asyncio.sleep(0)
        assert await driver.bind(asked(small)) == ""
        assert scene.loop.time() - began < 0.5
        await asyncio.sleep(2)
        assert not waiting.done()
        row = scene.server.pods[first.uid]
        scene.server.write(
            msgspec.structs.replace(
                row, annotations={**row.annotations, "ALIYUN_COM_GPU_MEM_ASSIGNED": "true"}
            )
        )
        assert await waiting == ""
        assert scene.loop.time() - began < 3
        assert [grant.index for grant in scene.server.pods[second.uid].grants["main"]] == [1]

    live(scene)


def test_a_binding_that_waits_in_vain_on_a_guarded_node_fails_before_the_scheduler_gives_up() -> (
    None
):
    async def scene() -> None:
        scene, (first, second, _) = guarded_scene()
        driver, _ = await scene.extender("a")
        await scene.leading(driver)
        assert await driver.bind(asked(first)) == ""
        began = scene.loop.time()
        answers = await asyncio.gather(*(driver.bind(asked(second)) for _ in range(2)))
        assert set(answers) == {
            (
                "guarded node n1: containers of 5 GiB are starting there, on a GPU without room "
                "for this pod or with another memory limit"
            )
        }
        assert 4.9 < scene.loop.time() - began < 5.2
        assert scene.server.bindings == {first.uid: 1}

    live(scene)


def test_a_pod_that_waits_on_a_guarded_node_learns_that_the_extender_stops() -> None:
    async def scene() -> None:
        scene, (first, second, _) = guarded_scene()
        driver, _ = await scene.extender("a")
        await scene.leading(driver)
        assert await driver.bind(asked(first)) == ""
        waiting = asyncio.ensure_future(driver.bind(asked(second)))
        await asyncio.sleep(0.2)
        scene.running[0].cancel()
        async with asyncio.timeout(4):
            assert await waiting == "this extender is stopping"

    live(scene)


def test_without_the_lease_a_binding_that_waits_on_a_guarded_node_gets_the_reason() -> None:
    async def scene() -> None:
        scene, (first, second, _) = guarded_scene()
        driver, api = await scene.extender("a")
        await scene.leading(driver)
        assert await driver.bind(asked(first)) == ""
        api.is_cut = True
        scene.server.down_until = float("inf")
        await asyncio.sleep(driver.leader.held_until - scene.loop.time() - 1)
        assert "lease" in await driver.bind(asked(second))

    live(scene)
