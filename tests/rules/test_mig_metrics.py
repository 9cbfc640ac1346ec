"""Series of divided cards: what is the card's is printed once, what is an instance's for each (telemetry contract 1.8, 1.9)."""

from __future__ import annotations

from msgspec import structs
from tests.apps.fakes import device, process

from fairlead.model.devices.counter import Counter
from fairlead.model.devices.device import DeviceSample, MigInstance
from fairlead.model.metric import Family
from fairlead.rules.metrics.container_gpu import container_families
from fairlead.rules.metrics.dcgm import DcgmLabels, dcgm_families
from fairlead.rules.metrics.gpu import gpu_families

USED, POWER, ENGINE = "DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"
BYTES = f"{USED}_BYTES"
COUNTERS = [Counter(field, field, "gauge", "", is_double=field != USED) for field in (USED, POWER, ENGINE, "DCGM_FI_DEV_XID_ERRORS")]


XID = "DCGM_FI_DEV_XID_ERRORS"


def divided() -> DeviceSample:
    held = (process("a", "mig", 4096, 20096, 0),)
    one = MigInstance(9, 0, "1g.18gb", "MIG-a", {USED: 4100, BYTES: 4100 << 20, ENGINE: 0.5}, processes=held)
    return device(1, used=9999, instances=(one, MigInstance(2, 0, "3g.71gb", "MIG-b", {USED: 12, BYTES: 12 << 20})))


def rows(family: Family) -> list[tuple[dict[str, str], float]]:
    pairs = zip(family.keys, family.values, strict=True)
    return [(dict(zip(family.metric.labels, key, strict=True)), value) for key, value in pairs if value is not None]


def of(families: list[Family], name: str) -> list[tuple[dict[str, str], float]]:
    (found,) = [family for family in families if family.name == name]
    return rows(found)


def test_a_boards_power_is_printed_once_and_an_instances_memory_for_each() -> None:
    families = dcgm_families([device(0, used=500), divided()], COUNTERS, DcgmLabels())
    assert [(labels["gpu"], labels["GPU_I_ID"], value) for labels, value in of(families, POWER)] == [("0", "", 66.125), ("1", "", 66.125)]
    used = [(labels["gpu"], labels["GPU_I_ID"], labels["GPU_I_PROFILE"], value) for labels, value in of(families, USED)]
    assert used == [("0", "", "", 500), ("1", "2", "3g.71gb", 12), ("1", "9", "1g.18gb", 4100)]
    assert [(labels["UUID"], labels["GPU_I_ID"]) for labels, _ in of(families, ENGINE)] == [("GPU-gpu-1-1", "9")]


def test_an_xid_is_of_its_instance_and_of_the_card_where_it_struck_the_whole() -> None:
    """Telemetry contract 1.8."""

    def told(of_card: int) -> list[tuple[str, str, float, str]]:
        card = divided()
        parts = tuple(structs.replace(each, fields={**each.fields, XID: 94 * (each.gpu_instance == 9)}) for each in card.instances)
        card = structs.replace(card, instances=parts, fields={**card.fields, XID: of_card})
        found = of(dcgm_families([device(0), card], COUNTERS, DcgmLabels()), XID)
        return [(labels["gpu"], labels["GPU_I_ID"], value, labels["err_code"]) for labels, value in found]

    parts = [("1", "2", 0, "0"), ("1", "9", 94, "94")]
    assert told(0) == [("0", "", 0, "0"), *parts]
    assert told(79) == [("0", "", 0, "0"), ("1", "", 79, "79"), *parts]


def test_pods_of_instances_stand_on_their_instances() -> None:
    families = dcgm_families([divided()], COUNTERS, DcgmLabels())
    assert [(labels["GPU_I_ID"], labels["pod"]) for labels, _ in of(families, USED)] == [("2", ""), ("9", "a")]
    assert [labels["pod"] for labels, _ in of(families, POWER)] == [""]


def test_who_asks_for_it_has_the_boards_values_for_each_instance_as_dcgm_exporter_has() -> None:
    families = dcgm_families([device(0), divided()], COUNTERS, DcgmLabels(repeats_card=True))
    assert [(labels["gpu"], labels["GPU_I_ID"]) for labels, _ in of(families, POWER)] == [("0", ""), ("1", "2"), ("1", "9")]


def test_native_series_of_an_instance_carry_its_id_and_profile_and_the_cards_uuid() -> None:
    families = gpu_families([device(0, used=500), divided()])
    used = [(row["uuid"], row["mig_gi_id"], row["mig_profile"], value) for row, value in of(families, "fairlead_gpu_memory_used_bytes")]
    mib = 1 << 20
    assert used == [
        ("GPU-gpu-1-0", "", "", 500 * mib),
        ("GPU-gpu-1-1", "2", "3g.71gb", 12 * mib),
        ("GPU-gpu-1-1", "9", "1g.18gb", 4100 * mib),
    ]
    ratios = [(row["gpu"], row["mig_gi_id"], value) for row, value in of(families, "fairlead_gpu_utilization_ratio")]
    assert ratios == [("0", "", 0.42), ("1", "9", 0.5)]
    given = [(row["gpu"], row["mig_gi_id"], value) for row, value in of(families, "fairlead_gpu_allocated_ratio")]
    assert given == [("0", "", 0), ("1", "2", 0), ("1", "9", 1)], "so that an idle instance meets who has it"
    assert [value for _, value in of(families, "fairlead_gpu_containers")] == [0, 1]


def test_containers_on_instances_are_told_apart_from_those_on_cards() -> None:
    whole = device(0, processes=(process("b", "exclusive", 300, 15360, 10),))
    limits = of(container_families([whole, divided()]), "fairlead_container_gpu_memory_limit_bytes")
    assert [(row["pod_name"], row["mig_gi_id"], row["allocate_mode"]) for row, _ in limits] == [("b", "", "exclusive"), ("a", "9", "mig")]


def test_what_an_instance_does_not_tell_is_not_told_in_its_place_by_the_card() -> None:
    counters = [Counter("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_FREE", "gauge", "")]
    assert of(dcgm_families([divided()], counters, DcgmLabels()), "DCGM_FI_DEV_FB_FREE") == []


def test_two_compute_instances_of_one_gpu_instance_are_one_series() -> None:
    parts = (MigInstance(2, 0, "1c.3g.71gb", "MIG-a", {USED: 12}), MigInstance(2, 1, "2c.3g.71gb", "MIG-b", {USED: 12, BYTES: 12 << 20}))
    found = of(dcgm_families([device(0, instances=parts)], COUNTERS, DcgmLabels()), USED)
    assert [(labels["GPU_I_ID"], labels["GPU_I_PROFILE"], value) for labels, value in found] == [("2", "3g.71gb", 12)]


def test_whoever_has_an_instance_keeps_it_as_busy_as_it_is() -> None:
    (held,) = of(container_families([divided()]), "fairlead_container_gpu_utilization_ratio")
    assert held[1] == 0.5, "the driver tells no time of programs on instances"


def test_a_divided_card_that_is_down_has_nothing_allocated() -> None:
    assert of(gpu_families([structs.replace(divided(), up=False)]), "fairlead_gpu_allocated_ratio") == []
