"""What a card returns, group by group: every field of docs/spec/telemetry.md#dcgm-fields-from-nvml,
and every code of 1.14.

Expected values are those that the stub shows, converted by hand.
"""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest
from pynvml import NVMLError
from tests.nvml.conftest import ReaderOn, Seconds
from tests.nvml.stub import ALL_LINKS, MIB, StubState, uuid
from tests.waiting import HANG_SECONDS

from fairlead.edge.nvml.readings import CardReader
from fairlead.wire.metrics.dcgm_fields import FIELDS, MADE, is_double

GONE_OR_DOWN = [1, 9, 12, 15, 16, 18]
UNSUPPORTED = [3, 13]
NO_VALUE = [6, 21, 27]
TROUBLE = {4: "Insufficient Permissions", 999: "Unknown Error", 1234: "a new kind of trouble"}

TOTAL, FIRST, LAST = (f"DCGM_FI_DEV_NVLINK_BANDWIDTH_{each}" for each in ("TOTAL", "L0", "L17"))


def memory(**mib: int) -> dict[str, int | float]:
    """Memory in DCGM's MiB and in bytes."""
    reported: dict[str, int | float] = {f"FB_{name}": amount for name, amount in mib.items()}
    return reported | {f"FB_{name}_BYTES": amount * MIB for name, amount in mib.items()}


MEMORY = {*memory(TOTAL=0, FREE=0, USED=0, RESERVED=0), "FB_USED_PERCENT"}
FAST = {
    "SM_CLOCK": 1980,
    "MEM_CLOCK": 3201,
    "CLOCKS_EVENT_REASONS": 0x24,
    "MEMORY_TEMP": 58,
    "GPU_TEMP": 51,
    "POWER_USAGE": 350.123,
    "POWER_USAGE_INSTANT": 351.25,
    "PSTATE": 0,
    "FAN_SPEED": 33,
    "TOTAL_ENERGY_CONSUMPTION": 83,
    "GPU_UTIL": 37,
    "MEM_COPY_UTIL": 12,
    "ENC_UTIL": 3,
    "DEC_UTIL": 4,
    **memory(TOTAL=143771, FREE=103150, USED=40000, RESERVED=621),
    "FB_USED_PERCENT": 40000 / 143150,
    "PCIE_TX_BYTES": 19700000000,
    "PCIE_RX_BYTES": 19800000000,
    "NVLINK_TX_BYTES": 1024000,
    "NVLINK_RX_BYTES": 2048000,
}
SLOW = {
    "MAX_SM_CLOCK": 1985,
    "MAX_MEM_CLOCK": 3202,
    "SLOWDOWN_TEMP": 87,
    "SHUTDOWN_TEMP": 92,
    "POWER_MGMT_LIMIT": 700.0,
    "POWER_MGMT_LIMIT_MIN": 200.0,
    "POWER_MGMT_LIMIT_MAX": 700.0,
    "POWER_MGMT_LIMIT_DEF": 700.0,
    "ENFORCED_POWER_LIMIT": 600.0,
    "PCIE_REPLAY_COUNTER": 17,
    "PCIE_LINK_GEN": 5,
    "PCIE_LINK_WIDTH": 16,
    "PCIE_MAX_LINK_GEN": 6,
    "PCIE_MAX_LINK_WIDTH": 8,
    "BAR1_TOTAL": 262144,
    "BAR1_USED": 7,
    "BAR1_FREE": 262137,
    "ECC_CURRENT": 1,
    "ECC_PENDING": 0,
    "ECC_SBE_VOL_TOTAL": 3,
    "ECC_DBE_VOL_TOTAL": 4,
    "ECC_SBE_AGG_TOTAL": 5,
    "ECC_DBE_AGG_TOTAL": 6,
    "RETIRED_SBE": 29,
    "RETIRED_DBE": 30,
    "RETIRED_PENDING": 31,
    "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL": 38,
    "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": 45,
    "NVLINK_REPLAY_ERROR_COUNT_TOTAL": 52,
    "NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 59,
    "POWER_VIOLATION": 74000000001,
    "THERMAL_VIOLATION": 75000000001,
    "SYNC_BOOST_VIOLATION": 76000000001,
    "BOARD_LIMIT_VIOLATION": 77000000001,
    "LOW_UTIL_VIOLATION": 78000000001,
    "RELIABILITY_VIOLATION": 79000000001,
    "TOTAL_APP_CLOCKS_VIOLATION": 80000000001,
    "TOTAL_BASE_CLOCKS_VIOLATION": 81000000001,
    "CORRECTABLE_REMAPPED_ROWS": 2,
    "UNCORRECTABLE_REMAPPED_ROWS": 3,
    "ROW_REMAP_PENDING": 1,
    "ROW_REMAP_FAILURE": 0,
    "VGPU_LICENSE_STATUS": 0,
    "GPU_RECOVERY_ACTION": 0,
}


def fields(**values: int | float) -> dict[str, int | float]:
    return {f"DCGM_FI_DEV_{name}": value for name, value in values.items()}


@pytest.fixture
def h200(state: StubState, reader_on: ReaderOn) -> CardReader:
    state.show_h200()
    return reader_on(0)


def test_what_changes_fast(h200: CardReader) -> None:
    reading = h200.fast()
    assert reading.fields == fields(**FAST)
    assert (reading.failures, reading.texts, reading.processes, reading.instances) == (
        {},
        {},
        (),
        (),
    )


def test_what_changes_slowly(h200: CardReader) -> None:
    reading = h200.slow()
    assert reading.fields == fields(**SLOW)
    assert (reading.failures, reading.processes) == ({}, None)


def test_what_never_changes(h200: CardReader, state: StubState) -> None:
    reading = h200.static()
    assert reading.fields == {
        **fields(MINOR_NUMBER=0, MIG_MODE=0, PCI_COMBINED_ID=0x1EB810DE, PCI_SUBSYS_ID=0x12A210DE),
        "DCGM_FI_CUDA_DRIVER_VERSION": 13040,
    }
    assert reading.texts == {
        "DCGM_FI_DRIVER_VERSION": "615.71.05",
        "DCGM_FI_NVML_VERSION": "13.615.71.05",
        "DCGM_FI_DEV_NAME": "NVIDIA H200",
        "DCGM_FI_DEV_UUID": uuid(0),
        "DCGM_FI_DEV_PCI_BUSID": "00000000:3B:00.0",
        "DCGM_FI_DEV_BRAND": "NVIDIA",
        "DCGM_FI_DEV_SERIAL": "1650123",
        "DCGM_FI_DEV_VBIOS_VERSION": "96.00.AA.00.01",
        "DCGM_FI_DEV_INFOROM_IMAGE_VER": "G520.0200.00.05",
        "DCGM_FI_DEV_OEM_INFOROM_VER": "2.1",
        "DCGM_FI_DEV_ECC_INFOROM_VER": "7.16",
        "DCGM_FI_DEV_POWER_INFOROM_VER": "N/A",
    }
    assert reading.failures == {}


def test_integers_are_integers_where_dcgm_prints_some(h200: CardReader, clock: Seconds) -> None:
    h200.wanted = frozenset({"DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_PCIE_TX_BYTES"})
    h200.fast()
    clock.now += 5
    readings = {**h200.fast().fields, **h200.slow().fields}
    assert len(readings) == len(FAST) + len(SLOW) + 3
    assert {name: type(value) for name, value in readings.items()} == {
        name: float if is_double(name) else int for name in readings
    }


def test_a_card_that_reports_next_to_nothing(state: StubState, reader_on: ReaderOn) -> None:
    bare = reader_on(1)
    assert bare.fast().fields == fields(
        GPU_TEMP=40, **memory(TOTAL=15360, FREE=15079, USED=0, RESERVED=281), FB_USED_PERCENT=0.0
    )
    assert bare.slow().fields == fields(VGPU_LICENSE_STATUS=0)
    for reading in (bare.fast(), bare.slow(), bare.static()):
        assert reading.failures == {}


def test_one_call_of_field_values_for_each_group(h200: CardReader, state: StubState) -> None:
    state.say({"note-fields": 1})
    h200.fast()
    h200.slow()
    assert [call for call in state.calls() if "field values" in call] == [
        "7 field values of 0",
        "45 field values of 0",
    ]


@pytest.mark.parametrize(
    "call", ["CurrentClocksThrottleReasons", "TotalEnergyConsumption", "EccMode"]
)
def test_a_second_way_is_not_asked_when_the_first_answers(
    h200: CardReader, state: StubState, call: str
) -> None:
    state.fail(f"nvmlDeviceGet{call}", 999)
    assert (h200.fast().failures, h200.slow().failures) == ({}, {})


# --- codes ----------------------------------------------------------------------------------------

CALLS = [
    ("fast", "nvmlDeviceGetUtilizationRates", {"GPU_UTIL", "MEM_COPY_UTIL"}),
    ("fast", "nvmlDeviceGetFanSpeed", {"FAN_SPEED"}),
    ("fast", "nvmlDeviceGetMemoryInfo_v2", MEMORY),
    ("slow", "nvmlDeviceGetBAR1MemoryInfo", {"BAR1_TOTAL", "BAR1_USED", "BAR1_FREE"}),
    (
        "slow",
        "nvmlDeviceGetPowerManagementLimitConstraints",
        {"POWER_MGMT_LIMIT_MIN", "POWER_MGMT_LIMIT_MAX"},
    ),
    ("static", "nvmlDeviceGetMinorNumber", {"MINOR_NUMBER"}),
]


def _without(reader: CardReader, group: str, names: set[str], full: dict[str, int | float]) -> None:
    reported = {
        name: value for name, value in getattr(reader, group)().fields.items() if name != TOTAL
    }
    assert reported == {name: value for name, value in full.items() if name[12:] not in names}


@pytest.mark.parametrize("code", UNSUPPORTED)
@pytest.mark.parametrize(
    ("group", "call", "names"), [row for row in CALLS if not row[1].endswith("_v2")]
)
def test_what_a_card_does_not_have_is_asked_again_after_ten_minutes(
    h200: CardReader,
    state: StubState,
    clock: Seconds,
    code: int,
    group: str,
    call: str,
    names: set[str],
) -> None:
    full = dict(getattr(h200, group)().fields)
    state.fail(call, code, 0)
    _without(h200, group, names, full)
    state.fail(call, None, 0)
    clock.now += 599
    _without(h200, group, names, full)
    clock.now += 1
    assert names <= {name[12:] for name in getattr(h200, group)().fields}
    assert getattr(h200, group)().failures == {}


@pytest.mark.parametrize("code", NO_VALUE)
@pytest.mark.parametrize(("group", "call", "names"), CALLS)
def test_no_value_now_is_asked_again_at_once(
    h200: CardReader, state: StubState, code: int, group: str, call: str, names: set[str]
) -> None:
    full = dict(getattr(h200, group)().fields)
    state.fail(call, code, 0)
    _without(h200, group, names, full)
    assert getattr(h200, group)().failures == {}
    state.fail(call, None, 0)
    _without(h200, group, set(), full)


@pytest.mark.parametrize("code", TROUBLE)
@pytest.mark.parametrize(("group", "call", "names"), CALLS)
def test_trouble_costs_the_values_of_its_call_only(
    h200: CardReader,
    state: StubState,
    caplog: pytest.LogCaptureFixture,
    code: int,
    group: str,
    call: str,
    names: set[str],
) -> None:
    full = dict(getattr(h200, group)().fields)
    state.fail(call, code, 0)
    for _ in range(2):
        _without(h200, group, names, full)
        assert getattr(h200, group)().failures == {"device": TROUBLE[code]}
    assert [call.removesuffix("_v2") in record.message for record in caplog.records] == [True]
    state.fail(call, None, 0)
    assert getattr(h200, group)().failures == {}


@pytest.mark.parametrize("code", GONE_OR_DOWN)
@pytest.mark.parametrize(
    ("group", "call"),
    [
        *((group, call) for group, call, _ in CALLS),
        ("fast", "nvmlDeviceGetFieldValues"),
        ("slow", "nvmlDeviceGetFieldValues"),
        ("fast", "nvmlDeviceGetComputeRunningProcesses_v3"),
        ("fast", "nvmlDeviceGetProcessUtilization"),
        ("fast", "nvmlDeviceGetMigMode"),
        ("fast", "nvmlGpmQueryDeviceSupport"),
        ("fast", "nvmlGpmSampleGet"),
        ("static", "nvmlDeviceGetSerial"),
    ],
)
def test_a_lost_card_and_a_driver_that_is_gone_are_raised(
    h200: CardReader, state: StubState, group: str, call: str, code: int
) -> None:
    state.say({"0.compute": f"5:{MIB}"})
    h200.wanted = frozenset({"DCGM_FI_PROF_SM_ACTIVE"})
    state.fail(call, code, 0)
    for _ in range(2):
        with pytest.raises(NVMLError) as raised:
            getattr(h200, group)()
        assert raised.value.value == code
    state.fail(call, None, 0)
    assert getattr(h200, group)().failures == {}


# --- field values ---------------------------------------------------------------------------------


@pytest.mark.parametrize("code", GONE_OR_DOWN)
def test_one_field_value_shows_that_the_card_is_lost(
    h200: CardReader, state: StubState, code: int
) -> None:
    state.say({"0.fv.74": f"error:{code}"})
    with pytest.raises(NVMLError) as raised:
        h200.slow()
    assert raised.value.value == code


@pytest.mark.parametrize("code", TROUBLE)
def test_one_field_value_fails(h200: CardReader, state: StubState, code: int) -> None:
    state.say({"0.fv.74": f"error:{code}"})
    reading = h200.slow()
    assert reading.failures == {"fieldvalues": TROUBLE[code]}
    assert reading.fields == {
        name: value
        for name, value in fields(**SLOW).items()
        if name != "DCGM_FI_DEV_POWER_VIOLATION"
    }


def test_field_values_fail_together(h200: CardReader, state: StubState) -> None:
    state.fail("nvmlDeviceGetFieldValues", 999)
    reading = h200.slow()
    assert reading.failures == {"fieldvalues": "Unknown Error"}
    # read by a call of its own when field values do not have it
    assert (
        reading.fields["DCGM_FI_DEV_ECC_CURRENT"],
        reading.fields["DCGM_FI_DEV_PCIE_REPLAY_COUNTER"],
    ) == (1, 17)
    assert h200.fast().fields["DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"] == 5


@pytest.mark.parametrize("message", ["unset", "error:3", "error:13"])
def test_an_unset_id_up_to_31_is_not_supported(
    h200: CardReader, state: StubState, clock: Seconds, message: str
) -> None:
    state.say({"0.fv.4": message, "note-fields": 1})
    assert "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL" not in h200.slow().fields
    state.say({"0.fv.4": "3:9"})
    clock.now += 599
    reading = h200.slow()
    assert "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL" not in reading.fields
    assert reading.failures == {}
    clock.now += 1
    assert h200.slow().fields["DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"] == 9
    # the second turn leaves out this field and the eighteen fields of a newer generation
    assert [call.split()[0] for call in state.calls() if "field values" in call] == [
        "45",
        "26",
        "45",
    ]


@pytest.mark.parametrize(
    ("message", "degrees"),
    [("0:67", 67), ("3:200", 200), ("1:201", None), ("1:255", None), ("error:3", None)],
)
def test_memory_temperature(
    h200: CardReader, state: StubState, message: str, degrees: int | None
) -> None:
    state.say({"0.fv.82": message})
    assert h200.fast().fields.get("DCGM_FI_DEV_MEMORY_TEMP") == degrees


@pytest.mark.parametrize("message", ["0:nan", "0:inf", "4:-1", "5:-7", "9:1", f"3:{2**64 - 1}"])
def test_what_cannot_be_is_absent(h200: CardReader, state: StubState, message: str) -> None:
    state.say({"0.fv.197": message})
    reading = h200.fast()
    assert "DCGM_FI_DEV_PCIE_TX_BYTES" not in reading.fields
    assert reading.failures == {}


# --- throughput -----------------------------------------------------------------------------------


def test_bandwidth_of_all_links_and_of_those_that_are_wanted(
    state: StubState, reader_on: ReaderOn, clock: Seconds
) -> None:
    state.show_h200()
    state.say({"0.fv.138": "3:0", "0.fv.139": "3:0"})
    reader = reader_on(0, LAST, FIRST)
    assert not {TOTAL, FIRST, LAST} & set(reader.fast().fields)
    state.say(
        {
            f"0.fv.138.{ALL_LINKS}": f"3:{1000 + 10_000_000}",
            "0.fv.138.17": "3:2000155",
            "0.fv.139.17": "3:1000156",
        }
    )
    clock.now += 2
    readings = reader.fast().fields
    assert (readings[TOTAL], readings[FIRST], readings[LAST]) == (5000, 0, 1500)
    assert not any("L17_" in name or "L0_" in name for name in readings)
    reader.wanted = frozenset()
    clock.now += 2
    assert {TOTAL} == {name for name in reader.fast().fields if "BANDWIDTH" in name}


def test_a_counter_that_went_back_has_no_bandwidth(
    h200: CardReader, state: StubState, clock: Seconds
) -> None:
    h200.fast()
    state.say({f"0.fv.138.{ALL_LINKS}": "3:1"})
    clock.now += 5
    assert TOTAL not in h200.fast().fields
    clock.now += 5
    assert h200.fast().fields[TOTAL] == 0


@pytest.mark.parametrize(("way", "value"), [("TX", 1001), ("RX", 1002)])
def test_pcie_throughput_is_asked_when_it_is_wanted(
    h200: CardReader, state: StubState, way: str, value: int
) -> None:
    state.fail("nvmlDeviceGetPcieThroughput", 999)
    assert h200.fast().failures == {}
    h200.wanted = frozenset({f"DCGM_FI_DEV_PCIE_{way}_THROUGHPUT"})
    assert h200.fast().failures == {"device": "Unknown Error"}
    state.fail("nvmlDeviceGetPcieThroughput", None)
    assert {
        name: reported for name, reported in h200.fast().fields.items() if "THROUGHPUT" in name
    } == fields(**{f"PCIE_{way}_THROUGHPUT": value})


# --- what is read only where a page prints it -----------------------------------------------------

SELDOM: dict[str, tuple[str, object, int]] = {
    "APP_SM_CLOCK": ("app-clock.1", 1410, 1410),
    "APP_MEM_CLOCK": ("app-clock.2", 2619, 2619),
    "VIDEO_CLOCK": ("clock.3", 1545, 1545),
    "MAX_VIDEO_CLOCK": ("max-clock.3", 1546, 1546),
    "MEM_MAX_OP_TEMP": ("threshold.2", 105, 105),
    "GPU_MAX_OP_TEMP": ("threshold.3", 93, 93),
    "GPU_TEMP_LIMIT": ("margin", 38, 38),
    "PERSISTENCE_MODE": ("persistence", 1, 1),
    "COMPUTE_MODE": ("compute-mode", 3, 3),
    "VIRTUAL_MODE": ("virtualization", 2, 2),
    "MIG_MAX_SLICES": ("name", "NVIDIA H200", 7),
    "INFOROM_CONFIG_CHECK": ("inforom-checksum", 0xFEEDBEE0, 0xFEEDBEE0),
    "AUTOBOOST": ("autoboost", 1, 1),
    "CUDA_COMPUTE_CAPABILITY": ("capability-major", 9, 9 << 16),
    "GPM_SUPPORT": ("gpm", 1, 1),
    "THRESHOLD_SRM": ("sram-over", 1, 1),
    "BANKS_REMAP_ROWS_AVAIL_MAX": ("banks-max", 640, 640),
    "ECC_SBE_VOL_DEV": ("fv.11", "3:1100", 1100),
    "ECC_DBE_VOL_DEV": ("fv.12", "3:1200", 1200),
    "ECC_SBE_AGG_DEV": ("fv.22", "3:2200", 2200),
    "ECC_DBE_AGG_DEV": ("fv.23", "3:2300", 2300),
    "ECC_SBE_VOL_L1": ("fv.7", "3:700", 700),
    "ECC_DBE_VOL_TEX": ("fv.16", "3:1600", 1600),
    "ECC_DBE_VOL_CBU": ("fv.17", "3:1700", 1700),
    "ECC_DBE_AGG_CBU": ("fv.28", "3:2800", 2800),
    "ECC_SBE_VOL_CBU": ("errors.0.0.6", 61, 61),
    "ECC_SBE_AGG_SHM": ("errors.0.1.5", 51, 51),
    "ECC_DBE_VOL_SRM": ("errors.1.0.7", 71, 71),
    "NVLINK_CRC_FLIT_ERROR_COUNT_L0": ("fv.32", "3:320", 320),
    "NVLINK_CRC_DATA_ERROR_COUNT_L5": ("fv.44", "3:440", 440),
    "NVLINK_REPLAY_ERROR_COUNT_L6": ("fv.108", "3:1080", 1080),
    "NVLINK_RECOVERY_ERROR_COUNT_L11": ("fv.119", "3:1190", 1190),
    "NVLINK_ECC_DATA_ERROR_COUNT_TOTAL": ("fv.160", "3:1601", 1601),
    "C2C_LINK_COUNT": ("fv.170", "1:10", 10),
    "PCIE_COUNT_CORRECTABLE_ERRORS": ("fv.173", "3:1730", 1730),
    "C2C_LINK_POWER_STATE": ("fv.234", "1:1", 1),
    "CLOCKS_EVENT_REASON_SW_POWER_CAP_NS": ("fv.74", "3:74000000001", 74000000001),
    "CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS": ("fv.271", "3:2710", 2710),
    "PWR_SMOOTHING_ENABLED": ("fv.251", "1:1", 1),
    "PWR_SMOOTHING_ADMIN_OVERRIDE_RAMP_DOWN_HYST_VAL": ("fv.268", "3:2680", 2680),
}
"""By field: the stub's row, its contents, and the value that is read. Ids of field values are those
of NVIDIA's `nvml.h`.
"""


@pytest.mark.parametrize("field", SELDOM)
def test_what_is_seldom_printed_is_queried_where_a_page_prints_it(
    state: StubState, reader_on: ReaderOn, field: str
) -> None:
    key, shown, read = SELDOM[field]
    state.show_h200()
    state.say({f"0.{key}": shown})
    name = f"DCGM_FI_DEV_{field}"
    assert name not in reader_on(0).fast().fields | reader_on(0).slow().fields
    reader = reader_on(0, name)
    readings = [reader.fast(), reader.slow()]
    assert {name: read}.items() <= (readings[0].fields | readings[1].fields).items()
    assert [each.failures for each in readings] == [{}, {}]


OF_A_TEXT = {"BRAND", "NAME", "PCI_BUSID", "SERIAL", "UUID", "VBIOS_VERSION"}
MADE_ELSEWHERE = {"CLOCK_THROTTLE_REASONS", "XID_ERRORS"}
"""The first is another name of a field that is read; the second comes from events."""


def test_every_field_that_a_csv_may_name_is_read(
    state: StubState, reader_on: ReaderOn, clock: Seconds
) -> None:
    state.show_h200()
    rows: dict[str, object] = {f"fv.{number}": f"3:{number}" for number in range(1, 272)}
    rows |= {f"fv.{number}.{ALL_LINKS}": f"3:{number}" for number in range(201, 223)}
    rows |= {
        f"errors.{error}.{counter}.{place}": 1
        for error in (0, 1)
        for counter in (0, 1)
        for place in (5, 6, 7)
    }
    rows |= {key: 1 for key, shown, _ in SELDOM.values() if isinstance(shown, int)}
    rows |= {"index": 0, "fabric-state": 3}
    state.say({f"0.{key}": value for key, value in rows.items() if key != "fv.82"})
    reader = reader_on(0, *FIELDS)
    reader.fast()
    clock.now += 5
    readings = [reader.fast(), reader.slow(), reader.static()]
    read = {name for each in readings for name in (*each.fields, *each.texts)}
    assert FIELDS - read == {*MADE, *(f"DCGM_FI_DEV_{name}" for name in MADE_ELSEWHERE)}
    assert {name[12:] for name in readings[2].texts} >= OF_A_TEXT
    assert [each.failures for each in readings] == [{}] * 3


FABRIC = {
    "in progress": ((2, 0), {"MANAGER_STATUS": 2, "MANAGER_ERROR_CODE": 0}),
    "completed": (
        (3, 0),
        {
            "MANAGER_STATUS": 3,
            "MANAGER_ERROR_CODE": 0,
            "CLIQUE_ID": 7,
            "HEALTH_MASK": 0x2A,
            "HEALTH_SUMMARY": 1,
        },
    ),
    "failed": (
        (3, 10),
        {
            "MANAGER_STATUS": 4,
            "MANAGER_ERROR_CODE": 10,
            "CLIQUE_ID": 7,
            "HEALTH_MASK": 0x2A,
            "HEALTH_SUMMARY": 1,
        },
    ),
}


@pytest.mark.parametrize(("printed", "expected"), FABRIC.values(), ids=FABRIC)
def test_the_fabric_as_dcgm_reports_it(
    state: StubState, reader_on: ReaderOn, printed: tuple[int, int], expected: dict[str, int]
) -> None:
    """Of `dcgm_structs.h`: 2 in progress, 3 success, 4 failure."""
    state.show_h200()
    wanted = "DCGM_FI_DEV_FABRIC_MANAGER_STATUS"
    assert not any("FABRIC" in name for name in reader_on(0, wanted).slow().fields), (
        "a card without a fabric"
    )
    state.say(
        {
            "0.fabric-state": printed[0],
            "0.fabric-status": printed[1],
            "0.fabric-clique": 7,
            "0.fabric-mask": 0x2A,
            "0.fabric-health": 1,
        }
    )
    readings = reader_on(0, wanted).slow()
    assert {
        name[19:]: value for name, value in readings.fields.items() if "FABRIC" in name
    } == expected
    assert readings.failures == {}


def test_bandwidth_of_one_way(state: StubState, reader_on: ReaderOn, clock: Seconds) -> None:
    state.show_h200()
    wanted = [
        f"DCGM_FI_DEV_NVLINK_{each}"
        for each in (
            "TX_BANDWIDTH_TOTAL",
            "RX_BANDWIDTH_TOTAL",
            "TX_BANDWIDTH_L17",
            "BANDWIDTH_L17",
        )
    ]
    reader = reader_on(0, *wanted)
    reader.fast()
    state.say({f"0.fv.138.{ALL_LINKS}": "3:10001000", f"0.fv.139.{ALL_LINKS}": "3:4002000"})
    state.say({"0.fv.138.17": "3:2000155", "0.fv.139.17": "3:1000156"})
    clock.now += 2
    readings = reader.fast().fields
    assert [readings[name] for name in wanted] == [5000, 2000, 1000, 1500]
    assert not any(name.startswith("NVLINK_L17") for name in readings)


# --- other drivers --------------------------------------------------------------------------------


def test_an_old_driver_reports_memory_in_its_form(
    state: StubState, reader_on: ReaderOn, old_library: Path
) -> None:
    state.show_h200()
    readings = reader_on(0, "DCGM_FI_PROF_SM_ACTIVE", library=old_library).fast()
    assert {name: value for name, value in readings.fields.items() if "_FB_" in name} == fields(
        **memory(TOTAL=143771, FREE=103150, USED=40621)
    )
    assert readings.fields["DCGM_FI_DEV_CLOCKS_EVENT_REASONS"] == 0x24
    assert readings.failures == {}


def test_two_forms_of_memory_are_never_mixed(
    h200: CardReader, state: StubState, clock: Seconds
) -> None:
    h200.fast()
    state.fail("nvmlDeviceGetMemoryInfo_v2", 3)
    assert not any("_FB_" in name for name in h200.fast().fields)
    state.fail("nvmlDeviceGetMemoryInfo_v2", None)
    clock.now += 600
    assert h200.fast().fields["DCGM_FI_DEV_FB_USED"] == 40000


def test_a_pod_that_began_with_the_first_form_stays_with_it(
    state: StubState, reader_on: ReaderOn, clock: Seconds
) -> None:
    state.show_h200()
    reader = reader_on(0)
    state.fail("nvmlDeviceGetMemoryInfo_v2", 13)
    assert reader.fast().fields["DCGM_FI_DEV_FB_USED"] == 40621
    state.fail("nvmlDeviceGetMemoryInfo_v2", None)
    clock.now += 1200
    assert reader.fast().fields["DCGM_FI_DEV_FB_USED"] == 40621
    assert "DCGM_FI_DEV_FB_RESERVED" not in reader.fast().fields


def test_a_text_that_is_none(h200: CardReader, state: StubState) -> None:
    (state.folder / "state").write_bytes(
        (state.folder / "state").read_bytes() + b"0.serial \xff\xfe\nend\n"
    )
    reading = h200.static()
    assert "DCGM_FI_DEV_SERIAL" not in reading.texts
    assert reading.failures == {"device": "not text"}
    assert reading.texts["DCGM_FI_DEV_VBIOS_VERSION"] == "96.00.AA.00.01"


def test_eight_cards_and_one_of_them_hangs(state: StubState, reader_on: ReaderOn) -> None:
    state.show_cards(8)
    for card in range(8):
        state.show_h200(card)
        state.say({f"{card}.gpu": 10 + card})
    readers = [reader_on(card) for card in range(8)]
    state.say({"hang.nvmlDeviceGetPowerUsage.3": 1})
    readings: dict[int, int | float] = {}

    def read(card: int) -> None:
        readings[card] = readers[card].fast().fields["DCGM_FI_DEV_GPU_UTIL"]

    threads = [threading.Thread(target=read, args=(card,), daemon=True) for card in range(8)]
    for thread in threads:
        thread.start()
    for card in set(range(8)) - {3}:
        threads[card].join(HANG_SECONDS)
    try:
        assert readings == {card: 10 + card for card in range(8) if card != 3}
        assert threads[3].is_alive()
    finally:
        state.say({"hang.nvmlDeviceGetPowerUsage.3": None})
        threads[3].join(HANG_SECONDS)
    assert readings[3] == 13


def test_a_slow_call_delays_its_own_card(state: StubState, reader_on: ReaderOn) -> None:
    state.show_h200(0)
    state.show_h200(1)
    readers = [reader_on(card) for card in range(2)]
    state.say({"delay.nvmlDeviceGetFanSpeed.0": 300})
    took: list[float] = []
    for reader in readers:
        began = time.monotonic()
        assert reader.fast().fields["DCGM_FI_DEV_FAN_SPEED"] == 33
        took.append(time.monotonic() - began)
    assert took[0] >= 0.3 > took[1]


# --- any trouble ----------------------------------------------------------------------------------

REPORTED_BY = {
    "nvmlDeviceGetUtilizationRates": {"GPU_UTIL", "MEM_COPY_UTIL"},
    "nvmlDeviceGetEncoderUtilization": {"ENC_UTIL"},
    "nvmlDeviceGetDecoderUtilization": {"DEC_UTIL"},
    "nvmlDeviceGetClockInfo": {"SM_CLOCK", "MEM_CLOCK"},
    "nvmlDeviceGetTemperature": {"GPU_TEMP"},
    "nvmlDeviceGetPowerUsage": {"POWER_USAGE"},
    "nvmlDeviceGetPerformanceState": {"PSTATE"},
    "nvmlDeviceGetFanSpeed": {"FAN_SPEED"},
    "nvmlDeviceGetMemoryInfo_v2": MEMORY,
    "nvmlDeviceGetMaxClockInfo": {"MAX_SM_CLOCK", "MAX_MEM_CLOCK"},
    "nvmlDeviceGetTemperatureThreshold": {"SLOWDOWN_TEMP", "SHUTDOWN_TEMP"},
    "nvmlDeviceGetPowerManagementLimit": {"POWER_MGMT_LIMIT"},
    "nvmlDeviceGetPowerManagementLimitConstraints": {
        "POWER_MGMT_LIMIT_MIN",
        "POWER_MGMT_LIMIT_MAX",
    },
    "nvmlDeviceGetPowerManagementDefaultLimit": {"POWER_MGMT_LIMIT_DEF"},
    "nvmlDeviceGetEnforcedPowerLimit": {"ENFORCED_POWER_LIMIT"},
    "nvmlDeviceGetCurrPcieLinkGeneration": {"PCIE_LINK_GEN"},
    "nvmlDeviceGetCurrPcieLinkWidth": {"PCIE_LINK_WIDTH"},
    "nvmlDeviceGetMaxPcieLinkGeneration": {"PCIE_MAX_LINK_GEN"},
    "nvmlDeviceGetMaxPcieLinkWidth": {"PCIE_MAX_LINK_WIDTH"},
    "nvmlDeviceGetBAR1MemoryInfo": {"BAR1_TOTAL", "BAR1_USED", "BAR1_FREE"},
    "nvmlDeviceGetGridLicensableFeatures_v4": {"VGPU_LICENSE_STATUS"},
}
IN_TWO_WAYS = {
    "CLOCKS_EVENT_REASONS": {
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetCurrentClocksThrottleReasons",
    },
    "TOTAL_ENERGY_CONSUMPTION": {"nvmlDeviceGetFieldValues", "nvmlDeviceGetTotalEnergyConsumption"},
    "PCIE_REPLAY_COUNTER": {"nvmlDeviceGetFieldValues", "nvmlDeviceGetPcieReplayCounter"},
    "ECC_CURRENT": {"nvmlDeviceGetFieldValues", "nvmlDeviceGetEccMode"},
    "ECC_PENDING": {"nvmlDeviceGetFieldValues", "nvmlDeviceGetEccMode"},
}
ALL_FIELDS = set(FAST) | set(SLOW)
BY_FIELD_VALUES = ALL_FIELDS - set(IN_TWO_WAYS) - set().union(*REPORTED_BY.values())
CHANCES = sorted(
    {
        "nvmlDeviceGetFieldValues",
        *REPORTED_BY,
        *(call for calls in IN_TWO_WAYS.values() for call in calls),
    }
)


@pytest.mark.parametrize("seed", range(40))
def test_any_calls_fail_and_nothing_else_is_lost(
    h200: CardReader, state: StubState, seed: int
) -> None:
    """The calls are drawn by the seed; each has its own code."""
    chance = random.Random(seed)
    failing = {
        call: chance.choice([4, 6, 21, 27, 999, 1234])
        for call in chance.sample(CHANCES, chance.randint(1, len(CHANCES)))
    }
    state.say({f"error.{call}": code for call, code in failing.items()})
    lost = {name for call in failing for name in REPORTED_BY.get(call, ())}
    lost |= {name for name, calls in IN_TWO_WAYS.items() if calls <= set(failing)}
    lost |= BY_FIELD_VALUES if "nvmlDeviceGetFieldValues" in failing else set()
    fast, slow = h200.fast(), h200.slow()
    assert {name[12:] for name in (*fast.fields, *slow.fields)} == ALL_FIELDS - lost
    troubled = {
        "fieldvalues" if "FieldValues" in call else "device"
        for call, code in failing.items()
        if code in TROUBLE
    }
    not_asked = {
        "nvmlDeviceGetCurrentClocksThrottleReasons",
        "nvmlDeviceGetTotalEnergyConsumption",
        "nvmlDeviceGetEccMode",
    }
    assert set(fast.failures) | set(slow.failures) <= troubled
    if {call for call, code in failing.items() if code in TROUBLE} - not_asked:
        assert set(fast.failures) | set(slow.failures)


def test_links_of_the_newest_generation_count_their_errors_in_ids_of_their_own(
    h200: CardReader, state: StubState
) -> None:
    state.say({f"0.fv.{number}.{ALL_LINKS}": f"3:{number}" for number in range(201, 223)})
    readings = h200.slow().fields
    names = {
        206: "RX_MALFORMED_PACKET_ERRORS",
        211: "LOCAL_LINK_INTEGRITY_ERRORS",
        214: "LINK_RECOVERY_FAILED_EVENTS",
        221: "RX_SYMBOL_ERRORS",
    }
    for number, name in names.items():
        assert readings[f"DCGM_FI_DEV_NVLINK_COUNT_{name}"] == number
    assert len([name for name in readings if "NVLINK_COUNT" in name]) == 18, (
        "four ids are out of use"
    )


def test_the_state_of_each_nvlink_that_the_card_has(h200: CardReader, state: StubState) -> None:
    state.say(
        {
            "0.fv.91": "1:2",
            "0.fv.165": "1:1",
            "0.fv.165.1": "1:0",
            "0.fv.165.2": "error:2",
            "note-fields": 1,
        }
    )
    assert h200.static().fields["DCGM_FI_DEV_NVLINK_LINK_COUNT"] == 2
    reading = h200.slow()
    assert {name[12:]: value for name, value in reading.fields.items() if "STATE" in name} == {
        "NVLINK_STATE_L0": 1,
        "NVLINK_STATE_L1": 0,
    }
    assert reading.failures == {}, "a link that the card does not have is not asked"
    assert [call.split()[0] for call in state.calls() if "field values" in call] == ["1", "47"]


def test_a_card_without_nvlink_has_no_states(h200: CardReader, state: StubState) -> None:
    state.say({"0.fv.165": "1:0", "0.fv.165.1": "1:0"})
    h200.static()
    assert not [name for name in h200.slow().fields if "NVLINK_STATE" in name]


def test_the_way_to_other_cards_is_queried_where_a_page_prints_it(
    state: StubState, reader_on: ReaderOn
) -> None:
    state.show_cards(4)
    state.say({"0.peer.1": 0, "0.peer.2": 5, "0.peer.3": 0})
    assert reader_on(0).slow().peers == {}
    reader = reader_on(0, "DCGM_EXP_P2P_STATUS")
    assert reader.slow().peers == {1: 0, 2: 5, 3: 0}
    state.fail("nvmlDeviceGetHandleByIndex_v2", 15, card=2)
    readings = reader.slow()
    assert (readings.peers, readings.failures) == ({1: 0, 3: 0}, {}), (
        "another card that is lost is no fault of this one"
    )


def test_a_card_that_does_not_report_its_paths_has_no_peers_and_no_trouble(
    state: StubState, reader_on: ReaderOn
) -> None:
    readings = reader_on(0, "DCGM_EXP_P2P_STATUS").slow()
    assert (readings.peers, readings.failures) == ({}, {})
