"""The number of allocated GPUs is the same in the boards' sentences, the figures, the rows, the
metrics and arena.

The worlds are random mixtures of exclusive, shared, divided and broken cards. The expected number
is counted here from the limits of the pods.
"""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from msgspec import structs
from tests.console.clusters import EPOCH, cluster, gpu_node, pod, reading, shared_node

from fairlead.console.boards.board_state import BoardState
from fairlead.console.pages.envelope import gpu_count
from fairlead.kinds.instances import all_instances
from fairlead.model.devices.gpu import Grant
from fairlead.model.node import Node
from fairlead.model.occupancy import rounded_gpus
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.metrics.cluster import native_families
from fairlead.rules.reports.cluster import summarize
from fairlead.rules.reports.node import report_nodes

SLICES = 7
MIG_RESOURCE = "nvidia.com/mig-1g.10gb"


def mig_node(name: str, cards: int) -> Node:
    amounts = {
        "cpu": 32_000,
        "memory": 256 << 30,
        MIG_RESOURCE: cards * SLICES,
        "nvidia.com/gpu": 0,
    }
    labels = {"nvidia.com/mig.strategy": "mixed", "nvidia.com/gpu.count": str(cards)}
    return structs.replace(
        gpu_node(name, cards, labels=labels), capacity=amounts, allocatable=amounts
    )


def mixed(seed: int, *, divided: bool) -> tuple[ClusterSnapshot, Fraction]:
    """A cluster with some nodes of each kind, and the number of GPUs that its pods hold."""
    chance, held = random.Random(seed), Fraction(0)
    nodes: list[Node] = []
    pods: list[Pod] = []
    gpus = []
    for number in range(chance.randint(1, 4)):
        node, count = (
            gpu_node(f"whole-{number}", 4, ready=chance.choice(("True", "True", "Unknown"))),
            chance.randint(0, 4),
        )
        nodes.append(node)
        pods += [
            pod(f"{node.name}-{place}", node.name, {"nvidia.com/gpu": 1}) for place in range(count)
        ]
        gpus += [reading(node.name, place, healthy=chance.random() > 0.2) for place in range(4)]
        held += count
    for number in range(chance.randint(1, 3)):
        units = chance.choice((15, 40, 79))
        node = shared_node(f"share-{number}", 2, units)
        nodes.append(node)
        for card in range(2):
            granted = chance.randint(0, units)
            if granted:
                grants = {"main": (Grant(f"GPU-{node.name}-{card}", card, granted),)}
                pods.append(
                    structs.replace(
                        pod(f"{node.name}-{card}", node.name, {"aliyun.com/gpu-mem": granted}),
                        grants=grants,
                    )
                )
                held += Fraction(granted, units)
    if divided:
        nodes.append(mig_node("divided", 2))
        slices = chance.randint(1, 2 * SLICES)
        gpus += [reading("divided", place) for place in range(2)]
        pods += [pod(f"divided-{place}", "divided", {MIG_RESOURCE: 1}) for place in range(slices)]
        held += Fraction(slices, SLICES)
    return cluster(nodes, pods, gpus=gpus), held


@pytest.mark.parametrize("divided", [False, True], ids=["whole and shared", "with MIG"])
@pytest.mark.parametrize("seed", range(40))
def test_what_is_allocated_is_one_number(seed: int, divided: bool) -> None:
    seen, held = mixed(seed, divided=divided)
    board, expected = BoardState(seen, EPOCH), rounded_gpus(float(held))
    overview = board.overview
    assert overview.gpus.allocated == pytest.approx(float(held), abs=1e-4)
    assert overview.sentence.values["allocated"] == expected
    assert f"{expected:g} of {overview.gpus.total} GPUs allocated" in overview.sentence.text
    assert board.nodes_sentence.values["allocated"] == expected
    assert rounded_gpus(sum(entry.row.gpus_allocated for entry in board.nodes.entries)) == expected
    assert rounded_gpus(sum(pool.gpus_allocated for pool in overview.pools)) == expected
    summary = summarize(seen, all_instances(seen), EPOCH)
    (metric,) = [
        family.values[0]
        for family in native_families(summary)
        if family.name == "fairlead_cluster_gpus_allocated"
    ]
    assert metric is not None and rounded_gpus(metric) == expected
    if not divided:  # arena knows no divided card (docs/project/limits.md)
        assert rounded_gpus(sum(report.gpus_allocated for report in report_nodes(seen))) == expected


@pytest.mark.parametrize(
    ("held", "shown"), [(24.95, 25), (24.5, 24.5), (2.25, 2.3), (8.04, 8), (0, 0)]
)
def test_halves_are_rounded_up_as_arena_does(held: float, shown: float) -> None:
    assert gpu_count(held) == shown == rounded_gpus(held)
