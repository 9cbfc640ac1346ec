"""The counters CSV: a bad row is skipped with a reason, and the others count; the built-in file has
no bad row.
"""

from __future__ import annotations

import csv
from importlib.resources import files
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.devices.counter import Counter
from fairlead.wire.devices.gpm_values import GPM_METRICS
from fairlead.wire.metrics.counters_csv import TYPES, parse_counters
from fairlead.wire.metrics.dcgm_fields import FIELDS, MADE, field_of, is_double, why_not
from fairlead.wire.metrics.dcgm_names import NAMES, NOT_SERVED

HELP = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=30).map(str.strip)
COUNTERS = st.lists(
    st.builds(
        lambda name, type_, help_: Counter(name, name, type_, help_, is_double(name)),
        st.sampled_from(sorted(FIELDS - {"DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"})),
        st.sampled_from(TYPES),
        HELP,
    ),
    unique_by=lambda counter: counter.name,
    max_size=6,
)


@given(COUNTERS)
def test_rows_of_a_csv_writer_are_counters(counters: list[Counter]) -> None:
    """Python's writer quotes help texts with commas and quotes."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        (each.name, each.type, each.help) for each in counters
    )
    found = parse_counters(text.getvalue())
    assert (found.counters, found.rejected) == (tuple(counters), ())


def test_the_built_in_counters_are_all_understood_and_are_the_contracts() -> None:
    found = parse_counters(
        files("fairlead.wire.metrics").joinpath("default-counters.csv").read_text()
    )
    assert found.rejected == ()
    names = [counter.name.removeprefix("DCGM_FI_DEV_") for counter in found.counters]
    assert names[:5] == ["SM_CLOCK", "MEM_CLOCK", "MEMORY_TEMP", "GPU_TEMP", "POWER_USAGE"]
    assert len(names) == 26
    by_name = {counter.name: counter for counter in found.counters}
    assert by_name["DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL"].type == "gauge", "a rate is a gauge"
    assert by_name["DCGM_FI_DRIVER_VERSION"].is_label


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("DCGM_FI_DEV_GPU_UTIL, gauge", "2 fields instead of 3"),
        (
            "DCGM_FI_DEV_GPU_UTIL, gauge, one, two",
            "4 fields instead of 3 (a help text with a comma needs quotes)",
        ),
        ("DCGM_FI_DEV_COFFEE, gauge, Cups.", "`DCGM_FI_DEV_COFFEE` is no field of DCGM"),
        (
            "DCGM_FI_DEV_NVSWITCH_FATAL_ERRORS, gauge, Switches.",
            "is a field that DCGM has and NVML has not: it is of NVSwitches",
        ),
        (
            "DCGM_FI_DEV_SUPPORTED_CLOCKS, gauge, Clocks.",
            "is a field of DCGM that Fairlead does not read: it is a list or a structure",
        ),
        (
            "DCGM_FI_DEV_GPU_TMEP, gauge, Typo.",
            "`DCGM_FI_DEV_GPU_TMEP` is no field of DCGM; did you mean `DCGM_FI_DEV_GPU_TEMP`?",
        ),
        (
            "DCGM_FI_DEV_GPU_UTIL, guage, Percent.",
            "`guage` is none of gauge, counter, histogram, summary, label",
        ),
        (" # indented, comment, no", "`# indented` is no field of DCGM"),
        ('DCGM_FI_DEV_GPU_UTIL, gauge, "open', "not CSV"),
        ("DCGM_FI_DEV_FB_USED, gauge, again", "stands in an earlier row"),
    ],
)
def test_a_bad_row_is_skipped_with_the_reason(row: str, reason: str) -> None:
    text = (
        "DCGM_FI_DEV_FB_USED, gauge, Used.\n\n# a comment, with, commas, "
        f"yes\n{row}\nDCGM_FI_DEV_FB_FREE, gauge, Free.\n"
    )
    found = parse_counters(text)
    assert [counter.name for counter in found.counters] == [
        "DCGM_FI_DEV_FB_USED",
        "DCGM_FI_DEV_FB_FREE",
    ]
    assert found.rejected[0].line == 4
    assert reason in found.rejected[0].reason


def test_other_generations_print_their_own_name() -> None:
    found = parse_counters(
        "dcgm_gpu_utilization, gauge, Old.\nDCGM_FI_DEV_GPU_UTIL_RATIO, gauge, New.\n"
    )
    assert [(counter.name, counter.field) for counter in found.counters] == [
        ("dcgm_gpu_utilization", "DCGM_FI_DEV_GPU_UTIL"),
        ("DCGM_FI_DEV_GPU_UTIL_RATIO", "DCGM_FI_DEV_GPU_UTIL"),
    ]


PUBLISHED = """
DCGM_FI_DEV_: SM_CLOCK MEM_CLOCK MEMORY_TEMP GPU_TEMP POWER_USAGE TOTAL_ENERGY_CONSUMPTION
PCIE_TX_THROUGHPUT PCIE_RX_THROUGHPUT PCIE_REPLAY_COUNTER GPU_UTIL MEM_COPY_UTIL ENC_UTIL DEC_UTIL
XID_ERRORS POWER_VIOLATION THERMAL_VIOLATION SYNC_BOOST_VIOLATION BOARD_LIMIT_VIOLATION
LOW_UTIL_VIOLATION RELIABILITY_VIOLATION FB_FREE FB_USED FB_RESERVED ECC_SBE_VOL_TOTAL
ECC_DBE_VOL_TOTAL ECC_SBE_AGG_TOTAL ECC_DBE_AGG_TOTAL RETIRED_SBE RETIRED_DBE RETIRED_PENDING
NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL NVLINK_CRC_DATA_ERROR_COUNT_TOTAL NVLINK_REPLAY_ERROR_COUNT_TOTAL
NVLINK_RECOVERY_ERROR_COUNT_TOTAL NVLINK_BANDWIDTH_TOTAL NVLINK_BANDWIDTH_L0 VGPU_LICENSE_STATUS
UNCORRECTABLE_REMAPPED_ROWS CORRECTABLE_REMAPPED_ROWS ROW_REMAP_FAILURE BRAND SERIAL OEM_INFOROM_VER
ECC_INFOROM_VER POWER_INFOROM_VER INFOROM_IMAGE_VER VBIOS_VERSION
DCGM_FI_: DRIVER_VERSION NVML_VERSION
DCGM_FI_PROF_: GR_ENGINE_ACTIVE SM_ACTIVE SM_OCCUPANCY PIPE_TENSOR_ACTIVE DRAM_ACTIVE
PIPE_FP64_ACTIVE PIPE_FP32_ACTIVE PIPE_FP16_ACTIVE PCIE_TX_BYTES PCIE_RX_BYTES
dcgm_: sm_clock memory_clock memory_temp gpu_temp power_usage total_energy_consumption
pcie_tx_throughput pcie_rx_throughput pcie_replay_counter gpu_utilization mem_copy_utilization
enc_utilization dec_utilization xid_errors power_violation thermal_violation sync_boost_violation
board_limit_violation low_util_violation reliability_violation fb_free fb_used
ecc_sbe_volatile_total ecc_dbe_volatile_total ecc_sbe_aggregate_total ecc_dbe_aggregate_total
retired_pages_sbe retired_pages_dbe retired_pages_pending nvlink_flit_crc_error_count_total
nvlink_data_crc_error_count_total nvlink_replay_error_count_total nvlink_recovery_error_count_total
nvlink_bandwidth_total
dcgm_fi_prof_: gr_engine_active sm_active sm_occupancy pipe_tensor_active dram_active pcie_tx_bytes
pcie_rx_bytes
"""
"""The names in dcgm-exporter's own files, both in rows and in rows that are commented out:
default-counters, dcp-metrics-included and 1.x-compatibility-metrics.
"""


def published() -> list[str]:
    names: list[str] = []
    prefix = ""
    for word in PUBLISHED.split():
        prefix = word[:-1] if word.endswith(":") else prefix
        names += [] if word.endswith(":") else [prefix + word]
    return names


def test_no_row_of_dcgm_exporters_own_files_is_refused() -> None:
    names = published()
    found = parse_counters("".join(f"{name} ,     gauge, What it is.\n" for name in names))
    assert (len(found.counters), found.rejected) == (len(names), ()), (
        "and a blank before the comma is theirs"
    )
    fields = {counter.name: counter.field for counter in found.counters}
    assert fields["dcgm_fi_prof_pipe_tensor_active"] == "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"
    assert fields["dcgm_fi_prof_pcie_rx_bytes"] == "DCGM_FI_PROF_PCIE_RX_BYTES"
    assert {
        counter.name
        for counter in found.counters
        if counter.is_double and counter.name.startswith("dcgm_fi_prof")
    } == {f"dcgm_fi_prof_{name}_active" for name in ("gr_engine", "sm", "pipe_tensor", "dram")} | {
        "dcgm_fi_prof_sm_occupancy"
    }


@pytest.mark.parametrize(
    "field",
    [
        *(f"DCGM_FI_PROF_NVLINK_L{link}_{way}_BYTES" for link in (0, 17) for way in ("TX", "RX")),
        *(
            f"DCGM_FI_PROF_C2C_{way}_{what}_BYTES"
            for way in ("TX", "RX")
            for what in ("ALL", "DATA")
        ),
        "DCGM_FI_DEV_NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS",
        "DCGM_EXP_P2P_STATUS",
    ],
)
def test_links_and_what_is_asked_of_them_are_fields(field: str) -> None:
    found = parse_counters(f"{field}, gauge, Help.\n")
    assert found.rejected == ()
    assert [(counter.field, counter.is_double) for counter in found.counters] == [(field, False)]


def test_every_field_that_profiling_measures_is_one_that_a_row_may_ask_for() -> None:
    assert set(GPM_METRICS) - FIELDS == set()


# --- names of DCGM 4.6 ----------------------------------------------------------------------------

RENAMED = {
    "DCGM_FI_DEV_GPU_TEMP_CELSIUS": "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_MEMORY_TEMP_CELSIUS": "DCGM_FI_DEV_MEMORY_TEMP",
    "DCGM_FI_DEV_BOARD_POWER_WATTS": "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_BOARD_POWER_RAW_WATTS": "DCGM_FI_DEV_POWER_USAGE_INSTANT",
    "DCGM_FI_DEV_BOARD_POWER_LIMIT_ENFORCED_WATTS": "DCGM_FI_DEV_ENFORCED_POWER_LIMIT",
    "DCGM_FI_DEV_GPU_PSTATE": "DCGM_FI_DEV_PSTATE",
    "DCGM_FI_DEV_PCIE_REPLAY_TOTAL": "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
    "DCGM_FI_DEV_GPU_UTIL_RATIO": "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_XID_ERROR": "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_FB_USED_RATIO": "DCGM_FI_DEV_FB_USED_PERCENT",
    "DCGM_FI_DEV_ECC_MODE": "DCGM_FI_DEV_ECC_CURRENT",
    "DCGM_FI_DEV_PAGE_RETIRED_DBE_TOTAL": "DCGM_FI_DEV_RETIRED_DBE",
    "DCGM_FI_DEV_ROW_REMAP_UNCORRECTABLE_TOTAL": "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
    "DCGM_FI_DEV_ROW_REMAP_FAILED": "DCGM_FI_DEV_ROW_REMAP_FAILURE",
    "DCGM_FI_DEV_NVLINK_THROUGHPUT_TOTAL": "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
    "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_TOTAL": "DCGM_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
    "DCGM_FI_DEV_NVLINK_THROUGHPUT_L12": "DCGM_FI_DEV_NVLINK_BANDWIDTH_L12",
    "DCGM_FI_DEV_NVLINK_RX_PACKET_DROPPED_TOTAL": (
        "DCGM_FI_DEV_NVLINK_COUNT_RX_BUFFER_OVERRUN_ERRORS"
    ),
    "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO": "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
    "DCGM_FI_PROF_TENSOR_UTIL_RATIO": "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_NVDEC_UTIL_7_RATIO": "DCGM_FI_PROF_NVDEC7_ACTIVE",
    "DCGM_FI_SYSTEM_DRIVER_VERSION": "DCGM_FI_DRIVER_VERSION",
    "DCGM_FI_DEV_BOARD_SERIAL": "DCGM_FI_DEV_SERIAL",
    "DCGM_FI_DEV_GPU_PERSISTENCE_MODE": "DCGM_FI_DEV_PERSISTENCE_MODE",
    "DCGM_FI_DEV_GET_GPU_RECOVERY_ACTION": "DCGM_FI_DEV_GPU_RECOVERY_ACTION",
}
"""From the list of deprecated names in DCGM 4.6's `dcgm_fields.py`; in the last pair the older name
comes first.
"""
OTHERS_OF_NVML = (
    *(
        "APP_SM_CLOCK",
        "APP_MEM_CLOCK",
        "MIG_MODE",
        "PERSISTENCE_MODE",
        "FABRIC_MANAGER_STATUS",
        "GPU_MAX_OP_TEMP",
    ),
    *(f"ECC_{bits}_{scope}_DEV" for bits in ("SBE", "DBE") for scope in ("VOL", "AGG")),
)


@pytest.mark.parametrize("name", RENAMED)
def test_a_new_name_is_an_alias_of_the_old_and_prints_itself(name: str) -> None:
    (counter,) = parse_counters(f"{name}, gauge, Help.\n").counters
    assert (counter.name, counter.field) == (name, RENAMED[name])
    assert counter.is_double is is_double(RENAMED[name])


def test_what_nvml_has_beside_the_usual_fields_is_served() -> None:
    rows = "".join(f"DCGM_FI_DEV_{name}, gauge, Help.\n" for name in OTHERS_OF_NVML)
    assert parse_counters(rows).rejected == ()


def test_every_name_of_dcgm_is_served_or_has_a_reason() -> None:
    served = {each.id for each in NAMES if field_of(each.name)}
    assert served | (NOT_SERVED.keys() & {each.id for each in NAMES}) == {each.id for each in NAMES}
    assert served & NOT_SERVED.keys() == set()
    assert FIELDS - {name for each in NAMES for name in (each.name, each.older)} == set(MADE)
    for each in NAMES:
        assert field_of(each.name) == field_of(each.older)
        if each.id in NOT_SERVED:
            assert NOT_SERVED[each.id].why in why_not(each.older)


def test_ids_are_those_of_dcgms_header() -> None:
    """Ids at both ends of each range that the table numbers by itself."""
    ids = {each.name.removeprefix("DCGM_FI_"): each.id for each in NAMES}
    known = {
        "SYSTEM_GPU_BIND_EVENT": 6,
        "DEV_MIG_CI_INFO": 77,
        "DEV_GPM_SUPPORT": 94,
        "DEV_GPU_TEMP_MARGIN_CELSIUS": 153,
        "DEV_BOARD_POWER_PROFILE_SUPPORTED_MASK": 167,
        "DEV_FB_USED_RATIO": 254,
        "DEV_SRAM_EXCEEDED": 346,
        "DEV_ROW_REMAP_PENDING": 396,
        "DEV_NVLINK_THROUGHPUT_TOTAL": 449,
        "DEV_NVLINK_RECOVERY_ERROR_L17_TOTAL": 493,
        "DEV_NVLINK_THROUGHPUT_L17": 496,
        "DEV_VGPU_GPU_INSTANCE_ID": 534,
        "DEV_NVSWITCH_LINK_ECC_ERROR_L7_TOTAL": 824,
        "DEV_NVLINK_RX_THROUGHPUT_TOTAL": 897,
        "PROF_NVOFA_UTIL_1_RATIO": 1034,
        "PROF_NVLINK_L17_RX_BYTES": 1075,
        "PROF_FP16_CYCLES_ACTIVE_TOTAL": 1096,
        "DEV_NVLINK_ECC_ERROR_TOTAL": 1220,
        "DEV_PWR_SMOOTHING_ADMIN_OVERRIDE_RAMP_DOWN_HYST_VAL": 1442,
        "IMEX_DAEMON_STATUS": 1503,
        "PROF_NVLINK_RX_BYTES_PER_LINK": 1533,
    }
    assert {name: ids[name] for name in known} == known
    assert len(NAMES) == len({each.id for each in NAMES}) == 639


def test_a_long_file_that_is_no_csv_of_counters_is_read_at_once() -> None:
    """Only names in the first rows are compared with all known names."""
    found = parse_counters(
        "".join(f"DCGM_FI_DEV_GPU_TMEP_{row}, gauge, x\n" for row in range(3000))
    )
    assert [("did you mean" in row.reason) for row in found.rejected].count(True) <= 20
    assert len(found.rejected) == 3000
