"""Whose the cards are, while a kubelet answers, falls silent and comes back."""

from __future__ import annotations

import pytest
from tests.rules.devices.test_pod_devices import IDS, MEMORY, given, held

from fairlead.apps.pod_map import PodMap
from fairlead.errors import OutsideError
from fairlead.model.devices.kubelet import GivenShare, HeldDevices
from fairlead.model.refusal import Refusal
from fairlead_sim.gpus.node_cards import SimulatedNode, parse_models, simulated_uuid

CARD = simulated_uuid("n1", 0)


class Node:
    """A kubelet and a grants file that say what a test lets them."""

    def __init__(self) -> None:
        self.held = (held(MEMORY, *IDS),)
        self.given: tuple[GivenShare, ...] | Refusal = (given(CARD),)
        self.failure = ""
        self.moment = 0.0

    async def list_held(self) -> tuple[HeldDevices, ...]:
        if self.failure:
            raise OutsideError("kubelet", self.failure)
        return self.held

    def read_given(self) -> tuple[GivenShare, ...] | Refusal:
        return self.given


@pytest.fixture
def node() -> Node:
    return Node()


@pytest.fixture
def pods(node: Node) -> PodMap:
    return PodMap(node, node, 60.0, lambda: node.moment)


def names(pods: PodMap) -> list[str]:
    samples = pods.attributed(SimulatedNode("n1", parse_models("1xTesla-T4"), lambda: 1_767_600_000.0).sample())
    assert len(samples) == 1, "a device's series never go"
    return [process.pod for process in samples[0].processes]


async def test_a_silent_kubelet_costs_names_only_after_a_while(node: Node, pods: PodMap) -> None:
    assert names(pods) == []
    assert pods.state.age_seconds is None
    assert await pods.ask()
    assert names(pods) == ["p"]
    node.failure = "away"
    assert not await pods.ask()
    node.moment = 60.0
    assert names(pods) == ["p"]
    node.moment = 60.5
    assert names(pods) == []
    assert pods.state.errors == (("grants", 0), ("kubelet", 1))
    assert pods.state.age_seconds == 60.5
    node.failure = ""
    assert await pods.ask()
    assert names(pods) == ["p"]


async def test_a_damaged_grants_file_leaves_what_was_read_before(node: Node, pods: PodMap) -> None:
    assert await pods.ask()
    node.given = Refusal("garbage")
    assert not await pods.ask()
    assert names(pods) == ["p"]
    assert pods.state.errors == (("grants", 1), ("kubelet", 0))


async def test_who_is_gone_is_not_named(node: Node, pods: PodMap) -> None:
    await pods.ask()
    node.held = ()
    await pods.ask()
    assert names(pods) == []
    assert pods.state.containers == 0
