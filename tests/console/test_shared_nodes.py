"""Shared GPUs on the boards: which pods use which card with how much memory, what is free, and why
a pod waits.
"""

from __future__ import annotations

import msgspec
import pytest
from tests.console.clusters import EPOCH, cluster, gpu_node, pod, training_job
from tests.console.shared_nodes import T4_MIB, notebook, t4
from tests.rules.sharing import container, node, placed
from tests.rules.sharing import pod as sharing_pod

from fairlead.console.boards.board_state import BoardState
from fairlead.console.pages.nodes import GpuRow, NodeDetail
from fairlead.model.devices.gpu import GpuHolder, GpuReading, Grant
from fairlead.model.event import Event
from fairlead.model.jobs.job import Role
from fairlead.model.node import Condition, Node
from fairlead.model.pod import Pod
from fairlead.model.resources import GPU_MEMORY

UNSCHEDULABLE = (
    Condition(
        "PodScheduled",
        "False",
        "Unschedulable",
        "0/2 nodes are available: 2 Insufficient aliyun.com/gpu-mem.",
    ),
)


def detail(on: Node, *pods: Pod, **more: object) -> NodeDetail:
    found = BoardState(cluster([on], pods, **more), EPOCH).node(on.name)  # type: ignore[arg-type]
    assert found is not None
    return found


def card(of: NodeDetail, index: int = 0) -> GpuRow:
    return next(row for row in of.gpus if row.index == index)


def test_three_notebooks_on_one_card_and_what_is_left() -> None:
    seen = detail(t4(), *(notebook(number) for number in (1, 2, 3)))
    row = card(seen)
    assert (row.mode, row.units, row.units_allocated, row.units_free) == ("shared", 14, 12, 2)
    assert (row.memory_total_mib, row.memory_allocated_mib, row.memory_free_mib) == (
        T4_MIB,
        3 * 4308,
        2154,
    )
    assert [(each.name, each.container, each.units, each.allocated_mib) for each in row.pods] == [
        (f"notebook-{number}", "main", 4, 4308) for number in (1, 2, 3)
    ]
    assert (seen.node.gpu_mode, seen.node.gpus_allocated, seen.node.gpu_memory_allocated_mib) == (
        "share",
        0.8571,
        3 * 4308,
    )
    assert (seen.node.gpu_unit, seen.node.gpu_units_total, seen.node.gpu_units_allocated) == (
        "GiB",
        14,
        12,
    )
    assert seen.sharing is not None
    assert (
        seen.sharing.offers,
        seen.sharing.units_free,
        seen.sharing.largest_free,
        seen.sharing.largest_free_mib,
    ) == (True, 2, 2, 2154)


def test_each_container_has_its_own_use_and_the_device_its_own() -> None:
    holders = (
        GpuHolder("default", "notebook-1", "main", "share", 3193.0, 4308.0, 0.1),
        GpuHolder("default", "notebook-2", "main", "share"),
    )
    reading = GpuReading("t4", 0, "GPU-t4-0", "Tesla T4", T4_MIB, 6386.0, 0.4, holders=holders)
    row = card(detail(t4(), notebook(1), notebook(2), gpus=[reading]))
    assert (row.memory_used_mib, row.util_percent) == (6386, 40)
    assert [(each.used_mib, each.util_percent) for each in row.pods] == [(3193, 10), (None, None)]


def test_a_pod_on_an_unknown_card_is_pending_and_takes_no_card_s_room() -> None:
    stray = msgspec.structs.replace(sharing_pod("stray", 6), node="t4", phase="Running")
    seen = detail(t4(), notebook(1), stray)
    assert [
        (each.name, each.pending, each.gpu_indexes, each.units, each.gpu_memory_allocated_mib)
        for each in seen.pods
    ] == [
        ("notebook-1", False, [0], 4, 4308),
        ("stray", True, [], 6, None),
    ]
    assert (seen.node.gpu_units_allocated, seen.node.gpu_units_pending) == (4, 6)
    assert card(seen).memory_allocated_mib == 4308


def test_a_whole_card_s_pod_whose_card_is_not_named_is_not_called_pending() -> None:
    (row,) = detail(gpu_node(), pod("a", "gpu-1", {"nvidia.com/gpu": 1})).pods
    assert (row.pending, row.gpu_indexes, row.units) == (False, [], 0)


def test_a_terminating_pod_keeps_what_it_holds() -> None:
    seen = detail(t4(), notebook(1, deleted_at=EPOCH - 5))
    assert (seen.pods[0].terminating, seen.pods[0].status) == (True, "Terminating")
    assert card(seen).units_free == 10


def test_an_init_container_that_ends_is_booked_once() -> None:
    made = sharing_pod(
        "p", containers=[container("main", 4)], init_containers=(container("setup", 6),)
    )
    seen = detail(t4(), placed(made, "t4", {"main": [(0, 4)], "setup": [(0, 6)]}))
    assert (card(seen).units_allocated, card(seen).units_free) == (6, 8)


@pytest.mark.parametrize(
    ("slot", "reason"),
    [({"mode": "draining"}, ""), ({"health": "Unhealthy", "reason": "XID 79"}, "XID 79")],
    ids=["draining", "unhealthy"],
)
def test_a_card_that_takes_nothing_new_has_nothing_free(slot: dict[str, str], reason: str) -> None:
    seen = detail(t4(**slot), notebook(1))
    row = card(seen)
    assert (row.units_allocated, row.units_free, row.memory_free_mib, row.reason) == (
        4,
        0,
        0,
        reason,
    )
    assert seen.sharing is not None and (
        seen.sharing.units_free,
        seen.sharing.largest_free_mib,
    ) == (0, 0)
    is_draining = "mode" in slot
    assert (seen.node.gpus_draining, row.health) == (
        (1, "Healthy") if is_draining else (0, "Unhealthy")
    )


def test_a_device_that_reports_a_fault_gives_nothing_though_the_inventory_calls_it_well() -> None:
    reading = GpuReading("t4", 0, "GPU-t4-0", healthy=False, last_xid=79)
    assert (card(detail(t4(), gpus=[reading])).units_free, card(detail(t4())).units_free) == (0, 14)


def test_a_card_that_an_operator_took_out_is_unhealthy_and_gives_nothing() -> None:
    two = node("n", (14, 14))
    seen = detail(two, withheld={"n": (1,)})
    assert [(row.health, row.reason, row.units_free) for row in seen.gpus] == [
        ("Healthy", "", 14),
        ("Unhealthy", "taken out by an operator", 0),
    ]
    assert seen.node.gpus_unhealthy == 1


def test_a_card_that_shrank_below_its_grants_is_overcommitted() -> None:
    shrunk = node("t4", (3,), slots={0: {"memory_mib": 3231}})
    seen = detail(shrunk, notebook(1))
    assert (card(seen).units_allocated, card(seen).units_free, card(seen).flags) == (
        4,
        0,
        ["overcommitted"],
    )
    assert seen.node.gpu_units_overcommitted == 1


def test_a_node_whose_labels_admit_no_pod_is_reported_so() -> None:
    closed = msgspec.structs.replace(t4(), labels={"cgpu": "false", "gpushare": "true"})
    seen = detail(closed, notebook(1)).sharing
    assert seen is not None and (seen.offers, seen.units_free) == (False, 0)
    assert seen.conflict == (
        "label cgpu=false overrides gpushare=true: the GPUs of this node are exclusive"
    )


def test_a_node_that_shares_nothing_has_no_sharing() -> None:
    assert detail(gpu_node()).sharing is None


def test_core_percents_are_unknown_where_the_node_offers_none() -> None:
    held = msgspec.structs.replace(
        sharing_pod("p", 4, core=30),
        node="t4",
        grants={"main": (Grant("GPU-t4-0", 0, 4, None, 30),)},
    )
    with_cores, without = node("t4", (14,), core=True), t4()
    row = card(detail(with_cores, held))
    assert (row.core_allocated_percent, row.core_free_percent, row.pods[0].core_percent) == (
        30,
        70,
        30,
    )
    assert card(detail(without, notebook(1))).core_free_percent is None


def test_a_whole_card_has_no_units_though_its_inventory_counts_them() -> None:
    whole = msgspec.structs.replace(gpu_node("t4", 1), gpus=t4(mode="exclusive").gpus)
    row = card(detail(whole))
    assert (row.units, row.units_free, row.memory_free_mib) == (0, 0, T4_MIB)
    (listed,) = (entry.row for entry in BoardState(cluster([whole]), EPOCH).gpus.entries)
    assert listed.units == 0


def test_a_free_whole_card_is_free_in_full_and_a_held_one_not_at_all() -> None:
    readings = [GpuReading("gpu-1", index, f"G{index}", "H200", 1000.0) for index in range(2)]
    holder = pod("a", "gpu-1", {"nvidia.com/gpu": 1}, grants={"main": (Grant("G0", 0, 0),)})
    seen = detail(gpu_node(gpus=2), holder, gpus=readings)
    assert [row.memory_free_mib for row in seen.gpus] == [0, 1000]
    broken = detail(
        gpu_node(gpus=1), gpus=[GpuReading("gpu-1", 0, "G0", "H200", 1000.0, healthy=False)]
    )
    assert [row.memory_free_mib for row in broken.gpus] == [0], "free, and not to be had"
    unnamed = detail(gpu_node(gpus=2), pod("a", "gpu-1", {"nvidia.com/gpu": 1}), gpus=readings)
    assert [row.memory_free_mib for row in unnamed.gpus] == [None, None], (
        "either may be the held one"
    )


def test_events_are_those_of_this_very_node() -> None:
    def event(name: str, uid: str, about: str = "t4", kind: str = "Node", at: float = 1.0) -> Event:
        return Event(
            "default",
            name,
            type="Warning",
            reason="R",
            message=name,
            object_kind=kind,
            object_name=about,
            object_uid=uid,
            at=at,
        )

    events = (
        event("kubelet", "t4", at=2.0),
        event("plugin", "uid-t4", at=3.0),
        event("old", "uid-before"),
        event("other", "", about="t5"),
        event("pod", "", kind="Pod"),
    )
    assert [row.message for row in detail(t4(), events=events).events] == ["plugin", "kubelet"]


def waiting(units: int, **more: object) -> tuple[BoardState, str]:
    job = msgspec.structs.replace(
        training_job("nb", 1, state="Created"),
        roles=(Role("worker", 1, limits={GPU_MEMORY: units}),),
    )
    asking = pod("nb-worker-0", "", {GPU_MEMORY: units}, job=job, conditions=UNSCHEDULABLE)
    seen = BoardState(
        cluster([t4(), gpu_node()], [*(notebook(n) for n in (1, 2, 3)), asking], [job], **more),
        EPOCH,
    )  # type: ignore[arg-type]
    row = seen.job_list[0].waiting
    assert row is not None and (row.reason, row.message) == (
        "Unschedulable",
        UNSCHEDULABLE[0].message,
    )
    instance = seen.job("team-a", "pytorchjob", "nb")
    assert instance is not None and instance.instances[0].waiting == row
    return seen, row.room


def test_a_pod_that_waits_for_a_shared_card_gets_the_numbers_of_all_nodes() -> None:
    seen, room = waiting(4)
    no_room = "1 Insufficient aliyun.com/gpu-mem on one GPU: need 4 GiB, largest free 2 GiB"
    assert room == (
        f"0/2 nodes have room: {no_room}, 1 node does not share GPUs (label cgpu=true missing)"
    )
    assert seen.job_list[0].gpu_memory_requested_mib == 4096
    why = seen.job_list[0].waiting
    assert why is not None and why.sentence is not None
    assert why.sentence.code == "why-share-memory"
    assert why.sentence.text == (
        "needs 4 GiB on one GPU; the only node that shares GPUs, t4, has 2 GiB left on one"
    )


def test_where_a_shared_card_has_room_it_is_something_else_that_keeps_the_pod() -> None:
    assert waiting(2)[1] == ""


def test_a_pod_that_requests_whole_cards_gets_nothing_about_shared_ones() -> None:
    job = training_job("big", 1, state="Created")
    asking = pod("big-worker-0", "", {"nvidia.com/gpu": 8}, job=job, conditions=UNSCHEDULABLE)
    row = BoardState(cluster([t4()], [asking], [job]), EPOCH).job_list[0].waiting
    assert row is not None and row.room == ""


def test_units_are_mib_where_the_cluster_counts_in_mib() -> None:
    job = msgspec.structs.replace(
        training_job("nb", 1, state="Created"), roles=(Role("worker", 2, limits={GPU_MEMORY: 500}),)
    )
    mib = msgspec.structs.replace(
        node("n", (15_079,), slots={0: {"memory_mib": 15_079}}),
        annotations={"fairlead.io/gpu-mem-unit": "MiB"},
    )
    assert BoardState(cluster([mib], [], [job]), EPOCH).job_list[0].gpu_memory_requested_mib == 1000


def test_a_pool_of_shared_cards_shows_the_most_of_any_single_card() -> None:
    ready = (Condition("Ready", "True"),)
    changing = node(
        "t5",
        (14, 4),
        slots={
            0: {"mode": "draining", "model": "Tesla T4"},
            1: {"memory_mib": 4800, "model": "Tesla T4"},
        },
    )
    nodes = [
        msgspec.structs.replace(each, conditions=ready) for each in (t4(), changing, gpu_node())
    ]
    pools = {
        pool.mode: pool for pool in BoardState(cluster(nodes, [notebook(1)]), EPOCH).overview.pools
    }
    assert pools["share"].largest_free_mib == 10_770, (
        "10 of 14 units of the one card that takes pods"
    )
    assert pools["exclusive"].largest_free_mib is None


def test_the_list_of_gpus_has_units_and_memory_granted() -> None:
    (row,) = (entry.row for entry in BoardState(cluster([t4()], [notebook(1)]), EPOCH).gpus.entries)
    assert (row.units, row.units_allocated, row.memory_allocated_mib, row.holders) == (
        14,
        4,
        4308,
        ["default/notebook-1"],
    )
