"""Device families: how much of a card is given away, and values that are unknown rather than zero."""

from __future__ import annotations

import pytest
from tests.apps.fakes import device, lost_device, process

from fairlead.model.devices.device import DeviceSample
from fairlead.rules.metrics.container_gpu import container_families
from fairlead.rules.metrics.gpu import allocated_ratio, gpu_families
from fairlead.rules.metrics.legacy_gpu import legacy_families


def without(sample: DeviceSample, *fields: str) -> DeviceSample:
    kept = {name: value for name, value in sample.fields.items() if name.removeprefix("DCGM_FI_DEV_") not in fields}
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
        (device(processes=(process("a", "timeslice", 0, 15360, 0), process("b", "timeslice", 0, 15360, 0))), 1),
        (lost_device(0), None),
    ],
    ids=["free", "exclusive", "exclusive of unknown size", "shared", "shared of unknown size", "time slices", "lost"],
)
def test_how_much_of_a_card_is_given_away(sample: DeviceSample, ratio: float | None) -> None:
    assert allocated_ratio(sample) == (None if ratio is None else pytest.approx(ratio))


def test_a_process_of_nobody_is_foreign_and_its_memory_is_not_unattributed() -> None:
    sample = device(used=1000, processes=(process("a", "exclusive", 600, 15360, 0), process("", "", 300, 0, 0)))
    values = {family.name: family.values[0] for family in gpu_families([sample]) if len(family.values) == 1}
    assert values["fairlead_gpu_containers"] == 1
    assert values["fairlead_gpu_foreign_processes"] == 1
    assert values["fairlead_gpu_memory_foreign_bytes"] == 300 << 20
    assert values["fairlead_gpu_memory_unattributed_bytes"] == 100 << 20


def test_every_family_has_a_value_for_every_key() -> None:
    for family in gpu_families([device(0), lost_device(1)]):
        assert len(family.keys) == len(family.values), family.name
        assert all(len(key) == len(family.metric.labels) for key in family.keys), family.name


def test_reasons_of_throttled_time_are_spelt_out() -> None:
    fields = ("POWER", "THERMAL", "SYNC_BOOST", "BOARD_LIMIT", "LOW_UTIL", "RELIABILITY")
    sample = device(fields={f"DCGM_FI_DEV_{name}_VIOLATION": 10**9 * (place + 1) for place, name in enumerate(fields)})
    (family,) = (family for family in gpu_families([sample]) if family.name == "fairlead_gpu_throttle_seconds_total")
    assert dict(zip((key[-1] for key in family.keys), family.values, strict=True)) == {
        "power": 1,
        "thermal": 2,
        "sync_boost": 3,
        "board_limit": 4,
        "low_utilization": 5,
        "reliability": 6,
    }


def test_a_process_of_nobody_is_no_share_and_shares_come_by_name() -> None:
    holders = (process("b", "share", 20, 4308, 0), process("", "", 300, 0, 0), process("a", "share", 10, 4308, 0))
    (used,) = (
        family for family in legacy_families([device(used=1000, processes=holders)]) if family.name == "nvidia_gpu_memory_used_bytes"
    )
    by_mode = [(key[0], key[6], value) for key, value in zip(used.keys, used.values, strict=True)]
    assert by_mode == [("none", "", 1000 << 20), ("share", "a", 10 << 20), ("share", "b", 20 << 20)]


def test_limits_of_a_shared_card_are_its_grants_and_never_more_than_the_card() -> None:
    three = device(processes=tuple(process(name, "share", 0, 4308, 0) for name in "abc"))
    (limits,) = (family for family in container_families([three]) if family.name == "fairlead_container_gpu_memory_limit_bytes")
    assert {key[-1] for key in limits.keys} == {"share"}
    assert limits.values == [4308 << 20] * 3 and sum(value or 0 for value in limits.values) <= 15_079 << 20


def test_a_process_of_nobody_does_not_take_the_card_from_its_holder() -> None:
    processes = (process("", "", 300, 0, 0), process("a", "exclusive", 600, 15360, 0))
    (used,) = [each for each in legacy_families([device(used=1000, processes=processes)]) if each.name == "nvidia_gpu_memory_used_bytes"]
    assert [(key[0], key[6]) for key in used.keys] == [("exclusive", "a")]
