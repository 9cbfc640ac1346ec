"""Programs on shared cards of the simulated cluster live by their node's provider
(docs/spec/gpu-sharing.md#isolation-providers).
"""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace
from tests.sim.small_world import SHARED_POOL, get_pod, live, pod, reasons, small_world

from fairlead.model.devices.device import DeviceProcess
from fairlead.rules.metrics.over_grant import over_grant_families
from fairlead.wire.names import LABEL_ISOLATION
from fairlead_sim.kubelet.cuda_malloc import NO_MEMORY
from fairlead_sim.objects.resources import EVENTS, NODES
from fairlead_sim.scenario.scenario import Duration, Xid
from fairlead_sim.world.world import World

MIB = 1 << 20
NONE = {"cgpu.disable.isolation": "true"}
MPS = {"ack.node.gpu.schedule": "mps"}


def world_of(xids: tuple[Xid, ...] = (), **labels: str) -> World:
    """One card of 16130 MiB, 15 units."""
    pool = replace(SHARED_POOL, gpus=1, labels=labels)
    return small_world(pool, xids=xids)


def run(world: World, name: str, gib: int, **annotations: str) -> None:
    """A pod of 4 units whose program takes `gib`."""
    made = pod(name, image=f"cuda-malloc:{gib}G", gpu_memory=4, restartPolicy="Always")
    made["metadata"]["annotations"] = annotations
    world.cluster.create(made)
    live(world, 90)


def process(world: World, name: str) -> DeviceProcess:
    (found,) = (
        each for card in world.devices.sample() for each in card.processes if each.pod == name
    )
    return found


def crashes(world: World, name: str) -> bool:
    (status,) = get_pod(world, name)["status"]["containerStatuses"]
    return bool(status["restartCount"])


def last_line(world: World, name: str, *, previous: bool = False) -> str:
    return (world.logs.lines("work", name, "main", previous) or [(0.0, "")])[-1][1]


@pytest.mark.parametrize(
    "labels", [{}, MPS, {LABEL_ISOLATION: "cgroup"}, {LABEL_ISOLATION: "mig"}], ids=str
)
def test_a_provider_with_a_limit_refuses_at_the_grant(labels: dict[str, str]) -> None:
    world = world_of(**labels)
    run(world, "greedy", 6)
    assert crashes(world, "greedy")
    assert last_line(world, "greedy", previous=True) == NO_MEMORY
    assert process(world, "greedy").denied == (None if labels else 1)


def test_without_isolation_a_program_exceeds_its_grant_and_is_reported_once() -> None:
    world = world_of(**NONE)
    run(world, "greedy", 6)
    assert not crashes(world, "greedy")
    greedy = process(world, "greedy")
    assert greedy.memory_used_bytes == 6265 * MIB
    assert greedy.memory_limit_bytes == 4301 * MIB
    assert (greedy.accounted_bytes, greedy.denied) == (None, None)
    (family,) = over_grant_families(world.devices.sample())
    (card,) = world.devices.sample()
    assert family.keys == [(card.node, "work", "greedy", "main", card.uuid)]
    assert family.values == [(6265 - 4301) * MIB]
    (event,) = (
        each
        for each in world.cluster.list(EVENTS, "work")
        if each["reason"] == "GPUMemoryOverGrant"
    )
    assert event["message"] == (
        f"container main uses 6265 MiB of GPU {card.uuid}, its grant is 4301 MiB"
    )
    assert event["source"]["component"] == "fairlead-device-plugin"


def test_what_the_contexts_of_programs_may_take_is_not_reported() -> None:
    """4.5 GiB and a context are 4729 MiB, less than 512 MiB above the grant."""
    world = world_of(**NONE)
    made = pod("near", image="cuda-malloc:4608M", gpu_memory=4)
    world.cluster.create(made)
    live(world, 90)
    assert process(world, "near").memory_used_bytes == 4729 * MIB
    assert "GPUMemoryOverGrant" not in reasons(world, "near")
    (family,) = over_grant_families(world.devices.sample())
    assert family.values == []


def test_without_isolation_a_neighbour_within_its_grant_finds_no_memory() -> None:
    world = world_of(**NONE)
    run(world, "greedy", 12)
    run(world, "first", 3)
    run(world, "second", 3)
    assert not crashes(world, "first")
    assert crashes(world, "second")
    assert last_line(world, "second", previous=True) == NO_MEMORY
    (card,) = world.devices.sample()
    assert card.fields["DCGM_FI_DEV_FB_FREE"] >= 0


def test_a_limit_is_lowered_by_the_annotation_and_never_raised() -> None:
    world = world_of()
    run(world, "low", 3, **{"fairlead.io/gpu-mem-limit-mib": json.dumps({"main": 3100})})
    run(world, "high", 6, **{"fairlead.io/gpu-mem-limit-mib": json.dumps({"main": 9000})})
    assert (crashes(world, "low"), crashes(world, "high")) == (True, True)
    assert process(world, "low").memory_limit_bytes == 3100 * MIB
    assert process(world, "high").memory_limit_bytes == 4301 * MIB


def test_the_guards_counts_begin_anew_with_each_start() -> None:
    world = world_of()
    run(world, "greedy", 6)
    run(world, "fits", 3)
    live(world, 600)
    assert (process(world, "greedy").accounted_bytes, process(world, "greedy").denied) == (0, 1)
    assert (process(world, "fits").accounted_bytes, process(world, "fits").denied) == (
        3193 * MIB,
        0,
    )
    assert {process(world, each).unknown_allocators for each in ("greedy", "fits")} == {0}


def test_the_provider_in_force_at_the_start_of_a_program_decides() -> None:
    world = world_of()
    run(world, "fits", 3)
    (node,) = world.cluster.list(NODES)
    world.cluster.merge_patch(NODES, None, node["metadata"]["name"], {"metadata": {"labels": NONE}})
    run(world, "greedy", 6)
    assert process(world, "greedy").denied is None
    assert process(world, "fits").denied == 0


def test_a_program_that_dies_of_its_card_has_not_lacked_memory() -> None:
    world = world_of(xids=(Xid("shared-1", 0, 48, Duration(100)),))
    run(world, "fits", 3)
    live(world, 10.5)
    (status,) = get_pod(world, "fits")["status"]["containerStatuses"]
    assert status["state"]["terminated"]["exitCode"] == 134
    assert last_line(world, "fits") == "exit status 134"
