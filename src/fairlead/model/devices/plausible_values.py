"""Decides which values of a card are plausible, both for values of a driver and for lines of pages.

An implausible value is left out and counted, without affecting other values. It is left out because
a node at 235 % is worse than a node without a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from math import isfinite
from typing import Final

Bounds = tuple[float, float]


class BadLine(StrEnum):
    """Why a line, or a driver's value, is ignored.

    `OVER_TOTAL`: more memory in use than the card has. `OTHER_CARD`: a second card with the same
    uuid on one page.
    """

    UNREADABLE = "unreadable"
    NO_UUID = "no_uuid"
    NOT_FINITE = "not_finite"
    BLANK = "blank"
    NEGATIVE = "negative"
    TOO_LARGE = "too_large"
    OVER_TOTAL = "over_total"
    OTHER_CARD = "other_card"


_MIB: Final = 1 << 20
_FLAG: Final[Bounds] = (0.0, 1.0)
_ROUNDED: Final = 1e-6
_RATIO: Final[Bounds] = (0.0, 1.0 + _ROUNDED)
_PERCENT: Final[Bounds] = (0.0, 100.0 * (1.0 + _ROUNDED))
_BYTES: Final[Bounds] = (0.0, 16.0 * (1 << 40))
"""From 0 to sixty times the memory of the largest card of 2025 (0.28 TiB)."""
_MEBIBYTES: Final[Bounds] = (0.0, _BYTES[1] / _MIB)
_CELSIUS: Final[Bounds] = (-100.0, 300.0)
_WATTS: Final[Bounds] = (0.0, 20_000.0)
"""From 0 to seven times the power of the largest board of 2025 (2,700 W)."""
_MILLIWATTS: Final[Bounds] = (0.0, 1000.0 * _WATTS[1])
_EPOCH_SECONDS: Final[Bounds] = (0.0, 1e11)
_XID: Final[Bounds] = (0.0, 65_535.0)
_MEGAHERTZ: Final[Bounds] = (0.0, 100_000.0)
_FAN_PERCENT: Final[Bounds] = (0.0, 200.0)
"""Fans may turn faster than their nominal speed."""
_NUMBER: Final[Bounds] = (0.0, 1000.0)
"""A state, a generation, or a width."""
_PER_SECOND: Final[Bounds] = (0.0, 1e15)
_TOTAL: Final[Bounds] = (0.0, float(0x7FFF_FFFF_FFFF_FC00))
"""A counter or a bit mask: any whole number of 63 bits except DCGM's blank values."""

_DEVICE: Final = "DCGM_FI_DEV_"
_PROFILE: Final = "DCGM_FI_PROF_"
_OF_DEVICES: Final[Mapping[Bounds, str]] = {
    _PERCENT: "GPU_UTIL MEM_COPY_UTIL ENC_UTIL DEC_UTIL",
    _FAN_PERCENT: "FAN_SPEED",
    _MEBIBYTES: "FB_TOTAL FB_FREE FB_USED FB_RESERVED BAR1_TOTAL BAR1_USED BAR1_FREE",
    _BYTES: "FB_TOTAL_BYTES FB_FREE_BYTES FB_USED_BYTES FB_RESERVED_BYTES",
    _RATIO: "FB_USED_PERCENT",
    _CELSIUS: (
        "GPU_TEMP MEMORY_TEMP SLOWDOWN_TEMP SHUTDOWN_TEMP MEM_MAX_OP_TEMP GPU_MAX_OP_TEMP "
        "GPU_TEMP_LIMIT"
    ),
    _WATTS: (
        "POWER_USAGE POWER_USAGE_INSTANT POWER_MGMT_LIMIT POWER_MGMT_LIMIT_MIN "
        "POWER_MGMT_LIMIT_MAX POWER_MGMT_LIMIT_DEF ENFORCED_POWER_LIMIT"
    ),
    _MEGAHERTZ: (
        "SM_CLOCK MEM_CLOCK VIDEO_CLOCK MAX_SM_CLOCK MAX_MEM_CLOCK MAX_VIDEO_CLOCK APP_SM_CLOCK "
        "APP_MEM_CLOCK"
    ),
    _XID: "XID_ERRORS",
    _FLAG: (
        "ECC_CURRENT ECC_PENDING RETIRED_PENDING ROW_REMAP_FAILURE ROW_REMAP_PENDING MIG_MODE "
        "PERSISTENCE_MODE AUTOBOOST GPM_SUPPORT THRESHOLD_SRM"
    ),
    _NUMBER: (
        "PSTATE PCIE_LINK_GEN PCIE_LINK_WIDTH PCIE_MAX_LINK_GEN PCIE_MAX_LINK_WIDTH "
        "VGPU_LICENSE_STATUS GPU_RECOVERY_ACTION MINOR_NUMBER NVLINK_LINK_COUNT "
        + " ".join(f"NVLINK_STATE_L{link}" for link in range(18))
        + (
            " NVML_INDEX COMPUTE_MODE VIRTUAL_MODE MIG_MAX_SLICES FABRIC_MANAGER_STATUS "
            "FABRIC_HEALTH_SUMMARY"
        )
    ),
    _PER_SECOND: " ".join(
        [
            "PCIE_TX_THROUGHPUT PCIE_RX_THROUGHPUT",
            *(
                f"NVLINK_{way}BANDWIDTH_{link}"
                for way in ("", "TX_", "RX_")
                for link in ("TOTAL", *(f"L{n}" for n in range(18)))
            ),
        ]
    ),
}
_LONG_NAMES: Final = """\
TOTAL_ENERGY_CONSUMPTION PCIE_TX_BYTES PCIE_RX_BYTES
NVLINK_TX_BYTES NVLINK_RX_BYTES CLOCKS_EVENT_REASONS
POWER_VIOLATION THERMAL_VIOLATION SYNC_BOOST_VIOLATION BOARD_LIMIT_VIOLATION LOW_UTIL_VIOLATION
RELIABILITY_VIOLATION TOTAL_APP_CLOCKS_VIOLATION TOTAL_BASE_CLOCKS_VIOLATION
CLOCKS_EVENT_REASON_SW_POWER_CAP_NS CLOCKS_EVENT_REASON_SYNC_BOOST_COUNT_NS
CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN_NS CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN_NS
CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN_NS
"""
_LONG: Final = frozenset(_DEVICE + name for name in _LONG_NAMES.split())
"""Counters that pass through DCGM's 32-bit blank values while they grow."""

BOUNDS: Final[Mapping[str, Bounds]] = {
    "fairlead_gpu_up": _FLAG,
    "fairlead_gpu_info": _FLAG,
    "fairlead_gpu_healthy": _FLAG,
    "fairlead_gpu_utilization_ratio": _RATIO,
    "fairlead_gpu_memory_total_bytes": _BYTES,
    "fairlead_gpu_memory_used_bytes": _BYTES,
    "fairlead_gpu_temperature_celsius": _CELSIUS,
    "fairlead_gpu_power_watts": _WATTS,
    "fairlead_gpu_xid_last_timestamp_seconds": _EPOCH_SECONDS,
    "fairlead_container_gpu_memory_used_bytes": _BYTES,
    "fairlead_container_gpu_memory_limit_bytes": _BYTES,
    "fairlead_container_gpu_utilization_ratio": _RATIO,
    **{
        f"{_DEVICE}{name}": bounds
        for bounds, names in _OF_DEVICES.items()
        for name in names.split()
    },
    f"{_PROFILE}GR_ENGINE_ACTIVE": _RATIO,
    "DCGM_CUSTOM_PROCESS_MEM_USED": _MEBIBYTES,
    "nvidia_gpu_duty_cycle": _PERCENT,
    "nvidia_gpu_memory_used_bytes": _BYTES,
    "nvidia_gpu_memory_total_bytes": _BYTES,
    "nvidia_gpu_power_usage_milliwatts": _MILLIWATTS,
    "nvidia_gpu_temperature_celsius": _CELSIUS,
}
"""The least and the largest plausible value, inclusive.

Of a metric in its own unit, of a field in DCGM's unit.

Other fields of a card are counters; other profiling fields are ratios up to 1, or bytes per second.
"""

_BLANK_INT32: Final = range(0x7FFF_FFF0, 0x8000_0000)
_BLANK_INT64: Final = 0x7FFF_FFFF_FFFF_FFF0
_BLANK_FLOAT: Final = 2.0**47
_BLANK_FLOATS: Final = 16
BLANK_TEXT: Final = "<<<NULL>>>"
"""DCGM's text for an absent value (`dcgm_structs.h`).

No value, not found, not supported, no permission.
"""


_QUICK: Final[Mapping[str, Bounds]] = {
    name: (low, min(high, _BLANK_INT32.start - 1.0)) for name, (low, high) in BOUNDS.items()
}
_QUICK_OF_OTHERS: Final[Bounds] = (0.0, 1.0)
"""Values within these narrower bounds need no further check."""
_USED_BYTES, _TOTAL_BYTES = f"{_DEVICE}FB_USED_BYTES", f"{_DEVICE}FB_TOTAL_BYTES"
_USED: Final = (f"{_DEVICE}FB_USED", _USED_BYTES, f"{_DEVICE}FB_USED_PERCENT")


def bad_value(metric: str, value: float) -> BadLine | None:
    """Why this value of a metric or field is implausible; None if it is plausible.

    Unknown metrics accept any number.

    >>> bad_value("nvidia_gpu_duty_cycle", 100.0)
    >>> bad_value("nvidia_gpu_duty_cycle", 1700.0), bad_value("nvidia_gpu_memory_used_bytes", -5.0)
    (<BadLine.TOO_LARGE: 'too_large'>, <BadLine.NEGATIVE: 'negative'>)
    >>> bad_value("DCGM_FI_DEV_FB_USED", 2147483632.0)
    <BadLine.BLANK: 'blank'>
    """
    if not isfinite(value):
        return BadLine.NOT_FINITE
    low, high = bounds(metric)
    if metric.startswith("DCGM_") and _is_blank(value, is_long=metric in _LONG):
        return BadLine.BLANK
    return None if low <= value <= high else BadLine.NEGATIVE if value < low else BadLine.TOO_LARGE


def bounds(metric: str) -> Bounds:
    """
    >>> bounds("DCGM_FI_PROF_SM_ACTIVE")[1] > 1.0
    True
    >>> bounds("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL")[0]
    0.0
    >>> bounds("other")
    (-inf, inf)
    """
    found = BOUNDS.get(metric)
    if found is not None:
        return found
    if metric.startswith(_PROFILE):
        return _PER_SECOND if metric.endswith("_BYTES") else _RATIO
    return _TOTAL if metric.startswith(_DEVICE) else (float("-inf"), float("inf"))


def sound_values(
    fields: Mapping[str, int | float],
) -> tuple[Mapping[str, int | float], dict[str, BadLine]]:
    """The plausible fields of a card, and the reason for each other field.

    The first is `fields` itself if all are plausible.

    If more memory is in use than the card has, the used memory is left out.

    >>> sound_values({"DCGM_FI_DEV_GPU_UTIL": 1700, "DCGM_FI_DEV_GPU_TEMP": 60})
    ({'DCGM_FI_DEV_GPU_TEMP': 60}, {'DCGM_FI_DEV_GPU_UTIL': <BadLine.TOO_LARGE: 'too_large'>})
    """
    bad: dict[str, BadLine] = {}
    for name, value in fields.items():
        low, high = _QUICK.get(name, _QUICK_OF_OTHERS)
        if not low <= value <= high and (why := bad_value(name, value)) is not None:
            bad[name] = why
    used, total = fields.get(_USED_BYTES), fields.get(_TOTAL_BYTES)
    if (
        used is not None
        and total is not None
        and not {_USED_BYTES, _TOTAL_BYTES} & bad.keys()
        and used > total + _MIB
    ):
        bad |= {name: BadLine.OVER_TOTAL for name in _USED if name in fields}
    return (
        ({name: value for name, value in fields.items() if name not in bad}, bad)
        if bad
        else (fields, bad)
    )


def _is_blank(value: float, *, is_long: bool) -> bool:
    if value >= _BLANK_INT64:
        return True
    return not is_long and (
        value in _BLANK_INT32 or _BLANK_FLOAT <= value < _BLANK_FLOAT + _BLANK_FLOATS
    )
