"""Whose memory is it? Processes of a card put to containers, foreign ones apart (telemetry contract 1.9 to 1.11)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.devices.device import DeviceProcess
from fairlead.model.devices.driver import ProcessHome
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.devices.kubelet import HeldDevices
from fairlead.model.devices.readings import SeenProcess
from fairlead.rules.devices.container_use import container_use
from fairlead.rules.devices.pod_devices import device_processes

MIB = 1 << 20


def holder(pod: str, uid: str, container: str = "c", mode: GpuMode = GpuMode.SHARE, token: str = "") -> DeviceProcess:
    return DeviceProcess("ns", pod, container, uid, mode, 0, 4301 * MIB, 0.0, processes=0, token=token)


def uses(rows: tuple[DeviceProcess, ...]) -> list[tuple[str, str, float, int]]:
    return [(row.pod, row.container, row.memory_used_bytes / MIB, row.processes) for row in rows]


def test_each_container_has_its_own_and_a_pod_without_a_grant_is_foreign() -> None:
    containers = [holder("a", "ua"), holder("b", "ub")]
    seen = [SeenProcess(pid, "C", pid * MIB, 1.0) for pid in (1, 2, 3, 4, 5)]
    homes = {1: ProcessHome("ua"), 2: ProcessHome("ub"), 3: ProcessHome("ua"), 4: ProcessHome("uc"), 5: ProcessHome()}
    assert uses(container_use(containers, seen, homes)) == [("a", "c", 4, 2), ("b", "c", 2, 1), ("", "", 9, 2)]


def test_two_containers_of_one_pod_are_told_apart_by_the_token_of_their_shares() -> None:
    containers = [holder("a", "ua", "one", token="t1"), holder("a", "ua", "two", token="t2")]
    seen = [SeenProcess(1, "C", MIB, None), SeenProcess(2, "C", 2 * MIB, None), SeenProcess(3, "C", 4 * MIB, None)]
    homes = {1: ProcessHome("ua", "t2"), 2: ProcessHome("ua", "t1"), 3: ProcessHome("ua")}
    assert uses(container_use(containers, seen, homes)) == [("a", "one", 6, 2), ("a", "two", 1, 1)]


def test_a_grant_without_a_process_uses_nothing_and_unknown_memory_adds_nothing() -> None:
    assert uses(container_use([holder("a", "ua")], [], {})) == [("a", "c", 0, 0)]
    assert uses(container_use([holder("a", "ua")], [SeenProcess(1, "C", None, None)], {1: ProcessHome("ua")})) == [("a", "c", 0, 1)]


def test_a_sole_holder_whose_uid_nobody_told_has_the_processes_that_run_in_pods() -> None:
    alone = [holder("a", "", mode=GpuMode.EXCLUSIVE)]
    seen = [SeenProcess(1, "C", MIB, None), SeenProcess(2, "C", 2 * MIB, None)]
    homes = {1: ProcessHome("ua"), 2: ProcessHome()}
    assert uses(container_use(alone, seen, homes)) == [("a", "c", 1, 1), ("", "", 2, 1)]
    two = [holder("a", ""), holder("b", "")]
    assert uses(container_use(two, seen, homes)) == [("a", "c", 0, 0), ("b", "c", 0, 0), ("", "", 3, 2)]


def test_the_uid_of_a_whole_cards_holder_is_the_checkpoints() -> None:
    rows = [HeldDevices("nvidia.com/gpu", ("GPU-a",), "c", "ns", "p"), HeldDevices("nvidia.com/gpu", ("GPU-a",), "c", pod_uid="u7")]
    found = device_processes(rows, [], {"GPU-a": (0, 15360.0)})
    assert [(each.pod, each.pod_uid) for each in found["GPU-a"]] == [("p", "u7")]


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 1 << 40)), unique_by=lambda row: row[0], max_size=20),
    st.dictionaries(st.integers(1, 60), st.sampled_from(("ua", "ub", "ux", ""))),
)
def test_whoever_uses_it_nothing_is_lost_and_nothing_counts_twice(used: list[tuple[int, int]], homes: dict[int, str]) -> None:
    containers = [holder("a", "ua"), holder("b", "ub")]
    rows = container_use(
        containers, [SeenProcess(pid, "C", size, None) for pid, size in used], {pid: ProcessHome(uid) for pid, uid in homes.items()}
    )
    alive = [size for pid, size in used if pid in homes]
    assert sum(row.processes for row in rows) == len(alive)
    assert sum(row.memory_used_bytes for row in rows) == sum(alive)


def test_two_containers_of_one_pod_are_told_apart_by_the_names_of_their_ids() -> None:
    containers = [holder("a", "ua", "main", GpuMode.EXCLUSIVE), holder("a", "ua", "side", GpuMode.EXCLUSIVE)]
    homes = {1: ProcessHome("ua", container="side"), 2: ProcessHome("ua", container="main"), 3: ProcessHome("ua")}
    seen = [SeenProcess(pid, "C", 100 * pid * MIB, None) for pid in homes]
    assert uses(container_use(containers, seen, homes)) == [("a", "main", 500, 2), ("a", "side", 100, 1)]
