"""The map of a moment is the same, whether the moment before it was shown or not."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from msgspec import structs
from tests.console.clusters import CARD_MIB, EPOCH, gpu_node, pod, reading, shared_node

from fairlead.console.http.past_states import PastBoard
from fairlead.console.pages.gpu_map import MapNode
from fairlead.model.devices.gpu import GpuReading, GpuSlot, Grant
from fairlead.model.node import Node
from fairlead.model.pod import Pod
from fairlead.model.snapshot import ClusterSnapshot, build_snapshot

TEAMS = ("team-a", "team-b", "team-c", "team-d")
CARDS = 4
NAMED, SHARED, PLAIN = ("named-1", "named-2"), ("share-1", "share-2"), ("plain-1", "plain-2")


class Moments:
    """Clusters, each the one before it with a few rows that are others."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._made = 0
        self._nodes = {name: _named_node(name) for name in NAMED}
        self._nodes |= {name: shared_node(name, CARDS) for name in SHARED}
        self._nodes |= {name: gpu_node(name, CARDS) for name in PLAIN}
        self._pods: dict[str, Pod] = {}
        self._gpus: dict[str, GpuReading] = {}

    def following(self) -> ClusterSnapshot:
        for _ in range(self._random.randint(1, 3)):
            self._change()
        return build_snapshot(
            taken_at=EPOCH + 60 * self._made,
            nodes=self._nodes.values(),
            pods=self._pods.values(),
            gpus=self._gpus.values(),
        )

    def _change(self) -> None:
        self._made += 1
        pick, number = self._random.choice, self._made
        name = pick([*NAMED, *SHARED, *PLAIN])
        match self._random.randrange(6):
            case 0 | 1 if self._pods:
                del self._pods[pick([*self._pods])]
            case 2:
                node = self._nodes[name]
                self._nodes[name] = structs.replace(node, unschedulable=not node.unschedulable)
            case 3:  # only these cards have a time, which grows
                seen = reading(pick(["named-2", "plain-2"]), pick(range(CARDS)), None)
                idle = structs.replace(seen, idle_since=EPOCH - number)
                self._gpus[f"{seen.node}/{seen.index}"] = idle
            case _:
                self._pods[f"p{number}"] = self._pod(f"p{number}", name)

    def _pod(self, name: str, node: str) -> Pod:
        team, index = self._random.choice(TEAMS), self._random.randrange(CARDS)
        if node in PLAIN:  # it is unknown which cards it has
            return pod(name, node, {"nvidia.com/gpu": 1}, namespace=team)
        uuid = f"GPU-{node}-{index}"
        if node in NAMED:
            whole = {"main": (Grant(uuid, index, 0),)}
            return pod(name, node, {"nvidia.com/gpu": 1}, namespace=team, grants=whole)
        units = self._random.randint(1, 20)
        part = {"main": (Grant(uuid, index, units),)}
        return pod(name, node, {"aliyun.com/gpu-mem": units}, namespace=team, grants=part)


def _named_node(name: str) -> Node:
    slots = [GpuSlot(at, f"GPU-{name}-{at}", at, "H200", CARD_MIB) for at in range(CARDS)]
    return structs.replace(gpu_node(name, CARDS), gpus=tuple(slots))


@pytest.mark.parametrize("seed", range(2))
def test_the_map_of_a_moment_does_not_depend_on_the_moments_before(seed: int) -> None:
    moments, board = Moments(seed), None
    kept = renumbered = 0
    for _ in range(40):
        snapshot, before = moments.following(), board
        board, alone = PastBoard(snapshot, before), PastBoard(snapshot)
        for part in ("gpu_map", "nameless_map"):
            assert _bytes(getattr(board, part)) == _bytes(getattr(alone, part)), part
        if before is not None:
            cells = _same_cells(before.gpu_map.nodes, board.gpu_map.nodes)
            kept += cells
            renumbered += bool(cells) and before.gpu_map.teams != board.gpu_map.teams
    assert kept > 40 * CARDS, "cells of nodes that have not changed are kept"
    assert renumbered > 2, "teams have other numbers at another moment"


def _bytes(made: object) -> bytes:
    return msgspec.json.encode(made)


def _same_cells(nodes: list[MapNode], others: list[MapNode]) -> int:
    before = {id(cell) for node in nodes for cell in node.gpus}
    return sum(id(cell) in before for node in others for cell in node.gpus)
