"""A card's health, check by check: from its fields and XIDs as the telemetry contract names them (1.7, 1.9)."""

from __future__ import annotations

import pytest
from tests.apps.fakes import EPOCH, device, lost_device

from fairlead.model.devices.device import DeviceSnapshot, XidEvent
from fairlead.rules.devices.health_checks import health_checks
from fairlead.rules.devices.shown import shown

WELL: dict[str, int | float] = {
    "ECC_DBE_VOL_TOTAL": 0,
    "ROW_REMAP_FAILURE": 0,
    "ROW_REMAP_PENDING": 0,
    "GPU_TEMP": 60,
    "SHUTDOWN_TEMP": 95,
    "CLOCKS_EVENT_REASONS": 0,
    "NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 0,
    "PCIE_LINK_WIDTH": 16,
    "PCIE_MAX_LINK_WIDTH": 16,
}
ALL_OK = dict.fromkeys(("xid", "ecc", "remap", "thermal", "power", "nvlink", "pcie", "lost"), 0)


def checks(xids: tuple[int, ...] = (), **changed: float) -> dict[str, int]:
    """Those that are not ok, of a card that is well but for this."""
    fields = {f"DCGM_FI_DEV_{name}": value for name, value in (WELL | changed).items()}
    found = health_checks(device(fields=fields, xids=tuple(XidEvent(code, 1, EPOCH) for code in xids)))
    assert found.keys() == ALL_OK.keys()
    return {name: level for name, level in found.items() if level}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, {}),
        ({"ECC_DBE_VOL_TOTAL": 1}, {"ecc": 2}),
        ({"ROW_REMAP_PENDING": 1}, {"remap": 1}),
        ({"RETIRED_PENDING": 1}, {"remap": 1}),
        ({"ROW_REMAP_FAILURE": 1}, {"remap": 2}),
        ({"GPU_TEMP": 94}, {}),
        ({"GPU_TEMP": 95}, {"thermal": 2}),
        ({"CLOCKS_EVENT_REASONS": 0x1 | 0x4 | 0x8 | 0x10}, {}),
        ({"CLOCKS_EVENT_REASONS": 0x20}, {"thermal": 1}),
        ({"CLOCKS_EVENT_REASONS": 0x40}, {"thermal": 1}),
        ({"CLOCKS_EVENT_REASONS": 0x80}, {"power": 1}),
        ({"NVLINK_RECOVERY_ERROR_COUNT_TOTAL": 2}, {"nvlink": 1}),
        ({"PCIE_LINK_WIDTH": 8}, {"pcie": 1}),
    ],
)
def test_fields(given: dict[str, float], found: dict[str, int]) -> None:
    assert checks(**given) == found


@pytest.mark.parametrize(
    ("code", "found"),
    [
        *((code, {}) for code in (13, 31, 43, 45, 68, 109, 8, 32)),
        (92, {"xid": 1, "ecc": 1}),
        (94, {"xid": 1, "ecc": 1}),
        (154, {"xid": 1}),
        (63, {"xid": 1, "remap": 1}),
        (48, {"xid": 2, "ecc": 2}),
        (95, {"xid": 2, "ecc": 2}),
        (64, {"xid": 2, "ecc": 2, "remap": 2}),
        (74, {"xid": 2, "nvlink": 2}),
        (79, {"xid": 2, "pcie": 2}),
        (119, {"xid": 2}),
    ],
)
def test_xids(code: int, found: dict[str, int]) -> None:
    assert checks((code,)) == found


def test_what_a_card_does_not_tell_is_no_check() -> None:
    assert health_checks(device(fields={})) == {"xid": 0, "lost": 0}
    assert health_checks(lost_device(0)) == {"xid": 2, "pcie": 2, "lost": 2}


@pytest.mark.parametrize(
    ("given", "healthy"),
    [
        ({"healthy": None}, True),
        ({"healthy": None, "xids": (XidEvent(79, 1, EPOCH),)}, False),
        ({"healthy": None, "xids": (XidEvent(63, 1, EPOCH),)}, True),
        ({"healthy": None, "up": False}, False),
        ({"healthy": False}, False),
        ({"healthy": True, "xids": (XidEvent(79, 1, EPOCH - 9999),)}, True),
    ],
    ids=["well", "critical XID", "warning", "lost", "who judges takes it out", "who judges says it is well again"],
)
def test_the_word_of_who_judges_the_nodes_cards_goes_before(given: dict[str, object], healthy: bool) -> None:
    (seen,) = shown(DeviceSnapshot(1, EPOCH, (device(**given),)), 15.0).samples
    assert seen.healthy is healthy
