"""Profiling by GPM: two samples, a table of metrics, and results that count as no value.

See docs/spec/telemetry.md#profiling-fields.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.nvml.conftest import ReaderOn, Seconds
from tests.nvml.stub import StubState

from fairlead.wire.devices.gpm_values import GPM_METRICS

SM, DRAM, TX = "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_DRAM_ACTIVE", "DCGM_FI_PROF_PCIE_TX_BYTES"


def _profile(reported: dict[str, int | float]) -> dict[str, int | float]:
    return {name: value for name, value in reported.items() if "_PROF_" in name}


def test_nothing_at_first_then_what_is_wanted(
    reader_on: ReaderOn, state: StubState, clock: Seconds
) -> None:
    state.show_h200()
    reader = reader_on(0, SM, TX, "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_NOBODY_KNOWS")
    assert _profile(reader.fast().fields) == {}
    clock.now += 5
    readings = reader.fast()
    assert _profile(readings.fields) == {SM: 0.025, TX: int(20.5 * 1048576)}
    assert readings.failures == {}


def test_every_metric_of_the_table(reader_on: ReaderOn, state: StubState, clock: Seconds) -> None:
    state.show_h200()
    reader = reader_on(0, *GPM_METRICS)
    reader.fast()
    clock.now += 5
    readings = _profile(reader.fast().fields)
    assert readings == {
        name: int((metric + 0.5) * 1048576) if name.endswith("_BYTES") else (metric + 0.5) / 100
        for name, metric in GPM_METRICS.items()
    }
    assert len(readings) == 12 + 18 + 4 + 36 + 4


def test_support_is_asked_of_each_card(
    reader_on: ReaderOn, state: StubState, clock: Seconds
) -> None:
    state.show_cards(3)
    state.show_h200(1)
    readers = [reader_on(card, SM) for card in range(3)]
    for _ in range(2):
        readings = [reader.fast() for reader in readers]
        clock.now += 5
    assert [_profile(each.fields) for each in readings] == [{}, {SM: 0.025}, {}]
    assert [each.failures for each in readings] == [{}, {}, {}]


def test_a_card_that_gets_it_is_asked_again_after_ten_minutes(
    reader_on: ReaderOn, state: StubState, clock: Seconds
) -> None:
    state.show_h200()
    state.say({"0.gpm": 0})
    reader = reader_on(0, SM)
    reader.fast()
    state.say({"0.gpm": 1})
    clock.now += 599
    assert _profile(reader.fast().fields) == {}
    clock.now += 1
    reader.fast()
    clock.now += 1
    assert _profile(reader.fast().fields) == {SM: 0.025}


def test_samples_stand_a_tenth_of_a_second_apart(
    reader_on: ReaderOn, state: StubState, clock: Seconds
) -> None:
    state.show_h200()
    reader = reader_on(0, SM, TX)
    reader.fast()
    clock.now += 0.0625
    assert _profile(reader.fast().fields) == {}
    clock.now += 0.0625
    assert set(_profile(reader.fast().fields)) == {SM, TX}
    state.say({"0.gpm.2": 99})
    clock.now += 0.0625
    assert _profile(reader.fast().fields)[SM] == 0.025
    reader.wanted = frozenset({TX})
    assert set(_profile(reader.fast().fields)) == {TX}
    reader.wanted = frozenset({SM})
    clock.now += 0.0625
    assert _profile(reader.fast().fields)[SM] == 0.99


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "-1", "error:3", "error:6", "error:21"])
def test_a_metric_without_a_value(
    reader_on: ReaderOn, state: StubState, clock: Seconds, value: str
) -> None:
    state.show_h200()
    state.say({"0.gpm.10": value})
    reader = reader_on(0, SM, DRAM)
    reader.fast()
    clock.now += 5
    readings = reader.fast()
    assert (_profile(readings.fields), readings.failures) == ({SM: 0.025}, {})


@pytest.mark.parametrize(
    ("code", "words"), [(4, "Insufficient Permissions"), (999, "Unknown Error")]
)
@pytest.mark.parametrize(
    "call",
    ["nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet"],
)
def test_trouble_costs_profiling_alone(
    reader_on: ReaderOn, state: StubState, clock: Seconds, call: str, code: int, words: str
) -> None:
    state.show_h200()
    reader = reader_on(0, SM)
    state.fail(call, code)
    reader.fast()
    clock.now += 5
    readings = reader.fast()
    assert (
        _profile(readings.fields),
        readings.failures,
        readings.fields["DCGM_FI_DEV_GPU_UTIL"],
    ) == (
        {},
        {"gpm": words},
        37,
    )
    state.fail(call, None)
    for _ in range(2):
        clock.now += 5
        readings = reader.fast()
    assert (_profile(readings.fields), readings.failures) == ({SM: 0.025}, {})


def test_one_metric_fails(reader_on: ReaderOn, state: StubState, clock: Seconds) -> None:
    state.show_h200()
    state.say({"0.gpm.10": "error:999"})
    reader = reader_on(0, SM, DRAM)
    reader.fast()
    clock.now += 5
    readings = reader.fast()
    assert (_profile(readings.fields), readings.failures) == ({SM: 0.025}, {"gpm": "Unknown Error"})


def test_a_reader_that_wants_nothing_takes_no_sample(
    reader_on: ReaderOn, state: StubState, clock: Seconds
) -> None:
    state.show_h200()
    reader = reader_on(0)
    reader.fast()
    assert "sample" not in state.calls()
    reader.wanted = frozenset({SM})
    reader.fast()
    reader.wanted = frozenset()
    clock.now += 5
    reader.fast()
    reader.wanted = frozenset({SM})
    clock.now += 5
    assert _profile(reader.fast().fields) == {}


def test_samples_are_given_back(reader_on: ReaderOn, state: StubState, clock: Seconds) -> None:
    state.show_h200()
    state.show_h200(1)
    state.divide(1)
    readers = [reader_on(card, SM) for card in range(2)]
    for _ in range(4):
        for reader in readers:
            reader.fast()
        clock.now += 5
    assert state.calls().count("sample") == 2 + 2 + 2 * 2
    for reader in readers:
        reader.close()
        reader.close()
    assert state.calls().count("sample freed") == state.calls().count("sample")


def test_an_old_driver_has_no_profiling(
    reader_on: ReaderOn, state: StubState, old_library: Path, clock: Seconds
) -> None:
    state.show_h200()
    reader = reader_on(0, SM, library=old_library)
    reader.fast()
    clock.now += 5
    readings = reader.fast()
    assert (_profile(readings.fields), readings.failures) == ({}, {})
