"""Random clusters, from a seed."""

from __future__ import annotations

import random

from msgspec import structs
from tests.console.clusters import EPOCH, cluster, gpu_node, pod, reading, shared_node

from fairlead.console.boards.board_state import BoardState
from fairlead.model.devices.gpu import GpuReading, Grant
from fairlead.model.node import Condition, Node
from fairlead.model.pod import Pod

GPU = {"nvidia.com/gpu": 1}


def board_state(*args: object, **more: object) -> BoardState:
    return BoardState(cluster(*args, **more), EPOCH)  # type: ignore[arg-type]


def some_cluster(seed: int) -> BoardState:
    """Nodes of all kinds and states; holders of cards are known or unknown, busy or idle."""
    chance = random.Random(seed)

    def held_by(name: str, node: str, limits: dict[str, int], **more: object) -> Pod:
        bound = Condition("PodScheduled", "True", at=EPOCH - chance.choice((60, 3599, 3600, 9000)))
        return pod(
            name,
            node,
            limits,
            namespace=chance.choice(("team-a", "team-b")),
            conditions=(bound,),
            **more,
        )  # type: ignore[arg-type]

    def reported(
        node: str, index: int, holder: Pod | None, healthy: bool | None = True, **more: str
    ) -> GpuReading:
        ratio = chance.choice((None, 0.0, 0.0, 0.5))
        since = EPOCH - chance.choice((60, 3599, 3600, 90_000)) if ratio == 0.0 else None
        return reading(
            node, index, ratio=ratio, idle_since=since, holder=holder, healthy=healthy, **more
        )

    nodes: list[Node] = []
    pods: list[Pod] = []
    gpus: list[GpuReading] = []
    for number in range(chance.randrange(1, 7)):
        name = f"gpu-{number}"
        count = chance.choice((1, 2, 4))
        ready, is_cordoned = (
            chance.choice(("True", "True", "True", "False", "Unknown")),
            chance.random() < 0.2,
        )
        if chance.random() < 0.3:
            node = structs.replace(
                shared_node(name, count),
                conditions=(Condition("Ready", ready),),
                unschedulable=is_cordoned,
            )
            grants = (
                {"main": (Grant(f"GPU-{name}-0", 0, 10, 10_240),)}
                if chance.random() < 0.7
                else None
            )
            pods += (
                [held_by(f"s-{name}", name, {"aliyun.com/gpu-mem": 10}, grants=grants)]
                if chance.random() < 0.7
                else []
            )
            gpus += (
                [reported(name, index, None, uuid=f"GPU-{name}-{index}") for index in range(count)]
                if chance.random() < 0.7
                else []
            )
        else:
            node = gpu_node(name, count, ready=ready, cordoned=is_cordoned)
            mine = [
                held_by(f"p-{name}-{each}", name, GPU)
                for each in range(chance.randrange(count + 1))
            ]
            if len(mine) > 1 and chance.random() < 0.4:  # a single pod holds all of them
                mine = [held_by(f"all-{name}", name, {"nvidia.com/gpu": len(mine)})] * len(mine)
            pods += {each.name: each for each in mine}.values()
            seats = [holder if chance.random() < 0.7 else None for holder in mine]
            held = dict(zip(chance.sample(range(count), len(seats)), seats, strict=True))
            if chance.random() < 0.8:
                health = {
                    index: chance.random() < 0.85 or held.get(index) is not None
                    for index in range(count)
                }
                gpus += [
                    reported(name, index, held.get(index), health[index]) for index in range(count)
                ]
            if chance.random() < 0.3:
                offered = {**node.allocatable, "nvidia.com/gpu": chance.randrange(count + 1)}
                node = structs.replace(node, allocatable=offered)
        nodes.append(node)
    return board_state(nodes, pods, gpus=gpus)
