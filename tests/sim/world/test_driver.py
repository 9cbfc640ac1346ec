"""How users move simulated time: it never jumps, never runs backwards, stops when asked, and passes
through every instant of a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from functools import partial

import pytest
from tests.examples import long_case
from tests.sim.history import Histories
from tests.sim.small_world import EPOCH, NAMESPACE, get_pod, live, phase, pod, small_world
from tests.waiting import until

from fairlead.errors import UserError
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import PODS
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.time.timers import Timers
from fairlead_sim.world.driver import LONGEST_LAG_SECONDS, LONGEST_RUN_SECONDS, Driver
from fairlead_sim.world.world import World


class Wall:
    """Real time, set by the test; each reading of it may cost some."""

    def __init__(self, cost: float = 0.0) -> None:
        self.at = 1000.0
        self.cost = cost

    def __call__(self) -> float:
        self.at += self.cost
        return self.at


def driven(speed: float = 1.0, cost: float = 0.0) -> tuple[Driver, World, Wall]:
    wall, world = Wall(cost), small_world()
    return Driver(world, speed, wall), world, wall


def pass_time(driver: Driver, wall: Wall, seconds: float) -> None:
    wall.at += seconds
    driver.go_on()


@contextlib.asynccontextmanager
async def running(driver: Driver) -> AsyncIterator[None]:
    task = asyncio.create_task(driver.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def arrived(driver: Driver) -> None:
    await until(lambda: driver.state().until is None)


def test_it_follows_the_wall_at_its_speed_and_a_new_speed_does_not_make_time_jump() -> None:
    driver, world, wall = driven(speed=60)
    pass_time(driver, wall, 2)
    assert world.clock.now() == EPOCH + 120
    driver.set_speed(5)
    assert driver.now() == EPOCH + 120
    pass_time(driver, wall, 2)
    assert world.clock.now() == EPOCH + 130


def test_a_pause_stops_between_two_steps_of_the_world_and_nothing_moves() -> None:
    driver, world, wall = driven(speed=10)
    pass_time(driver, wall, 0.5)
    wall.at += 0.33
    driver.pause()
    stood = driver.now()
    assert stood == pytest.approx(EPOCH + 8.3)
    world.cluster.create(pod("p", "train:10m"))
    version = world.cluster.resource_version
    for _ in range(5):
        pass_time(driver, wall, 100)
        driver.catch_up()
    assert (driver.now(), world.clock.now(), world.cluster.resource_version) == (
        stood,
        stood,
        version,
    )
    assert driver.state().is_paused
    driver.resume()
    assert driver.now() == stood
    pass_time(driver, wall, 10)
    assert driver.now() == stood + 100
    assert phase(world) == "Running"


def test_a_step_pauses_and_goes_to_the_next_write_and_reports_it() -> None:
    driver, world, wall = driven()
    world.cluster.create(pod("p", "train:10m"))
    seen = []
    while phase(world) != "Running":
        before = driver.now(), world.cluster.resource_version
        reported = driver.step()
        assert reported
        assert driver.now() >= before[0]
        assert world.cluster.resource_version - before[1] == len(reported), (
            "every write is reported, once"
        )
        next_at = world.timers.next_at()
        assert next_at is None or next_at > world.clock.now(), "an instant is lived through whole"
        seen += reported
    assert driver.state().is_paused
    wall.at += 1000
    assert driver.now() == world.clock.now()
    words = [(each.verb, each.kind, each.name) for each in seen]
    assert ("modified", "Pod", "p") in words
    assert any(verb == "added" and kind == "Event" for verb, kind, _ in words)


def test_a_step_lives_through_an_instant_whole() -> None:
    driver, world, _ = driven()
    for name in ("a", "b"):
        world.timers.at(EPOCH + 0.5, partial(world.cluster.create, pod(name)))
    reported = [each.name for each in driver.step() if (each.verb, each.kind) == ("added", "Pod")]
    assert reported == ["a", "b"]


def test_a_step_where_nothing_ever_happens_ends() -> None:
    driver, world, _ = driven(cost=0.001)
    while world.step() and world.clock.now() < EPOCH + 10:
        pass
    # a world without any timer; there is no such scenario
    world.timers = Timers(world.clock)
    assert driver.step() == []


@pytest.mark.long
async def test_a_run_is_lived_through_in_slices_while_others_are_served() -> None:
    world = sharing_world(load_scenario("default"), 0, EPOCH)
    driver = Driver(world, 1.0)
    driver.pause()
    # measured for this process: a busy machine is not a failure
    longest, looked, last = 0.0, 0, time.process_time()
    async with running(driver):
        driver.run_until(EPOCH + 3 * 3600)
        assert driver.state().since == pytest.approx(EPOCH, abs=1)
        while driver.state().until is not None:
            await asyncio.sleep(0)
            now = time.process_time()
            longest, looked, last = max(longest, now - last), looked + 1, now
    assert world.clock.now() == driver.now() == EPOCH + 3 * 3600
    assert driver.state().is_paused, "it stood still before, so it does after"
    assert looked > 10
    assert longest < 0.5, "a request waited for the run"


async def test_a_pause_ends_a_run_where_it_is() -> None:
    wall = Wall(cost=0.001)
    driver = Driver(sharing_world(load_scenario("default"), 0, EPOCH), 1.0, wall)
    async with running(driver):
        driver.run_until(EPOCH + 300 * 86400)
        await until(lambda: driver.now() > EPOCH + 3600)
        driver.pause()
        stood = driver.now()
        assert stood < EPOCH + 300 * 86400
        pass_time(driver, wall, 1000)
        assert driver.now() == stood
        assert (driver.state().until, driver.state().since) == (None, None)


async def test_after_a_run_time_goes_on_at_its_pace() -> None:
    driver = Driver(small_world(), 1.0)
    async with running(driver):
        driver.run_until(EPOCH + 5000)
        await arrived(driver)
        assert EPOCH + 5000 <= driver.now() < EPOCH + 5030
        await until(lambda: driver.now() > EPOCH + 5000)


def test_a_request_does_not_wait_for_a_run() -> None:
    driver, world, _ = driven(cost=0.001)
    driver.run_until(EPOCH + 86400)
    began = world.clock.now()
    driver.catch_up()
    assert world.clock.now() == began < EPOCH + 1


def test_a_new_run_takes_the_place_of_the_old_one() -> None:
    driver, world, _ = driven()
    driver.run_until(EPOCH + 86400)
    driver.run_until(EPOCH + 60)
    driver.go_on()
    assert world.clock.now() == EPOCH + 60
    assert driver.state().until is None


@pytest.mark.parametrize(
    ("ahead", "message"),
    [
        (0.0, "`2026-01-05T08:00:00Z` is not after the world's time `2026-01-05T08:00:00Z`"),
        (-5.0, "`2026-01-05T07:59:55Z` is not after the world's time `2026-01-05T08:00:00Z`"),
        (LONGEST_RUN_SECONDS + 86400, "that is 367 days ahead; at most 366"),
        (float("nan"), "`nan` is no time"),
    ],
)
def test_a_time_that_cannot_be_gone_to_is_refused(ahead: float, message: str) -> None:
    driver, _, _ = driven()
    with pytest.raises(UserError) as caught:
        driver.run_until(EPOCH + ahead)
    assert caught.value.what == message
    assert driver.state().until is None


def test_a_world_that_cannot_keep_its_pace_falls_behind_instead_of_owing_time() -> None:
    driver, world, wall = driven(speed=100_000, cost=0.02)
    for _ in range(20):
        pass_time(driver, wall, 1)
    assert driver.now() - world.clock.now() <= 100_000 * (LONGEST_LAG_SECONDS + 2)
    driver.pause()
    assert driver.now() == world.clock.now(), "nothing is left to catch up while time stands still"


def test_each_order_and_the_end_of_a_run_can_be_noticed() -> None:
    driver, _, wall = driven()
    seen = [driver.version]
    run = partial(driver.run_until, EPOCH + 9000)
    for order in (
        driver.pause,
        driver.resume,
        partial(driver.set_speed, 2),
        driver.step,
        run,
        driver.go_on,
    ):
        order()
        seen.append(driver.version)
    assert seen == sorted(set(seen))
    pass_time(driver, wall, 50)
    assert driver.version == seen[-1], "time that goes by is no news"


@pytest.fixture(scope="module")
def unmoved() -> tuple[World, str]:
    """A history that ran in one go, and its digest."""
    received = Histories()
    whole = World(load_scenario("default"), 7, EPOCH, hooks=received.listen)
    whole.run_until(EPOCH + 2000)
    whole.cluster.create(
        pod("mine", "train:3m") | {"metadata": {"name": "mine", "namespace": "vision"}}
    )
    whole.run_until(EPOCH + 4000)
    return whole, received.digest()


@pytest.mark.parametrize("how", [*map(long_case, ("slow", "fast", "stepped", "runs")), "mixed"])
def test_however_time_is_moved_the_history_is_the_same(
    how: str, unmoved: tuple[World, str]
) -> None:
    """Byte by byte, all events of all kinds, with a user's writes at the same instants."""
    whole, digest = unmoved
    moved = Histories()
    wall = Wall(0.0003)
    world = World(load_scenario("default"), 7, EPOCH, hooks=moved.listen)
    driver = Driver(world, {"slow": 7.3, "fast": 2000.0}.get(how, 50.0), wall)
    for end in (EPOCH + 2000, EPOCH + 4000):
        move(driver, wall, how, end)
        if end == EPOCH + 2000:
            world.cluster.create(
                pod("mine", "train:3m") | {"metadata": {"name": "mine", "namespace": "vision"}}
            )
    assert moved.digest() == digest
    assert whole.devices.sample() == world.devices.sample()


def move(driver: Driver, wall: Wall, how: str, end: float) -> None:
    """Move time to `end` exactly; the last bit always by a run, because no wall clock meets an
    exact instant.
    """
    turn = 0
    while driver.world.clock.now() < end:
        turn += 1
        due = driver.world.timers.next_at()
        if how in ("slow", "fast") or (how == "mixed" and turn % 3 == 0):
            driver.resume()
            if driver.world.clock.now() + 3 * driver.pace.speed >= end:
                driver.pause()
                driver.run_until(end)
            wall.at += 1.7
            driver.go_on()
            driver.set_speed(driver.pace.speed * (0.9 if turn % 2 else 1 / 0.9))
        elif how == "runs" or (how == "mixed" and turn % 3 == 1) or due is None or due > end:
            driver.run_until(min(end, driver.world.clock.now() + 61.5) if how != "stepped" else end)
            while driver.state().until is not None:
                driver.go_on()
        else:
            driver.pause()
            _step_within(driver, end)


def _step_within(driver: Driver, end: float) -> None:
    """One step, unless the next write may be after `end`: a step passes over timers that write
    nothing.
    """
    if driver.world.clock.now() < end - 60:
        driver.step()
        return
    driver.run_until(end)
    while driver.state().until is not None:
        driver.go_on()


def test_what_people_write_while_time_stands_happens_at_that_instant() -> None:
    driver, world, wall = driven()
    live(world, 10)
    driver.pace.jump_to(world.clock.now(), wall=wall())
    driver.pause()
    created = world.cluster.create(pod("p", "train:1m"))
    wall.at += 500
    assert (
        created["metadata"]["creationTimestamp"] == get_pod(world)["metadata"]["creationTimestamp"]
    )
    world.cluster.delete(PODS, NAMESPACE, "p")
    assert world.cluster.get(PODS, NAMESPACE, "p") is None
