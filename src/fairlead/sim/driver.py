"""How does simulated time follow the wall? The laptop's driver: the only place in this room that waits.

Everything runs on the event loop that also serves the API: between two awaits the world is still.
"""

from __future__ import annotations

import asyncio

from fairlead.sim.clock import Pace
from fairlead.sim.world import World

LONGEST_SLEEP_SECONDS = 0.5
LONGEST_STRIDE_SECONDS = 600.0
LONGEST_WORK_SECONDS = 0.1
"""Of wall time in one go: then requests and signals have their turn, and the world goes on where it stood."""


class Driver:
    """Moves a world at a pace. `catch_up` before answering a request, so that its clock is right to the millisecond."""

    def __init__(self, world: World, speed: float) -> None:
        self.world = world
        self.pace = Pace(speed, wall=_wall(), simulated=world.clock.now())

    async def run(self) -> None:
        """Follow the wall until cancelled; after a long sleep of the machine, catch up in strides that let others breathe."""
        while True:
            self.catch_up()
            await asyncio.sleep(self._pause())

    def catch_up(self) -> None:
        """Let the world live up to now, at most one stride; where much happens at once, only as far as it comes in a moment."""
        world, began = self.world, _wall()
        now = world.clock.now()
        until = min(max(self.pace.simulated_at(began), now), now + LONGEST_STRIDE_SECONDS)
        while (due := world.timers.next_at()) is not None and due <= until:
            world.step()
            if _wall() - began > LONGEST_WORK_SECONDS:
                return
        world.run_until(until)

    def set_speed(self, speed: float) -> None:
        self.pace.set_speed(speed, wall=_wall())

    def pause(self) -> None:
        self.pace.pause(wall=_wall())

    def resume(self) -> None:
        self.pace.resume(wall=_wall())

    def run_until(self, at: float) -> None:
        """Move the world by hand and go on from there."""
        self.world.run_until(at)
        self.pace.jump_to(self.world.clock.now(), wall=_wall())

    def step(self) -> None:
        self.world.step()
        self.pace.jump_to(self.world.clock.now(), wall=_wall())

    def _pause(self) -> float:
        due = self.world.timers.next_at()
        seconds = self.pace.wall_seconds_until(due, wall=_wall()) if due is not None else None
        return LONGEST_SLEEP_SECONDS if seconds is None else min(LONGEST_SLEEP_SECONDS, max(0.01, seconds))


def _wall() -> float:
    return asyncio.get_running_loop().time()
