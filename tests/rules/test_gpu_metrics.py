"""Device metric families: how much of a card is granted, and values that are unknown rather than
zero.
"""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.apps.fakes import MIB, device, lost_device, memory, process

from fairlead.model.devices.device import DeviceProcess, DeviceSample, DeviceSnapshot, MigInstance
from fairlead.model.devices.gpu import GpuMode
from fairlead.rules.devices.shown import shown
from fairlead.rules.metrics.container_gpu import container_families
from fairlead.rules.metrics.gpu import allocated_ratio, gpu_families, grantable_bytes
from fairlead.rules.metrics.legacy_gpu import legacy_families


def without(sample: DeviceSample, *fields: str) -> DeviceSample:
    kept = {
        name: value
        for name, value in sample.fields.items()
        if name.removeprefix("DCGM_FI_DEV_").removesuffix("_BYTES") not in fields
    }
    return device(fields=kept, processes=sample.processes)


SHARED = device(processes=(process("a", "share", 0, 4308, 0), process("b", "share", 0, 3231.5, 0)))
EXCLUSIVE = device(processes=(process("a", "exclusive", 0, 15079, 0),))


@pytest.mark.parametrize(
    ("sample", "ratio"),
    [
        (device(), 0),
        (EXCLUSIVE, 1),
        (without(EXCLUSIVE, "FB_TOTAL"), 1),
        (SHARED, 7539.5 / 15079),
        (without(SHARED, "FB_TOTAL"), None),
        (
            device(
                processes=(
                    process("a", "timeslice", 0, 15360, 0),
                    process("b", "timeslice", 0, 15360, 0),
                )
            ),
            1,
        ),
        (lost_device(0), None),
    ],
    ids=[
        "free",
        "exclusive",
        "exclusive of unknown size",
        "shared",
        "shared of unknown size",
        "time slices",
        "lost",
    ],
)
def test_how_much_of_a_card_is_given_away(sample: DeviceSample, ratio: float | None) -> None:
    assert allocated_ratio(sample) == (None if ratio is None else pytest.approx(ratio))


@pytest.mark.parametrize(
    ("sample", "mib"),
    [
        (device(), 15079),
        (SHARED, 15079),
        (EXCLUSIVE, 15360),
        (device(processes=(process("", "", 300, 0, 0),)), 15079),
        (device(processes=(process("a", "timeslice", 0, 15360, 0),)), 15360),
        (without(SHARED, "FB_RESERVED"), 15360),
        (without(SHARED, "FB_TOTAL"), None),
        (without(EXCLUSIVE, "FB_TOTAL"), None),
    ],
    ids=[
        "free",
        "shared",
        "whole",
        "foreign",
        "by turns",
        "an old driver reports no reserve",
        "unknown",
        "whole and unknown",
    ],
)
def test_what_a_card_can_give(sample: DeviceSample, mib: int | None) -> None:
    """A T4 of 15360 MiB, of which the driver reserves 281:
    docs/spec/gpu-sharing.md#units-and-the-proportional-grant has 15079 for 14 units.
    """
    assert grantable_bytes(sample) == (None if mib is None else mib << 20)


def test_a_divided_card_can_give_its_instances() -> None:
    sizes = (20096, 71000)
    parts = [
        MigInstance(place, 0, "1g.18gb", f"MIG-{place}", memory(TOTAL=size))
        for place, size in enumerate(sizes)
    ]
    assert grantable_bytes(device(instances=tuple(parts), mig_mode="enabled")) == sum(sizes) << 20
    untold = (parts[0], MigInstance(2, 0, "3g.71gb", "MIG-2"))
    assert grantable_bytes(device(instances=untold, mig_mode="enabled")) is None


def test_a_process_without_a_pod_is_foreign_and_its_memory_is_not_unattributed() -> None:
    sample = device(
        used=1000, processes=(process("a", "exclusive", 600, 15360, 0), process("", "", 300, 0, 0))
    )
    values = {
        family.name: family.values[0]
        for family in gpu_families([sample])
        if len(family.values) == 1
    }
    assert values["fairlead_gpu_containers"] == 1
    assert values["fairlead_gpu_foreign_processes"] == 1
    assert values["fairlead_gpu_memory_foreign_bytes"] == 300 << 20
    assert values["fairlead_gpu_memory_unattributed_bytes"] == 100 << 20


def test_every_family_has_a_value_for_every_key() -> None:
    for family in gpu_families([device(0), lost_device(1)]):
        assert len(family.keys) == len(family.values), family.name
        assert all(len(key) == len(family.metric.labels) for key in family.keys), family.name


def test_a_card_that_hung_while_it_was_hot_is_not_slowed_down_for_ever() -> None:
    hot = device(0, throttle_reasons=0x40, power_limit_watts=700.0, sampled_at=1000.0)
    for age, expected in (
        (5.0, {"fairlead_gpu_throttled", "fairlead_gpu_power_limit_watts"}),
        (86_400.0, set()),
    ):
        seen = shown(DeviceSnapshot(2, 1000.0 + age, (hot,)), 15.0, 0.0)
        reported = {
            family.name
            for family in gpu_families(seen.samples)
            if any(value is not None for value in family.values)
        }
        assert reported & {"fairlead_gpu_throttled", "fairlead_gpu_power_limit_watts"} == expected


def test_reasons_of_throttled_time_are_spelt_out() -> None:
    fields = ("POWER", "THERMAL", "SYNC_BOOST", "BOARD_LIMIT", "LOW_UTIL", "RELIABILITY")
    sample = device(
        fields={
            f"DCGM_FI_DEV_{name}_VIOLATION": 10**9 * (place + 1)
            for place, name in enumerate(fields)
        }
    )
    (family,) = (
        family
        for family in gpu_families([sample])
        if family.name == "fairlead_gpu_throttle_seconds_total"
    )
    assert dict(zip((key[-1] for key in family.keys), family.values, strict=True)) == {
        "power": 1,
        "thermal": 2,
        "sync_boost": 3,
        "board_limit": 4,
        "low_utilization": 5,
        "reliability": 6,
    }


def test_a_process_without_a_pod_is_no_share_and_shares_come_by_name() -> None:
    holders = (
        process("b", "share", 20, 4308, 0),
        process("", "", 300, 0, 0),
        process("a", "share", 10, 4308, 0),
    )
    (used,) = (
        family
        for family in legacy_families([device(used=1000, processes=holders)])
        if family.name == "nvidia_gpu_memory_used_bytes"
    )
    by_mode = [(key[0], key[6], value) for key, value in zip(used.keys, used.values, strict=True)]
    assert by_mode == [("none", "", 1000 << 20), ("share", "a", 10 << 20), ("share", "b", 20 << 20)]


def test_limits_of_a_shared_card_are_its_grants_and_never_more_than_the_card() -> None:
    three = device(processes=tuple(process(name, "share", 0, 4308, 0) for name in "abc"))
    (limits,) = (
        family
        for family in container_families([three])
        if family.name == "fairlead_container_gpu_memory_limit_bytes"
    )
    assert {key[-1] for key in limits.keys} == {"share"}
    assert (
        limits.values == [4308 << 20] * 3
        and sum(value or 0 for value in limits.values) <= 15_079 << 20
    )


def test_a_process_without_a_pod_does_not_take_the_card_from_its_holder() -> None:
    processes = (process("", "", 300, 0, 0), process("a", "exclusive", 600, 15360, 0))
    (used,) = [
        each
        for each in legacy_families([device(used=1000, processes=processes)])
        if each.name == "nvidia_gpu_memory_used_bytes"
    ]
    assert [(key[0], key[6]) for key in used.keys] == [("exclusive", "a")]


def test_memory_is_printed_to_the_byte() -> None:
    """A card whose memory is not a whole number of MiB, held by a container in whole or in part.

    See docs/spec/telemetry.md#device-metrics.
    """
    reported = {
        "TOTAL": 16384 * MIB + 5,
        "USED": 1000 * MIB + 3,
        "FREE": 15130 * MIB - 6,
        "RESERVED": 254 * MIB + 8,
    }
    malformed = device(
        fields={f"DCGM_FI_DEV_FB_{name}_BYTES": amount for name, amount in reported.items()}
    )
    whole = DeviceProcess(
        "ns", "p", "c", "u", GpuMode.EXCLUSIVE, 999 * MIB + 1, 16384 * MIB + 5, 0.0
    )
    for sample, grantable in (
        (malformed, 16129 * MIB),
        (structs.replace(malformed, processes=(whole,)), 16384 * MIB + 5),
    ):
        values = {
            family.name: family.values
            for family in (*gpu_families([sample]), *legacy_families([sample]))
        }
        for name, amount in reported.items():
            assert values[f"fairlead_gpu_memory_{name.lower()}_bytes"] == [amount]
        assert values["nvidia_gpu_memory_total_bytes"] == [reported["TOTAL"]]
        assert values["nvidia_gpu_memory_used_bytes"] == [reported["USED"]]
        assert values["fairlead_gpu_memory_grantable_bytes"] == [grantable]
    assert values["fairlead_gpu_memory_unattributed_bytes"] == [MIB + 2]
    held = {family.name: family.values for family in container_families([sample])}
    assert held["fairlead_container_gpu_memory_used_bytes"] == [999 * MIB + 1]
    assert held["fairlead_container_gpu_memory_limit_bytes"] == [16384 * MIB + 5]


def _reported(sample: DeviceSample, name: str) -> dict[str, float | int | None]:
    """Values of a family by its last label, "" for none."""
    (family,) = (each for each in gpu_families([sample]) if each.name == f"fairlead_gpu_{name}")
    has_own = len(family.metric.labels) > 4
    return {
        key[-1] if has_own else "": value
        for key, value in zip(family.keys, family.values, strict=True)
        if value is not None
    }


def test_the_links_of_a_card_its_ecc_and_its_threshold_are_native_series() -> None:
    """NVML's states of an NVLink: 0 inactive, 1 active, 2 asleep, 3 active without traffic."""
    printed = {
        "PCIE_LINK_GEN": 1,
        "PCIE_MAX_LINK_GEN": 5,
        "PCIE_LINK_WIDTH": 8,
        "PCIE_MAX_LINK_WIDTH": 16,
    }
    printed |= {"ECC_CURRENT": 0, "ECC_PENDING": 1, "SLOWDOWN_TEMP": 89}
    printed |= {f"NVLINK_STATE_L{link}": state for link, state in enumerate((1, 0, 2, 3))}
    card = device(fields={f"DCGM_FI_DEV_{name}": value for name, value in printed.items()})
    assert [
        _reported(card, f"pcie_link_{name}")
        for name in ("generation", "generation_max", "width", "width_max")
    ] == [
        {"": 1},
        {"": 5},
        {"": 8},
        {"": 16},
    ]
    assert (_reported(card, "ecc_mode"), _reported(card, "ecc_mode_pending")) == ({"": 0}, {"": 1})
    assert _reported(card, "temperature_slowdown_celsius") == {"": 89}
    assert _reported(card, "nvlink_up") == {"0": 1, "1": 0, "2": 1, "3": 0}
    assert [
        _reported(device(), name)
        for name in ("nvlink_up", "ecc_mode", "pcie_link_width", "temperature_slowdown_celsius")
    ] == [{}] * 4
