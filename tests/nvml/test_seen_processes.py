"""Processes that use a card: kinds of program, memory, share of its multiprocessors.

See docs/spec/telemetry.md#processes.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.nvml.conftest import ReaderOn, Seconds
from tests.nvml.stub import MIB, StubState

from fairlead.model.devices.readings import EngineTime, GpuProcess

ALL_ONES = 2**64 - 1
START = 1_000_000_000
"""The first value of these tests' clock, in microseconds."""


def timed(pid: int, kind: str, memory: int | None, percent: float | None) -> GpuProcess:
    """A process whose time the driver reports; memory and video engines have none."""
    return GpuProcess(pid, kind, memory, percent, EngineTime(0.0, 0.0, 0.0))


def test_kinds_memory_and_shares(reader_on: ReaderOn, state: StubState) -> None:
    state.say(
        {
            "0.compute": f"7:{5 * MIB},8:{ALL_ONES},5:{MIB}",
            "0.graphics": f"5:{2 * MIB},9:{MIB + 1}",
            "0.mps": f"3:{MIB},7:{MIB}",
            "0.samples": f"7:{START - 5}:61,9:{START - 7}:0,5:{START - 3}:12,77:{START - 2}:9",
        }
    )
    assert reader_on(0).fast().processes == (
        timed(3, "M", MIB, 0.0),
        timed(5, "C+G", 2 * MIB, 12.0),
        timed(7, "M+C", 5 * MIB, 61.0),
        timed(8, "C", None, 0.0),
        timed(9, "G", MIB + 1, 0.0),
    )


def test_each_question_reaches_back_to_the_last_sample_and_never_to_0(
    reader_on: ReaderOn, state: StubState, clock: Seconds
) -> None:
    state.say({"0.compute": f"7:{MIB}", "0.samples": f"7:{START - 2_000_000}:99,7:{START - 10}:40"})
    reader = reader_on(0)
    assert reader.fast().processes == (timed(7, "C", MIB, 40.0),)
    clock.now += 5
    assert reader.fast().processes == (timed(7, "C", MIB, 0.0),)
    state.say(
        {"0.samples": f"7:{START + 2_000_000}:30,7:{START + 4_000_000}:50,7:{START + 3_000_000}:70"}
    )
    assert reader.fast().processes == (timed(7, "C", MIB, 50.0),)
    assert "utilization since 0" not in state.calls()


@pytest.mark.parametrize("epoch", [0.0, 0.5, 1000.0])
def test_the_first_question_has_a_start(
    reader_on: ReaderOn, state: StubState, clock: Seconds, epoch: float
) -> None:
    clock.now = epoch - 1000.0
    state.say({"0.compute": f"7:{MIB}", "0.samples": f"7:{max(1, int(epoch * 1e6) - 100)}:5"})
    reader_on(0).fast()
    assert "utilization since 0" not in state.calls()


def test_a_clock_that_was_set_back(reader_on: ReaderOn, state: StubState, clock: Seconds) -> None:
    state.say({"0.compute": f"7:{MIB}", "0.samples": f"7:{START - 10}:40"})
    reader = reader_on(0)
    reader.fast()
    clock.now -= 500
    state.say({"0.samples": f"7:{START - 500_000_010}:33"})
    assert reader.fast().processes == (timed(7, "C", MIB, 33.0),)


def test_a_share_that_cannot_be_is_unknown(reader_on: ReaderOn, state: StubState) -> None:
    state.say({"0.compute": f"7:{MIB},8:{MIB}", "0.samples": f"7:{START}:4000000000,8:{START}:100"})
    assert reader_on(0).fast().processes == (timed(7, "C", MIB, None), timed(8, "C", MIB, 100.0))


@pytest.mark.parametrize("code", [3, 13])
def test_shares_that_a_card_does_not_report_are_unknown(
    reader_on: ReaderOn, state: StubState, clock: Seconds, code: int
) -> None:
    state.say({"0.compute": f"7:{MIB}", "0.samples": f"7:{START + 700_000_000}:40"})
    state.fail("nvmlDeviceGetProcessUtilization", code)
    reader = reader_on(0)
    readings = reader.fast()
    assert (readings.processes, readings.failures) == ((GpuProcess(7, "C", MIB, None),), {})
    state.fail("nvmlDeviceGetProcessUtilization", None)
    assert reader.fast().processes == (GpuProcess(7, "C", MIB, None),)
    clock.now += 600
    assert reader.fast().processes == (timed(7, "C", MIB, 40.0),)


@pytest.mark.parametrize(
    ("code", "words"), [(4, "Insufficient Permissions"), (999, "Unknown Error")]
)
def test_shares_fail(reader_on: ReaderOn, state: StubState, code: int, words: str) -> None:
    state.say({"0.compute": f"7:{MIB}", "0.samples": f"7:{START}:40"})
    state.fail("nvmlDeviceGetProcessUtilization", code)
    readings = reader_on(0).fast()
    assert (readings.processes, readings.failures) == (
        (GpuProcess(7, "C", MIB, None),),
        {"processes": words},
    )


@pytest.mark.parametrize(("code", "failures"), [(999, {"processes": "Unknown Error"}), (21, {})])
def test_processes_that_are_not_known_are_not_none(
    reader_on: ReaderOn, state: StubState, code: int, failures: dict[str, str]
) -> None:
    reader = reader_on(0)
    assert reader.fast().processes == ()
    state.fail("nvmlDeviceGetComputeRunningProcesses_v3", code)
    readings = reader.fast()
    assert (readings.processes, readings.failures, readings.fields["DCGM_FI_DEV_GPU_TEMP"]) == (
        None,
        failures,
        40,
    )


def test_a_card_that_lists_nothing(reader_on: ReaderOn, state: StubState) -> None:
    for kind in ("Compute", "Graphics", "MPSCompute"):
        state.fail(f"nvmlDeviceGet{kind}RunningProcesses_v3", 3)
    readings = reader_on(0).fast()
    assert (readings.processes, readings.failures) == (None, {})


def test_two_hundred_processes(reader_on: ReaderOn, state: StubState) -> None:
    state.say({"0.compute": ",".join(f"{pid}:{MIB}" for pid in range(1, 201))})
    state.say({"0.samples": ",".join(f"{pid}:{START}:{pid % 100}" for pid in range(1, 201))})
    readings = reader_on(0).fast().processes
    assert readings == tuple(timed(pid, "C", MIB, float(pid % 100)) for pid in range(1, 201))


def test_an_old_driver_lists_processes(
    reader_on: ReaderOn, state: StubState, old_library: Path
) -> None:
    state.say({"0.compute": f"7:{MIB}", "0.graphics": f"8:{MIB}"})
    assert reader_on(0, library=old_library).fast().processes == (
        GpuProcess(7, "C", MIB),
        GpuProcess(8, "G", MIB),
    )


def test_time_of_memory_and_video_engines_is_reported_beside_the_multiprocessors(
    reader_on: ReaderOn, state: StubState
) -> None:
    state.say({"0.compute": f"7:{MIB},8:{MIB}", "0.samples": f"7:{START}:40:30:20:101"})
    busy, idle = reader_on(0).fast().processes or ()
    assert (busy.sm_percent, busy.engines) == (40.0, EngineTime(30.0, 20.0, None)), (
        "more than all of the time is no value"
    )
    assert (idle.sm_percent, idle.engines) == (0.0, EngineTime(0.0, 0.0, 0.0))
