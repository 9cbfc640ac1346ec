"""The node agent handles unexpected devices: ids of other plugins, two cards with the same UUID."""

from __future__ import annotations

import pytest
from tests.rules.devices.cards import t4, uuid

from fairlead.model.devices.driver import IsolationMeans
from fairlead.model.devices.gpu import CardMode
from fairlead.model.devices.granted import DeviceRefusal, RefusalCode
from fairlead.model.devices.kubelet import HeldDevices
from fairlead.model.node import Node
from fairlead.model.pod import Pod, PodPhase
from fairlead.rules.devices.card_mode import card_holders
from fairlead.rules.devices.grant import whole_cards
from fairlead.rules.devices.ids import uuid_of
from fairlead.rules.devices.machine import NodeMachine

WHOLE, MEMORY = "nvidia.com/gpu", "aliyun.com/gpu-mem"


@pytest.mark.parametrize(
    "device_id", [f"{uuid(0)}::0", f"{uuid(0)}::12", f"{uuid(0)}-_-3", f"{uuid(0)}-_-c99", uuid(0)]
)
def test_the_card_of_an_id(device_id: str) -> None:
    """NVIDIA's plugin numbers the replicas of a card after `::`.

    See docs/spec/telemetry.md#kubelet-apis-and-attribution.
    """
    assert uuid_of(device_id) == uuid(0)


def test_a_card_that_another_plugin_gave_in_slices_is_held_as_a_whole() -> None:
    held = [HeldDevices(WHOLE, (f"{uuid(1)}::0", f"{uuid(1)}::3"), "c", "ns", "p")]
    assert card_holders([t4(0), t4(1)], held, [], ()).whole == {uuid(1)}


@pytest.mark.parametrize("device_id", [f"{uuid(0)}::0", f"{uuid(0)}-_-3", f"{uuid(0)}-_-", ""])
def test_an_id_that_is_no_whole_card_is_refused_for_good(device_id: str) -> None:
    refused = whole_cards(
        [uuid(1), device_id], [t4(0, mode=CardMode.EXCLUSIVE), t4(1, mode=CardMode.EXCLUSIVE)]
    )
    assert isinstance(refused, DeviceRefusal)
    assert (refused.code, refused.is_final) == (RefusalCode.INVALID_ARGUMENT, True)
    assert refused.reason == f"device {device_id} is of no GPU of this node"


def known(machine: NodeMachine) -> NodeMachine:
    machine.node = Node("n", labels={"cgpu": "true"})
    machine.pods = {}
    machine.kubelet_reports(())
    return machine


def test_nothing_is_offered_of_two_cards_with_one_uuid() -> None:
    machine = known(NodeMachine())
    machine.driver_shows([t4(0), t4(1, uuid=uuid(0)), t4(2)], IsolationMeans())
    seen = machine.look(0.0)
    assert all(devices == () for devices in seen.plan.lists.values())
    assert [card.index for card in seen.plan.cards] == [0, 1, 2]
    assert seen.plan.condition is not None
    assert seen.plan.condition.message == f"GPU 0 and GPU 1 have the same UUID {uuid(0)}"


def test_a_pod_with_a_slice_of_a_card_may_use_it() -> None:
    machine = known(NodeMachine())
    machine.pods = {"u": Pod("ns", "p", uid="u", phase=PodPhase.RUNNING, node="n")}
    machine.kubelet_reports([HeldDevices(WHOLE, (f"{uuid(0)}::1",), "c", "ns", "p")])
    assert machine.whole_holders() == {uuid(0): {"u"}}
    machine.driver_shows([t4(0)], IsolationMeans())
    machine.healths.xid(79, uuid(0), 0.0)
    assert [event.target.name for event in machine.look(1.0).events] == ["n", "p"]
