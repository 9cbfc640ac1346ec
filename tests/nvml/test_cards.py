"""What `NvmlDriver` reports of healthy cards: inventory, processes, means.

The numbers are those of docs/spec/gpu-sharing.md#units-and-the-proportional-grant,
docs/spec/gpu-sharing.md#isolation-providers, the structures those of NVIDIA's header.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.nvml.stub import MIB, StubState, uuid

from fairlead.edge.nvml.driver import NvmlDriver
from fairlead.model.devices.driver import CardAnswer, IsolationMeans, ProcessMemory
from fairlead.model.devices.gpu import GpuSlot

ALL_ONES = 2**64 - 1
NOT_SUPPORTED, NO_PERMISSION, FUNCTION_NOT_FOUND, UNKNOWN = 3, 4, 13, 999
LOST, RESET_REQUIRED = 15, 16


def test_a_card_is_reported_with_index_minor_name_and_the_memory_that_is_left(
    driver: NvmlDriver, state: StubState
) -> None:
    state.say(
        {
            "0.minor": 1,
            "1.minor": 0,
            "1.name": "NVIDIA H200",
            "1.total": 143771 * MIB,
            "1.reserved": 621 * MIB,
        }
    )
    assert driver.cards() == [
        GpuSlot(0, uuid(0), 1, "Tesla T4", 15079),
        GpuSlot(1, uuid(1), 0, "NVIDIA H200", 143150),
    ]


@pytest.mark.parametrize(
    ("total", "reserved", "mib"),
    [
        pytest.param(16130 * MIB + 1048575, 0, 16130, id="a part of a MiB does not count"),
        pytest.param(100 * MIB, 1, 99, id="one byte kept takes a MiB"),
        pytest.param(1 << 44, 0, 1 << 24, id="more than 32 bits"),
        pytest.param(10 * MIB, 11 * MIB, 0, id="more kept than there is"),
    ],
)
def test_memory_is_what_the_driver_does_not_keep_in_whole_mib(
    driver: NvmlDriver, state: StubState, total: int, reserved: int, mib: int
) -> None:
    state.say({"0.total": total, "0.reserved": reserved})
    assert driver.cards()[0].memory_mib == mib


def test_a_driver_before_510_reports_all_memory(
    driver_on: Callable[[Path], NvmlDriver], old_library: Path
) -> None:
    assert [card.memory_mib for card in driver_on(old_library).cards()] == [15360, 15360]


def test_a_trouble_that_passes_does_not_change_what_a_card_offers(
    driver: NvmlDriver, state: StubState
) -> None:
    before = driver.cards()
    state.fail("nvmlDeviceGetMemoryInfo_v2", UNKNOWN, 0)
    assert driver.cards() == before


def test_a_card_that_was_never_read_is_left_out(
    driver: NvmlDriver, state: StubState, caplog: pytest.LogCaptureFixture
) -> None:
    state.fail("nvmlDeviceGetMemoryInfo_v2", UNKNOWN, 0)
    assert [card.index for card in driver.cards()] == [1]
    driver.cards()
    assert [record.message for record in caplog.records] == [
        f"GPU {uuid(0)} cannot be read: Unknown Error"
    ]


def test_a_virtual_card_has_no_minor_number(driver: NvmlDriver, state: StubState) -> None:
    state.fail("nvmlDeviceGetMinorNumber", NOT_SUPPORTED, 1)
    assert [card.minor for card in driver.cards()] == [0, -1]


def test_one_uuid_twice_is_reported_twice(driver: NvmlDriver, state: StubState) -> None:
    state.say({"1.uuid": uuid(0)})
    assert [card.uuid for card in driver.cards()] == [uuid(0), uuid(0)]
    state.fail("nvmlDeviceGetTemperature", 15, 1)
    assert driver.probe(uuid(0)).fault == "GPU is lost"


def test_a_probe_reports_the_energy_counter_and_what_the_driver_asks_for(
    driver: NvmlDriver, state: StubState
) -> None:
    state.say({"0.energy": 123_456, "0.fv.230": "1:4", "1.energy": 5, "1.fv.230": "1:0"})
    state.fail("nvmlDeviceGetTotalEnergyConsumption", NOT_SUPPORTED, 1)
    assert driver.probe(uuid(0)) == CardAnswer(energy_mj=123_456, recovery_action=4)
    assert driver.probe(uuid(1)) == CardAnswer(recovery_action=0)
    assert driver.probe("GPU-nobody") == CardAnswer("the driver does not show this GPU")


@pytest.mark.parametrize(
    "call", ["nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetFieldValues"]
)
@pytest.mark.parametrize("code", [UNKNOWN, NO_PERMISSION, NOT_SUPPORTED])
def test_a_counter_that_cannot_be_read_is_no_illness(
    driver: NvmlDriver, state: StubState, call: str, code: int
) -> None:
    state.fail(call, code, 0)
    answer = driver.probe(uuid(0))
    assert (answer.fault, answer.is_down) == ("", False)
    assert None in (answer.energy_mj, answer.recovery_action)


@pytest.mark.parametrize(
    ("code", "is_down"), [(LOST, True), (RESET_REQUIRED, True), (UNKNOWN, False)]
)
def test_a_card_that_only_a_reset_brings_back_is_reported_so(
    driver: NvmlDriver, state: StubState, code: int, is_down: bool
) -> None:
    state.fail("nvmlDeviceGetTemperature", code, 0)
    assert driver.probe(uuid(0)).is_down is is_down


def test_a_machine_without_gpus_has_none(driver: NvmlDriver, state: StubState) -> None:
    state.say({"count": 0})
    assert (driver.cards(), driver.xids(), driver.processes()) == ([], [], [])
    assert driver.means().driver == 615


# --- processes ------------------------------------------------------------------------------------


def test_a_process_is_reported_once_for_each_card_whatever_kind_it_is(
    driver: NvmlDriver, state: StubState
) -> None:
    state.say(
        {
            "0.compute": f"7:{3 * MIB},5:{MIB // 2}",
            "0.graphics": f"7:{2 * MIB}",
            "0.mps": f"9:{4 * MIB}",
            "1.compute": f"7:{MIB}",
        }
    )
    assert driver.processes() == [
        ProcessMemory(5, uuid(0), 0.5),
        ProcessMemory(7, uuid(0), 3.0),
        ProcessMemory(9, uuid(0), 4.0),
        ProcessMemory(7, uuid(1), 1.0),
    ]


def test_a_process_of_unknown_memory_is_left_out(
    driver: NvmlDriver, state: StubState, caplog: pytest.LogCaptureFixture
) -> None:
    state.say({"0.compute": f"7:{ALL_ONES},8:{MIB}", "0.graphics": f"8:{ALL_ONES}"})
    assert driver.processes() == driver.processes() == [ProcessMemory(8, uuid(0), 1.0)]
    assert [record.message for record in caplog.records] == [
        f"NVML does not report the memory of processes of GPU {uuid(0)}"
    ]


@pytest.mark.parametrize("kind", ["Compute", "Graphics", "MPSCompute"])
def test_a_kind_of_program_that_a_card_does_not_have(
    driver: NvmlDriver, state: StubState, kind: str
) -> None:
    state.say({"0.compute": f"1:{MIB}", "0.graphics": f"2:{MIB}", "0.mps": f"3:{MIB}"})
    state.fail(f"nvmlDeviceGet{kind}RunningProcesses_v3", NOT_SUPPORTED)
    without = {"Compute": 1, "Graphics": 2, "MPSCompute": 3}[kind]
    assert [process.pid for process in driver.processes()] == [
        pid for pid in (1, 2, 3) if pid != without
    ]


def test_a_driver_before_510_lists_processes_too(
    driver_on: Callable[[Path], NvmlDriver], old_library: Path, state: StubState
) -> None:
    state.say({"0.compute": f"1:{MIB}", "0.graphics": f"2:{MIB}"})
    assert [process.pid for process in driver_on(old_library).processes()] == [1, 2]


def test_two_hundred_processes(driver: NvmlDriver, state: StubState) -> None:
    state.say({"0.compute": ",".join(f"{pid}:{MIB}" for pid in range(1, 201))})
    assert len(driver.processes()) == 200


# --- means ----------------------------------------------------------------------------------------


def test_means_of_a_plain_machine(driver: NvmlDriver) -> None:
    assert driver.means() == IsolationMeans(driver=615, cuda=(13, 4))


@pytest.mark.parametrize(
    ("state_given", "driver_version", "cuda"),
    [
        ({"driver": "535.104.05", "cuda": 12020}, 535, (12, 2)),
        ({"driver": "570.86.15", "cuda": 12080}, 570, (12, 8)),
        ({"driver": "beta", "cuda": 11000}, 0, (11, 0)),
        (
            {
                "error.nvmlSystemGetCudaDriverVersion_v2": FUNCTION_NOT_FOUND,
                "error.nvmlSystemGetDriverVersion": NOT_SUPPORTED,
            },
            0,
            (0, 0),
        ),
    ],
)
def test_versions(
    driver: NvmlDriver,
    state: StubState,
    state_given: dict[str, object],
    driver_version: int,
    cuda: tuple[int, int],
) -> None:
    state.say(state_given)
    means = driver.means()
    assert (means.driver, means.cuda) == (driver_version, cuda)


def test_cgroup_v2_is_seen_by_its_controllers(driver: NvmlDriver, tmp_path: Path) -> None:
    (tmp_path / "cgroup").mkdir()
    (tmp_path / "cgroup" / "cgroup.controllers").write_text("cpu memory\n")
    assert driver.means().has_cgroup_v2


def test_mig_is_what_is_in_force_on_every_card(driver: NvmlDriver, state: StubState) -> None:
    state.say({"0.mig-pending": 1, "1.mig-pending": 1})
    assert not driver.means().has_mig
    state.say({"1.mig": 1})
    assert not driver.means().has_mig, "nothing keeps the users of the other card apart"
    state.say({"0.mig": 1})
    assert driver.means().has_mig
    state.fail("nvmlDeviceGetMigMode", UNKNOWN, 1)
    assert driver.means().has_mig, "what it reported last"


def test_cards_that_know_no_mig_are_not_divided(driver: NvmlDriver, state: StubState) -> None:
    state.fail("nvmlDeviceGetMigMode", NOT_SUPPORTED, 0)
    state.say({"1.mig": 1})
    assert not driver.means().has_mig
