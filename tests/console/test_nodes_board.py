"""The Nodes board: rows, filters, unknown values, and one node in full."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.console.clusters import (
    CARD_MIB,
    EPOCH,
    cluster,
    cpu_node,
    gpu_node,
    pod,
    reading,
    shared_node,
    training_job,
)

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.rows import matching
from fairlead.console.pages.list_query import ListQuery
from fairlead.model.devices.gpu import GpuHolder, GpuInstance, GpuMode, GpuReading, GpuSlot, Grant
from fairlead.model.node import Condition, Node

GPU = {"nvidia.com/gpu": 1}


def board_state(*args: object, **more: object) -> BoardState:
    return BoardState(cluster(*args, **more), EPOCH)  # type: ignore[arg-type]


def rows_by_name(seen: BoardState) -> dict[str, object]:
    return {entry.row.name: entry.row for entry in seen.nodes.entries}


def found(seen: BoardState, q: str = "", **filters: str) -> list[str]:
    asked = ListQuery(
        q=q, filters={name: frozenset({value.lower()}) for name, value in filters.items()}
    )
    return [row.name for row in matching(seen.nodes, asked)]


def test_an_exclusive_card_counts_whole() -> None:
    row = (
        board_state(
            [gpu_node(gpus=2)], [pod("a", "gpu-1", GPU)], gpus=[reading(index=0), reading(index=1)]
        )
        .nodes.entries[0]
        .row
    )
    assert (row.gpus_total, row.gpus_allocated) == (2, 1)
    assert (row.gpu_memory_total_mib, row.gpu_memory_allocated_mib, row.gpu_memory_used_mib) == (
        2 * CARD_MIB,
        CARD_MIB,
        2000,
    )
    assert (row.gpu_util_percent, row.gpus_reporting) == (50, 2)


def test_a_shared_card_counts_by_its_grants() -> None:
    holder = pod(
        "a",
        "share-1",
        {"aliyun.com/gpu-mem": 10},
        grants={"main": (Grant("GPU-share-1-0", 0, 10, 10_240),)},
    )
    row = board_state([shared_node(cards=2, units=40)], [holder]).nodes.entries[0].row
    assert (row.gpu_mode, row.gpus_total, row.gpus_allocated, row.gpu_memory_allocated_mib) == (
        "share",
        2,
        0.25,
        10_240,
    )


def test_what_is_not_reported_is_unknown_and_not_zero() -> None:
    row = board_state([gpu_node()]).nodes.entries[0].row
    assert (
        row.gpu_memory_total_mib,
        row.gpu_memory_used_mib,
        row.gpu_util_percent,
        row.gpus_reporting,
    ) == (None, None, None, 0)
    assert row.gpus_allocated == 0, "that no pod holds a GPU was observed"


def test_nodes_with_gpus_come_first_and_the_others_are_there() -> None:
    seen = board_state([cpu_node("a-cpu"), gpu_node("b-gpu"), gpu_node("c-gpu")])
    assert found(seen) == ["b-gpu", "c-gpu", "a-cpu"]
    assert seen.nodes.facets["gpu_node"] == ["b-gpu", "c-gpu"]


@pytest.mark.parametrize(
    ("ready", "word"), [("True", "Ready"), ("False", "NotReady"), ("Unknown", "Unknown")]
)
def test_the_status_is_one_of_three_words_and_cordoned_is_no_status(ready: str, word: str) -> None:
    row = board_state([gpu_node(ready=ready, cordoned=True)]).nodes.entries[0].row
    assert (row.status, row.schedulable) == (word, False)


def test_the_address_is_the_internal_one_else_the_first() -> None:
    malformed = Node("odd", addresses=(("ExternalIP", "1.2.3.4"), ("Hostname", "odd")))
    rows = rows_by_name(board_state([gpu_node(), malformed]))
    assert (rows["gpu-1"].ip, rows["odd"].ip) == ("10.0.0.1", "1.2.3.4")  # type: ignore[attr-defined]


def test_the_role_comes_from_both_labels() -> None:
    node = gpu_node(labels={"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"})
    assert board_state([node, cpu_node()]).nodes.entries[0].row.role == "gpu,worker"


@pytest.mark.parametrize("q", ["gpu-1", "GPU-1", "10.0.0.1", "pool:Fast", "pool=fast", "h200"])
def test_search_finds_by_name_address_label_and_model(q: str) -> None:
    seen = board_state([gpu_node(labels={"pool": "fast"}), cpu_node()], gpus=[reading()])
    assert found(seen, q) == ["gpu-1"]


def test_search_of_a_label_needs_its_value() -> None:
    assert found(board_state([gpu_node(labels={"pool": "fast"})]), "pool:slow") == []


def test_the_card_filter_takes_indexes_and_uuids() -> None:
    seen = board_state(
        [gpu_node("gpu-1", 1), gpu_node("gpu-2", 2)],
        gpus=[reading("gpu-1"), reading("gpu-2", 0), reading("gpu-2", 1)],
    )
    assert found(seen, GPU="1") == ["gpu-2"]
    assert found(seen, GPU="gpu-GPU-1-0") == ["gpu-1"]
    assert seen.nodes.facets["GPU"] == ["0", "1"]


def test_filters_of_different_names_must_all_match() -> None:
    seen = board_state([gpu_node("gpu-1"), gpu_node("gpu-2", ready="False"), shared_node()])
    assert found(seen, mode="exclusive", status="Ready") == ["gpu-1"]


def test_a_node_whose_cards_differ_states_the_mix_and_answers_to_both() -> None:
    node = shared_node()
    slots = (node.gpus[0], GpuSlot(1, "GPU-1", 1, "NVIDIA A100", 40_960, 0, mode="exclusive"))
    mixed = Node(
        node.name,
        capacity={**node.capacity, "nvidia.com/gpu": 1},
        allocatable=node.allocatable,
        gpus=slots,
    )
    seen = board_state([mixed])
    assert seen.nodes.entries[0].row.gpu_mode == "exclusive,share"
    assert found(seen, mode="share") == found(seen, mode="exclusive") == ["share-1"]


def test_markup_in_a_label_stays_text() -> None:
    label = "<img src=x onerror=alert(1)>"
    detail = board_state([gpu_node(labels={"note": label})]).node("gpu-1")
    assert detail is not None and detail.labels["note"] == label


def test_the_sentence_counts_nodes_gpus_and_faults() -> None:
    seen = board_state(
        [gpu_node(gpus=1), gpu_node("gpu-2", ready="False")],
        gpus=[reading(healthy=False, last_xid=79)],
    )
    sentence = seen.nodes_sentence
    assert sentence.code == "nodes-unhealthy-faulty"
    assert sentence.text == (
        "2 GPU nodes with 5 GPUs, 0 allocated; 1 node not ready; 1 node with a faulty GPU."
    )
    assert sentence.values == {"nodes": 2, "gpus": 5, "allocated": 0, "unhealthy": 1, "faulty": 1}


def test_a_cluster_without_gpus_is_reported() -> None:
    assert board_state([cpu_node()]).nodes_sentence.code == "nodes-none"


def test_one_node_shows_its_cards_and_their_holders() -> None:
    job = training_job()
    holder = pod("bert-worker-0", "gpu-1", GPU, job=job)
    seen = board_state(
        [gpu_node(gpus=1)], [holder], [job], [reading(holder=holder, last_xid=79, healthy=False)]
    )
    detail = seen.node("gpu-1")
    assert detail is not None
    (card,) = detail.gpus
    assert (card.health, card.reason, card.util_percent, card.memory_allocated_mib) == (
        "Unhealthy",
        "XID 79",
        50,
        CARD_MIB,
    )
    assert card.last_xid is not None and (card.last_xid.code, card.last_xid.at) == (
        79,
        "2026-01-05T07:59:00Z",
    )
    assert [(each.name, each.job, each.allocated_mib, each.used_mib) for each in card.pods] == [
        ("bert-worker-0", "pytorchjob/bert", CARD_MIB, 1000)
    ]
    assert [(each.name, each.gpus) for each in detail.pods] == [("bert-worker-0", 1)]


def test_a_divided_card_shows_its_instances_and_their_holders() -> None:
    holder = pod("part", "gpu-1", {"nvidia.com/mig-1g.18gb": 1})
    seen = GpuHolder("team-a", "part", "main", GpuMode.MIG, 9000, 17894, 0.5)
    gone = GpuHolder("team-a", "gone", "main", GpuMode.MIG, 0, 35942, 0.0)
    instances = (
        GpuInstance(7, "1g.18gb", 17894, 9004, 0.5, (seen,)),
        GpuInstance(3, "2g.35gb", 35942, 4, 0.0, (gone,)),
    )
    card = GpuReading(
        "gpu-1",
        0,
        "GPU-a",
        memory_total_mib=53836,
        memory_used_mib=9008,
        holders=(seen, gone),
        instances=instances,
    )
    node = structs.replace(
        gpu_node(), capacity={"nvidia.com/mig-1g.18gb": 1, "nvidia.com/mig-2g.35gb": 1}
    )
    detail = board_state([node], [holder], gpus=[card]).node("gpu-1")
    assert detail is not None and detail.node.gpu_mode == "mig"
    (row,) = detail.gpus
    assert [
        (each.id, each.profile, each.memory_used_mib, each.util_percent)
        for each in row.mig_instances
    ] == [
        (7, "1g.18gb", 9004, 50),
        (3, "2g.35gb", 4, 0),
    ]
    (held, free) = (
        [(each.name, each.mode, each.allocated_mib, each.used_mib) for each in part.pods]
        for part in row.mig_instances
    )
    assert held == [("part", "mig", 17894, 9000)]
    assert free == [], "a pod that the API server no longer has holds nothing"
    assert (row.memory_allocated_mib, row.memory_free_mib) == (17894, 35942), (
        "the other instance is to be had"
    )


@pytest.mark.parametrize(
    ("used_mib", "is_held", "idle_for", "flags"),
    [
        (4096.0, False, None, ["used-without-allocation"]),
        (16.0, False, 7200, []),
        (4096.0, True, 3600, ["idle"]),
        (4096.0, True, 3599, []),
    ],
    ids=[
        "used without an owner",
        "free and quiet",
        "held and idle for an hour",
        "held and idle for less",
    ],
)
def test_a_card_is_flagged_when_it_is_wasted_or_used_without_right(
    used_mib: float, is_held: bool, idle_for: int | None, flags: list[str]
) -> None:
    holder = structs.replace(pod("a", "gpu-1", GPU), started_at=EPOCH - 9000) if is_held else None
    seen = board_state(
        [gpu_node(gpus=1)],
        [holder] if holder else [],
        gpus=[
            reading(
                used_mib=used_mib,
                ratio=0.0,
                holder=holder,
                idle_since=None if idle_for is None else EPOCH - idle_for,
            )
        ],
    )
    detail = seen.node("gpu-1")
    assert detail is not None and detail.gpus[0].flags == flags


def test_a_node_that_does_not_exist_is_none() -> None:
    assert board_state().node("nowhere") is None


def test_conditions_keep_their_order_and_times() -> None:
    detail = board_state(
        [
            Node(
                "n",
                conditions=(
                    Condition("Ready", "True", at=EPOCH),
                    Condition("DiskPressure", "False"),
                ),
            )
        ]
    ).node("n")
    assert detail is not None
    assert [(each.type, each.at) for each in detail.conditions] == [
        ("Ready", "2026-01-05T08:00:00Z"),
        ("DiskPressure", None),
    ]
