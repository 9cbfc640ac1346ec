"""`DCGM_CUSTOM_*`, the metrics of one vendor's newer exporter: each process separately, and what a
container was granted.

See docs/spec/telemetry.md#compatibility-families.
"""

from __future__ import annotations

from msgspec import structs
from tests.apps.fakes import device, process

from fairlead.model.devices.device import DeviceSample, MigInstance, NamedProcess
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.devices.readings import EngineTime
from fairlead.rules.metrics.custom_gpu import custom_families
from fairlead.wire.metrics.gpu_readings import parse_readings
from fairlead.wire.metrics.prom_text import parse_page, render_dcgm_number, render_page

MIB = 1 << 20
TRAIN = NamedProcess(77, "python3", "C", 300 * MIB, 40.0, EngineTime(30.0, 0.0, 5.0))
LOADER = NamedProcess(9, "loader", "C+G", 100 * MIB, None, EngineTime())
STRANGER = NamedProcess(5, "miner", "C", 50 * MIB, 9.0, EngineTime(8.0, 1.0, 2.0))


def page(sample: DeviceSample) -> list[tuple[str, dict[str, str], float]]:
    text = b"".join(render_page(custom_families([sample]), render_dcgm_number)).decode()
    return [
        (each.name.removeprefix("DCGM_CUSTOM_"), each.labels, each.value)
        for each in parse_page(text).samples
    ]


def of(sample: DeviceSample, name: str) -> dict[tuple[str, str, str, str], float]:
    """Values by pod, number, name and type of the process."""
    message = ("PodName", "ProcessId", "ProcessName", "ProcessType")
    return {
        tuple(labels.get(each, "") for each in message): value
        for found, labels, value in page(sample)
        if found == name
    }  # type: ignore[misc]


def held() -> DeviceSample:
    busy = structs.replace(
        process("train", "share", 400, 4301, 40),
        members=(TRAIN, LOADER),
        core_limit_ratio=0.3,
        processes=2,
    )
    unknown = structs.replace(
        process("", "exclusive", 50, 0, 9), pod="", namespace="", container="", members=(STRANGER,)
    )
    return device(0, processes=(busy, process("quiet", "share", 0, 4301, 0), unknown))


def test_each_process_has_its_series_and_a_container_without_one_has_0() -> None:
    assert of(held(), "PROCESS_MEM_USED") == {
        ("train", "9", "loader", "C+G"): 100,
        ("train", "77", "python3", "C"): 300,
        ("quiet", "", "", ""): 0,
    }
    quiet = ("quiet", "", "", "")
    assert of(held(), "PROCESS_MEM_COPY_UTIL") == {("train", "77", "python3", "C"): 30, quiet: 0}
    assert of(held(), "PROCESS_DECODE_UTIL") == {("train", "77", "python3", "C"): 5, quiet: 0}


def test_processes_without_a_pod_are_illegal() -> None:
    names = ("MEM_USED", "SM_UTIL", "MEM_COPY_UTIL", "ENCODE_UTIL", "DECODE_UTIL")
    assert [of(held(), f"ILLEGAL_PROCESS_{name}") for name in names] == [
        {("", "5", "miner", "C"): value} for value in (50.0, 9.0, 8.0, 1.0, 2.0)
    ]


def test_compute_that_is_granted_is_a_part_of_the_card_and_0_where_it_is_not_limited() -> None:
    assert of(held(), "CONTAINER_CP_ALLOCATED") == {
        ("train", "", "", ""): 0.3,
        ("quiet", "", "", ""): 0.0,
    }


def test_processes_on_instances_are_reported_and_what_is_not_measured_is_absent() -> None:
    on_part = structs.replace(
        process("part", "mig", 400, 17894, 0),
        allocate_mode=GpuMode.MIG,
        sm_percent=None,
        members=(structs.replace(LOADER),),
    )
    card = device(0, instances=(MigInstance(7, 0, "1g.18gb", "MIG-a", processes=(on_part,)),))
    assert of(card, "PROCESS_MEM_USED") == {("part", "9", "loader", "C+G"): 100}
    assert of(card, "PROCESS_SM_UTIL") == of(card, "PROCESS_ENCODE_UTIL") == {}


def test_a_reader_of_the_page_counts_all_processes_of_a_container() -> None:
    text = b"".join(render_page(custom_families([held()]), render_dcgm_number)).decode()
    (reading,) = parse_readings(parse_page(text).samples, 1.0)
    assert {each.pod: each.memory_used_mib for each in reading.holders} == {
        "quiet": 0,
        "train": 400,
    }
