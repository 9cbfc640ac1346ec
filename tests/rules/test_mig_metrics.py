"""Series of cards that are divided into MIG instances: values of the card are printed once, values
of an instance once per instance.

See docs/spec/telemetry.md#mig-instances, docs/spec/telemetry.md#device-metrics.
"""

from __future__ import annotations

from collections import Counter as Counted

import pytest
from msgspec import structs
from tests.apps.fakes import device, process

from fairlead.model.devices.counter import Counter
from fairlead.model.devices.device import DeviceProcess, DeviceSample, MigInstance
from fairlead.model.metric import Family
from fairlead.rules.metrics.container_gpu import container_families
from fairlead.rules.metrics.custom_gpu import custom_families
from fairlead.rules.metrics.dcgm import DcgmLabels, dcgm_families
from fairlead.rules.metrics.gpu import gpu_families
from fairlead.rules.metrics.legacy_gpu import legacy_families

USED, POWER, ENGINE = (
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
)
BYTES = f"{USED}_BYTES"
COUNTERS = [
    Counter(field, field, "gauge", "", is_double=field != USED)
    for field in (USED, POWER, ENGINE, "DCGM_FI_DEV_XID_ERRORS")
]


XID = "DCGM_FI_DEV_XID_ERRORS"


def divided() -> DeviceSample:
    held = (process("a", "mig", 4096, 20096, 0),)
    one = MigInstance(
        9, 0, "1g.18gb", "MIG-a", {USED: 4100, BYTES: 4100 << 20, ENGINE: 0.5}, processes=held
    )
    return device(
        1,
        used=9999,
        instances=(one, MigInstance(2, 0, "3g.71gb", "MIG-b", {USED: 12, BYTES: 12 << 20})),
    )


def rows(family: Family) -> list[tuple[dict[str, str], float]]:
    pairs = zip(family.keys, family.values, strict=True)
    return [
        (dict(zip(family.metric.labels, key, strict=True)), value)
        for key, value in pairs
        if value is not None
    ]


def of(families: list[Family], name: str) -> list[tuple[dict[str, str], float]]:
    (found,) = [family for family in families if family.name == name]
    return rows(found)


def test_a_boards_power_is_printed_once_and_an_instances_memory_for_each() -> None:
    families = dcgm_families([device(0, used=500), divided()], COUNTERS, DcgmLabels())
    assert [
        (labels["gpu"], labels["GPU_I_ID"], value) for labels, value in of(families, POWER)
    ] == [("0", "", 66.125), ("1", "", 66.125)]
    used = [
        (labels["gpu"], labels["GPU_I_ID"], labels["GPU_I_PROFILE"], value)
        for labels, value in of(families, USED)
    ]
    assert used == [("0", "", "", 500), ("1", "2", "3g.71gb", 12), ("1", "9", "1g.18gb", 4100)]
    assert [(labels["UUID"], labels["GPU_I_ID"]) for labels, _ in of(families, ENGINE)] == [
        ("GPU-gpu-1-1", "9")
    ]


def test_an_xid_is_of_its_instance_and_of_the_card_where_it_struck_the_whole() -> None:
    """docs/spec/telemetry.md#mig-instances."""

    def reported(of_card: int) -> list[tuple[str, str, float, str]]:
        card = divided()
        parts = tuple(
            structs.replace(each, fields={**each.fields, XID: 94 * (each.gpu_instance == 9)})
            for each in card.instances
        )
        card = structs.replace(card, instances=parts, fields={**card.fields, XID: of_card})
        found = of(dcgm_families([device(0), card], COUNTERS, DcgmLabels()), XID)
        return [
            (labels["gpu"], labels["GPU_I_ID"], value, labels["err_code"])
            for labels, value in found
        ]

    parts = [("1", "2", 0, "0"), ("1", "9", 94, "94")]
    assert reported(0) == [("0", "", 0, "0"), *parts]
    assert reported(79) == [("0", "", 0, "0"), ("1", "", 79, "79"), *parts]


def test_pods_of_instances_stand_on_their_instances() -> None:
    families = dcgm_families([divided()], COUNTERS, DcgmLabels())
    assert [(labels["GPU_I_ID"], labels["pod"]) for labels, _ in of(families, USED)] == [
        ("2", ""),
        ("9", "a"),
    ]
    assert [labels["pod"] for labels, _ in of(families, POWER)] == [""]


def test_on_request_each_instance_has_the_boards_values_as_with_dcgm_exporter() -> None:
    families = dcgm_families([device(0), divided()], COUNTERS, DcgmLabels(repeats_card=True))
    assert [(labels["gpu"], labels["GPU_I_ID"]) for labels, _ in of(families, POWER)] == [
        ("0", ""),
        ("1", "2"),
        ("1", "9"),
    ]


def test_native_series_of_an_instance_carry_its_id_and_profile_and_the_cards_uuid() -> None:
    families = gpu_families([device(0, used=500), divided()])
    used = [
        (row["uuid"], row["mig_gi_id"], row["mig_profile"], value)
        for row, value in of(families, "fairlead_gpu_memory_used_bytes")
    ]
    mib = 1 << 20
    assert used == [
        ("GPU-gpu-1-0", "", "", 500 * mib),
        ("GPU-gpu-1-1", "2", "3g.71gb", 12 * mib),
        ("GPU-gpu-1-1", "9", "1g.18gb", 4100 * mib),
    ]
    ratios = [
        (row["gpu"], row["mig_gi_id"], value)
        for row, value in of(families, "fairlead_gpu_utilization_ratio")
    ]
    assert ratios == [("0", "", 0.42), ("1", "9", 0.5)]
    given = [
        (row["gpu"], row["mig_gi_id"], value)
        for row, value in of(families, "fairlead_gpu_allocated_ratio")
    ]
    assert given == [("0", "", 0), ("1", "2", 0), ("1", "9", 1)], (
        "so that an idle instance meets who has it"
    )
    assert [value for _, value in of(families, "fairlead_gpu_containers")] == [0, 1]


def test_containers_on_instances_are_distinguished_from_those_on_cards() -> None:
    whole = device(0, processes=(process("b", "exclusive", 300, 15360, 10),))
    limits = of(container_families([whole, divided()]), "fairlead_container_gpu_memory_limit_bytes")
    assert [(row["pod_name"], row["mig_gi_id"], row["allocate_mode"]) for row, _ in limits] == [
        ("b", "", "exclusive"),
        ("a", "9", "mig"),
    ]


def test_what_an_instance_does_not_report_is_not_taken_from_the_card() -> None:
    counters = [Counter("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_FREE", "gauge", "")]
    assert of(dcgm_families([divided()], counters, DcgmLabels()), "DCGM_FI_DEV_FB_FREE") == []


def test_two_compute_instances_of_one_gpu_instance_are_one_series() -> None:
    parts = (
        MigInstance(2, 0, "1c.3g.71gb", "MIG-a", {USED: 12}),
        MigInstance(2, 1, "2c.3g.71gb", "MIG-b", {USED: 12, BYTES: 12 << 20}),
    )
    found = of(dcgm_families([device(0, instances=parts)], COUNTERS, DcgmLabels()), USED)
    assert [(labels["GPU_I_ID"], labels["GPU_I_PROFILE"], value) for labels, value in found] == [
        ("2", "3g.71gb", 12)
    ]


def test_the_holder_of_an_instance_keeps_it_as_busy_as_it_is() -> None:
    (held,) = of(container_families([divided()]), "fairlead_container_gpu_utilization_ratio")
    assert held[1] == 0.5, "the driver reports no time of programs on instances"


def in_parts(*holders: DeviceProcess | None, busy: float = 0.8) -> DeviceSample:
    """One GPU instance, some of whose compute instances are held and some free."""
    parts = [
        MigInstance(
            2,
            number,
            f"{number + 1}c.3g.71gb",
            f"MIG-{number}",
            {BYTES: 4100 << 20, ENGINE: busy},
            processes=(each,) if each else (),
        )
        for number, each in enumerate(holders)
    ]
    return device(1, instances=tuple(parts))


def twice(families: list[Family]) -> list[tuple[str, tuple[str, ...]]]:
    return [
        (family.name, key)
        for family in families
        for key, count in Counted(family.keys).items()
        if count > 1
    ]


def test_a_container_with_two_parts_of_an_instance_is_one_series_and_one_container() -> None:
    parts = (process("a", "mig", 100, 20096, None), process("a", "mig", 300, 20096, None))
    card = in_parts(*parts)
    (used,) = of(container_families([card]), "fairlead_container_gpu_memory_used_bytes")
    (limit,) = of(container_families([card]), "fairlead_container_gpu_memory_limit_bytes")
    (busy,) = of(container_families([card]), "fairlead_container_gpu_utilization_ratio")
    assert (used[1] / 2**20, limit[1] / 2**20, busy[1]) == (400, 20096, 0.8), (
        "the parts have their memory in common"
    )
    assert [value for _, value in of(gpu_families([card]), "fairlead_gpu_containers")] == [1]


def test_a_container_with_two_instances_of_a_card_counts_once_and_has_both() -> None:
    held = [process("a", "mig", used, 20096, 10) for used in (100, 300)]
    card = device(
        1,
        instances=tuple(
            MigInstance(gi, 0, "1g.18gb", f"MIG-{gi}", {BYTES: 1}, processes=(held[gi],))
            for gi in (0, 1)
        ),
    )
    assert [value for _, value in of(gpu_families([card]), "fairlead_gpu_containers")] == [1]
    assert [
        value for _, value in of(custom_families([card]), "DCGM_CUSTOM_CONTAINER_MEM_ALLOCATED")
    ] == [2 * 20096]
    assert len(of(container_families([card]), "fairlead_container_gpu_memory_used_bytes")) == 2, (
        "native series are of instances"
    )


@pytest.mark.parametrize("mode", ["mig", "timeslice", "mps", "share"])
def test_no_page_has_a_series_twice_of_a_divided_card(mode: str) -> None:
    one, other = process("a", mode, 100, 20096, 10), process("b", mode, 300, 20096, 20)
    both = [
        MigInstance(
            gi, ci, f"{ci + 1}c.3g.71gb", f"MIG-{gi}-{ci}", {BYTES: 1}, processes=(one, other)
        )
        for gi in (1, 2)
        for ci in (0, 1)
    ]
    card = device(1, instances=tuple(both))
    everything = [
        *container_families([card]),
        *custom_families([card]),
        *legacy_families([card]),
        *gpu_families([card]),
    ]
    assert twice(everything) == []
    labels = DcgmLabels(has_virtual_gpus=True, has_pod_uids=True, repeats_card=True)
    assert twice(dcgm_families([card], COUNTERS, labels)) == []


@pytest.mark.parametrize(
    ("holders", "busy"),
    [
        ((process("a", "mig", 1, 20096, None), process("b", "mig", 1, 20096, 0.0)), [None, 0.0]),
        ((process("a", "mig", 1, 20096, 0.0), None), [0.0]),
        ((process("a", "mig", 1, 20096, 0.0), process("a", "mig", 1, 20096, None)), [0.8]),
    ],
)
def test_a_holder_of_a_part_of_an_instance_does_not_get_its_neighbours_load(
    holders: tuple[DeviceProcess | None, ...], busy: list[float | None]
) -> None:
    (found,) = [
        each
        for each in container_families([in_parts(*holders)])
        if each.name == "fairlead_container_gpu_utilization_ratio"
    ]
    assert found.values == busy


def test_processes_that_run_at_once_are_no_more_than_the_whole() -> None:
    holders = (process("a", "share", 1537, 4096, 130.0), process("b", "share", 700, 4096, 20.0))
    card = device(
        0,
        processes=tuple(
            structs.replace(each, memory_used_bytes=each.memory_used_bytes + (1 << 20) - 1)
            for each in holders
        ),
    )
    cycles = of(legacy_families([card]), "nvidia_gpu_duty_cycle")
    assert [value for row, value in cycles if row["allocate_mode"] == "share"] == [100, 20]
    counters = [Counter(field, field, "gauge", "") for field in ("DCGM_FI_DEV_GPU_UTIL", USED)]
    families = dcgm_families([card], counters, DcgmLabels(has_virtual_gpus=True))
    assert [value for row, value in of(families, "DCGM_FI_DEV_GPU_UTIL") if row["pod"]] == [100, 20]
    assert [value for row, value in of(families, USED) if row["pod"]] == [1537, 700], (
        "whole MiB, as of the card"
    )


def test_a_divided_card_that_is_down_has_nothing_allocated() -> None:
    assert (
        of(gpu_families([structs.replace(divided(), up=False)]), "fairlead_gpu_allocated_ratio")
        == []
    )
