"""Checks of a card's health: 0 ok, 1 warning, 2 failed (docs/spec/telemetry.md#device-metrics).

They read its fields and the XIDs that count against it (`card_health`, the agent's rule, too). A
check whose values the card does not report is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from fairlead.model.devices.device import DeviceSample
from fairlead.model.devices.xid import CRITICAL
from fairlead.rules.devices.card_health import standing_xids

CHECKS: Final = ("xid", "ecc", "remap", "thermal", "power", "nvlink", "pcie", "lost")
OK, WARN, FAIL = 0, 1, 2
_ECC_XIDS: Final = frozenset({48, 64, 95, 140})
_SOFT_ECC_XIDS: Final = frozenset({92, 94})
_PENDING: Final = ("DCGM_FI_DEV_ROW_REMAP_PENDING", "DCGM_FI_DEV_RETIRED_PENDING")
_ACTION: Final = "DCGM_FI_DEV_GPU_RECOVERY_ACTION"
_REMAP_FAILED, _REMAPPED, _NVLINK, _OFF_BUS = 64, 63, 74, 79
_THERMAL_BITS: Final = 0x20 | 0x40
_BRAKE_BIT: Final = 0x80

Fields = Mapping[str, int | float]


def health_checks(sample: DeviceSample, now: float) -> dict[str, int]:
    """The checks that can be made, by name. `now`: epoch seconds.

    >>> fields = {"DCGM_FI_DEV_RETIRED_PENDING": 1}
    >>> card = DeviceSample("n", 0, 0, "GPU-a", "", "", "", None, fields)
    >>> health_checks(card, 1000.0)
    {'xid': 0, 'remap': 1, 'lost': 0}
    """
    fields = sample.fields
    seen = standing_xids(sample.xids, now, sample.reset_at, fields.get(_ACTION))
    found = {
        "xid": FAIL if seen & CRITICAL else WARN if seen else OK,
        "ecc": _ecc(fields, seen),
        "remap": _remap(fields, seen),
        "thermal": _thermal(fields),
        "power": _bits(fields, _BRAKE_BIT),
        "nvlink": _nvlink(fields, seen),
        "pcie": FAIL if _OFF_BUS in seen else _narrowed(fields),
        "lost": OK if sample.up else FAIL,
    }
    return {name: level for name, level in found.items() if level is not None}


def is_healthy(sample: DeviceSample, checks: Mapping[str, int]) -> bool:
    """Whether the card may take work: the judgement of the component that judges the node's cards,
    if there is one.

    Otherwise: the card is present, and no XID counts against it, as in the node's agent.
    """
    return sample.healthy if sample.healthy is not None else not (checks["lost"] or checks["xid"])


def _ecc(fields: Fields, seen: Set[int]) -> int | None:
    if seen & _ECC_XIDS or fields.get("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"):
        return FAIL
    return (
        WARN if seen & _SOFT_ECC_XIDS else OK if "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL" in fields else None
    )


def _remap(fields: Fields, seen: Set[int]) -> int | None:
    if _REMAP_FAILED in seen or fields.get("DCGM_FI_DEV_ROW_REMAP_FAILURE"):
        return FAIL
    pending = [fields[name] for name in _PENDING if name in fields]
    return WARN if _REMAPPED in seen or any(pending) else OK if pending else None


def _thermal(fields: Fields) -> int | None:
    celsius, shutdown = fields.get("DCGM_FI_DEV_GPU_TEMP"), fields.get("DCGM_FI_DEV_SHUTDOWN_TEMP")
    if celsius is not None and shutdown and celsius >= shutdown:
        return FAIL
    return _bits(fields, _THERMAL_BITS)


def _bits(fields: Fields, bits: int) -> int | None:
    reasons = fields.get("DCGM_FI_DEV_CLOCKS_EVENT_REASONS")
    return None if reasons is None else WARN if int(reasons) & bits else OK


def _nvlink(fields: Fields, seen: Set[int]) -> int | None:
    if _NVLINK in seen:
        return FAIL
    errors = fields.get("DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL")
    return None if errors is None else WARN if errors else OK


def _narrowed(fields: Fields) -> int | None:
    """Whether a link has fewer lanes than it could have.

    Its generation drops by itself while the card is idle.
    """
    width, most = (
        fields.get("DCGM_FI_DEV_PCIE_LINK_WIDTH"),
        fields.get("DCGM_FI_DEV_PCIE_MAX_LINK_WIDTH"),
    )
    return None if width is None or most is None else WARN if width < most else OK
