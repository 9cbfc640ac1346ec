"""Tests of the load generator on a simulated card have the effects of the contract (telemetry 7),
to the second.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.devices.gpu_chip import CHIPS
from fairlead.model.devices.gpu_load import FIELD_GROUPS, LoadTest, SimulatedLoad, chosen_tests
from fairlead_sim.gpus.cards import CARD_MODELS
from fairlead_sim.gpus.devices import SimulatedDevices
from fairlead_sim.gpus.prof_load import ProfLoad
from fairlead_sim.time.clock import SimClock

FIELDS = st.integers(1001, 1012)
loads = st.builds(
    lambda tests, ceiling: ProfLoad(tuple(tests), ceiling),
    st.lists(st.builds(LoadTest, FIELDS, st.floats(1, 300), st.booleans()), min_size=1, max_size=4),
    st.floats(0.05, 1.0),
)


@given(loads, FIELDS, st.floats(0, 1500))
def test_levels_are_ratios_of_what_the_container_was_given(
    load: ProfLoad, field: int, s: float
) -> None:
    assert 0 <= load.part(field, s) <= load.ceiling


@pytest.mark.parametrize("part", range(1001, 1013))
def test_the_integral_is_the_sum_of_the_levels(part: int) -> None:
    load = ProfLoad(chosen_tests(range(1001, 1013), 10.0, is_full=False))
    start, end, step = 3.0, 117.0, 0.01
    summed = (
        sum(load.part(part, start + (k + 0.5) * step) for k in range(round((end - start) / step)))
        * step
    )
    assert load.part_integral(part, end) - load.part_integral(part, start) == pytest.approx(
        summed, rel=1e-3, abs=0.02
    )


@pytest.mark.parametrize("field", (1001, 1002, 1003))
def test_the_first_three_rise_from_nothing_to_all_there_is(field: int) -> None:
    load = ProfLoad((LoadTest(field, 120.0),))
    assert [round(load.part(field, s), 3) for s in (0, 30, 60, 90, 119.999, 120)] == [
        0.0,
        0.25,
        0.5,
        0.75,
        1.0,
        0.0,
    ]


@pytest.mark.parametrize("field", (1001, 1002, 1003))
def test_with_target_max_value_they_are_whole_from_the_start(field: int) -> None:
    load = ProfLoad((LoadTest(field, 120.0, is_full=True),))
    assert {load.part(field, s) for s in (0, 1, 60, 119)} == {1.0}


def test_the_tensor_cores_are_busy_as_document_002_sees_it() -> None:
    load = ProfLoad((LoadTest(1004, 120.0),))
    assert {load.part(1004, s) for s in (0, 1, 60, 119.9)} == {0.87} and load.level(60) == 0.98
    assert load.part(1004, 120) == load.level(120) == 0


def test_tests_run_one_after_another() -> None:
    load = ProfLoad(chosen_tests((1004, 1006, 1010), 10.0, is_full=False))
    busiest = [max((1004, 1006, 1010), key=lambda field: load.part(field, s)) for s in (5, 15, 25)]
    assert busiest == [1004, 1006, 1010]
    assert load.level(25) == 0, "copies over PCIe keep no kernel at work"


def test_all_are_the_ten_that_need_one_card() -> None:
    assert FIELD_GROUPS["all"] == FIELD_GROUPS["nonvlink"] == tuple(range(1001, 1011))
    assert FIELD_GROUPS["nvlink"] == (1011, 1012)


def reported_node() -> tuple[SimulatedDevices, SimClock]:
    clock = SimClock(1000.0)
    devices = SimulatedDevices(1, clock)
    devices.add_cards("n1", [CARD_MODELS["NVIDIA H200"]] * 2)
    return devices, clock


def values(devices: SimulatedDevices, field: str) -> list[float]:
    return [float(sample.fields[f"DCGM_FI_{field}"]) for sample in devices.sample()]


def test_cards_show_what_they_are_set_to_and_count_its_energy() -> None:
    devices, clock = reported_node()
    before = values(devices, "DEV_TOTAL_ENERGY_CONSUMPTION")
    devices.show_loads([SimulatedLoad(1, "", 9e9, {1001: 0.98, 1004: 0.87}, ("1",))])
    clock.advance_to(1100.0)
    assert values(devices, "DEV_GPU_UTIL") == [0, 98] and values(
        devices, "PROF_PIPE_TENSOR_ACTIVE"
    ) == [0.0, 0.87]
    devices.show_loads([])
    idle, worked = (
        late - early
        for late, early in zip(values(devices, "DEV_TOTAL_ENERGY_CONSUMPTION"), before, strict=True)
    )
    assert values(devices, "DEV_GPU_UTIL") == [0, 0] and idle == 76_000 * 100 and worked > 6 * idle
    clock.advance_to(1200.0)
    assert values(devices, "DEV_TOTAL_ENERGY_CONSUMPTION")[1] - before[1] - worked == 76_000 * 100


def test_of_two_loads_the_greater_counts_and_other_nodes_are_left_alone() -> None:
    devices, _ = reported_node()
    devices.show_loads(
        [
            SimulatedLoad(1, "", 9e9, {1001: 0.2}),
            SimulatedLoad(2, "", 9e9, {1001: 0.5}, ("0",)),
            SimulatedLoad(3, "", 9e9, {1001: 1.0}, (), "n2"),
        ]
    )
    assert values(devices, "DEV_GPU_UTIL") == [50, 20]


def test_every_simulated_model_has_its_chip() -> None:
    assert {name: card.memory_mhz * 1000 for name, card in CARD_MODELS.items()} == {
        name: chip.memory_khz for name, chip in CHIPS.items()
    }
