"""Simulated devices that are sampled at an interval: snapshots are numbered, other tasks run
between two parts, and a bug of Fairlead's removes no card from the page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

import pytest
from tests.apps.fakes import EPOCH, FixedClock, four_cards
from tests.waiting import HANG_SECONDS

from fairlead.model.devices.device import DeviceSample
from fairlead_sim.gpus.sampled import SampledDevices


class Cards:
    """Four cards, one per part; `failure` is raised instead of the last."""

    def __init__(self) -> None:
        self.turns: list[str] = []
        self.failure: Exception | None = None

    def parts(self) -> Iterator[Sequence[DeviceSample]]:
        for each in four_cards():
            self.turns.append("part")
            if self.failure is not None and each.index == 3:
                raise self.failure
            yield [each]


async def test_nothing_is_known_before_the_first_turn_and_each_turn_counts() -> None:
    devices = SampledDevices(Cards().parts, FixedClock().now, 5.0)
    assert (devices.latest().number, devices.latest().devices) == (0, ())
    for number in (1, 2):
        await devices.sample_once()
        assert (devices.latest().number, [each.index for each in devices.latest().devices]) == (
            number,
            [0, 1, 2, 3],
        )


async def test_others_have_the_loop_between_two_parts() -> None:
    cards = Cards()

    async def other() -> None:
        while cards.turns.count("part") < 4:
            cards.turns.append("other")
            await asyncio.sleep(0)

    await asyncio.gather(other(), SampledDevices(cards.parts, FixedClock().now, 5.0).sample_once())
    assert "other" in cards.turns[cards.turns.index("part") + 1 : -1]


async def test_a_fault_of_fairlead_is_logged_with_its_trace_and_the_cards_grow_old(
    caplog: pytest.LogCaptureFixture,
) -> None:
    cards, clock = Cards(), FixedClock()
    devices = SampledDevices(cards.parts, clock.now, 5.0)
    await devices.sample_once()
    cards.failure = ZeroDivisionError("a bug")
    for turn in (1, 2):
        clock.at += 5
        await devices.sample_once()
        found = devices.latest()
        (run,) = found.collectors
        assert (found.number, found.at, len(found.devices), found.is_driver_up) == (
            1 + turn,
            clock.at,
            4,
            True,
        )
        assert (run.is_good, run.succeeded_at, run.errors) == (
            False,
            EPOCH,
            {"ZeroDivisionError": turn},
        )
    (record,) = caplog.records
    assert record.exc_info is not None and "Cards" not in record.message


async def test_it_announces_each_snapshot_until_it_is_cancelled() -> None:
    reported = asyncio.Event()
    devices = SampledDevices(Cards().parts, FixedClock().now, 0.01)
    task = asyncio.create_task(devices.run(reported.set))
    for _ in range(3):
        await asyncio.wait_for(reported.wait(), HANG_SECONDS)
        reported.clear()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert devices.latest().number >= 3
