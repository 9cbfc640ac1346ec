"""The Cluster board and the GPU map: the numbers of the panels, the lists, and the state of every
cell.
"""

from __future__ import annotations

import msgspec
import pytest
from msgspec import structs
from tests.console.clusters import (
    CARD_MIB,
    EPOCH,
    cluster,
    cpu_node,
    gpu_node,
    large_cluster,
    pod,
    reading,
    shared_node,
    training_job,
)

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.holders import holder_groups
from fairlead.console.charts.history_samples import samples_of
from fairlead.console.pages.gpu_map import (
    ALLOCATED,
    CLOSED,
    DRAINING,
    FREE,
    SHARED,
    UNHEALTHY,
    UNKNOWN,
    UNREACHABLE,
)
from fairlead.model.devices.gpu import GpuReading, GpuSlot, Grant
from fairlead.model.event import Event
from fairlead.model.node import Node

GPU = {"nvidia.com/gpu": 1}


def board_state(*args: object, **more: object) -> BoardState:
    return BoardState(cluster(*args, **more), EPOCH)  # type: ignore[arg-type]


def cells(seen: BoardState, node: int = 0) -> list[tuple[object, ...]]:
    return list(seen.gpu_map.nodes[node].gpus)


def states(seen: BoardState) -> list[object]:
    return [cell[0] for cell in cells(seen)]


def test_the_panels_add_up_what_the_nodes_hold() -> None:
    holder = pod("a", "gpu-1", GPU)
    shared = pod(
        "b",
        "share-1",
        {"aliyun.com/gpu-mem": 10},
        grants={"main": (Grant("GPU-share-1-0", 0, 10, 10_240),)},
    )
    nodes = [
        gpu_node(gpus=2),
        shared_node(cards=2, units=40),
        gpu_node("gpu-2", 1, ready="False"),
        cpu_node(),
    ]
    gpus = [
        reading(index=0, holder=holder),
        reading(index=1, ratio=0.0),
        reading("gpu-2", 0, ratio=None, used_mib=None),
    ]
    board = board_state(nodes, [holder, shared], gpus=gpus).overview
    assert (board.gpu_nodes.total, board.gpu_nodes.allocated, board.gpu_nodes.unhealthy) == (
        3,
        2,
        1,
    )
    assert (board.gpus.total, board.gpus.allocated) == (5, 1.25)
    assert (board.gpu_memory.allocated_mib, board.gpu_memory.used_mib) == (CARD_MIB + 10_240, 2000)
    assert (board.gpu_util_percent, board.gpus_reporting) == (25, 2), (
        "the mean over reporting GPUs, not over nodes"
    )


def test_a_cluster_without_gpus_shows_zeros_that_were_observed_and_unknown_percentages() -> None:
    board = board_state([cpu_node()]).overview
    assert (board.gpus.total, board.gpus.allocated, board.gpu_util_percent) == (0, 0, None)
    assert board.gpu_memory.total_mib is None
    assert board.sentence.code == "cluster-none"


def test_an_idle_gpu_is_allocated_and_quiet_for_an_hour_a_free_one_is_not_idle() -> None:
    holder = structs.replace(pod("a", "gpu-1", GPU), started_at=EPOCH - 9999)
    gpus = [
        reading(ratio=0.0, holder=holder, idle_since=EPOCH - 3700),
        reading(index=1, ratio=0.0, idle_since=EPOCH - 9999),
    ]
    board = board_state([gpu_node(gpus=2)], [holder], gpus=gpus).overview
    assert board.idle_gpus == 1
    assert board.sentence.text == "1 of 2 GPUs allocated, 1 of them idle for over an hour."


def test_jobs_are_counted_in_four_states() -> None:
    jobs = [
        training_job(f"j{n}", 0, state=state)
        for n, state in enumerate(("Running", "Suspended", "Queuing", "Failed", "Succeeded"))
    ]
    count = board_state(jobs=jobs).overview.jobs
    assert (count.running, count.pending, count.succeeded, count.failed) == (1, 2, 1, 1)


def test_top_consumers_are_namespaces_by_gpus_held() -> None:
    pods = [
        pod("a", "gpu-1", GPU),
        *(pod(f"b{n}", "gpu-1", GPU, namespace="team-b") for n in range(2)),
        pod("waits", "", GPU, namespace="team-z"),
    ]
    board = board_state(
        [gpu_node(gpus=4)], pods, gpus=[reading(index=n) for n in range(4)]
    ).overview
    assert [(each.namespace, each.gpus, each.gpu_memory_mib) for each in board.top_consumers] == [
        ("team-b", 2, 2 * CARD_MIB),
        ("team-a", 1, CARD_MIB),
    ]


def test_pools_add_up_by_model_and_mode() -> None:
    nodes = [gpu_node("gpu-1", 2), gpu_node("gpu-2", 2), shared_node()]
    board = board_state(
        nodes, gpus=[reading(node, n) for node in ("gpu-1", "gpu-2") for n in range(2)]
    ).overview
    assert [(pool.model, pool.mode, pool.nodes, pool.gpus) for pool in board.pools] == [
        ("NVIDIA H200", "exclusive", 2, 4),
        ("NVIDIA A100", "share", 1, 2),
    ]


@pytest.mark.parametrize(
    ("node", "gpus", "free"),
    [
        (
            gpu_node(gpus=3),
            [reading(index=0), reading(index=1, healthy=False), reading(index=2)],
            2,
        ),
        (gpu_node(gpus=2, ready="False"), [reading(index=n) for n in range(2)], 0),
        (gpu_node(gpus=2, cordoned=True), [reading(index=n) for n in range(2)], 0),
        (gpu_node(gpus=2), [], 2),
    ],
    ids=[
        "a broken card",
        "a node that is not ready",
        "a cordoned node",
        "the cards' health is unknown",
    ],
)
def test_only_gpus_that_could_be_had_are_free(
    node: Node, gpus: list[GpuReading], free: float
) -> None:
    (pool,) = board_state([node], gpus=gpus).overview.pools
    assert (pool.gpus, pool.gpus_allocated, pool.gpus_free) == (len(gpus) or 2, 0, free)


def test_held_gpus_are_not_free_whether_or_not_their_place_is_known() -> None:
    seen, unseen = pod("a", "gpu-1", GPU), pod("b", "gpu-1", GPU)
    gpus = [reading(index=0, holder=seen), *(reading(index=n) for n in (1, 2))]
    (pool,) = board_state([gpu_node(gpus=3)], [seen, unseen], gpus=gpus).overview.pools
    assert (pool.gpus_allocated, pool.gpus_free, pool.gpus_free_unnamed, pool.gpus_unhealthy) == (
        2,
        0,
        1,
        0,
    )


def test_gpus_that_a_node_withholds_are_not_free() -> None:
    node = gpu_node(gpus=4)
    node = Node(
        node.name,
        capacity=node.capacity,
        allocatable={**node.allocatable, "nvidia.com/gpu": 2},
        conditions=node.conditions,
    )
    (pool,) = board_state([node], [pod("a", "gpu-1", GPU)]).overview.pools
    assert (pool.gpus_free, pool.gpus_unhealthy) == (1, 2)


def test_a_shared_card_is_not_free_and_neither_is_a_draining_one() -> None:
    holder = pod(
        "b",
        "share-1",
        {"aliyun.com/gpu-mem": 10},
        grants={"main": (Grant("GPU-share-1-0", 0, 10, 10_240),)},
    )
    assert [pool.gpus_free for pool in board_state([shared_node()], [holder]).overview.pools] == [1]
    slot = GpuSlot(0, "GPU-0", 0, "NVIDIA A100", 40_960, 40, health="Unhealthy", mode="draining")
    node = Node(
        "n",
        capacity=shared_node(cards=1).capacity,
        conditions=shared_node().conditions,
        gpus=(slot,),
    )
    assert [pool.gpus_free for pool in board_state([node]).overview.pools] == [0]


def test_faulty_gpus_are_named_with_their_reason() -> None:
    board = board_state([gpu_node(gpus=1)], gpus=[reading(healthy=False, last_xid=79)]).overview
    assert [(each.node, each.index, each.reason) for each in board.faulty_gpus] == [
        ("gpu-1", 0, "XID 79")
    ]


def test_gpus_that_a_node_withholds_are_faulty_without_being_named() -> None:
    node = gpu_node(gpus=4)
    node = Node(
        node.name,
        capacity=node.capacity,
        allocatable={**node.allocatable, "nvidia.com/gpu": 2},
        conditions=node.conditions,
    )
    seen = board_state([node], [pod("a", "gpu-1", GPU)])
    assert states(seen) == [ALLOCATED, FREE, UNHEALTHY, UNHEALTHY]
    (fault,) = seen.overview.faulty_gpus
    assert (fault.node, fault.index, fault.reason) == (
        "gpu-1",
        None,
        "2 of 4 GPUs not offered to pods; which ones is unknown",
    )


def test_recent_warnings_are_of_the_last_hour_newest_first() -> None:
    def event(name: str, at: float, type_: str = "Warning") -> Event:
        return Event(
            "team-a",
            name,
            type=type_,
            reason="BackOff",
            message=name,
            object_kind="Pod",
            object_name="x",
            at=at,
        )

    unlike = msgspec.structs.replace(event("b", EPOCH - 5), reason="Failed")
    events = (
        event("old", EPOCH - 3601),
        event("a", EPOCH - 60),
        unlike,
        event("calm", EPOCH, "Normal"),
    )
    assert [each.message for each in board_state(events=events).overview.recent_warnings] == [
        "b",
        "a",
    ]


def test_warnings_alike_are_one_line_with_their_number_and_a_way_to_the_newest() -> None:
    job = training_job()
    mine = pod("bert-worker-0", "gpu-1", GPU, job=job)

    def event(kind: str, name: str, reason: str, at: float, space: str = "team-a") -> Event:
        about = {"object_kind": kind, "object_name": name, "object_namespace": space}
        return Event(
            space,
            f"{name}.{at}",
            type="Warning",
            reason=reason,
            message=name,
            count=3,
            at=EPOCH - at,
            **about,
        )

    events = (
        event("Pod", "a", "BackOff", 50),
        event("Pod", "a", "BackOff", 40),
        event("Pod", "bert-worker-0", "BackOff", 30),
        event("Pod", "a", "Failed", 60),
        event("Pod", "a", "BackOff", 70, "team-b"),
        event("PyTorchJob", "bert", "Restarting", 80),
        event("Node", "gpu-1", "GPUUnhealthy", 90, ""),
    )
    seen = board_state([gpu_node()], [mine], [job], events=events).overview.recent_warnings
    assert [
        (each.namespace, each.object, each.reason, each.count, each.objects, each.job, each.node)
        for each in seen
    ] == [
        ("team-a", "Pod/bert-worker-0", "BackOff", 9, 2, "pytorchjob/bert", ""),
        ("team-a", "Pod/a", "Failed", 3, 1, "", ""),
        ("team-b", "Pod/a", "BackOff", 3, 1, "", ""),
        ("team-a", "PyTorchJob/bert", "Restarting", 3, 1, "pytorchjob/bert", ""),
        ("", "Node/gpu-1", "GPUUnhealthy", 3, 1, "", "gpu-1"),
    ]


def test_a_cell_is_free_allocated_shared_or_unhealthy() -> None:
    holder = pod("a", "gpu-1", GPU)
    gpus = [reading(index=0, holder=holder), reading(index=1), reading(index=2, healthy=False)]
    assert states(board_state([gpu_node(gpus=3)], [holder], gpus=gpus)) == [
        ALLOCATED,
        FREE,
        UNHEALTHY,
    ]
    shared = pod(
        "b",
        "share-1",
        {"aliyun.com/gpu-mem": 10},
        grants={"main": (Grant("GPU-share-1-0", 0, 10, 10_240),)},
    )
    assert states(board_state([shared_node()], [shared])) == [SHARED, FREE]


def test_a_draining_card_is_no_fault() -> None:
    node = shared_node(cards=1)
    slot = GpuSlot(0, "GPU-0", 0, "NVIDIA A100", 40_960, 40, health="Unhealthy", mode="draining")
    assert states(
        board_state([Node("n", capacity=node.capacity, conditions=node.conditions, gpus=(slot,))])
    ) == [DRAINING]


def test_the_cells_of_a_silent_node_are_unreachable_and_of_a_cordoned_one_closed() -> None:
    assert states(
        board_state([gpu_node(gpus=2, ready="Unknown")], gpus=[reading(index=n) for n in range(2)])
    ) == [UNREACHABLE, UNREACHABLE]
    holder = pod("a", "gpu-1", GPU)
    gpus = [reading(index=0, holder=holder), reading(index=1)]
    assert states(board_state([gpu_node(gpus=2, cordoned=True)], [holder], gpus=gpus)) == [
        ALLOCATED,
        CLOSED,
    ]
    assert states(board_state([gpu_node(gpus=2, ready="False")], [holder], gpus=gpus)) == [
        ALLOCATED,
        CLOSED,
    ]


@pytest.mark.parametrize(
    ("held", "named", "expected"),
    [
        (1, False, [ALLOCATED, FREE]),
        (1, True, [UNKNOWN, UNKNOWN]),
        (2, True, [ALLOCATED, ALLOCATED]),
    ],
    ids=[
        "cards without identity are filled in order",
        "which card is held cannot be printed",
        "all cards must be held",
    ],
)
def test_held_gpus_without_a_seat_are_never_shown_free(
    held: int, named: bool, expected: list[int]
) -> None:
    gpus = [reading(index=n) for n in range(2)] if named else []
    assert (
        states(
            board_state(
                [gpu_node(gpus=2)], [pod("a", "gpu-1", {"nvidia.com/gpu": held})], gpus=gpus
            )
        )
        == expected
    )


def test_a_cell_carries_its_figures_and_the_share_of_each_holder() -> None:
    holder = pod("a", "gpu-1", GPU)
    seen = board_state(
        [gpu_node(gpus=1)],
        [holder],
        gpus=[reading(used_mib=CARD_MIB / 2, ratio=0.973, holder=holder, idle_since=EPOCH - 5)],
    )
    assert seen.gpu_map.teams == ["team-a"]
    assert cells(seen) == [(ALLOCATED, 97, 50, 60, 5, 0)]


def test_a_cell_of_a_shared_card_has_the_share_of_each_holder() -> None:
    holder = pod(
        "b",
        "share-1",
        {"aliyun.com/gpu-mem": 10},
        grants={"main": (Grant("GPU-share-1-0", 0, 10, 10_240),)},
    )
    assert cells(board_state([shared_node()], [holder])) == [
        (SHARED, None, None, None, 0, [(0, 0.25)]),
        (FREE, None, None, None, 0, []),
    ]


def test_indexes_are_reported_only_where_a_card_is_missing() -> None:
    seen = board_state(
        [gpu_node("a", 2), gpu_node("b", 2)],
        gpus=[*(reading("a", n) for n in (0, 1)), *(reading("b", n) for n in (0, 3))],
    )
    assert [node.indexes for node in seen.gpu_map.nodes] == [[], [0, 3]]


def test_words_stand_once_in_the_lists_of_the_map() -> None:
    answer = board_state([gpu_node("a"), gpu_node("b", ready="False"), shared_node("c")]).gpu_map
    rows = [
        (
            each.name,
            answer.models[each.model],
            answer.modes[each.mode],
            answer.statuses[each.status],
        )
        for each in answer.nodes
    ]
    assert rows == [
        ("a", "", "exclusive", "Ready"),
        ("b", "", "exclusive", "NotReady"),
        ("c", "NVIDIA A100", "share", "Ready"),
    ]


def test_forty_thousand_cells_fit_into_a_megabyte() -> None:
    assert (
        len(msgspec.json.encode(BoardState(large_cluster(other_pods=0), EPOCH).gpu_map)) < 1_000_000
    )


def test_nodes_without_gpus_are_not_on_the_map() -> None:
    assert [node.name for node in board_state([cpu_node(), gpu_node()]).gpu_map.nodes] == ["gpu-1"]


def half_silent() -> BoardState:
    """A job holds two whole cards of one node and one of another. Two of the first node's four
    cards report their used memory, the other node's card does not.
    """
    job = training_job(workers=2)
    pods = [
        pod("bert-worker-0", "gpu-1", {"nvidia.com/gpu": 2}, job=job),
        pod("bert-worker-1", "gpu-2", {"nvidia.com/gpu": 1}, job=job),
    ]
    gpus = [
        reading(index=0, used_mib=40_960.0, holder=pods[0]),
        reading(index=1, used_mib=None, ratio=None, holder=pods[0]),
    ]
    gpus += [reading(index=2, used_mib=0.0), reading(index=3, used_mib=None, ratio=None)]
    gpus.append(reading("gpu-2", 0, None, None, holder=pods[1]))
    return BoardState(cluster([gpu_node(), gpu_node("gpu-2", 1)], pods, [job], gpus), EPOCH)


def test_used_memory_is_a_part_of_the_cards_that_report_it() -> None:
    """Unknown use does not count as 0: half of one card is a quarter of the two that report, and
    half of the one that the job holds.
    """
    seen = half_silent()
    memory = seen.overview.gpu_memory
    assert (memory.used_mib, memory.used_of_mib, memory.total_mib) == (
        40_960,
        2 * CARD_MIB,
        5 * CARD_MIB,
    )
    nodes = {entry.row.name: entry.row for entry in seen.nodes.entries}
    assert nodes["gpu-1"].gpu_memory_used_of_mib == 2 * CARD_MIB
    assert (nodes["gpu-2"].gpu_memory_used_mib, nodes["gpu-2"].gpu_memory_used_of_mib) == (
        None,
        None,
    )
    (job,) = [entry.row for entry in seen.jobs.entries]
    holders = [entry.row for entry in seen.holders.entries]
    (group,) = [entry.row for entry in holder_groups(holders, "owner").entries]
    for row in (job, group):
        assert (
            row.gpu_memory_used_mib,
            row.gpu_memory_used_of_mib,
            row.gpu_memory_allocated_mib,
        ) == (40_960, CARD_MIB, 3 * CARD_MIB)
    assert {row.name: row.gpu_memory_used_of_mib for row in holders} == {
        "bert-worker-0": CARD_MIB,
        "bert-worker-1": None,
    }
    (share,) = [each for each in samples_of(seen) if each.query == "instance-gpu-memory-percent"]
    assert share.value == 50
