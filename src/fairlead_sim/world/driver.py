"""How simulated time follows the wall clock, and how users move it.

Nothing else in this package waits.

Everything runs on the event loop that also serves the API: between two awaits the world is still. A
run to a later time is not a jump. The world lives through it in slices, and requests are answered
meanwhile.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from typing import Final

from fairlead.errors import UserError
from fairlead.ports import ClockState, WorldWrite
from fairlead.wire.kube.time import render_time
from fairlead_sim.time.clock import Pace
from fairlead_sim.world.world import World

LONGEST_SLEEP_SECONDS: Final = 0.5
LONGEST_STRIDE_SECONDS: Final = 600.0
LONGEST_WORK_SECONDS: Final = 0.1
"""Wall time of one piece of work; then requests and signals are served, and work continues."""
LONGEST_LAG_SECONDS: Final = 5.0
"""Wall time that a world may lag behind its pace.

Beyond it, it cannot keep the pace and runs as fast as possible.
"""
LONGEST_RUN_SECONDS: Final = 366 * 86400.0
SLICE_SECONDS: Final = 0.025
YIELD_SECONDS: Final = 0.005
"""A run to a later time works in slices and lets others have the loop in between."""


class Driver:
    """Moves a world at a pace.

    `catch_up` before answering a request, so that its clock is right to the millisecond.

    `wall` gives monotonic seconds; not the event loop's, whose clock stands still while one
    callback works. Fills `ports.Timekeeper`.
    """

    def __init__(
        self, world: World, speed: float, wall: Callable[[], float] = time.monotonic
    ) -> None:
        self.world = world
        self._wall = wall
        self.pace = Pace(speed, wall=self._wall(), simulated=world.clock.now())
        self._since: float | None = None
        self._until: float | None = None
        self._orders = 0
        self._ordered = asyncio.Event()

    async def run(self) -> None:
        """Follow the wall until cancelled; after a long sleep of the machine, catch up in strides
        that let others breathe.
        """
        while True:
            self.go_on()
            self._ordered.clear()
            try:
                async with asyncio.timeout(self._rest_seconds()):
                    await self._ordered.wait()
            except TimeoutError:
                continue

    def go_on(self) -> None:
        """One piece of work: of the run that was ordered, else up to now."""
        if self._until is None:
            self.catch_up()
        elif self._live_until(self._until, SLICE_SECONDS):
            self._end_run()

    def catch_up(self) -> None:
        """Let the world live up to now, at most one stride; where much happens at once, only as far
        as it comes in a moment.

        Nothing happens while time stands still, and none of an ordered run: who only asks shall not
        wait for it.
        """
        if self.pace.is_paused or self._until is not None:
            return
        began, now = self._wall(), self.world.clock.now()
        wanted = self.pace.simulated_at(began)
        self._live_until(min(max(wanted, now), now + LONGEST_STRIDE_SECONDS), LONGEST_WORK_SECONDS)
        if wanted - self.world.clock.now() > self.pace.speed * LONGEST_LAG_SECONDS:
            self._stand_here()

    # --- the port: what people ask for ------------------------------------------------------------

    def now(self) -> float:
        """The world's time.

        Between its steps time flows on: the driver wakes up for events, not for readers of the
        clock.
        """
        stood = self.world.clock.now()
        return (
            stood if self._until is not None else max(stood, self.pace.simulated_at(self._wall()))
        )

    def state(self) -> ClockState:
        return ClockState(
            self.now(), self.pace.speed, self.pace.is_paused, self._since, self._until
        )

    @property
    def version(self) -> int:
        return self._orders

    def pause(self) -> None:
        """Stand still, here and now; ends a run to a later time."""
        if self._until is None:
            self.catch_up()
        self._until = self._since = None
        self.pace.pause(wall=self._wall())
        self._stand_here()
        self._note_order()

    def resume(self) -> None:
        self.pace.resume(wall=self._wall())
        self._note_order()

    def set_speed(self, speed: float) -> None:
        self.pace.set_speed(speed, wall=self._wall())
        self._note_order()

    def step(self) -> list[WorldWrite]:
        """Pause, go to the next instant at which something is written, and return the writes; at
        most a moment of work.
        """
        self.pause()
        began, before = self._wall(), self.world.cluster.resource_version
        while self.world.step() and self._wall() - began < LONGEST_WORK_SECONDS:
            if self.world.cluster.resource_version > before:
                self.world.run_until(self.world.clock.now())
                break
        self._stand_here()
        return self._written_since(before)

    def run_until(self, at: float) -> None:
        """Go to a later time as fast as the machine can, then continue at its pace, or paused."""
        now = self.now()
        if not math.isfinite(at):
            raise UserError(f"`{at}` is no time", "name an instant")
        if at <= now:
            raise UserError(
                f"`{render_time(at)}` is not after the world's time `{render_time(now)}`",
                "time only goes forward",
            )
        if at - now > LONGEST_RUN_SECONDS:
            raise UserError(
                (
                    f"that is {(at - now) / 86400:.0f} days ahead; at most "
                    f"{LONGEST_RUN_SECONDS / 86400:.0f}"
                ),
                "go there in parts",
            )
        self.catch_up()
        self._since, self._until = self.world.clock.now(), at
        self._note_order()

    # --- how --------------------------------------------------------------------------------------

    def _live_until(self, until: float, work_seconds: float) -> bool:
        """Whether `until` was reached before the work became too long."""
        world, began = self.world, self._wall()
        while (due := world.timers.next_at()) is not None and due <= until:
            world.step()
            if self._wall() - began > work_seconds:
                return False
        world.run_until(until)
        return True

    def _end_run(self) -> None:
        self._until = self._since = None
        self._stand_here()
        self._note_order()

    def _stand_here(self) -> None:
        """The pace goes on from where the world is."""
        self.pace.jump_to(self.world.clock.now(), wall=self._wall())

    def _note_order(self) -> None:
        self._orders += 1
        self._ordered.set()

    def _written_since(self, version: int) -> list[WorldWrite]:
        cluster, found = self.world.cluster, []
        for ref in cluster.kinds():
            log = cluster.watch(ref, None, version)
            found += [
                (event.resource_version, event.type, ref.kind, event.object["metadata"])
                for event in log.poll()
            ]
            log.close()
        return [
            WorldWrite(type_.lower(), kind, metadata.get("namespace", ""), metadata["name"])
            for _, type_, kind, metadata in sorted(found, key=lambda each: each[0])
        ]

    def _rest_seconds(self) -> float:
        if self._until is not None:
            return YIELD_SECONDS
        due = self.world.timers.next_at()
        seconds = self.pace.wall_seconds_until(due, wall=self._wall()) if due is not None else None
        return (
            LONGEST_SLEEP_SECONDS
            if seconds is None
            else min(LONGEST_SLEEP_SECONDS, max(0.01, seconds))
        )
