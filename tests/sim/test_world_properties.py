"""Whatever people and chance do: no node above its allocatable, every pod's life a legal path, versions that only grow."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.small_world import EPOCH, NAMESPACE, live, pod, small_scenario

from fairlead.model.resources import NVIDIA_GPU, sum_of
from fairlead.sharing_hooks import sharing_hooks
from fairlead.sim.cluster import Cluster
from fairlead.sim.hooks import Hooks
from fairlead.sim.needs import amounts_of, pod_needs
from fairlead.sim.recorder import Recorder
from fairlead.sim.resources import NODES, PODS
from fairlead.sim.scenario_file import load_scenario
from fairlead.sim.watch_log import ADDED, DELETED, WatchEvent
from fairlead.sim.world import World

LEGAL = {
    "": {"Pending"},
    "Pending": {"Pending", "Running", "Succeeded", "Failed"},
    "Running": {"Running", "Succeeded", "Failed"},
    "Succeeded": {"Succeeded"},
    "Failed": {"Failed"},
}


class Witness:
    """Looks at every event as it happens."""

    def __init__(self) -> None:
        self.phases: dict[str, str] = {}
        self.versions: list[int] = []
        self.bound: dict[str, str] = {}

    def hooks(self, cluster: Cluster, recorder: Recorder) -> Hooks:
        for ref in cluster.kinds():
            cluster.subscribe(ref, lambda event: self.versions.append(event.resource_version))
        cluster.subscribe(PODS, self.see)
        return sharing_hooks(cluster, recorder)

    def see(self, event: WatchEvent) -> None:
        uid = event.object["metadata"]["uid"]
        if event.type == ADDED:
            assert uid not in self.phases, "a uid is used once"
        if event.type == DELETED:
            return
        phase, node = event.object["status"]["phase"], event.object["spec"].get("nodeName", "")
        assert phase in LEGAL[self.phases.get(uid, "")]
        assert self.bound.get(uid, node) in ("", node), "a pod never changes its node"
        self.phases[uid], self.bound[uid] = phase, node


def check_room(world: World) -> None:
    """Requests of bound, unfinished pods stay within allocatable; units of every shared card within its size; cards have one holder."""
    for node in world.cluster.list(NODES):
        name = node["metadata"]["name"]
        mine = [item for item in world.cluster.list(PODS) if item["spec"].get("nodeName") == name]
        asked = sum_of(pod_needs(item) for item in mine if item["status"]["phase"] not in ("Succeeded", "Failed"))
        lost = sum(bool(card.failed_by and card.holds) for card in world.devices.cards(name))  # a pod keeps the card that fails under it
        offered = sum_of([amounts_of(node["status"]["allocatable"]), {NVIDIA_GPU: lost}])
        assert all(amount <= offered.get(resource, 0) for resource, amount in asked.items()), f"{name}: {asked} > {offered}"
        for card in world.devices.cards(name):
            assert sum(hold.limit_mib for hold in card.holds) <= card.model.memory_mib
            assert card.is_shared or len({hold.pod_uid for hold in card.holds}) <= 1


actions = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.integers(0, 5), st.integers(0, 12), st.sampled_from(["app:1", "train:2m", "fail:9s", "crash:20s"])),
        st.tuples(st.just("delete"), st.integers(0, 30)),
        st.tuples(st.just("live"), st.integers(1, 400)),
    ),
    min_size=5,
    max_size=40,
)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), actions)
def test_whatever_people_do(seed: int, steps: list[tuple[Any, ...]]) -> None:
    witness = Witness()
    world = World(small_scenario(), seed, EPOCH, hooks=witness.hooks)
    for number, (kind, *rest) in enumerate(steps):
        if kind == "create":
            gpus, units, image = rest
            policy = "Never" if number % 2 else "Always"
            world.cluster.create(pod(f"p{number}", image, gpus=gpus, gpu_memory=0 if gpus else units, restartPolicy=policy))
        elif kind == "delete" and world.cluster.get(PODS, NAMESPACE, f"p{rest[0]}") is not None:
            world.cluster.delete(PODS, NAMESPACE, f"p{rest[0]}")
        elif kind == "live":
            live(world, rest[0])
        check_room(world)
    live(world, 60)
    check_room(world)
    assert witness.versions == sorted(set(witness.versions))


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 100_000))
def test_the_default_world_keeps_the_rules(seed: int) -> None:
    witness = Witness()
    world = World(load_scenario("default"), seed, EPOCH, hooks=witness.hooks)
    for _ in range(12):
        live(world, 600)
        check_room(world)
    assert witness.versions == sorted(set(witness.versions))
    assert {"Running", "Succeeded", "Failed", "Pending"} <= set(witness.phases.values())
