"""Why no node has room: an answer exactly when none has, with the numbers that a person would
count.
"""

from __future__ import annotations

import random

import pytest

from fairlead.model.node import Node, Taint
from fairlead.model.node_choice import NodeChoice, Toleration
from fairlead.model.pod import Container, Pod
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.nodes.room import NodeRooms, NoNodeFits

GPU = "nvidia.com/gpu"
GIB = 1 << 30


def node(
    name: str,
    gpus: int = 8,
    cores: int = 64,
    *,
    labels: dict[str, str] | None = None,
    taint: str = "",
    cordoned: bool = False,
) -> Node:
    has = {"cpu": cores * 1000, "memory": 256 * GIB, **({GPU: gpus} if gpus else {})}
    taints = (Taint(taint, "", "NoSchedule"),) if taint else ()
    return Node(
        name,
        labels=labels or {},
        capacity=has,
        allocatable=has,
        taints=taints,
        unschedulable=cordoned,
    )


def pod(name: str, on: str = "", choice: NodeChoice | None = None, **asks: int) -> Pod:
    amounts = {
        {"gpus": GPU, "cores": "cpu", "gib": "memory"}[key]: amount for key, amount in asks.items()
    }
    amounts = {
        key: amount * {"cpu": 1000, "memory": GIB}.get(key, 1) for key, amount in amounts.items()
    }
    phase = "Running" if on else "Pending"
    return Pod(
        "a",
        name,
        uid=name,
        node=on,
        phase=phase,
        containers=(Container("c", requests=amounts),),
        node_choice=choice or NodeChoice(),
    )


def why(nodes: list[Node], pods: list[Pod], asking: Pod) -> NoNodeFits | None:
    return NodeRooms(ClusterSnapshot(nodes=tuple(nodes), pods=(*pods, asking))).why(asking)


def text(nodes: list[Node], pods: list[Pod], asking: Pod) -> str:
    found = why(nodes, pods, asking)
    assert found is not None
    return found.text


TWO = [node("gpu-1", 8), node("gpu-2", 4)]
BUSY = [pod("x", "gpu-1", gpus=7), pod("y", "gpu-2", gpus=4)]


@pytest.mark.parametrize(
    ("nodes", "pods", "asking", "message"),
    [
        (TWO, BUSY, pod("p", gpus=4), "needs 4 GPUs on one node; the freest of 2, gpu-1, has 1"),
        (TWO, [], pod("p", gpus=12), "needs 12 GPUs on one node; the largest of 2, gpu-1, has 8"),
        (
            [node("cpu-1", 0)],
            [],
            pod("p", gpus=1),
            "needs 1 GPU; no node that it may use offers any",
        ),
        (
            TWO,
            [pod("x", "gpu-1", cores=60)],
            pod("p", gpus=8, cores=16),
            "needs 16 cores on one node; of 1 with enough of the rest, gpu-1 has most left: 4",
        ),
        (
            TWO,
            [],
            pod("p", cores=100),
            "needs 100 cores on one node; the largest of 2, gpu-1, has 64",
        ),
        (
            [node("a", 8, labels={"gpu": "A100"}), node("b", 8)],
            [pod("x", "a", gpus=8)],
            pod("p", choice=NodeChoice(selector=(("gpu", "A100"),)), gpus=1),
            "needs 1 GPU on one node with gpu=A100; the freest of 1, a, has 0",
        ),
        (
            TWO,
            [],
            pod("p", choice=NodeChoice(selector=(("gpu", "A100"),)), gpus=1),
            "may not use any of 2 nodes: none has the label gpu=A100",
        ),
        (
            [node("a", taint="dedicated"), node("b", cordoned=True)],
            [],
            pod("p", gpus=1),
            (
                "may not use any of 2 nodes: they have taints that it does not tolerate "
                "(dedicated) and 1 is cordoned"
            ),
        ),
    ],
)
def test_the_sentence(nodes: list[Node], pods: list[Pod], asking: Pod, message: str) -> None:
    assert text(nodes, pods, asking) == message


def test_where_a_node_has_room_something_else_keeps_it() -> None:
    assert why(TWO, [], pod("p", gpus=4)) is None
    tolerates = NodeChoice(tolerations=(Toleration("dedicated", "Exists"),))
    assert why([node("a", taint="dedicated")], [], pod("p", choice=tolerates, gpus=1)) is None


def test_finished_pods_hold_nothing_and_no_nodes_give_nothing() -> None:
    done = Pod(
        "a",
        "done",
        uid="done",
        node="gpu-1",
        phase="Succeeded",
        containers=(Container("c", requests={GPU: 8}),),
    )  # type: ignore[arg-type]
    assert why([node("gpu-1")], [done], pod("p", gpus=8)) is None
    assert why([], [], pod("p", gpus=8)) is None


def test_any_cluster_counted_by_hand() -> None:
    """The answer is None if and only if a node accepts the pod and has enough of everything;
    otherwise each resource named is really short.
    """
    chance = random.Random(11)
    kinds = set()
    for _ in range(1500):
        nodes = [
            node(
                f"n{number}",
                chance.choice([0, 2, 4]),
                chance.choice([4, 8]),
                taint=chance.choice(["", "", "t"]),
                cordoned=chance.random() < 0.15,
            )
            for number in range(chance.randint(1, 4))
        ]
        pods = [
            pod(
                f"p{number}",
                chance.choice(nodes).name,
                gpus=chance.randint(0, 2),
                cores=chance.randint(0, 4),
            )
            for number in range(chance.randint(0, 6))
        ]
        gpus, cores = chance.randint(0, 5), chance.randint(1, 9)
        left = {}
        for each in nodes:
            here = [held.containers[0].requests for held in pods if held.node == each.name]
            left[each.name] = (
                each.allocatable.get(GPU, 0) - sum(held.get(GPU, 0) for held in here),
                each.allocatable["cpu"] // 1000 - sum(held.get("cpu", 0) for held in here) // 1000,
            )
        usable = [each.name for each in nodes if not each.taints and not each.unschedulable]
        fits = [
            name
            for name in usable
            if (not gpus or left[name][0] >= gpus) and left[name][1] >= cores
        ]
        found = why(nodes, pods, pod("asks", gpus=gpus, cores=cores))
        assert (found is None) == bool(fits), (nodes, pods, gpus, cores)
        if found is None:
            continue
        kinds.add(found.kind)
        place = 0 if found.resource == GPU else 1
        if found.kind == "barred":
            assert not usable
        elif found.kind == "full":
            assert found.best_free == max(0, max(left[name][place] for name in usable)) * (
                1 if place == 0 else 1000
            )
            assert left[found.best][place] == max(
                left[name][place]
                for name in usable
                if place or next(n for n in nodes if n.name == name).allocatable.get(GPU)
            )
        elif found.kind == "together":
            assert max(0, left[found.best][1]) * 1000 == found.best_free
            assert left[found.best][0] >= gpus and left[found.best][1] < cores
    assert kinds == {"barred", "absent", "never", "full", "together"}
