"""Which pods hold which GPUs: counts from the pods' requests, seats from grants and readings, and
no zero for an unknown value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.rules.builders import (
    READY,
    exclusive_node,
    gpu_pod,
    holder,
    pod,
    reading,
    shared_node,
    sharing_pod,
    snapshot,
)

from fairlead.model.devices.gpu import GpuInstance, GpuReading, GpuSlot, Grant
from fairlead.model.node import Node
from fairlead.model.pod import Container, Pod
from fairlead.model.resources import GPU_COUNT, GPU_MEMORY, NVIDIA_GPU
from fairlead.rules.holding.occupancy import cluster_occupancy, node_occupancy
from fairlead.rules.reports.node import report_nodes


def test_an_exclusive_node_counts_the_limits_of_pods_that_hold() -> None:
    pods = [
        gpu_pod("runs", gpus=2),
        gpu_pod("terminates", gpus=1, deleted_at=5.0),
        gpu_pod("done", gpus=4, phase="Succeeded"),
        gpu_pod("failed", gpus=4, phase="Failed"),
        gpu_pod("waits", node="", gpus=4, phase="Pending"),
    ]
    found = node_occupancy(exclusive_node(gpus=8), snapshot([exclusive_node(gpus=8)], pods))
    assert (found.gpus_total, found.gpus_allocated, found.gpus_unhealthy) == (8, 3, 0)
    assert (found.memory_total_mib, found.memory_allocated_mib) == (8 * 15360, 3 * 15360)
    assert (found.memory_used_mib, found.utilization_ratio) == (None, None)
    assert [each.name for each in found.unplaced] == ["runs", "terminates"]


def test_an_init_container_that_needs_more_counts_as_much() -> None:
    pods = [
        pod(
            "prepares",
            "n1",
            containers=(Container("main", limits={NVIDIA_GPU: 1}),),
            init_containers=(Container("init", limits={NVIDIA_GPU: 3}),),
        )
    ]
    assert node_occupancy(exclusive_node(), snapshot([exclusive_node()], pods)).gpus_allocated == 3


def test_a_shared_node_sums_granted_fractions_and_mib() -> None:
    node = shared_node()
    pods = [
        sharing_pod("a", card=0, mib=4301),
        sharing_pod("b", card=0, mib=4301),
        sharing_pod("c", card=1, units=15, mib=16130),
    ]
    found = node_occupancy(node, snapshot([node], pods))
    assert found.gpus_total == 2
    assert found.gpus_allocated == pytest.approx(8 / 15 + 1)
    assert (found.units_total, found.units_allocated) == (30, 23)
    assert (found.memory_total_mib, found.memory_allocated_mib) == (32260, 2 * 4301 + 16130)
    assert [[each.pod.name for each in card.holders] for card in found.cards] == [["a", "b"], ["c"]]


def test_a_grant_without_mib_gets_them_in_proportion_as_in_the_documents() -> None:
    node = shared_node()
    found = node_occupancy(node, snapshot([node], [sharing_pod("a", mib=None)]))
    assert found.memory_allocated_mib == 4301


def test_a_sharing_pod_without_a_usable_annotation_is_listed_and_allocated_nowhere() -> None:
    node = shared_node()
    found = node_occupancy(node, snapshot([node], [sharing_pod("lost", card=None)]))
    assert (found.gpus_allocated, found.units_allocated, found.memory_allocated_mib) == (0, 0, 0)
    assert [each.name for each in found.unplaced] == ["lost"]


def test_a_pod_whose_grant_is_not_what_it_asks_sits_where_its_device_saw_it() -> None:
    """It is treated like a pod without an annotation."""
    node = shared_node()
    forged = structs.replace(sharing_pod("a", card=0), grants={"main": (Grant("", 0, 0),)})
    seen = holder("a", mode="share", memory_limit_mib=4301)
    found = node_occupancy(
        node,
        snapshot(
            [node], [forged], [reading("s1", 1, used=100, util=0.5, total=16130, holders=(seen,))]
        ),
    )
    assert [[each.pod.name for each in card.holders] for card in found.cards] == [[], ["a"]]


def test_shared_cards_without_an_inventory_are_equal_parts_of_the_nodes_units() -> None:
    node = Node(
        "s2",
        capacity={GPU_MEMORY: 28, GPU_COUNT: 2},
        allocatable={GPU_MEMORY: 28},
        conditions=(READY,),
    )
    given = pod(
        "p",
        "s2",
        containers=(Container("main", limits={GPU_MEMORY: 7}),),
        grants={"main": (Grant("", 1, 7),)},
    )
    found = node_occupancy(node, snapshot([node], [given]))
    assert [card.units for card in found.cards] == [14, 14]
    assert found.gpus_allocated == 0.5
    assert (found.memory_total_mib, found.memory_allocated_mib) == (28 * 1024, 7 * 1024)


def test_readings_seat_exclusive_pods_and_give_use_and_utilization() -> None:
    node = exclusive_node(gpus=2)
    gpus = [
        reading("n1", 0, used=9000, util=0.8, holders=(holder("p"),)),
        reading("n1", 1, used=10, util=0.0),
    ]
    found = node_occupancy(node, snapshot([node], [gpu_pod("p")], gpus))
    assert [each.pod.name for each in found.cards[0].holders] == ["p"]
    assert found.unplaced == ()
    assert (found.memory_used_mib, found.utilization_ratio, found.gpus_reporting) == (9010, 0.4, 2)
    assert (found.cards[0].allocated_ratio, found.cards[1].allocated_ratio) == (1, 0)


def test_a_reading_of_a_pod_that_is_gone_seats_no_pod() -> None:
    node = exclusive_node(gpus=1)
    found = node_occupancy(
        node, snapshot([node], [], [reading("n1", 0, holders=(holder("gone"),))])
    )
    assert found.cards[0].holders == ()
    assert found.gpus_allocated == 0


def test_unhealthy_is_the_larger_of_what_is_withheld_and_what_devices_report() -> None:
    node = exclusive_node(gpus=4, healthy=3)
    sick = [reading("n1", index, healthy=index > 1) for index in range(4)]
    assert node_occupancy(node, snapshot([node])).gpus_unhealthy == 1
    assert node_occupancy(node, snapshot([node], [], sick)).gpus_unhealthy == 2


def test_unhealthy_units_of_a_shared_node_are_whole_cards_rounded_down() -> None:
    node = shared_node(units=(15, 15, 15, 15), allocatable=44)
    assert node_occupancy(node, snapshot([node])).gpus_unhealthy == 1


def test_a_card_that_is_offered_in_parts_is_one_unhealthy_card() -> None:
    """docs/spec/telemetry.md#definitions counts GPUs: two cards that are time-sliced into four
    each, then two that are divided into seven each.
    """
    cards = [reading("n1", 0), reading("n1", 1)]
    for allocatable, unhealthy in ((8, 0), (4, 1), (3, 2), (0, 2)):
        node = exclusive_node(gpus=8, healthy=allocatable)
        assert node_occupancy(node, snapshot([node], [], cards)).gpus_unhealthy == unhealthy
    slices = "nvidia.com/mig-1g.18gb"
    for allocatable, unhealthy in ((14, 0), (7, 1), (0, 2)):
        node = Node(
            "n1", capacity={slices: 14}, allocatable={slices: allocatable}, conditions=(READY,)
        )
        parts = tuple(GpuInstance(number, "1g.18gb", 17_800, 4, 0.0) for number in range(7))
        divided = [structs.replace(each, instances=parts) for each in cards]
        assert node_occupancy(node, snapshot([node], [], divided)).gpus_unhealthy == unhealthy


def test_a_draining_card_is_withheld_and_no_fault() -> None:
    slots = (GpuSlot(0, "a", mode="draining", health="Unhealthy"), GpuSlot(1, "b"))
    node = Node(
        "n1", capacity={NVIDIA_GPU: 2}, allocatable={NVIDIA_GPU: 1}, conditions=(READY,), gpus=slots
    )
    found = node_occupancy(node, snapshot([node]))
    assert found.gpus_unhealthy == 0
    assert [card.is_draining for card in found.cards] == [True, False]


def test_a_node_whose_cards_all_failed_is_still_a_gpu_node() -> None:
    found = node_occupancy(exclusive_node(healthy=0), snapshot([exclusive_node(healthy=0)]))
    assert (found.mode, found.gpus_total, found.gpus_unhealthy) == ("exclusive", 4, 4)


def test_unknown_card_memory_is_unknown_not_zero() -> None:
    node = exclusive_node(card_mib=None)
    found = node_occupancy(node, snapshot([node], [gpu_pod("p")]))
    assert (found.memory_total_mib, found.memory_allocated_mib) == (None, None)


def test_time_slices_of_one_card_count_by_the_card() -> None:
    node = exclusive_node(gpus=8)
    found = node_occupancy(
        node, snapshot([node], [gpu_pod("p", gpus=6)], [reading("n1", 0), reading("n1", 1)])
    )
    assert (found.gpus_total, found.gpus_allocated) == (2, 1.5)


SHARED_GPU = "nvidia.com/gpu.shared"
"""The resource name of NVIDIA's plugin for time slices with `renameByDefault: true`."""


def _renamed(gpus: int, card_mib: int | None = 15360) -> Node:
    node = exclusive_node(gpus=gpus, card_mib=card_mib)
    amounts = {NVIDIA_GPU: 0, SHARED_GPU: gpus}
    return structs.replace(
        node, capacity=node.capacity | amounts, allocatable=node.allocatable | amounts
    )


def test_renamed_time_slices_count_as_those_that_keep_their_name() -> None:
    pods = [pod("p", "n1", containers=(Container("main", limits={SHARED_GPU: 6}),))]
    cards = [reading("n1", 0), reading("n1", 1)]
    found = node_occupancy(_renamed(8), snapshot([_renamed(8)], pods, cards))
    assert (found.mode, found.gpus_total, found.gpus_allocated, found.gpus_unhealthy) == (
        "exclusive",
        2,
        1.5,
        0,
    )
    three = node_occupancy(_renamed(8), snapshot([_renamed(8)], pods, [*cards, reading("n1", 2)]))
    assert three.gpus_allocated == pytest.approx(6 * 3 / 8), (
        "under this name all are time slices, whatever their number"
    )
    node = structs.replace(_renamed(8), allocatable=_renamed(8).allocatable | {SHARED_GPU: 4})
    assert node_occupancy(node, snapshot([node], pods, cards)).gpus_unhealthy == 1
    assert node_occupancy(_renamed(8), snapshot([_renamed(8)], pods)).gpus_allocated == 6, (
        "no exporter: slices are counted"
    )


def test_arena_counts_renamed_time_slices() -> None:
    pods = [
        pod("p", "n1", containers=(Container("main", limits={SHARED_GPU: 3}),)),
        gpu_pod("q", gpus=1),
    ]
    (report,) = report_nodes(snapshot([_renamed(8)], pods))
    assert (report.mode, report.gpus, report.gpus_allocated, report.gpus_unhealthy) == (
        "exclusive",
        8,
        4,
        0,
    )
    assert [(each.pod.name, each.requested) for each in report.holders] == [("p", 3), ("q", 1)]


def worth_together(
    node: Node, pods: Sequence[Pod], readings: Sequence[GpuReading]
) -> tuple[float, float, list[float]]:
    """GPUs allocated: of the node, of its cards by their holders, and of each pod."""
    found = cluster_occupancy(snapshot([node], pods, readings))
    seated = sum(each.ratio for card in found.nodes[0].cards for each in card.holders)
    return found.nodes[0].gpus_allocated, seated, [found.use(pod).gpus for pod in pods]


def test_a_pod_that_takes_turns_holds_a_part_of_the_card_in_every_sum() -> None:
    pods = [gpu_pod("a", gpus=1), gpu_pod("b", gpus=2)]
    card = reading("n1", 0)
    total = card.memory_total_mib or 0
    card = structs.replace(
        card, holders=tuple(holder(name, mode="timeslice", memory_limit_mib=total) for name in "ab")
    )
    allocated, _, of_pods = worth_together(exclusive_node(gpus=4), pods, [card])
    assert (allocated, of_pods) == (0.75, [0.25, 0.5])
    found = node_occupancy(exclusive_node(gpus=4), snapshot([exclusive_node(gpus=4)], pods, [card]))
    assert found.memory_allocated_mib == found.cards[0].memory_allocated_mib == total > 0, (
        "each may have all of it, and it is there once"
    )


@pytest.mark.parametrize("gpus", [3, 4], ids=["3 of 4 offered", "2 of 4 offered"])
def test_where_a_card_does_not_report_a_pod_still_holds_whole_ones(gpus: int) -> None:
    cards = [
        reading("n1", index, holders=(holder("a"),) if index == 0 else ())
        for index in range(gpus - 1 if gpus == 4 else 2)
    ]
    allocated, _, of_pods = worth_together(exclusive_node(gpus=4), [gpu_pod("a", gpus=1)], cards)
    assert (allocated, of_pods) == (1, [1])


LARGE, SMALL = "nvidia.com/mig-3g.71gb", "nvidia.com/mig-1g.18gb"


def divided(index: int = 0) -> GpuReading:
    """A card with one instance of three slices, held by `large`, and three instances of one slice,
    of which `small` holds one.
    """
    parts = [
        GpuInstance(
            1,
            "3g.71gb",
            71_000,
            9_000,
            0.5,
            (holder("large", mode="mig", memory_limit_mib=71_000.0),),
        )
    ]
    parts += [GpuInstance(number, "1g.18gb", 17_800, 4, 0.0) for number in (7, 8, 9)]
    parts[1] = structs.replace(
        parts[1], holders=(holder("small", mode="mig", memory_limit_mib=17_800.0),)
    )
    holders = tuple(each for part in parts for each in part.holders)
    return GpuReading(
        "n1",
        index,
        f"GPU-{index}",
        memory_total_mib=124_400,
        holders=holders,
        instances=tuple(parts),
    )


def asks(name: str, resource: str, count: int = 1) -> Pod:
    return pod(name, "n1", containers=(Container("main", limits={resource: count}),))


@pytest.mark.parametrize("is_reported", [True, False])
def test_mig_instances_count_by_their_compute_slices_in_every_sum(is_reported: bool) -> None:
    """The driver offers six slices of one card. Without the exporter's readings it is unknown that
    they are one card.
    """
    node = exclusive_node(gpus=0)
    node = structs.replace(node, capacity={LARGE: 1, SMALL: 3, GPU_COUNT: 1}, allocatable={})
    pods = [asks("large", LARGE), asks("small", SMALL)]
    allocated, seated, of_pods = worth_together(node, pods, [divided()] if is_reported else [])
    assert allocated == pytest.approx(4 / 6)
    assert of_pods == pytest.approx([3 / 6, 1 / 6])
    assert seated == pytest.approx(4 / 6 if is_reported else 0)


def test_a_node_with_whole_cards_and_a_divided_one_counts_both() -> None:
    node = structs.replace(
        exclusive_node(gpus=2),
        capacity={NVIDIA_GPU: 2, LARGE: 1, SMALL: 3},
        allocatable={NVIDIA_GPU: 2},
    )
    pods = [gpu_pod("whole"), asks("large", LARGE), asks("small", SMALL)]
    cards = [reading("n1", 0, holders=(holder("whole"),)), reading("n1", 1), divided(2)]
    allocated, seated, of_pods = worth_together(node, pods, cards)
    assert (allocated, seated) == (pytest.approx(1 + 4 / 6), pytest.approx(1 + 4 / 6))
    assert of_pods == pytest.approx([1, 3 / 6, 1 / 6])
    found = cluster_occupancy(snapshot([node], pods, cards))
    of_all = found.use_together(pods).memory_allocated_mib
    assert found.nodes[0].memory_allocated_mib == of_all
    assert of_all is not None and of_all == (cards[0].memory_total_mib or 0) + 71_000 + 17_800


def test_a_job_has_the_mean_of_its_cards_and_the_sum_of_its_memory() -> None:
    nodes = [exclusive_node("n1"), exclusive_node("n2")]
    pods = [gpu_pod("w0", "n1"), gpu_pod("w1", "n2"), gpu_pod("launcher", "n2", gpus=0)]
    gpus = [
        reading("n1", 0, used=100, util=0.9, holders=(holder("w0"),)),
        reading("n2", 0, used=50, util=0.5, holders=(holder("w1"),)),
    ]
    use = cluster_occupancy(snapshot(nodes, pods, gpus)).use_together(pods)
    assert (use.gpus, use.memory_allocated_mib, use.memory_used_mib) == (2, 2 * 15360, 150)
    assert use.utilization_ratio == pytest.approx(0.7)


def test_a_shared_pods_use_is_its_own_not_its_cards() -> None:
    node = shared_node()
    seen = holder(
        "a", mode="share", memory_used_mib=3193, memory_limit_mib=4301, utilization_ratio=0.2
    )
    gpus = [reading("s1", 0, used=6396, util=0.5, total=16130, holders=(seen,))]
    use = cluster_occupancy(snapshot([node], [sharing_pod("a", mib=4301)], gpus)).use(
        sharing_pod("a", mib=4301)
    )
    assert (use.memory_allocated_mib, use.memory_used_mib, use.utilization_ratio) == (
        4301,
        3193,
        0.2,
    )


def test_the_clusters_utilization_is_the_mean_over_gpus_not_nodes() -> None:
    nodes = [exclusive_node("n1", gpus=1), exclusive_node("n2", gpus=3)]
    gpus = [reading("n1", 0, util=1.0), *(reading("n2", index, util=0.0) for index in range(3))]
    totals = cluster_occupancy(snapshot(nodes, [], gpus)).totals()
    assert (totals.utilization_ratio, totals.gpus_reporting, totals.gpus) == (0.25, 4, 4)


@given(
    units=st.lists(st.integers(1, 15), min_size=1, max_size=6),
    wanted=st.lists(
        st.tuples(
            st.integers(1, 15), st.integers(0, 8), st.sampled_from(["Running", "Pending", "Failed"])
        ),
        max_size=12,
    ),
)
def test_sums_over_cards_are_the_nodes_and_no_pod_gets_more_than_was_granted(
    units: list[int], wanted: list[tuple[int, int, str]]
) -> None:
    node = shared_node(units=units)
    pods = [
        sharing_pod(f"p{i}", units=count, card=card, phase=phase)
        for i, (count, card, phase) in enumerate(wanted)
    ]
    found = node_occupancy(node, snapshot([node], pods))
    seated = [
        (count, card) for count, card, phase in wanted if phase != "Failed" and card < len(units)
    ]
    assert found.units_allocated == sum(count for count, _ in seated)
    assert found.gpus_allocated == pytest.approx(sum(count / units[card] for count, card in seated))
    assert len(found.cards) == len(units)
    assert all(0 <= card.allocated_ratio <= 1 for card in found.cards)


_PODS = (gpu_pod("a", gpus=1), sharing_pod("b", node="n2", card=0, mib=4301))
_NODES = (exclusive_node("n1"), shared_node("n2"))
_READINGS = (reading("n2", 0), reading("n2", 1))


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        pytest.param({}, (), id="nothing has changed"),
        pytest.param({"taken_at": 9.0}, (), id="the time is no part of it"),
        pytest.param(
            {"pods": (structs.replace(_PODS[0], name="c"), _PODS[1])}, ("n1",), id="another pod"
        ),
        pytest.param({"pods": _PODS[1:]}, ("n1",), id="a pod less"),
        pytest.param(
            {"pods": (*_PODS, sharing_pod("d", node="n2", card=1, mib=4301))},
            ("n2",),
            id="a pod more",
        ),
        pytest.param(
            {"nodes": (_NODES[0], structs.replace(_NODES[1], unschedulable=True))},
            ("n2",),
            id="the node has changed",
        ),
        pytest.param(
            {"gpus": (structs.replace(_READINGS[0], healthy=False), _READINGS[1])},
            ("n2",),
            id="a card has changed",
        ),
        pytest.param({"gpus": _READINGS[:1]}, ("n2",), id="a card less"),
        pytest.param({"withheld": {"n2": (1,)}}, ("n2",), id="a card out of use"),
    ],
)
def test_what_has_not_changed_is_taken_from_before(
    changed: dict[str, Any], again: tuple[str, ...]
) -> None:
    before = structs.replace(snapshot(_NODES, _PODS), gpus=_READINGS)
    known, after = cluster_occupancy(before), structs.replace(before, **changed)
    found = cluster_occupancy(after, (before, known))
    assert found.nodes == cluster_occupancy(after).nodes
    other = [each.node.name for each in found.nodes if each is not known.by_node[each.node.name]]
    assert tuple(other) == again
