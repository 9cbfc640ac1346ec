"""MIG instances of a card: which values are theirs, which are the card's; and instances are looked
up only once.

See docs/spec/telemetry.md#mig-instances.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pynvml import NVMLError
from tests.nvml.conftest import ReaderOn, Seconds
from tests.nvml.stub import MIB, StubState, mig_uuid

from fairlead.model.devices.readings import GpuProcess, InstanceReading

SM, GR, TX, DECODER = (
    f"DCGM_FI_PROF_{name}"
    for name in ("SM_ACTIVE", "GR_ENGINE_ACTIVE", "PCIE_TX_BYTES", "NVDEC0_ACTIVE")
)
ASKED = "instances are asked for"
FIRST, SECOND, THIRD = range(3)


@pytest.fixture(autouse=True)
def divided(state: StubState) -> None:
    state.show_h200()
    state.divide()


def _memory(slot: int) -> dict[str, int | float]:
    mib = {"TOTAL": 70000, "FREE": 70000 - 1000 - slot - 100, "USED": 1000 + slot, "RESERVED": 100}
    reported = (
        mib
        | {f"{name}_BYTES": amount * MIB for name, amount in mib.items()}
        | {"USED_PERCENT": (1000 + slot) / 69900}
    )
    return {f"DCGM_FI_DEV_FB_{name}": value for name, value in reported.items()}


def test_each_instance_has_memory_profile_and_processes_of_its_own(
    reader_on: ReaderOn, clock: Seconds
) -> None:
    reader = reader_on(0, SM, GR, TX, DECODER)
    assert [set(each.fields) for each in reader.fast().instances] == [set(_memory(0))] * 3
    clock.now += 5
    readings = reader.fast()
    assert readings.instances == tuple(
        InstanceReading(
            gi,
            ci,
            profile,
            mig_uuid(0, slot),
            _memory(slot) | {SM: gi / 10, GR: gi / 10},
            (GpuProcess(100 + slot, "C", (500 + slot) * MIB, None),),
        )
        for slot, (gi, ci, profile) in enumerate(
            [(1, 0, "3g.71gb"), (2, 0, "1c.2g.35gb"), (2, 1, "1c.2g.35gb")]
        )
    )
    assert (readings.processes, readings.failures) == (None, {})


def test_what_is_of_the_whole_card_stands_with_the_card_alone(
    reader_on: ReaderOn, clock: Seconds
) -> None:
    reader = reader_on(0, SM, TX)
    reader.fast()
    clock.now += 5
    fast, slow = reader.fast(), reader.slow()
    whole = {
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_GPU_TEMP",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "DCGM_FI_DEV_NVLINK_TX_BYTES",
        TX,
    }
    assert whole <= set(fast.fields)
    assert {
        "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
        "DCGM_FI_DEV_POWER_VIOLATION",
        "DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
    } <= set(slow.fields)
    for each in (*fast.instances, *slow.instances):
        assert all("_FB_" in name or "_BAR1_" in name or name in (SM, GR) for name in each.fields)


def test_how_busy_each_is_does_not_depend_on_what_the_counters_file_asks(
    reader_on: ReaderOn, clock: Seconds
) -> None:
    """Native families are always present
    (docs/spec/telemetry.md#metric-families-and-naming-rules).
    """
    reader = reader_on(0)
    reader.fast()
    clock.now += 5
    readings = reader.fast()
    assert [each.fields.get(GR) for each in readings.instances] == [0.1, 0.2, 0.2]
    assert GR not in readings.fields, "the card itself reports its utilization"


def test_bar1_of_each(reader_on: ReaderOn) -> None:
    readings = reader_on(0).slow().instances
    assert [each.fields for each in readings] == [
        {
            "DCGM_FI_DEV_BAR1_TOTAL": 131072,
            "DCGM_FI_DEV_BAR1_USED": slot,
            "DCGM_FI_DEV_BAR1_FREE": 131072 - slot,
        }
        for slot in range(3)
    ]
    assert [each.processes for each in readings] == [None] * 3


def test_instances_are_looked_for_once_and_after_a_change(
    reader_on: ReaderOn, state: StubState, clock: Seconds
) -> None:
    reader = reader_on(0, SM)
    for _ in range(5):
        reader.fast()
        reader.slow()
        clock.now += 700
    assert state.calls().count(ASKED) == 1
    state.say(
        {"0.mig.0": None, "0.mig.5": f"9:0:{mig_uuid(0, 5)}:1g.18gb+me", "0m5.total": 18000 * MIB}
    )
    reader.forget()
    readings = reader.fast().instances
    assert [(each.gpu_instance, each.profile) for each in readings] == [
        (2, "1c.2g.35gb"),
        (2, "1c.2g.35gb"),
        (9, "1g.18gb+me"),
    ]
    assert readings[-1].fields["DCGM_FI_DEV_FB_TOTAL"] == 18000
    assert state.calls().count(ASKED) == 2


def test_a_card_that_is_not_divided_is_asked_once(reader_on: ReaderOn, state: StubState) -> None:
    state.show_h200(1)
    reader = reader_on(1)
    for _ in range(3):
        readings = reader.fast()
        assert (readings.instances, readings.processes) == ((), ())
    state.divide(1)
    assert reader.fast().instances == ()
    reader.forget()
    assert len(reader.fast().instances) == 3


def test_what_a_divided_card_does_not_have_is_asked_when_its_division_changes(
    reader_on: ReaderOn, state: StubState
) -> None:
    state.fail("nvmlDeviceGetUtilizationRates", 3)
    reader = reader_on(0)
    assert "DCGM_FI_DEV_GPU_UTIL" not in reader.fast().fields
    state.fail("nvmlDeviceGetUtilizationRates", None)
    assert "DCGM_FI_DEV_GPU_UTIL" not in reader.fast().fields
    reader.forget()
    assert reader.fast().fields["DCGM_FI_DEV_GPU_UTIL"] == 37


def test_a_divided_card_without_instances(reader_on: ReaderOn, state: StubState) -> None:
    state.say({"0.mig.0": None, "0.mig.1": None, "0.mig.2": None, "0.compute": f"4:{MIB}"})
    readings = reader_on(0).fast()
    assert (readings.instances, readings.processes, readings.failures) == ((), None, {})


@pytest.mark.parametrize(
    "call",
    [
        "nvmlDeviceGetMigMode",
        "nvmlDeviceGetMaxMigDeviceCount",
        "nvmlDeviceGetMigDeviceHandleByIndex",
    ],
)
def test_a_failure_to_find_them_is_kept_and_reported(
    reader_on: ReaderOn, state: StubState, clock: Seconds, call: str
) -> None:
    state.fail(call, 999)
    reader = reader_on(0)
    for _ in range(3):
        readings = reader.fast()
        assert (readings.instances, readings.failures, readings.fields["DCGM_FI_DEV_GPU_TEMP"]) == (
            (),
            {"mig": "Unknown Error"},
            51,
        )
    asked = state.calls().count(ASKED)
    assert asked <= 1
    state.fail(call, None)
    assert reader.fast().instances == ()
    assert state.calls().count(ASKED) == asked
    reader.forget()
    readings = reader.fast()
    assert (len(readings.instances), readings.failures) == (3, {})


@pytest.mark.parametrize(
    "call",
    [
        "nvmlDeviceGetGpuInstanceId",
        "nvmlDeviceGetComputeInstanceId",
        "nvmlDeviceGetName",
        "nvmlDeviceGetUUID",
    ],
)
def test_one_instance_that_cannot_be_named_is_left_out(
    reader_on: ReaderOn, state: StubState, call: str
) -> None:
    state.say({f"error.{call}.0m1": 999})
    readings = reader_on(0).fast()
    assert [each.uuid for each in readings.instances] == [mig_uuid(0, FIRST), mig_uuid(0, THIRD)]
    assert readings.failures == {"mig": "Unknown Error"}


def test_trouble_of_one_instance_stays_with_it(
    reader_on: ReaderOn, state: StubState, clock: Seconds
) -> None:
    state.say(
        {
            "error.nvmlDeviceGetMemoryInfo_v2.0m0": 999,
            "error.nvmlDeviceGetComputeRunningProcesses_v3.0m1": 4,
        }
    )
    state.say({"0.gi2.gpm.2": "error:999", "0.gi1.gpm.2": "nan"})
    reader = reader_on(0, SM)
    reader.fast()
    clock.now += 5
    readings = reader.fast()
    assert [each.failures for each in readings.instances] == [
        {"device": "Unknown Error"},
        {"processes": "Insufficient Permissions", "gpm": "Unknown Error"},
        {"gpm": "Unknown Error"},
    ]
    assert [each.fields for each in readings.instances] == [
        {GR: 0.1},
        _memory(SECOND) | {GR: 0.2},
        _memory(THIRD) | {GR: 0.2},
    ]
    assert readings.instances[SECOND].processes is None
    assert readings.failures == {}


@pytest.mark.parametrize("code", [1, 9, 15, 16, 18])
@pytest.mark.parametrize(
    "call",
    [
        "nvmlDeviceGetMigMode.0",
        "nvmlDeviceGetMaxMigDeviceCount.0",
        "nvmlDeviceGetMigDeviceHandleByIndex.0",
        "nvmlDeviceGetUUID.0m2",
        "nvmlDeviceGetMemoryInfo_v2.0m2",
        "nvmlGpmMigSampleGet.0",
        "nvmlDeviceGetComputeRunningProcesses_v3.0m2",
    ],
)
def test_a_lost_card_is_raised(reader_on: ReaderOn, state: StubState, call: str, code: int) -> None:
    reader = reader_on(0, SM)
    state.say({f"error.{call}": code})
    with pytest.raises(NVMLError) as raised:
        reader.fast()
    assert raised.value.value == code
    state.say({f"error.{call}": None})
    readings = reader.fast()
    assert (len(readings.instances), readings.failures) == (3, {})


def test_memory_that_instances_do_not_have_is_asked_again_after_ten_minutes(
    reader_on: ReaderOn, state: StubState, clock: Seconds
) -> None:
    state.say({"error.nvmlDeviceGetBAR1MemoryInfo.0m0": 3})
    reader = reader_on(0)
    assert [bool(each.fields) for each in reader.slow().instances] == [False, True, True]
    state.say({"error.nvmlDeviceGetBAR1MemoryInfo.0m0": None})
    assert [bool(each.fields) for each in reader.slow().instances] == [False, True, True]
    clock.now += 600
    assert [bool(each.fields) for each in reader.slow().instances] == [True, True, True]


def test_an_old_driver_knows_instances_without_profiling(
    reader_on: ReaderOn, state: StubState, old_library: Path
) -> None:
    readings = reader_on(0, SM, library=old_library).fast()
    assert [each.fields["DCGM_FI_DEV_FB_USED"] for each in readings.instances] == [1100, 1101, 1102]
    assert [each.failures for each in readings.instances] == [{}, {}, {}]
