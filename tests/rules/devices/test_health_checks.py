"""The health checks of a card, one by one, from the fields and XIDs that docs/spec/telemetry.md
lists.
"""

from __future__ import annotations

import pytest
from tests.apps.fakes import EPOCH, device, lost_device

from fairlead.model.devices.device import DeviceSnapshot, XidEvent
from fairlead.model.devices.driver import CardAnswer
from fairlead.model.devices.gpu import GpuSlot
from fairlead.rules.devices.card_health import CardHealths
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
    """The checks that fail for a card that is healthy except for `changed` and `xids`."""
    fields = {f"DCGM_FI_DEV_{name}": value for name, value in (WELL | changed).items()}
    found = health_checks(
        device(fields=fields, xids=tuple(XidEvent(code, 1, EPOCH) for code in xids)), EPOCH
    )
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
        *((code, {}) for code in (13, 31, 43, 45, 68, 109)),
        *((code, {"xid": 1}) for code in (8, 32, 999)),
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


def test_what_a_card_does_not_report_is_no_check() -> None:
    assert health_checks(device(fields={}), EPOCH) == {"xid": 0, "lost": 0}
    assert health_checks(lost_device(0), EPOCH) == {"xid": 2, "pcie": 2, "lost": 2}


NOTHING_TO_DO = {"DCGM_FI_DEV_GPU_RECOVERY_ACTION": 0}


@pytest.mark.parametrize(
    ("code", "later", "given", "level"),
    [
        (74, 599, {}, 2),
        (74, 600, {}, 0),
        (63, 599, {}, 1),
        (63, 600, {}, 0),
        (74, -3600, {}, 2),
        (79, 86_400, {}, 2),
        (79, 86_400, {"reset_at": EPOCH - 1}, 2),
        (79, 86_400, {"reset_at": EPOCH + 50}, 0),
        (63, 60, {"reset_at": EPOCH + 50}, 0),
        (95, 599, {"fields": NOTHING_TO_DO}, 2),
        (95, 600, {"fields": NOTHING_TO_DO}, 0),
        (95, 86_400, {"fields": {"DCGM_FI_DEV_GPU_RECOVERY_ACTION": 4}}, 2),
    ],
)
def test_an_xid_stands_for_ten_minutes_and_a_sticky_one_until_a_reset(
    code: int, later: float, given: dict[str, object], level: int
) -> None:
    """The check agrees with the node agent, whatever else the XID indicates.

    See docs/spec/gpu-sharing.md#gpu-health.
    """
    card = device(**({"fields": {}} | given), xids=(XidEvent(code, 3, EPOCH),))
    found = health_checks(card, EPOCH + later)
    assert found["xid"] == level
    assert not any(found.values()) or level


@pytest.mark.parametrize(
    "code", [8, 13, 31, 48, 62, 63, 64, 74, 79, 92, 94, 95, 109, 119, 120, 140, 154, 999]
)
def test_agent_and_exporter_judge_a_card_alike(code: int) -> None:
    agent = CardHealths()
    agent.xid(code, "GPU-a", EPOCH)
    for later in range(0, 1201, 30):
        agent.probed("GPU-a", CardAnswer(), EPOCH + later)
        (card,) = agent.judged([GpuSlot(0, "GPU-a")])
        (seen,) = shown(
            DeviceSnapshot(1, EPOCH, (device(healthy=None, xids=(XidEvent(code, 1, EPOCH),)),)),
            15.0,
            EPOCH + later,
        ).samples
        assert seen.healthy is (not card.reason), f"{later} s after XID {code}"


@pytest.mark.parametrize(
    ("given", "healthy"),
    [
        ({"healthy": None}, True),
        ({"healthy": None, "xids": (XidEvent(79, 1, EPOCH),)}, False),
        ({"healthy": None, "xids": (XidEvent(63, 1, EPOCH),)}, False),
        ({"healthy": None, "xids": (XidEvent(31, 1, EPOCH),)}, True),
        ({"healthy": None, "up": False}, False),
        ({"healthy": False}, False),
        ({"healthy": True, "xids": (XidEvent(79, 1, EPOCH - 9999),)}, True),
    ],
    ids=[
        "well",
        "critical XID",
        "warning",
        "of a program",
        "lost",
        "who judges takes it out",
        "the judge reports it well again",
    ],
)
def test_the_verdict_on_the_nodes_cards_goes_before(
    given: dict[str, object], healthy: bool
) -> None:
    (seen,) = shown(DeviceSnapshot(1, EPOCH, (device(**given),)), 15.0, EPOCH).samples
    assert seen.healthy is healthy
