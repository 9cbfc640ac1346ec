"""Processes of a card are assigned to containers; processes of no known container count as foreign.

See docs/spec/telemetry.md#device-metrics, docs/spec/telemetry.md#container-metrics,
docs/spec/telemetry.md#processes.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.model.devices.device import DeviceProcess
from fairlead.model.devices.driver import ProcessHome
from fairlead.model.devices.gpu import GpuMode
from fairlead.model.devices.kubelet import HeldDevices
from fairlead.model.devices.readings import GpuProcess
from fairlead.rules.devices.container_use import container_use, filled_use
from fairlead.rules.devices.pod_devices import device_processes

MIB = 1 << 20


def holder(
    pod: str, uid: str, container: str = "c", mode: GpuMode = GpuMode.SHARE, token: str = ""
) -> DeviceProcess:
    return DeviceProcess(
        "ns", pod, container, uid, mode, None, 4301 * MIB, None, processes=None, token=token
    )


def uses(rows: tuple[DeviceProcess, ...]) -> list[tuple[str, str, float | None, int | None]]:
    return [
        (
            row.pod,
            row.container,
            None if row.memory_used_bytes is None else row.memory_used_bytes / MIB,
            row.processes,
        )
        for row in rows
    ]


def test_each_container_has_its_own_and_a_pod_without_a_grant_is_foreign() -> None:
    containers = [holder("a", "ua"), holder("b", "ub")]
    seen = [GpuProcess(pid, "C", pid * MIB, 1.0) for pid in (1, 2, 3, 4, 5)]
    homes = {
        1: ProcessHome("ua"),
        2: ProcessHome("ub"),
        3: ProcessHome("ua"),
        4: ProcessHome("uc"),
        5: ProcessHome(),
    }
    assert uses(container_use(containers, seen, homes)) == [
        ("a", "c", 4, 2),
        ("b", "c", 2, 1),
        ("", "", 9, 2),
    ]


def test_two_containers_of_one_pod_are_distinguished_by_the_token_of_their_shares() -> None:
    containers = [holder("a", "ua", "one", token="t1"), holder("a", "ua", "two", token="t2")]
    seen = [
        GpuProcess(1, "C", MIB, None),
        GpuProcess(2, "C", 2 * MIB, None),
        GpuProcess(3, "C", 4 * MIB, None),
    ]
    homes = {1: ProcessHome("ua", "t2"), 2: ProcessHome("ua", "t1"), 3: ProcessHome("ua")}
    assert uses(container_use(containers, seen, homes)) == [("a", "one", 6, 2), ("a", "two", 1, 1)]


def test_a_grant_without_a_process_uses_nothing_and_with_an_unknown_process_is_unknown() -> None:
    (idle,) = container_use([holder("a", "ua")], [], {})
    assert (idle.memory_used_bytes, idle.sm_percent, idle.processes) == (0, 0.0, 0)
    seen = [
        GpuProcess(1, "C", MIB, 10.0),
        GpuProcess(2, "C", None, None),
        GpuProcess(3, "C", MIB, 20.0),
    ]
    own, other = container_use(
        [holder("a", "ua"), holder("b", "ub")],
        seen,
        {1: ProcessHome("ua"), 2: ProcessHome("ua"), 3: ProcessHome("ub")},
    )
    assert (own.memory_used_bytes, own.sm_percent, own.processes) == (None, None, 2)
    assert (other.memory_used_bytes, other.sm_percent, other.processes) == (MIB, 20.0, 1), (
        "its neighbour's is known"
    )


@pytest.mark.parametrize("mode", [GpuMode.EXCLUSIVE, GpuMode.MIG])
def test_what_is_unknown_of_an_only_holder_comes_from_the_card(mode: GpuMode) -> None:
    seen = [GpuProcess(1, "C", None, None), GpuProcess(2, "C", 3 * MIB, None)]
    rows = container_use(
        [holder("a", "ua", mode=mode)], seen, {1: ProcessHome("ua"), 2: ProcessHome()}
    )
    own, stranger = filled_use(rows, 10 * MIB, 55.0)
    assert (own.memory_used_bytes, own.sm_percent) == (7 * MIB, 55.0), (
        "of memory, what the others leave"
    )
    assert (stranger.memory_used_bytes, stranger.sm_percent) == (3 * MIB, None)
    (unknown,) = filled_use(rows[:1], None, None)
    assert (unknown.memory_used_bytes, unknown.sm_percent) == (None, None)
    hidden = container_use(
        [holder("a", "ua", mode=mode)],
        [*seen, GpuProcess(3, "C", None, None)],
        dict.fromkeys((2, 3), ProcessHome()) | {1: ProcessHome("ua")},
    )
    assert filled_use(hidden, 10 * MIB, 55.0)[0].memory_used_bytes is None, (
        "how much is another's is unknown"
    )


def test_what_is_known_of_an_only_holder_is_its_own() -> None:
    rows = container_use(
        [holder("a", "ua", mode=GpuMode.EXCLUSIVE)],
        [GpuProcess(1, "C", MIB, 5.0)],
        {1: ProcessHome("ua")},
    )
    assert filled_use(rows, 10 * MIB, 55.0) == rows
    idle = container_use([holder("a", "ua", mode=GpuMode.EXCLUSIVE)], [], {})
    assert filled_use(idle, 10 * MIB, 55.0) == idle, "nothing runs: 0 is known"


@pytest.mark.parametrize("mode", [GpuMode.SHARE, GpuMode.TIMESLICE])
def test_a_sharer_alone_on_its_card_does_not_get_what_the_card_does(mode: GpuMode) -> None:
    rows = container_use(
        [holder("a", "ua", mode=mode)], [GpuProcess(1, "C", None, None)], {1: ProcessHome("ua")}
    )
    assert filled_use(rows, 10 * MIB, 55.0) == rows


def test_a_sole_holder_whose_uid_is_unknown_has_the_processes_that_run_in_pods() -> None:
    alone = [holder("a", "", mode=GpuMode.EXCLUSIVE)]
    seen = [GpuProcess(1, "C", MIB, None), GpuProcess(2, "C", 2 * MIB, None)]
    homes = {1: ProcessHome("ua"), 2: ProcessHome()}
    assert uses(container_use(alone, seen, homes)) == [("a", "c", 1, 1), ("", "", 2, 1)]
    two = [holder("a", ""), holder("b", "")]
    assert uses(container_use(two, seen, homes)) == [
        ("a", "c", 0, 0),
        ("b", "c", 0, 0),
        ("", "", 3, 2),
    ]


def test_the_uid_of_a_whole_cards_holder_is_the_checkpoints() -> None:
    rows = [
        HeldDevices("nvidia.com/gpu", ("GPU-a",), "c", "ns", "p"),
        HeldDevices("nvidia.com/gpu", ("GPU-a",), "c", pod_uid="u7"),
    ]
    found = device_processes(rows, [], {"GPU-a": (0, 15360.0)})
    assert [(each.pod, each.pod_uid) for each in found["GPU-a"]] == [("p", "u7")]


@given(
    st.lists(
        st.tuples(st.integers(1, 60), st.integers(0, 1 << 40)),
        unique_by=lambda row: row[0],
        max_size=20,
    ),
    st.dictionaries(st.integers(1, 60), st.sampled_from(("ua", "ub", "ux", ""))),
)
def test_whatever_uses_it_nothing_is_lost_and_nothing_counts_twice(
    used: list[tuple[int, int]], homes: dict[int, str]
) -> None:
    containers = [holder("a", "ua"), holder("b", "ub")]
    rows = container_use(
        containers,
        [GpuProcess(pid, "C", size, None) for pid, size in used],
        {pid: ProcessHome(uid) for pid, uid in homes.items()},
    )
    alive = [size for pid, size in used if pid in homes]
    assert sum(row.processes for row in rows) == len(alive)
    assert sum(row.memory_used_bytes for row in rows) == sum(alive)


def test_two_containers_of_one_pod_are_distinguished_by_the_names_of_their_ids() -> None:
    containers = [
        holder("a", "ua", "main", GpuMode.EXCLUSIVE),
        holder("a", "ua", "side", GpuMode.EXCLUSIVE),
    ]
    homes = {
        1: ProcessHome("ua", container="side"),
        2: ProcessHome("ua", container="main"),
        3: ProcessHome("ua"),
    }
    seen = [GpuProcess(pid, "C", 100 * pid * MIB, None) for pid in homes]
    assert uses(container_use(containers, seen, homes)) == [
        ("a", "main", 500, 2),
        ("a", "side", 100, 1),
    ]
