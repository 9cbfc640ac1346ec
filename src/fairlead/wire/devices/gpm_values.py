"""Profiling fields of DCGM, made from GPM metrics of NVML.

Specification: docs/spec/telemetry.md#profiling-fields.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

_PREFIX: Final = "DCGM_FI_PROF_"
_MIB: Final = 1 << 20
_PERCENTS: Final = {
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
}
_ENGINES: Final = {
    **{f"NVDEC{engine}_ACTIVE": 30 + engine for engine in range(8)},
    **{f"NVJPG{engine}_ACTIVE": 40 + engine for engine in range(8)},
    **{f"NVOFA{engine}_ACTIVE": 50 + engine for engine in range(2)},
}
_RATES: Final = {
    "PCIE_TX_BYTES": 20,
    "PCIE_RX_BYTES": 21,
    "NVLINK_TX_BYTES": 61,
    "NVLINK_RX_BYTES": 60,
    **{f"NVLINK_L{link}_RX_BYTES": 62 + 2 * link for link in range(18)},
    **{f"NVLINK_L{link}_TX_BYTES": 63 + 2 * link for link in range(18)},
    "C2C_TX_ALL_BYTES": 100,
    "C2C_RX_ALL_BYTES": 101,
    "C2C_TX_DATA_BYTES": 102,
    "C2C_RX_DATA_BYTES": 103,
}

GPM_METRICS: Final[Mapping[str, int]] = {
    _PREFIX + name: metric for name, metric in (_PERCENTS | _ENGINES | _RATES).items()
}
"""The number of GPM's metric for each DCGM field."""
INSTANCE_METRICS: Final = frozenset(_PREFIX + name for name in _PERCENTS)
"""The fields that GPM measures for a single MIG instance (docs/spec/telemetry.md#mig-instances)."""
_ROUNDED_PERCENT: Final = 105.0
_BYTES: Final = frozenset(_PREFIX + name for name in _RATES)


def gpm_value(field: str, value: float) -> int | float | None:
    """A share 0..1, or whole bytes a second; None = no value.

    A share of up to 105 % is returned as 1.0.

    >>> gpm_value("DCGM_FI_PROF_SM_ACTIVE", 37.5), gpm_value("DCGM_FI_PROF_PCIE_TX_BYTES", 1.5)
    (0.375, 1572864)
    >>> gpm_value("DCGM_FI_PROF_SM_ACTIVE", 100.4), gpm_value("DCGM_FI_PROF_SM_ACTIVE", 1700.0)
    (1.0, 17.0)
    >>> gpm_value("DCGM_FI_PROF_SM_ACTIVE", math.nan)
    """
    if not math.isfinite(value) or value < 0:
        return None
    if field in _BYTES:
        return int(value * _MIB)
    return 1.0 if 100 < value <= _ROUNDED_PERCENT else value / 100
