"""CSINode objects follow the pods of volume drivers."""

from __future__ import annotations

import msgspec
from tests.sim.operators.fluid_world import install
from tests.sim.small_world import live, small_world

from fairlead.wire.data.csi import WireCsiNode, parse_csi_node
from fairlead.wire.data.fluid import FLUID_NAMESPACE
from fairlead.wire.data.stand_in import CSI_PLUGIN
from fairlead_sim.objects.resources import CSI_NODES, DAEMON_SETS, NODES
from fairlead_sim.world.world import World


def nodes_with_driver(world: World) -> set[str]:
    found = [msgspec.convert(each, WireCsiNode) for each in world.cluster.list(CSI_NODES)]
    return {name for name in map(parse_csi_node, found) if name}


def test_a_node_has_the_driver_while_its_pod_runs_there() -> None:
    world = small_world()
    assert world.cluster.list(CSI_NODES) == []
    install(world)
    names = {node["metadata"]["name"] for node in world.cluster.list(NODES)}
    assert nodes_with_driver(world) == names
    selector = {"spec": {"template": {"spec": {"nodeSelector": {"none": "such"}}}}}
    world.cluster.merge_patch(DAEMON_SETS, FLUID_NAMESPACE, CSI_PLUGIN, selector)
    live(world, 120)
    assert nodes_with_driver(world) == set()
    assert {each["metadata"]["name"] for each in world.cluster.list(CSI_NODES)} == names


def test_a_driver_with_pods_that_do_not_start_is_not_registered() -> None:
    world = small_world()
    argument = "--kubelet-registration-path=/var/lib/kubelet/plugins/csi.example.com/csi.sock"
    container = {"name": "registrar", "image": "missing:1", "args": [argument]}
    labels = {"app": "example"}
    world.cluster.create(
        {
            "apiVersion": "apps/v1",
            "kind": "DaemonSet",
            "metadata": {"name": "example", "namespace": "kube-system"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }
    )
    install(world)
    names = {
        driver["name"]
        for each in world.cluster.list(CSI_NODES)
        for driver in each["spec"]["drivers"]
    }
    assert names == {"fuse.csi.fluid.io"}


def test_a_silent_node_keeps_its_drivers() -> None:
    world = small_world()
    install(world)
    world.fall_silent("cpu-1")
    live(world, 120)
    assert "cpu-1" in nodes_with_driver(world)


def test_a_node_that_goes_takes_its_object_along() -> None:
    world = small_world()
    install(world)
    world.cluster.delete(NODES, None, "cpu-1")
    live(world, 30)
    assert "cpu-1" not in nodes_with_driver(world)
    assert world.cluster.get(CSI_NODES, None, "cpu-1") is None
