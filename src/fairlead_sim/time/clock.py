"""The time of the simulated world, and the wall time that it stands for.

`SimClock` moves only when the world moves it. `Pace` is the one place that relates it to wall time:
a line through an anchor, re-anchored whenever speed or pause change, so that simulated time never
jumps.
"""

from __future__ import annotations

from typing import Final

from fairlead.errors import UserError

SLOWEST: Final = 0.01
FASTEST: Final = 100_000.0


class SimClock:
    """Simulated epoch seconds. Also fills the port `Clock`."""

    def __init__(self, start: float) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def advance_to(self, at: float) -> None:
        """Move forward; an instant in the past is a bug of the caller."""
        if at < self._now:
            raise ValueError(f"clock would run backwards: {at} < {self._now}")
        self._now = at


class Pace:
    """How fast simulated time follows wall time.

    `speed` is simulated seconds per wall second; paused is speed 0 remembered.
    """

    def __init__(self, speed: float, *, wall: float, simulated: float) -> None:
        self._wall = wall
        self._simulated = simulated
        self.speed = _checked(speed)
        self.is_paused = False

    def simulated_at(self, wall: float) -> float:
        """The simulated instant of a wall instant, which is of the same clock as `wall`.

        >>> Pace(60, wall=100.0, simulated=0.0).simulated_at(102.0)
        120.0
        """
        rate = 0.0 if self.is_paused else self.speed
        return self._simulated + max(0.0, wall - self._wall) * rate

    def wall_seconds_until(self, simulated: float, *, wall: float) -> float | None:
        """How long to sleep until `simulated` is reached; None while paused."""
        if self.is_paused:
            return None
        return max(0.0, (simulated - self.simulated_at(wall)) / self.speed)

    def set_speed(self, speed: float, *, wall: float) -> None:
        speed = _checked(speed)
        self._anchor(wall)
        self.speed = speed

    def pause(self, *, wall: float) -> None:
        self._anchor(wall)
        self.is_paused = True

    def resume(self, *, wall: float) -> None:
        self._anchor(wall)
        self.is_paused = False

    def jump_to(self, simulated: float, *, wall: float) -> None:
        """The world was moved by hand (step, run-until); go on from there."""
        self._wall, self._simulated = wall, simulated

    def _anchor(self, wall: float) -> None:
        self._simulated, self._wall = self.simulated_at(wall), wall


def _checked(speed: float) -> float:
    if not SLOWEST <= speed <= FASTEST:
        raise UserError(
            f"speed `{speed:g}` is not between {SLOWEST:g} and {FASTEST:.0f}",
            "give simulated seconds per real second, e.g. 60",
        )
    return speed
