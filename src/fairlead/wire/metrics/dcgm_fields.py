"""The DCGM fields that Fairlead serves, and the names that a counters CSV may use for them.

See docs/spec/telemetry.md#counters-file and docs/spec/telemetry.md#dcgm-fields-from-nvml. A CSV may
use the name of any DCGM generation; the metric on the page has the CSV's spelling and the field's
value. In the code a field has its name from before DCGM 4.6.
"""

from __future__ import annotations

from difflib import get_close_matches
from typing import Final

from fairlead.wire.metrics.dcgm_names import NAMES, NOT_SERVED

_PREFIX: Final = "DCGM_FI_DEV_"

_DEVICE: Final = """\
SM_CLOCK MEM_CLOCK MAX_SM_CLOCK MAX_MEM_CLOCK CLOCKS_EVENT_REASONS CLOCK_THROTTLE_REASONS
MEMORY_TEMP GPU_TEMP SLOWDOWN_TEMP SHUTDOWN_TEMP
POWER_USAGE POWER_USAGE_INSTANT POWER_MGMT_LIMIT
POWER_MGMT_LIMIT_MIN POWER_MGMT_LIMIT_MAX POWER_MGMT_LIMIT_DEF
ENFORCED_POWER_LIMIT PSTATE FAN_SPEED PCIE_TX_THROUGHPUT
PCIE_RX_THROUGHPUT TOTAL_ENERGY_CONSUMPTION PCIE_REPLAY_COUNTER
GPU_UTIL MEM_COPY_UTIL ENC_UTIL DEC_UTIL XID_ERRORS
POWER_VIOLATION THERMAL_VIOLATION SYNC_BOOST_VIOLATION
BOARD_LIMIT_VIOLATION LOW_UTIL_VIOLATION RELIABILITY_VIOLATION
TOTAL_APP_CLOCKS_VIOLATION TOTAL_BASE_CLOCKS_VIOLATION
FB_TOTAL FB_FREE FB_USED FB_RESERVED FB_USED_PERCENT BAR1_TOTAL BAR1_USED BAR1_FREE
ECC_CURRENT ECC_PENDING ECC_SBE_VOL_TOTAL ECC_DBE_VOL_TOTAL ECC_SBE_AGG_TOTAL ECC_DBE_AGG_TOTAL
RETIRED_SBE RETIRED_DBE RETIRED_PENDING PCIE_LINK_GEN
PCIE_LINK_WIDTH PCIE_MAX_LINK_GEN PCIE_MAX_LINK_WIDTH
UNCORRECTABLE_REMAPPED_ROWS CORRECTABLE_REMAPPED_ROWS ROW_REMAP_FAILURE ROW_REMAP_PENDING
NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL NVLINK_CRC_DATA_ERROR_COUNT_TOTAL NVLINK_REPLAY_ERROR_COUNT_TOTAL
NVLINK_RECOVERY_ERROR_COUNT_TOTAL NVLINK_BANDWIDTH_TOTAL VGPU_LICENSE_STATUS GPU_RECOVERY_ACTION
NVLINK_COUNT_TX_PACKETS NVLINK_COUNT_TX_BYTES NVLINK_COUNT_RX_PACKETS NVLINK_COUNT_RX_BYTES
NVLINK_COUNT_RX_MALFORMED_PACKET_ERRORS NVLINK_COUNT_RX_BUFFER_OVERRUN_ERRORS
NVLINK_COUNT_RX_ERRORS NVLINK_COUNT_RX_REMOTE_ERRORS
NVLINK_COUNT_RX_GENERAL_ERRORS NVLINK_COUNT_LOCAL_LINK_INTEGRITY_ERRORS NVLINK_COUNT_TX_DISCARDS
NVLINK_COUNT_LINK_RECOVERY_SUCCESSFUL_EVENTS
NVLINK_COUNT_LINK_RECOVERY_FAILED_EVENTS NVLINK_COUNT_LINK_RECOVERY_EVENTS
NVLINK_COUNT_EFFECTIVE_ERRORS NVLINK_COUNT_EFFECTIVE_BER
NVLINK_COUNT_RX_SYMBOL_ERRORS NVLINK_COUNT_SYMBOL_BER
BRAND SERIAL VBIOS_VERSION OEM_INFOROM_VER ECC_INFOROM_VER POWER_INFOROM_VER INFOROM_IMAGE_VER
NAME UUID PCI_BUSID NVML_INDEX MINOR_NUMBER MIG_MODE PCI_COMBINED_ID PCI_SUBSYS_ID
CUDA_COMPUTE_CAPABILITY COMPUTE_MODE PERSISTENCE_MODE
MIG_MAX_SLICES VIRTUAL_MODE AUTOBOOST GPM_SUPPORT
INFOROM_CONFIG_CHECK VIDEO_CLOCK MAX_VIDEO_CLOCK APP_SM_CLOCK APP_MEM_CLOCK
MEM_MAX_OP_TEMP GPU_MAX_OP_TEMP GPU_TEMP_LIMIT
FABRIC_MANAGER_STATUS FABRIC_MANAGER_ERROR_CODE
FABRIC_CLIQUE_ID FABRIC_HEALTH_MASK FABRIC_HEALTH_SUMMARY
BANKS_REMAP_ROWS_AVAIL_MAX BANKS_REMAP_ROWS_AVAIL_HIGH
BANKS_REMAP_ROWS_AVAIL_PARTIAL BANKS_REMAP_ROWS_AVAIL_LOW
BANKS_REMAP_ROWS_AVAIL_NONE THRESHOLD_SRM
C2C_LINK_COUNT C2C_LINK_STATUS C2C_MAX_BANDWIDTH
C2C_LINK_ERROR_INTR C2C_LINK_ERROR_REPLAY C2C_LINK_ERROR_REPLAY_B2B
C2C_LINK_POWER_STATE NVLINK_ECC_DATA_ERROR_COUNT_TOTAL PCIE_COUNT_CORRECTABLE_ERRORS
CLOCKS_EVENT_REASON_SW_POWER_CAP_NS CLOCKS_EVENT_REASON_SYNC_BOOST_COUNT_NS
CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS
CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS
PWR_SMOOTHING_ENABLED PWR_SMOOTHING_PRIV_LVL
PWR_SMOOTHING_IMM_RAMP_DOWN_ENABLED PWR_SMOOTHING_APPLIED_TMP_CEIL
PWR_SMOOTHING_APPLIED_TMP_FLOOR PWR_SMOOTHING_MAX_PERCENT_TMP_FLOOR_SETTING
PWR_SMOOTHING_MIN_PERCENT_TMP_FLOOR_SETTING PWR_SMOOTHING_HW_CIRCUITRY_PERCENT_LIFETIME_REMAINING
PWR_SMOOTHING_MAX_NUM_PRESET_PROFILES PWR_SMOOTHING_PROFILE_PERCENT_TMP_FLOOR
PWR_SMOOTHING_PROFILE_RAMP_UP_RATE PWR_SMOOTHING_PROFILE_RAMP_DOWN_RATE
PWR_SMOOTHING_PROFILE_RAMP_DOWN_HYST_VAL PWR_SMOOTHING_ACTIVE_PRESET_PROFILE
PWR_SMOOTHING_ADMIN_OVERRIDE_PERCENT_TMP_FLOOR PWR_SMOOTHING_ADMIN_OVERRIDE_RAMP_UP_RATE
PWR_SMOOTHING_ADMIN_OVERRIDE_RAMP_DOWN_RATE PWR_SMOOTHING_ADMIN_OVERRIDE_RAMP_DOWN_HYST_VAL
"""
_PLACES: Final = ("L1", "L2", "DEV", "REG", "TEX", "SHM", "CBU", "SRM")
_ECC_OF_PLACES: Final = [
    f"ECC_{bits}_{scope}_{place}"
    for bits in ("SBE", "DBE")
    for scope in ("VOL", "AGG")
    for place in _PLACES
]

_PROFILE: Final = """\
GR_ENGINE_ACTIVE SM_ACTIVE SM_OCCUPANCY PIPE_TENSOR_ACTIVE
DRAM_ACTIVE PIPE_FP64_ACTIVE PIPE_FP32_ACTIVE PIPE_FP16_ACTIVE
PCIE_TX_BYTES PCIE_RX_BYTES NVLINK_TX_BYTES NVLINK_RX_BYTES
PIPE_TENSOR_IMMA_ACTIVE PIPE_TENSOR_HMMA_ACTIVE PIPE_TENSOR_DFMA_ACTIVE PIPE_INT_ACTIVE
C2C_TX_ALL_BYTES C2C_TX_DATA_BYTES C2C_RX_ALL_BYTES C2C_RX_DATA_BYTES
"""

_LINKS: Final = [
    *(
        f"NVLINK_{way}BANDWIDTH_{link}"
        for way in ("", "TX_", "RX_")
        for link in ("TOTAL", *(f"L{each}" for each in range(18)))
    ),
    *(
        f"NVLINK_{kind}_ERROR_COUNT_L{link}"
        for kind in ("CRC_FLIT", "CRC_DATA", "REPLAY", "RECOVERY")
        for link in range(12)
    ),
]
_LINK_RATES: Final = [
    f"NVLINK_L{link}_{direction}_BYTES" for link in range(18) for direction in ("TX", "RX")
]
_ENGINES: Final = (
    [f"NVDEC{i}_ACTIVE" for i in range(8)]
    + [f"NVJPG{i}_ACTIVE" for i in range(8)]
    + ["NVOFA0_ACTIVE", "NVOFA1_ACTIVE"]
)
_WHOLE: Final = ("DCGM_FI_DRIVER_VERSION", "DCGM_FI_NVML_VERSION", "DCGM_FI_CUDA_DRIVER_VERSION")

MADE: Final = (
    "DCGM_EXP_XID_ERRORS_COUNT",
    "DCGM_EXP_CLOCK_EVENTS_COUNT",
    "DCGM_EXP_GPU_HEALTH_STATUS",
    "DCGM_EXP_P2P_STATUS",
)
"""Metrics that dcgm-exporter computes itself, as Fairlead does (`rules/metrics/dcgm_computed`)."""

FIELDS: Final[frozenset[str]] = frozenset(
    [
        *(_PREFIX + name for name in (*_DEVICE.split(), *_ECC_OF_PLACES, *_LINKS)),
        *(f"DCGM_FI_PROF_{name}" for name in (*_PROFILE.split(), *_LINK_RATES, *_ENGINES)),
        *_WHOLE,
        *MADE,
    ]
)

_RATIOS: Final = {
    f"{_PREFIX}{name}_RATIO": f"{_PREFIX}{name}"
    for name in ("MEM_COPY_UTIL", "ENC_UTIL", "DEC_UTIL")
}
"""Names with `_RATIO` in the style of DCGM 4.6, for three fields that DCGM has not renamed.

The style is that of `GPU_UTIL_RATIO`.
"""

_FIRST_GENERATION_OF_CARDS: Final = {
    "dcgm_sm_clock": "SM_CLOCK",
    "dcgm_memory_clock": "MEM_CLOCK",
    "dcgm_gpu_temp": "GPU_TEMP",
    "dcgm_memory_temp": "MEMORY_TEMP",
    "dcgm_power_usage": "POWER_USAGE",
    "dcgm_total_energy_consumption": "TOTAL_ENERGY_CONSUMPTION",
    "dcgm_pcie_tx_throughput": "PCIE_TX_THROUGHPUT",
    "dcgm_pcie_rx_throughput": "PCIE_RX_THROUGHPUT",
    "dcgm_pcie_replay_counter": "PCIE_REPLAY_COUNTER",
    "dcgm_gpu_utilization": "GPU_UTIL",
    "dcgm_mem_copy_utilization": "MEM_COPY_UTIL",
    "dcgm_enc_utilization": "ENC_UTIL",
    "dcgm_dec_utilization": "DEC_UTIL",
    "dcgm_xid_errors": "XID_ERRORS",
    "dcgm_power_violation": "POWER_VIOLATION",
    "dcgm_thermal_violation": "THERMAL_VIOLATION",
    "dcgm_sync_boost_violation": "SYNC_BOOST_VIOLATION",
    "dcgm_board_limit_violation": "BOARD_LIMIT_VIOLATION",
    "dcgm_low_util_violation": "LOW_UTIL_VIOLATION",
    "dcgm_reliability_violation": "RELIABILITY_VIOLATION",
    "dcgm_fb_free": "FB_FREE",
    "dcgm_fb_used": "FB_USED",
    "dcgm_ecc_sbe_volatile_total": "ECC_SBE_VOL_TOTAL",
    "dcgm_ecc_dbe_volatile_total": "ECC_DBE_VOL_TOTAL",
    "dcgm_ecc_sbe_aggregate_total": "ECC_SBE_AGG_TOTAL",
    "dcgm_ecc_dbe_aggregate_total": "ECC_DBE_AGG_TOTAL",
    "dcgm_retired_pages_sbe": "RETIRED_SBE",
    "dcgm_retired_pages_dbe": "RETIRED_DBE",
    "dcgm_retired_pages_pending": "RETIRED_PENDING",
    "dcgm_nvlink_flit_crc_error_count_total": "NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL",
    "dcgm_nvlink_data_crc_error_count_total": "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL",
    "dcgm_nvlink_replay_error_count_total": "NVLINK_REPLAY_ERROR_COUNT_TOTAL",
    "dcgm_nvlink_recovery_error_count_total": "NVLINK_RECOVERY_ERROR_COUNT_TOTAL",
    "dcgm_nvlink_bandwidth_total": "NVLINK_BANDWIDTH_TOTAL",
}
_FIRST_GENERATION_OF_PROFILES: Final = (
    *("gr_engine_active", "sm_active", "sm_occupancy", "pipe_tensor_active", "dram_active"),
    *("pcie_tx_bytes", "pcie_rx_bytes"),
)
_FIRST_GENERATION: Final = {
    **{name: _PREFIX + field for name, field in _FIRST_GENERATION_OF_CARDS.items()},
    **{
        f"dcgm_fi_prof_{name}": f"DCGM_FI_PROF_{name.upper()}"
        for name in _FIRST_GENERATION_OF_PROFILES
    },
}
"""All names of dcgm-exporter's counters file of the first generation, including commented rows."""

_SAME_VALUE: Final = {f"{_PREFIX}CLOCK_THROTTLE_REASONS": f"{_PREFIX}CLOCKS_EVENT_REASONS"}

_SERVED_AS: Final[dict[str, str]] = {
    spelled: _SAME_VALUE.get(field, field)
    for each in NAMES
    for field in (each.older, each.name)
    if field in FIELDS
    for spelled in (each.name, each.older)
}
"""The field of each name that DCGM has now or had before 4.6."""
_ALIASES: Final = {**_SERVED_AS, **_RATIOS, **_FIRST_GENERATION, **{name: name for name in MADE}}
_KNOWN: Final = {name: each.id for each in NAMES for name in (each.name, each.older)}
_ALIKE: Final = 0.8
"""The least similarity (`difflib`) for a suggestion: one letter too many, or two swapped."""
_LONGEST: Final = max(map(len, _ALIASES)) + 4
"""Only the first `_LONGEST` characters of a longer name are compared."""


_DOUBLES: Final[frozenset[str]] = frozenset(
    [
        *(
            _PREFIX + name
            for name in _DEVICE.split()
            if name.startswith(("POWER_USAGE", "POWER_MGMT"))
        ),
        *(f"{_PREFIX}{name}" for name in ("ENFORCED_POWER_LIMIT", "FB_USED_PERCENT")),
        *(
            f"DCGM_FI_PROF_{name}"
            for name in (*_PROFILE.split(), *_ENGINES)
            if not name.endswith("_BYTES")
        ),
    ]
)


def _short(name: str) -> str:
    """The part of a name that distinguishes it; the common prefix would make all names similar."""
    return name.removeprefix(_PREFIX).removeprefix("DCGM_FI_PROF_")


_SHORT: Final = {_short(name): name for name in _ALIASES}


def is_double(field: str) -> bool:
    """Whether DCGM keeps the field as a double: its 0 is `0.000000` on the page.

    Other fields are integers.

    >>> is_double("DCGM_FI_PROF_DRAM_ACTIVE"), is_double("DCGM_FI_DEV_POWER_USAGE")
    (True, True)
    >>> is_double("DCGM_FI_DEV_GPU_UTIL")
    False
    """
    return field in _DOUBLES


def field_of(name: str) -> str | None:
    """The DCGM field for a name in a CSV; None when it is not served.

    >>> field_of("dcgm_fi_prof_dram_active"), field_of("DCGM_FI_DEV_INFOROM_IMAGE_VER")
    ('DCGM_FI_PROF_DRAM_ACTIVE', 'DCGM_FI_DEV_INFOROM_IMAGE_VER')
    >>> field_of("DCGM_FI_DEV_GPU_TEMP_CELSIUS"), field_of("DCGM_FI_DEV_BOARD_POWER_WATTS")
    ('DCGM_FI_DEV_GPU_TEMP', 'DCGM_FI_DEV_POWER_USAGE')
    >>> field_of("DCGM_FI_DEV_GPU_UTIL")
    'DCGM_FI_DEV_GPU_UTIL'
    >>> field_of("dcgm_gpu_utilization"), field_of("DCGM_FI_DEV_COFFEE")
    ('DCGM_FI_DEV_GPU_UTIL', None)
    """
    return _ALIASES.get(name)


def why_not(name: str, *, suggests: bool = True) -> str:
    """Why a name unknown to `field_of` is not served, in a sentence.

    `suggests`: add a similar name.

    >>> why_not("DCGM_FI_DEV_NVSWITCH_LINK_ID")
    '`DCGM_FI_DEV_NVSWITCH_LINK_ID` is a field that DCGM has and NVML has not: it is of NVSwitches'
    >>> why_not("DCGM_FI_DEV_GPU_TMEP")
    '`DCGM_FI_DEV_GPU_TMEP` is no field of DCGM; did you mean `DCGM_FI_DEV_GPU_TEMP`?'
    >>> why_not("DCGM_FI_DEV_COFFEE")
    '`DCGM_FI_DEV_COFFEE` is no field of DCGM'
    """
    if name in _KNOWN:
        reason = NOT_SERVED[_KNOWN[name]]
        has = (
            "a field of DCGM that Fairlead does not read"
            if reason.has_nvml
            else "a field that DCGM has and NVML has not"
        )
        return f"`{name}` is {has}: {reason.why}"
    near = get_close_matches(_short(name)[:_LONGEST], _SHORT, 1, _ALIKE) if suggests else []
    return f"`{name}` is no field of DCGM" + (
        f"; did you mean `{_SHORT[near[0]]}`?" if near else ""
    )
