"""What the node agents of the laptop allocate: the simulated kubelets call the rules of `fairlead
device-plugin`.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from tests.sim.small_world import EPOCH, NAMESPACE, container, get_pod, live, phase, small_scenario
from tests.sim.small_world import pod as make_pod
from tests.sim.world.saved_worlds import saved_of, woken

from fairlead.model.devices.gpu import GpuMode
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import EVENTS, NODES
from fairlead_sim.objects.saved import HeldCard
from fairlead_sim.scenario.scenario import NodePool
from fairlead_sim.scheduler.hooks import NoShare
from fairlead_sim.world.world import World

POOL = NodePool(name="t4", cpu=32, memory="128Gi", gpu_model="Tesla T4", gpus=2, shared=True)
"""Two cards of 14 units and 15079 MiB."""
NODE = "t4-1"


def one_node() -> World:
    return sharing_world(small_scenario(POOL), 1, EPOCH)


def held(world: World) -> dict[str, list[tuple[int, int]]]:
    """By container, the (index, MiB) that it holds now."""
    found: dict[str, list[tuple[int, int]]] = {}
    for card in world.devices.cards(NODE):
        for hold in card.holds:
            found.setdefault(hold.container, []).append((card.index, hold.limit_mib))
    return found


def waiting(world: World, name: str = "p") -> dict[str, Any]:
    status = get_pod(world, name)["status"]
    reported = [*status.get("initContainerStatuses", ()), *status["containerStatuses"]]
    return next(
        each["state"]["waiting"]
        for each in reported
        if each["state"].get("waiting", {}).get("reason") == "CreateContainerConfigError"
    )


def init(image: str, units: int, name: str = "init", **more: Any) -> dict[str, Any]:
    return container(image, gpu_memory=units, name=name, **more)


def create(world: World, units: int = 4, image: str = "pause:35", **spec: Any) -> None:
    world.cluster.create(make_pod("p", image, gpu_memory=units, **spec))


def bound(world: World) -> None:
    while not (get_pod(world)["spec"].get("nodeName")):
        assert world.step()


def assert_reported(world: World, message: str) -> None:
    """The pod has one Event per try in the first minute: the first after 0.7 s, then one every 12
    s.
    """
    failed = [
        event for event in world.cluster.list(EVENTS, NAMESPACE) if event["reason"] == "Failed"
    ]
    assert {event["message"] for event in failed} == {message}
    assert sum(event.get("count") or 1 for event in failed) in range(4, 8)


def damaged(pod: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """The pod as its kubelet passes it to an agent that reads a changed grant."""
    annotations = pod["metadata"]["annotations"]
    grants = json.loads(annotations["fairlead.io/gpu-allocation"])
    reported = {
        **annotations,
        "fairlead.io/gpu-allocation": json.dumps({"main": [{**grants["main"][0], **changes}]}),
    }
    return {**pod, "metadata": {**pod["metadata"], "annotations": reported}}


def test_an_init_container_holds_its_part_while_it_runs_and_then_the_others_theirs() -> None:
    """12 units of 14 are 12924 MiB of 15079, and 4 are 4308: together they would not fit."""
    world = one_node()
    create(world, 4, initContainers=[init("train:60s", 12)])
    live(world, 60)
    assert held(world) == {"init": [(0, 12924)]}
    samples = {
        process.container: process
        for device in world.devices.sample()
        for process in device.processes
    }
    assert samples["init"].memory_limit_bytes == 12924 << 20
    assert samples["init"].processes == 1
    live(world, 120)
    assert phase(world) == "Running"
    assert held(world) == {"main": [(0, 4308)]}


def test_an_init_container_that_fails_takes_its_part_anew() -> None:
    world = one_node()
    create(world, 4, restartPolicy="Always", initContainers=[init("fail:20s", 12)])
    for _ in range(30):
        live(world, 10)
        assert held(world) in ({}, {"init": [(0, 12924)]})
    assert get_pod(world)["status"]["initContainerStatuses"][0]["restartCount"] > 1


def test_a_sidecar_holds_its_part_to_the_end() -> None:
    world = one_node()
    create(
        world,
        4,
        "train:2m",
        initContainers=[init("pause:35", 2, name="side", restartPolicy="Always")],
    )
    live(world, 60)
    assert held(world) == {"main": [(0, 4308)], "side": [(0, 2154)]}
    live(world, 180)
    assert phase(world) == "Succeeded"
    assert held(world) == {}


def test_a_sidecar_beside_an_init_container() -> None:
    world = one_node()
    create(
        world,
        4,
        initContainers=[
            init("pause:35", 2, name="side", restartPolicy="Always"),
            init("train:60s", 8),
        ],
    )
    live(world, 60)
    assert held(world) == {"side": [(0, 2154)], "init": [(0, 8616)]}
    live(world, 120)
    assert held(world) == {"side": [(0, 2154)], "main": [(0, 4308)]}


@pytest.mark.parametrize(
    ("changes", "code", "words"),
    [
        pytest.param(
            {"units": 6},
            "InvalidArgument",
            "placement grants 6 units, container limit is 4",
            id="units",
        ),
        pytest.param(
            {"mib": 9000},
            "InvalidArgument",
            "placement grants 9000 MiB, 4 units of GPU {uuid} are 4308 MiB",
            id="MiB",
        ),
        pytest.param(
            {"uuid": "GPU-x"},
            "FailedPrecondition",
            "placement names GPU GPU-x, which is not on this node",
            id="card",
        ),
    ],
)
def test_what_the_rules_refuse_is_reported_as_a_kubelet_reports_it(
    changes: dict[str, Any], code: str, words: str
) -> None:
    world = one_node()
    create(world)
    bound(world)
    world.kubelets.agent, agent = (
        lambda pod, name, whole: agent(damaged(pod, changes), name, whole),
        world.kubelets.agent,
    )
    live(world, 60)
    words = words.format(uuid=world.devices.cards(NODE)[0].uuid)
    assert waiting(world)["message"] == (
        f"device plugin PreStartContainer rpc failed with err: rpc error: code = {code} desc = "
        f"{words}"
    )
    assert phase(world) == "Pending"
    assert held(world) == {}
    assert_reported(world, f"Error: {waiting(world)['message']}")
    assert get_pod(world)["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_ASSIGNED"] == "false"
    world.kubelets.agent = agent
    live(world, 15)
    assert phase(world) == "Running"
    assert held(world) == {"main": [(0, 4308)]}
    assert get_pod(world)["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_ASSIGNED"] == "true"


def test_a_card_that_failed_is_given_to_no_pod() -> None:
    world = one_node()
    create(world)
    bound(world)
    world.devices.cards(NODE)[0].failed_by = 79
    node = world.cluster.get(NODES, None, NODE)
    assert node is not None
    slots = json.loads(node["metadata"]["annotations"]["fairlead.io/gpus"])
    slots[0] |= {"health": "Unhealthy", "reason": "XID 79"}
    reported = {**node["metadata"]["annotations"], "fairlead.io/gpus": json.dumps(slots)}
    world.cluster.mutate(
        NODES,
        "",
        NODE,
        lambda old: {**old, "metadata": {**old["metadata"], "annotations": reported}},
    )
    live(world, 60)
    assert waiting(world)["message"].endswith(
        f"code = Unavailable desc = GPU {slots[0]['uuid']} is Unhealthy (XID 79)"
    )


def test_a_refused_sidecar_holds_up_the_others_until_it_starts() -> None:
    world = one_node()
    create(world, 4, initContainers=[init("pause:35", 2, name="side", restartPolicy="Always")])
    bound(world)
    world.kubelets.agent, agent = (
        lambda pod, name, whole: agent(
            {**pod, "metadata": {**pod["metadata"], "annotations": {}}}, name, whole
        ),
        world.kubelets.agent,
    )
    live(world, 60)
    words = (
        "pod work/p container side has no GPU placement; it must be scheduled by fairlead-scheduler"
    )
    assert waiting(world)["message"].endswith(f"code = FailedPrecondition desc = {words}")
    assert_reported(world, f"Error: {waiting(world)['message']}")
    world.kubelets.agent = agent
    live(world, 30)
    assert phase(world) == "Running"
    assert held(world) == {"main": [(0, 4308)], "side": [(0, 2154)]}


def test_a_world_that_goes_on_asks_again_for_refused_pods_and_gives_back_to_running_ones() -> None:
    world = one_node()
    create(world, 4, initContainers=[init("train:60s", 12)])
    live(world, 60)
    assert held(world) == {"init": [(0, 12924)]}
    after = woken(world, hours_off=1.0)
    assert held(after) == held(world)
    live(after, 120)
    assert (phase(after), held(after)) == ("Running", {"main": [(0, 4308)]})
    refused = one_node()
    create(refused)
    bound(refused)
    refused.kubelets.agent = lambda *_: NoShare("Unavailable", "not now")
    live(refused, 60)
    assert waiting(refused)["message"].endswith("code = Unavailable desc = not now")
    after = woken(refused, hours_off=1.0)
    live(after, 60)
    assert (phase(after), held(after)) == ("Running", {"main": [(0, 4308)]})


@pytest.mark.parametrize(
    "held_before",
    [(), (HeldCard("init", 0, GpuMode.SHARE, 12924), HeldCard("main", 0, GpuMode.SHARE, 4308))],
)
def test_of_a_running_pod_only_the_living_containers_hold_something_whatever_was_reported(
    held_before: tuple[HeldCard, ...],
) -> None:
    world = one_node()
    create(world, 4, initContainers=[init("train:20s", 12)])
    live(world, 180)
    assert phase(world) == "Running"
    saved = saved_of(world, hours_off=1.0)
    uid = get_pod(world)["metadata"]["uid"]
    after = sharing_world(
        world.scenario, world.seed, saved.epoch, dataclasses.replace(saved, held={uid: held_before})
    )
    assert held(after) == {"main": [(0, 4308)]}


def test_a_world_without_a_kubelet_gives_what_the_annotation_contains() -> None:
    world = World(small_scenario(POOL), 1, EPOCH)
    uuid = world.devices.cards(NODE)[1].uuid
    row = make_pod("p", gpu_memory=4, nodeName=NODE)
    grant = json.dumps({"main": [{"uuid": uuid, "index": 1, "units": 4, "mib": 4308}]})
    world.cluster.create(
        {
            **row,
            "metadata": {**row["metadata"], "annotations": {"fairlead.io/gpu-allocation": grant}},
        }
    )
    world.cluster.create(make_pod("none", gpu_memory=4, nodeName=NODE))
    live(world, 60)
    assert held(world) == {"main": [(1, 4308)]}
    assert waiting(world, "none")["message"].endswith(
        "code = Unknown desc = container main has no grant on this node"
    )
