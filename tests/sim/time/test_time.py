"""Clock, pace and timers: simulated time moves only forward, and timers of the same instant keep
their order.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.errors import UserError
from fairlead_sim.time.clock import Pace, SimClock
from fairlead_sim.time.timers import Timers


def test_the_clock_never_runs_backwards() -> None:
    clock = SimClock(10.0)
    clock.advance_to(12.0)
    with pytest.raises(ValueError, match="backwards"):
        clock.advance_to(11.0)


@given(st.lists(st.floats(0, 100), max_size=30))
def test_timers_run_in_time_order_and_ties_in_the_order_they_were_set(times: list[float]) -> None:
    timers = Timers(SimClock(0.0))
    ran: list[int] = []
    for number, at in enumerate(times):
        timers.at(at, lambda number=number: ran.append(number))  # type: ignore[misc]
    timers.run_until(100.0)
    assert ran == [number for _, number in sorted((at, number) for number, at in enumerate(times))]
    assert timers.clock.now() == 100.0


def test_a_cancelled_timer_does_not_run_and_is_not_next() -> None:
    timers = Timers(SimClock(0.0))
    ran: list[str] = []
    timers.at(1.0, lambda: ran.append("cancelled")).cancel()
    timers.at(2.0, lambda: ran.append("kept"))
    assert timers.next_at() == 2.0
    assert timers.step()
    assert ran == ["kept"]
    assert not timers.step()


def test_a_change_of_speed_or_a_pause_never_makes_time_jump() -> None:
    pace = Pace(10.0, wall=0.0, simulated=1000.0)
    assert pace.simulated_at(2.0) == 1020.0
    pace.set_speed(2.0, wall=2.0)
    assert pace.simulated_at(2.0) == 1020.0
    assert pace.simulated_at(3.0) == 1022.0
    pace.pause(wall=3.0)
    assert pace.simulated_at(50.0) == 1022.0
    assert pace.wall_seconds_until(1024.0, wall=50.0) is None
    pace.resume(wall=50.0)
    assert pace.wall_seconds_until(1024.0, wall=50.0) == 1.0


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), 1e9])
def test_an_absurd_speed_is_refused_with_its_value(speed: float) -> None:
    with pytest.raises(UserError, match=re.escape(f"speed `{speed:g}`")):
        Pace(speed, wall=0.0, simulated=0.0)
