"""The quota controller on a clock that jumps, over an API server in memory: the Lease, new lists,
the order of calls, the end of the process.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from msgspec import structs
from tests.apps.quota_fakes import NOW, PLACE, FakeQuotaApi, FakeQuotaServer, tree, waiting_pod
from tests.jumping_loop import JumpingLoop

from fairlead.apps.controller import DEFAULT_PACE
from fairlead.apps.leader import BACKGROUND_LEASE_TIMES
from fairlead.apps.quota_controller import QuotaController
from fairlead.cli.servers import quota_controller as verb
from fairlead.model.actions import Action, AdmitPod, Outcome, Result, SetPodCondition
from fairlead.ports import LeaseRecord
from fairlead.run.servers.quota import quota_controller

WIDTH, REPORTS_BESIDE = DEFAULT_PACE.width, DEFAULT_PACE.reports_beside
Story = Callable[[FakeQuotaServer], Awaitable[None]]


def live(story: Story) -> None:
    """Runs the coroutine on a clock that jumps."""
    loop = JumpingLoop()
    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(story(FakeQuotaServer(lambda: NOW + loop.time())))
    finally:
        asyncio.set_event_loop(None)
        loop.close()


@asynccontextmanager
async def running(server: FakeQuotaServer, identity: str = "me") -> AsyncIterator[QuotaController]:
    loop = asyncio.get_running_loop()
    made = QuotaController(FakeQuotaApi(server), identity, monotonic=loop.time, now=server.now)
    task = asyncio.ensure_future(made.run())
    try:
        yield made
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def until(what: Callable[[], bool], seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not what():  # noqa: ASYNC110 - time jumps
            await asyncio.sleep(0.005)


def test_pods_that_fit_are_admitted_and_the_others_get_the_reason() -> None:
    async def story(server: FakeQuotaServer) -> None:
        for number in range(12):
            server.write(waiting_pod(f"p{number:02}"))
        async with running(server) as controller:
            assert controller.unready
            await until(
                lambda: len(server.done(AdmitPod)) == 10 and len(server.done(SetPodCondition)) >= 2
            )
            assert not controller.unready
            await asyncio.sleep(5)
            waiting = [pod for pod in server.pods.values() if pod.gates]
            assert [pod.conditions[0].reason for pod in waiting] == ["OverMax", "OverMax"]
            page = (await controller.figures.page(None)).body.decode()  # type: ignore[arg-type]
            assert "fairlead_quota_admissions_total 10.0" in page
            assert "fairlead_quota_wait_seconds_count 10.0" in page
            assert "fairlead_quota_leading 1.0" in page

    live(story)


@pytest.mark.parametrize("flag", ["--namespace", "--node-namespace"])
def test_pods_of_a_namespace_of_fairlead_are_left_alone(flag: str) -> None:
    """The tree lists the namespace of twelve pods and has room for ten; all twelve are released."""

    async def story(server: FakeQuotaServer) -> None:
        for number in range(12):
            server.write(waiting_pod(f"p{number:02}"))
        parser = argparse.ArgumentParser()
        verb.add_arguments(parser)
        flags = parser.parse_args([flag, PLACE, "--identity=me"])
        task = asyncio.ensure_future(quota_controller(flags, FakeQuotaApi(server)).run())
        try:
            await until(lambda: len(server.done(AdmitPod)) == 12)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    live(story)


def test_while_another_holds_the_lease_nothing_is_followed_or_written() -> None:
    async def story(server: FakeQuotaServer) -> None:
        server.write(waiting_pod("p"))
        server.lease = LeaseRecord("other", 15, "1", version="1")
        async with running(server) as controller:
            await asyncio.sleep(10)
            assert (server.lists, server.calls, controller.unready) == (0, [], "")
            await until(lambda: bool(server.done(AdmitPod)), 20)
            assert server.now() - NOW > BACKGROUND_LEASE_TIMES.length
            assert server.lists == 1

    live(story)


def test_a_leader_that_cannot_renew_stops_writing_and_lists_anew_afterwards() -> None:
    async def story(server: FakeQuotaServer) -> None:
        async with running(server) as controller:
            await until(lambda: not controller.unready)
            server.away = True
            await asyncio.sleep(BACKGROUND_LEASE_TIMES.safe + 0.5)
            server.write(waiting_pod("p"))
            await asyncio.sleep(30)
            assert not server.done(AdmitPod)
            assert controller.unready
            server.away = False
            await until(lambda: bool(server.done(AdmitPod)))
            assert server.lists == 2

    live(story)


def test_what_was_known_before_the_lease_was_lost_decides_nothing_after_it() -> None:
    """Meanwhile a pod of 2 replaced a pod of 1, and the leaf's max grew from 1 to 2: with the old
    pods there would seem to be room.
    """

    async def story(server: FakeQuotaServer) -> None:
        server.trees["tree"] = tree(1000)
        server.write(waiting_pod("first"))
        async with running(server) as controller:
            await until(lambda: bool(server.done(AdmitPod)))
            server.write(waiting_pod("second"))
            await until(lambda: bool(server.pods["uid-second"].conditions))
            server.away = True
            await until(lambda: not controller.leader.is_held)
            await asyncio.sleep(1)
            server.remove("uid-first")
            server.write(structs.replace(waiting_pod("big", 2000), gates=()))
            server.trees["tree"] = tree(2000)
            server.seconds = 0.5
            server.away = False
            await until(lambda: server.lists == 2)
            await asyncio.sleep(10)
            assert len(server.done(AdmitPod)) == 1

    live(story)


def test_calls_that_wait_for_their_turn_are_not_sent_without_the_lease() -> None:
    async def story(server: FakeQuotaServer) -> None:
        server.trees["tree"] = tree(1_000_000)
        server.seconds = 1.0
        for number in range(300):
            server.write(waiting_pod(f"p{number:03}"))
        async with running(server) as controller:
            await until(lambda: server.under_way == WIDTH)
            server.away = True
            controller.leader.held_until = float("-inf")
            await asyncio.sleep(20)
            assert len(server.calls) == WIDTH
            server.away = False
            await until(lambda: len(server.done(AdmitPod)) == 300)

    live(story)


def test_long_rows_of_conditions_do_not_hold_up_an_admission() -> None:
    async def story(server: FakeQuotaServer) -> None:
        server.write(waiting_pod("full", 10_000))
        async with running(server) as controller:
            await until(lambda: bool(server.done(AdmitPod)))
            server.seconds = 0.1
            for number in range(1000):
                server.write(waiting_pod(f"p{number:04}", 10_000))
            await until(lambda: len(server.done(SetPodCondition)) > 10)
            server.calls.clear()
            server.remove("uid-full")
            await until(lambda: bool(server.done(AdmitPod)))
            reported = [type(action) for _, action in server.calls]
            assert reported.index(AdmitPod) < 400, (
                "it does not wait for a thousand conditions; while a thread plans, time jumps on"
            )
            assert server.most_under_way <= WIDTH
            assert not controller.unready

    live(story)


def test_what_comes_together_is_looked_at_together() -> None:
    async def story(server: FakeQuotaServer) -> None:
        async with running(server) as controller:
            await until(lambda: not controller.unready)
            await asyncio.sleep(1)
            began = server.now()
            for number in range(20):
                server.write(waiting_pod(f"p{number}", 10_000 if number < 19 else 1000))
                await asyncio.sleep(0.001)
            await until(lambda: bool(server.done(AdmitPod)))
            assert server.first(AdmitPod) - began <= 0.05 + server.seconds

    live(story)


def test_at_the_end_what_is_on_its_way_is_finished_and_the_lease_given_back() -> None:
    async def story(server: FakeQuotaServer) -> None:
        server.trees["tree"] = tree(1_000_000)
        for number in range(300):
            server.write(waiting_pod(f"p{number:03}"))
        server.seconds = 0.5
        async with running(server):
            await until(lambda: server.under_way == WIDTH)
        assert server.under_way == 0
        assert len(server.calls) == WIDTH, "what waits for its turn is not begun any more"
        assert server.lease is not None
        assert server.lease.holder == ""

    live(story)


def test_while_a_write_may_still_come_true_the_lease_is_not_given_back() -> None:
    async def story(server: FakeQuotaServer) -> None:
        server.write(waiting_pod("p"))
        server.outcome = lambda action: (
            Outcome(Result.UNKNOWN, "lost") if isinstance(action, AdmitPod) else None
        )
        async with running(server):
            await until(lambda: bool(server.done(AdmitPod)))
        assert server.lease is not None
        assert server.lease.holder == "me"

    live(story)


def test_a_bug_in_a_call_ends_the_process() -> None:
    async def story(server: FakeQuotaServer) -> None:
        def broken(action: Action, outcome: Outcome, now: float) -> list[Action]:
            raise ZeroDivisionError

        server.write(waiting_pod("p"))
        loop = asyncio.get_running_loop()
        controller = QuotaController(
            FakeQuotaApi(server), "me", monotonic=loop.time, now=server.now
        )
        controller.machine.done = broken  # type: ignore[assignment, method-assign]
        with pytest.raises(ZeroDivisionError):
            await asyncio.wait_for(controller.run(), 60)

    live(story)


def test_while_admissions_wait_to_be_sent_few_words_go_beside_them() -> None:
    """500 pods are admitted at once, while 40 others get a message why they wait."""

    async def story(server: FakeQuotaServer) -> None:
        server.trees["tree"] = tree(500_000)
        server.seconds = 0.2
        for number in range(540):
            server.write(waiting_pod(f"p{number:03}"))
        async with running(server):
            await until(lambda: len(server.done(AdmitPod)) == 500)
            words = [action for _, action in server.calls if isinstance(action, SetPodCondition)]
            # 166 if the two kinds alternated
            assert len(words) <= REPORTS_BESIDE * 500 // (WIDTH - REPORTS_BESIDE) + 30
            await until(lambda: len(server.done(SetPodCondition)) == 540)

    live(story)
