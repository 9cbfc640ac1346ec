"""Leases of simulated nodes are as young, to a client, as those of real kubelets."""

from __future__ import annotations

from tests.asgi import TOKEN, ask
from tests.sim.small_world import CPU_POOL, EPOCH, GPU_POOL, live, small_scenario

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire.kube.time import parse_time
from fairlead_sim.api.server import ApiServer
from fairlead_sim.world.world import World

LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


async def ages(world: World, name: str = "") -> dict[str, float]:
    """Seconds since the renewal that a client sees, by node."""
    app = ApiServer(world.cluster, world.clock, [TOKEN])
    status, answer = await ask(app, "GET", f"{LEASES}/{name}".rstrip("/"))
    assert status == 200
    now = world.clock.now()
    return {
        each["metadata"]["name"]: now - parse_time(each["spec"]["renewTime"])
        for each in answer.get("items", [answer])
    }


async def test_a_lease_is_renewed_when_it_is_read_and_not_again_for_ten_seconds() -> None:
    world = sharing_world(small_scenario(CPU_POOL, GPU_POOL), 1, EPOCH)
    live(world, 200)
    before = world.cluster.resource_version
    assert (await ages(world, "gpu-1"))["gpu-1"] <= 10
    assert world.cluster.resource_version == before + 1
    every = await ages(world)
    assert len(every) > 1
    assert max(every.values()) <= 10
    before = world.cluster.resource_version
    assert await ages(world) == every
    assert world.cluster.resource_version == before


async def test_a_silent_node_renews_its_lease_no_more() -> None:
    world = sharing_world(small_scenario(CPU_POOL, GPU_POOL), 1, EPOCH)
    live(world, 200)
    world.fall_silent("cpu-1")
    live(world, 100)
    assert 100 <= (await ages(world))["cpu-1"] <= 110
    world.come_back("cpu-1")
    assert (await ages(world))["cpu-1"] == 0


async def test_reading_leases_of_another_namespace_renews_none() -> None:
    world = sharing_world(small_scenario(CPU_POOL, GPU_POOL), 1, EPOCH)
    live(world, 200)
    app = ApiServer(world.cluster, world.clock, [TOKEN])
    before = world.cluster.resource_version
    elsewhere = LEASES.replace("kube-node-lease", "default")
    assert (await ask(app, "GET", elsewhere))[0] == 200
    assert (await ask(app, "GET", f"{elsewhere}/gpu-1"))[0] == 404
    assert world.cluster.resource_version == before
