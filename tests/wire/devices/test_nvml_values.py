"""Results of NVML become DCGM's fields: every row of the table of
docs/spec/telemetry.md#dcgm-fields-from-nvml, docs/spec/telemetry.md#profiling-fields.
"""

from __future__ import annotations

import math
import struct

import pynvml
import pytest

from fairlead.wire.devices.gpm_values import GPM_METRICS, INSTANCE_METRICS, gpm_value
from fairlead.wire.devices.nvml_values import (
    BANDWIDTHS,
    FAST_FIELDS,
    SLOW_FIELDS,
    NvmlField,
    bandwidths,
    brand,
    field_number,
    memory_fields,
    parse_field_values,
    performance_state,
    watts,
    whole_watts,
)

MIB = 1048576
DOUBLE, UINT, ULONG, ULONGLONG, LONGLONG, INT, USHORT = range(7)
PACKED = {
    DOUBLE: "d",
    UINT: "Ixxxx",
    ULONG: "Q",
    ULONGLONG: "Q",
    LONGLONG: "q",
    INT: "ixxxx",
    USHORT: "Hxxxxxx",
}

OF_ONE_ID = {
    "MEMORY_TEMP": 82,
    "TOTAL_ENERGY_CONSUMPTION": 83,
    "PCIE_TX_BYTES": 197,
    "PCIE_RX_BYTES": 198,
    "POWER_USAGE_INSTANT": 186,
    "NVLINK_TX_BYTES": 138,
    "NVLINK_RX_BYTES": 139,
    "ECC_CURRENT": 1,
    "ECC_PENDING": 2,
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
    "POWER_VIOLATION": 74,
    "THERMAL_VIOLATION": 75,
    "SYNC_BOOST_VIOLATION": 76,
    "BOARD_LIMIT_VIOLATION": 77,
    "LOW_UTIL_VIOLATION": 78,
    "RELIABILITY_VIOLATION": 79,
    "TOTAL_APP_CLOCKS_VIOLATION": 80,
    "TOTAL_BASE_CLOCKS_VIOLATION": 81,
    "PCIE_REPLAY_COUNTER": 94,
    "CORRECTABLE_REMAPPED_ROWS": 142,
    "UNCORRECTABLE_REMAPPED_ROWS": 143,
    "ROW_REMAP_PENDING": 144,
    "ROW_REMAP_FAILURE": 145,
    "GPU_RECOVERY_ACTION": 230,
    "NVLINK_COUNT_TX_PACKETS": pynvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_PACKETS,
    "NVLINK_COUNT_TX_BYTES": pynvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES,
    "NVLINK_COUNT_RX_PACKETS": pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_PACKETS,
    "NVLINK_COUNT_RX_BYTES": pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES,
    "NVLINK_COUNT_RX_MALFORMED_PACKET_ERRORS": (
        pynvml.NVML_FI_DEV_NVLINK_COUNT_MALFORMED_PACKET_ERRORS
    ),
    "NVLINK_COUNT_RX_BUFFER_OVERRUN_ERRORS": pynvml.NVML_FI_DEV_NVLINK_COUNT_BUFFER_OVERRUN_ERRORS,
    "NVLINK_COUNT_RX_ERRORS": pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_ERRORS,
    "NVLINK_COUNT_RX_REMOTE_ERRORS": pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_REMOTE_ERRORS,
    "NVLINK_COUNT_RX_GENERAL_ERRORS": pynvml.NVML_FI_DEV_NVLINK_COUNT_RCV_GENERAL_ERRORS,
    "NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS": (
        pynvml.NVML_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS
    ),
    "NVLINK_COUNT_TX_DISCARDS": pynvml.NVML_FI_DEV_NVLINK_COUNT_XMIT_DISCARDS,
    "NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS": (
        pynvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS
    ),
    "NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS": (
        pynvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS
    ),
    "NVLINK_COUNT_LINK_RECOVERY_EVENTS": pynvml.NVML_FI_DEV_NVLINK_COUNT_LINK_RECOVERY_EVENTS,
    "NVLINK_COUNT_EFFECTIVE_ERRORS": pynvml.NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_ERRORS,
    "NVLINK_COUNT_EFFECTIVE_BER": pynvml.NVML_FI_DEV_NVLINK_COUNT_EFFECTIVE_BER,
    "NVLINK_COUNT_RX_SYMBOL_ERRORS": pynvml.NVML_FI_DEV_NVLINK_COUNT_SYMBOL_ERRORS,
    "NVLINK_COUNT_SYMBOL_BER": pynvml.NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER,
}


def packed(number: int, kind: int, value: int | float, code: int = 0, scope: int = 0) -> bytes:
    """NVIDIA's nvmlFieldValue_t of 40 bytes."""
    raw = struct.pack("<IIqqIi", number, scope, 1, 2, kind, code) + struct.pack(
        f"<{PACKED.get(kind, 'Q')}", value
    )
    assert len(raw) == 40
    return raw


def number(raw: bytes, row: NvmlField | None = None) -> int | float | None:
    reported = parse_field_values(raw)[0]
    return field_number(row or NvmlField(reported.id, "X"), reported)


def test_every_field_of_the_table_is_asked_by_its_id() -> None:
    asked = {row.field.removeprefix("DCGM_FI_DEV_"): row.id for row in (*FAST_FIELDS, *SLOW_FIELDS)}
    assert asked == OF_ONE_ID


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (DOUBLE, 7.5),
        (UINT, 2**32 - 1),
        (ULONG, 2**63),
        (ULONGLONG, 2**64 - 2),
        (LONGLONG, 2**62),
        (INT, 2**31 - 1),
        (USHORT, 2**16 - 1),
    ],
)
def test_a_value_is_read_by_its_type(kind: int, value: int | float) -> None:
    assert parse_field_values(packed(150, kind, value))[0].number == value
    assert number(packed(150, kind, value)) == int(value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [(LONGLONG, -1), (INT, -1), (DOUBLE, -0.5), (DOUBLE, math.nan), (DOUBLE, math.inf)],
)
def test_what_cannot_be_is_no_value(kind: int, value: int | float) -> None:
    assert number(packed(150, kind, value)) is None


def test_all_ones_of_64_bits_are_no_value() -> None:
    assert number(packed(83, ULONGLONG, 2**64 - 1)) is None


def test_an_unknown_type_is_no_value() -> None:
    assert number(packed(150, 7, 5)) is None


@pytest.mark.parametrize("wanted", range(1, 32))
def test_a_success_without_a_type_is_not_supported_up_to_id_31(wanted: int) -> None:
    reported = parse_field_values(packed(wanted, DOUBLE, 0.0))[0]
    assert (reported.code, reported.number) == (3, None)


def test_a_success_with_type_double_counts_from_id_32_on() -> None:
    assert number(packed(32, DOUBLE, 0.0)) == 0


@pytest.mark.parametrize("code", [3, 4, 6, 15, 999])
def test_each_value_has_its_own_code(code: int) -> None:
    first, second = parse_field_values(packed(83, ULONGLONG, 5, code=code) + packed(94, UINT, 7))
    assert (first.code, first.number, second.code, second.number) == (code, None, 0, 7)


@pytest.mark.parametrize("kind", [DOUBLE, UINT, ULONG, ULONGLONG, LONGLONG, INT, USHORT, 9])
def test_memory_temperature_is_the_uint_whatever_its_type(kind: int) -> None:
    raw = struct.pack("<IIqqIiII", 82, 0, 1, 2, kind, 0, 67, 0xDEAD)
    assert number(raw) == 67


@pytest.mark.parametrize(("degrees", "reported"), [(200, 200), (201, None), (255, None), (0, 0)])
def test_memory_above_200_degrees_is_absent(degrees: int, reported: int | None) -> None:
    assert number(packed(82, UINT, degrees)) == reported


def test_half_a_structure_is_an_error() -> None:
    with pytest.raises(ValueError, match="41 bytes"):
        parse_field_values(packed(83, UINT, 5) + b"x")


def test_units_of_field_values() -> None:
    rows = {row.field.removeprefix("DCGM_FI_DEV_"): row for row in (*FAST_FIELDS, *SLOW_FIELDS)}
    instant = number(packed(186, UINT, 71250), rows["POWER_USAGE_INSTANT"])
    assert (instant, type(instant)) == (71.25, float)
    assert number(packed(83, ULONGLONG, 123456789), rows["TOTAL_ENERGY_CONSUMPTION"]) == 123456789
    assert number(packed(74, ULONGLONG, 5_000_000_001), rows["POWER_VIOLATION"]) == 5_000_000_001
    assert number(packed(138, ULONGLONG, 3, scope=0xFFFFFFFF), rows["NVLINK_TX_BYTES"]) == 3072
    assert (rows["NVLINK_TX_BYTES"].scope, rows["NVLINK_RX_BYTES"].scope) == (
        0xFFFFFFFF,
        0xFFFFFFFF,
    )
    assert {type(number(packed(row.id, UINT, 40), row)) for row in rows.values()} == {int, float}


TOTAL = "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"


def _counters(tx_kib: int, rx_kib: int) -> dict[str, int | float]:
    return {
        "DCGM_FI_DEV_NVLINK_TX_BYTES": tx_kib * 1024,
        "DCGM_FI_DEV_NVLINK_RX_BYTES": rx_kib * 1024,
    }


@pytest.mark.parametrize(
    ("before", "after", "seconds", "reported"),
    [
        pytest.param(
            (0, 0), (9_000_000, 1_000_000), 5.0, {TOTAL: 2000}, id="KiB per second by 1000"
        ),
        pytest.param((5, 5), (5, 5), 5.0, {TOTAL: 0}, id="nothing moved"),
        pytest.param((0, 0), (999, 1000), 1.0, {TOTAL: 1}, id="cut, not rounded"),
        pytest.param((10, 10), (9, 11), 5.0, {}, id="a counter went back"),
        pytest.param((0, 0), (9, 9), 0.0, {}, id="no time"),
    ],
)
def test_bandwidth_is_the_difference_of_two_turns(
    before: tuple[int, int], after: tuple[int, int], seconds: float, reported: dict[str, int]
) -> None:
    assert bandwidths(_counters(*before), _counters(*after), seconds, [TOTAL]) == reported


def test_bandwidth_needs_two_turns_and_both_directions() -> None:
    assert bandwidths({}, _counters(9, 9), 5.0, [TOTAL]) == {}
    assert bandwidths(_counters(0, 0), {"DCGM_FI_DEV_NVLINK_TX_BYTES": 9}, 5.0, [TOTAL]) == {}


def test_each_link_has_its_own_scope() -> None:
    for link in range(18):
        rows = BANDWIDTHS[f"DCGM_FI_DEV_NVLINK_BANDWIDTH_L{link}"]
        assert [(row.id, row.scope) for row in rows] == [(138, link), (139, link)]
        ways = [BANDWIDTHS[f"DCGM_FI_DEV_NVLINK_{way}_BANDWIDTH_L{link}"] for way in ("TX", "RX")]
        assert ways == [rows[:1], rows[1:]]
    assert len(BANDWIDTHS) == 3 * 19


def test_memory_of_the_second_form() -> None:
    fields = memory_fields(16384 * MIB + 5, 8000 * MIB + MIB - 1, 8130 * MIB, 254 * MIB)
    assert fields.pop("DCGM_FI_DEV_FB_USED_PERCENT") == pytest.approx(8130 / 16130, abs=1e-9)
    assert fields == {
        "DCGM_FI_DEV_FB_TOTAL": 16384,
        "DCGM_FI_DEV_FB_FREE": 8000,
        "DCGM_FI_DEV_FB_USED": 8130,
        "DCGM_FI_DEV_FB_RESERVED": 254,
        "DCGM_FI_DEV_FB_TOTAL_BYTES": 16384 * MIB + 5,
        "DCGM_FI_DEV_FB_FREE_BYTES": 8001 * MIB - 1,
        "DCGM_FI_DEV_FB_USED_BYTES": 8130 * MIB,
        "DCGM_FI_DEV_FB_RESERVED_BYTES": 254 * MIB,
    }


def test_memory_of_the_first_form_has_nothing_that_needs_the_second() -> None:
    names = [f"DCGM_FI_DEV_FB_{name}" for name in ("TOTAL", "FREE", "USED")]
    assert set(memory_fields(16 * MIB, MIB, MIB, None)) == {
        *names,
        *(f"{name}_BYTES" for name in names),
    }


def test_a_card_that_keeps_all_its_memory_has_no_share() -> None:
    assert "DCGM_FI_DEV_FB_USED_PERCENT" not in memory_fields(MIB, 0, 0, MIB)


def test_watts() -> None:
    assert (watts(700999), whole_watts(700999)) == (700.999, 700.0)
    assert {type(watts(5000)), type(whole_watts(5000))} == {float}


def test_states_and_names() -> None:
    assert [performance_state(each) for each in (0, 15, 32)] == [0, 15, None]
    assert [brand(each) for each in (-1, 0, 2, 14, 20)] == [
        "Unknown",
        "Unknown",
        "Tesla",
        "NVIDIA",
        "Unknown",
    ]


GPM = {
    "GR_ENGINE_ACTIVE": 1,
    "SM_ACTIVE": 2,
    "SM_OCCUPANCY": 3,
    "PIPE_TENSOR_ACTIVE": 5,
    "DRAM_ACTIVE": 10,
    "PIPE_FP64_ACTIVE": 11,
    "PIPE_FP32_ACTIVE": 12,
    "PIPE_FP16_ACTIVE": 13,
    "PIPE_TENSOR_IMMA_ACTIVE": 9,
    "PIPE_TENSOR_HMMA_ACTIVE": 7,
    "PIPE_TENSOR_DFMA_ACTIVE": 6,
    "PIPE_INT_ACTIVE": 4,
    "PCIE_TX_BYTES": 20,
    "PCIE_RX_BYTES": 21,
    "NVDEC0_ACTIVE": 30,
    "NVDEC7_ACTIVE": 37,
    "NVJPG0_ACTIVE": 40,
    "NVJPG7_ACTIVE": 47,
    "NVOFA0_ACTIVE": 50,
    "NVOFA1_ACTIVE": 51,
    "NVLINK_RX_BYTES": 60,
    "NVLINK_TX_BYTES": 61,
    "NVLINK_L0_RX_BYTES": 62,
    "NVLINK_L0_TX_BYTES": 63,
    "NVLINK_L17_RX_BYTES": 96,
    "NVLINK_L17_TX_BYTES": 97,
    "C2C_TX_ALL_BYTES": 100,
    "C2C_RX_ALL_BYTES": 101,
    "C2C_TX_DATA_BYTES": 102,
    "C2C_RX_DATA_BYTES": 103,
}


@pytest.mark.parametrize(("name", "metric"), GPM.items())
def test_gpm_metrics_are_those_of_the_table(name: str, metric: int) -> None:
    field = f"DCGM_FI_PROF_{name}"
    assert GPM_METRICS[field] == metric
    reported = gpm_value(field, 12.5)
    assert (reported, type(reported)) == (
        (13107200, int) if name.endswith("BYTES") else (0.125, float)
    )
    assert (
        gpm_value(field, math.nan) is gpm_value(field, math.inf) is gpm_value(field, -1.0) is None
    )


def test_an_instance_has_the_first_eight_and_the_pipes() -> None:
    assert {name.removeprefix("DCGM_FI_PROF_") for name in INSTANCE_METRICS} == {
        *("GR_ENGINE_ACTIVE", "SM_ACTIVE", "SM_OCCUPANCY", "PIPE_TENSOR_ACTIVE", "DRAM_ACTIVE"),
        *("PIPE_FP64_ACTIVE", "PIPE_FP32_ACTIVE", "PIPE_FP16_ACTIVE"),
        *(
            "PIPE_TENSOR_IMMA_ACTIVE",
            "PIPE_TENSOR_HMMA_ACTIVE",
            "PIPE_TENSOR_DFMA_ACTIVE",
            "PIPE_INT_ACTIVE",
        ),
    }
