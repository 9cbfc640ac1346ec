"""Loads: levels stay in bounds, and the closed form of the integral equals the integral."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_sim.gpus.load import IDLE, LOADS, Load, make_load

loads = st.builds(
    lambda name, seed, ceiling: make_load(name, Random(seed), ceiling),
    st.sampled_from(LOADS),
    st.integers(0, 10_000),
    st.floats(0.05, 1.0),
)


@given(loads, st.floats(0, 200_000))
def test_levels_are_ratios(load: Load, s: float) -> None:
    assert -1e-9 <= load.level(s) <= 1 + 1e-9


@given(st.sampled_from(LOADS), st.integers(0, 10_000), st.floats(0.05, 1.0), st.floats(0, 50_000))
def test_a_shared_container_never_uses_more_than_its_part(
    name: str, seed: int, ceiling: float, s: float
) -> None:
    assert make_load(name, Random(seed), ceiling).level(s) <= ceiling + 1e-9


@given(loads, st.floats(0, 20_000), st.floats(0, 20_000))
def test_the_integral_never_falls(load: Load, a: float, b: float) -> None:
    early, late = sorted((a, b))
    assert load.level_integral(late) - load.level_integral(early) >= -1e-6


@pytest.mark.parametrize("name", LOADS)
@pytest.mark.parametrize("seed", range(5))
def test_the_integral_is_the_sum_of_the_levels(name: str, seed: int) -> None:
    load = make_load(name, Random(seed))
    start, end, step = 17.0, 4000.0, 0.05
    summed = (
        sum(load.level(start + (k + 0.5) * step) for k in range(round((end - start) / step))) * step
    )
    assert load.level_integral(end) - load.level_integral(start) == pytest.approx(
        summed, rel=2e-3, abs=0.5
    )


def test_peak_seconds_count_the_work_between_the_dips() -> None:
    load = Load(warm_up=10, period=100, dip=20, high=0.9, low=0.1)
    assert load.peak_seconds(10) == 0
    assert load.peak_seconds(10 + 250) == 80 + 80 + 50
    assert load.is_at_peak(10 + 79)
    assert not load.is_at_peak(10 + 81)


def test_idle_is_idle() -> None:
    assert IDLE.level(1e6) == 0
    assert IDLE.level_integral(1e6) == 0
