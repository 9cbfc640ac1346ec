"""Which values of an exporter's page are values at all: the one gate on the reader's side.

A line that does not pass counts for nothing, is counted itself, and takes no other line along. What no card
can have is refused, because a node at 235 % is worse than a node of which nothing is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from math import isfinite
from typing import Final

Bounds = tuple[float, float]


class BadLine(StrEnum):
    """Why a line counts for nothing.

    `OVER_TOTAL`: more memory used than the card has. `OTHER_CARD`: a second card of a uuid on one page.
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
"""Sixty times the memory of the largest card of 2025 (0.28 TiB)."""
_MEBIBYTES: Final[Bounds] = (0.0, _BYTES[1] / _MIB)
_CELSIUS: Final[Bounds] = (-100.0, 300.0)
_WATTS: Final[Bounds] = (0.0, 20_000.0)
"""Seven times the largest board of 2025 (2,700 W)."""
_MILLIWATTS: Final[Bounds] = (0.0, 1000.0 * _WATTS[1])
_EPOCH_SECONDS: Final[Bounds] = (0.0, 1e11)
_XID: Final[Bounds] = (0.0, 65_535.0)

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
    "DCGM_FI_DEV_GPU_UTIL": _PERCENT,
    "DCGM_FI_DEV_FB_USED": _MEBIBYTES,
    "DCGM_FI_DEV_FB_FREE": _MEBIBYTES,
    "DCGM_FI_DEV_FB_RESERVED": _MEBIBYTES,
    "DCGM_FI_DEV_FB_TOTAL": _MEBIBYTES,
    "DCGM_FI_DEV_GPU_TEMP": _CELSIUS,
    "DCGM_FI_DEV_POWER_USAGE": _WATTS,
    "DCGM_FI_DEV_XID_ERRORS": _XID,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": _RATIO,
    "DCGM_CUSTOM_PROCESS_MEM_USED": _MEBIBYTES,
    "nvidia_gpu_duty_cycle": _PERCENT,
    "nvidia_gpu_memory_used_bytes": _BYTES,
    "nvidia_gpu_memory_total_bytes": _BYTES,
    "nvidia_gpu_power_usage_milliwatts": _MILLIWATTS,
    "nvidia_gpu_temperature_celsius": _CELSIUS,
}
"""What a line may say, in the unit of its own metric; both ends belong to it."""

_BLANK_INT32: Final = range(0x7FFF_FFF0, 0x8000_0000)
_BLANK_INT64: Final = float(0x7FFF_FFFF_FFFF_FFF0)
_BLANK_FLOAT: Final = 2.0**47
_BLANK_FLOATS: Final = 16
BLANK_TEXT: Final = "<<<NULL>>>"
"""DCGM's words for "nothing to tell": no value, not found, not supported, no permission
(`dcgm_structs.h`).
"""


def bad_value(metric: str, value: float) -> BadLine | None:
    """Why this value of a metric of `BOUNDS` is none, or None: it may be one. Of others only numbers pass.

    >>> bad_value("nvidia_gpu_duty_cycle", 100.0)
    >>> bad_value("nvidia_gpu_duty_cycle", 1700.0), bad_value("nvidia_gpu_memory_used_bytes", -5.0)
    (<BadLine.TOO_LARGE: 'too_large'>, <BadLine.NEGATIVE: 'negative'>)
    >>> bad_value("DCGM_FI_DEV_FB_USED", 2147483632.0)
    <BadLine.BLANK: 'blank'>
    """
    low, high = BOUNDS.get(metric, (float("-inf"), float("inf")))
    if low <= value <= high and isfinite(value):
        return None
    if not isfinite(value):
        return BadLine.NOT_FINITE
    if metric.startswith("DCGM_") and _is_blank(value):
        return BadLine.BLANK
    return BadLine.NEGATIVE if value < low else BadLine.TOO_LARGE


def _is_blank(value: float) -> bool:
    return value in _BLANK_INT32 or value >= _BLANK_INT64 or _BLANK_FLOAT <= value < _BLANK_FLOAT + _BLANK_FLOATS
