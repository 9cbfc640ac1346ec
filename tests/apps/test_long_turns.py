"""The extender renews its Lease during a turn that takes longer than a Lease lasts. On a clock that
the work advances.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import pytest
from tests.apps.share_fakes import FakeServer, FakeSharingApi
from tests.jumping_loop import JumpingLoop
from tests.rules.sharing import node, pod

from fairlead.apps import extender
from fairlead.apps.extender import Extender
from fairlead.apps.leader import SAFE_SECONDS
from fairlead.model.node import Condition
from fairlead.wire.sharing.scheduler_extender import PreemptAsked

NODE_SECONDS = 0.065
"""Seconds for one node of 272 pods in a question about preemption (measured 2026-11)."""
POD_SECONDS = 0.006
"""Seconds for one waiting pod at 5,000 nodes (measured 2026-11)."""


def lived(
    turn: Callable[[JumpingLoop, FakeServer, Extender], Coroutine[Any, Any, None]],
) -> list[bool]:
    """Whether the Lease was held, ten times a second, while the turn ran."""
    loop = JumpingLoop()
    held: list[bool] = []

    async def whole() -> None:
        server = FakeServer(
            random.Random(1),
            {f"n{i}": msgspec.structs.replace(node(f"n{i}"), uid=f"n{i}") for i in range(100)},
        )
        driver = Extender(
            FakeSharingApi(server, random.Random(1)), "me", lease_name="l", monotonic=loop.time
        )
        running = asyncio.ensure_future(driver.run())
        while driver.trouble:  # noqa: ASYNC110 - on a clock that jumps
            await asyncio.sleep(0.1)
        turning = asyncio.ensure_future(turn(loop, server, driver))
        while not turning.done():
            held.append(driver.leader.is_held)
            await asyncio.sleep(0.1)
        await turning
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    loop.run_until_complete(whole())
    return held


def test_a_question_about_preemption_on_a_hundred_crowded_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask(loop: JumpingLoop, server: FakeServer, driver: Extender) -> None:
        plan, began = extender.plan_preemption, loop.moment

        def slow(*asked: Any) -> Any:
            loop.moment += NODE_SECONDS
            return plan(*asked)

        monkeypatch.setattr(extender, "plan_preemption", slow)
        await driver.preempt(PreemptAsked(pod(), dict.fromkeys(server.nodes, (("uid-x",), 0))))
        assert loop.moment - began > SAFE_SECONDS

    held = lived(ask)
    assert all(held) and len(held) > 10


def test_a_thousand_pods_that_wait_and_get_the_reason() -> None:
    async def report(loop: JumpingLoop, server: FakeServer, driver: Extender) -> None:
        ledger, began = driver.ledger, loop.moment
        fits = ledger.filter

        def slow(*asked: Any) -> Any:
            loop.moment += POD_SECONDS
            return fits(*asked)

        ledger.filter = slow  # type: ignore[method-assign]
        conditions = (Condition("PodScheduled", "False", "Unschedulable"),)
        for number in range(1000):  # each with a different need
            server.write(pod(f"w{number}", 20 + number, conditions=conditions))
        while len(server.events) < 1000:  # noqa: ASYNC110 - on a clock that jumps
            await asyncio.sleep(0.1)
        assert loop.moment - began > SAFE_SECONDS

    held = lived(report)
    assert all(held) and len(held) > 10


def test_pods_of_one_need_are_counted_once() -> None:
    asked = 0

    async def report(loop: JumpingLoop, server: FakeServer, driver: Extender) -> None:
        ledger = driver.ledger
        fits = ledger.filter

        def counted(*question: Any) -> Any:
            nonlocal asked
            asked += 1
            return fits(*question)

        ledger.filter = counted  # type: ignore[method-assign]
        conditions = (Condition("PodScheduled", "False", "Unschedulable"),)
        for number in range(200):
            server.write(pod(f"w{number}", 20, conditions=conditions))
        while len(server.events) < 200:  # noqa: ASYNC110 - on a clock that jumps
            await asyncio.sleep(0.1)

    lived(report)
    assert asked < 20


def test_a_thousand_refused_pods_that_may_be_tried_again() -> None:
    async def wait(loop: JumpingLoop, server: FakeServer, driver: Extender) -> None:
        rows = [pod(f"w{number}", 20) for number in range(1000)]
        for row in rows:
            server.write(row)
        while len(driver.machine.feed.pods) < len(rows):  # noqa: ASYNC110 - on a clock that jumps
            await asyncio.sleep(0.1)
        for row in rows:
            driver.machine.hints.refused(row, list(server.nodes), loop.moment)
        ledger, began = driver.ledger, loop.moment
        fits, asked = ledger.filter, 0

        def slow(*question: Any) -> Any:
            nonlocal asked
            asked += 1
            loop.moment += POD_SECONDS
            return fits(*question)

        ledger.filter = slow  # type: ignore[method-assign]
        while asked < len(rows):  # noqa: ASYNC110 - on a clock that jumps
            await asyncio.sleep(0.1)
        assert loop.moment - began > SAFE_SECONDS

    held = lived(wait)
    assert all(held) and len(held) > 10
