"""Whatever users and chance do: no node is above its allocatable, every pod's life is legal, and
versions only grow.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example
from hypothesis import strategies as st
from tests.examples import examples
from tests.sim.pod_life import Lives
from tests.sim.small_world import EPOCH, NAMESPACE, container, live, pod, small_scenario

from fairlead.model.resources import NVIDIA_GPU, sum_of
from fairlead.run.hooks.sharing_hooks import sharing_hooks
from fairlead_sim.objects.resources import DEPLOYMENTS, JOBS, NODES, PODS, STATEFUL_SETS
from fairlead_sim.objects.watch_log import LoggedChange
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.scheduler.hooks import Hooks
from fairlead_sim.scheduler.needs import amounts_of, pod_needs
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.store.recorder import Recorder
from fairlead_sim.world.world import World

FINISHED = ("Succeeded", "Failed")


class Witness:
    """Looks at every event when it happens. `watched` is the world, once it exists."""

    def __init__(self) -> None:
        self.versions: list[int] = []
        self.world: World | None = None
        self.lives = Lives(lambda: self.world.clock.now() if self.world else EPOCH)

    def hooks(self, cluster: StoredCluster, recorder: Recorder) -> Hooks:
        for ref in cluster.kinds():
            cluster.subscribe(ref, self.see)
        cluster.subscribe(PODS, self.lives.see)
        return sharing_hooks(cluster, recorder)

    def see(self, event: LoggedChange) -> None:
        assert event.object["metadata"]["resourceVersion"] == str(event.resource_version)
        if event.previous is not None:
            assert int(event.previous["metadata"]["resourceVersion"]) < event.resource_version
        self.versions.append(event.resource_version)


def watched(scenario: Any, seed: int) -> tuple[Witness, World]:
    witness = Witness()
    witness.world = World(scenario, seed, EPOCH, hooks=witness.hooks)
    return witness, witness.world


def check_room(world: World) -> None:
    """Requests of bound, unfinished pods stay within allocatable; units of every shared card within
    its size; a whole card has one holder.
    """
    for node in world.cluster.list(NODES):
        name = node["metadata"]["name"]
        mine = [item for item in world.cluster.list(PODS) if item["spec"].get("nodeName") == name]
        asked = sum_of(pod_needs(item) for item in mine if item["status"]["phase"] not in FINISHED)
        # a pod keeps the card that fails while the pod holds it
        lost = sum(bool(card.failed_by and card.holds) for card in world.devices.cards(name))
        offered = sum_of([amounts_of(node["status"]["allocatable"]), {NVIDIA_GPU: lost}])
        assert all(amount <= offered.get(resource, 0) for resource, amount in asked.items()), (
            f"{name}: {asked} > {offered}"
        )
        check_cards(
            world,
            name,
            {item["metadata"]["uid"] for item in mine if item["status"]["phase"] not in FINISHED},
        )


def check_cards(world: World, node: str, alive: set[str]) -> None:
    """Per card: grants fit, a whole card has one pod, and every pod that runs on it exists."""
    for card in world.devices.cards(node):
        where = f"{node} card {card.index}"
        assert sum(hold.limit_mib for hold in card.holds) <= card.model.memory_mib, (
            f"{where}: granted more than it has"
        )
        assert card.is_shared or len({hold.pod_uid for hold in card.holds}) <= 1, (
            f"{where}: two pods on a whole card"
        )
        assert {hold.pod_uid for hold in card.holds if hold.run is not None} <= alive, (
            f"{where}: a pod that is over works on it"
        )


IMAGES = st.sampled_from(
    ["pause:35", "train:2m", "fail:9s", "crash:20s", "cuda-malloc:3G", "missing:1"]
)
POLICIES = st.sampled_from(["Never", "Always", "OnFailure"])
NAMES = st.integers(0, 12)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("create"), st.integers(0, 5), st.integers(0, 12), IMAGES, POLICIES),
        st.tuples(st.just("init"), IMAGES, st.sampled_from([None, "Always"]), IMAGES, POLICIES),
        st.tuples(
            st.just("workload"),
            st.sampled_from([DEPLOYMENTS, STATEFUL_SETS, JOBS]),
            NAMES,
            st.integers(0, 4),
            IMAGES,
        ),
        st.tuples(
            st.just("scale"),
            st.sampled_from([DEPLOYMENTS, STATEFUL_SETS]),
            NAMES,
            st.integers(0, 4),
        ),
        st.tuples(st.just("delete"), st.integers(0, 60), st.sampled_from([None, 0, 5])),
        st.tuples(st.just("evict"), st.integers(0, 60)),
        st.tuples(st.just("cordon"), st.integers(0, 2), st.booleans()),
        st.tuples(st.just("silence"), st.integers(0, 2), st.booleans()),
        st.tuples(st.just("live"), st.integers(1, 400)),
    ),
    min_size=5,
    max_size=40,
)


# A sidecar that ends by itself while its pod is terminating: the pod must not fail while its
# program still runs.
@examples(30, 150, st.integers(0, 1000), actions)
@example(
    1,
    [
        ("live", 399),
        ("init", "fail:9s", "Always", "cuda-malloc:3G", "Always"),
        ("live", 139),
        ("delete", 32, 5),
        ("live", 399),
    ],
)
def test_whatever_people_do(seed: int, steps: list[tuple[Any, ...]]) -> None:
    witness, world = watched(small_scenario(), seed)
    for number, (kind, *rest) in enumerate(steps):
        with suppress(ApiStatus):  # the API refuses impossible requests; the world continues
            act(world, number, kind, *rest)
        check_room(world)
    live(world, 600)
    check_room(world)
    assert witness.versions == sorted(set(witness.versions))


def act(world: World, number: int, kind: str, *rest: Any) -> None:
    cluster = world.cluster
    if kind == "live":
        live(world, rest[0])
    elif kind == "create":
        gpus, units, image, policy = rest
        cluster.create(
            pod(
                f"p{number}",
                image,
                gpus=gpus,
                gpu_memory=0 if gpus else units,
                restartPolicy=policy,
            )
        )
    elif kind == "init":
        first, sidecar, image, policy = rest
        more = {"restartPolicy": sidecar} if sidecar else {}
        cluster.create(
            pod(
                f"i{number}",
                image,
                restartPolicy=policy,
                initContainers=[container(first, name="first", **more)],
            )
        )
    elif kind == "workload":
        make_workload(cluster, *rest)
    elif kind == "scale":
        ref, name, replicas = rest
        cluster.merge_patch(ref, NAMESPACE, f"w{name}", {"spec": {"replicas": replicas}})
    elif kind in ("cordon", "silence"):
        unsettle(world, kind, *rest)
    else:
        of_pod(cluster, kind, *rest)


def of_pod(cluster: StoredCluster, kind: str, which: int, grace: int | None = None) -> None:
    """An action on the `which`-th existing pod."""
    there = [item["metadata"]["name"] for item in cluster.list(PODS, NAMESPACE)]
    if not there:
        return
    name = there[which % len(there)]
    if kind == "delete":
        cluster.delete(PODS, NAMESPACE, name, **({} if grace is None else {"grace_seconds": grace}))
    else:
        cluster.evict(NAMESPACE, name, {"metadata": {"name": name}})


def make_workload(cluster: StoredCluster, ref: Any, name: int, count: int, image: str) -> None:
    labels = {"app": f"w{name}"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container(image)]}}
    spec: dict[str, Any] = {
        "replicas": count,
        "selector": {"matchLabels": labels},
        "template": template,
    }
    if ref is JOBS:
        template["spec"]["restartPolicy"] = "Never"  # type: ignore[index]
        spec = {
            "completions": max(1, count),
            "parallelism": 2,
            "backoffLimit": 2,
            "template": template,
        }
    metadata = {"name": f"w{name}", "namespace": NAMESPACE}
    cluster.create(
        {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": metadata, "spec": spec}
    )


def unsettle(world: World, kind: str, which: int, is_on: bool) -> None:
    """Close a node to new pods, or let its kubelet stop reporting; and back."""
    name = world.cluster.list(NODES)[which]["metadata"]["name"]
    if kind == "cordon":
        world.cluster.merge_patch(NODES, None, name, {"spec": {"unschedulable": is_on or None}})
    elif is_on and name not in world.silent:
        world.fall_silent(name)
    elif not is_on and name in world.silent:
        world.come_back(name)


@examples(2, 8, st.integers(0, 100_000))
def test_the_default_world_keeps_the_rules(seed: int) -> None:
    witness, world = watched(load_scenario("default"), seed)
    for _ in range(12):
        live(world, 600)
        check_room(world)
    assert witness.versions == sorted(set(witness.versions))
    assert {"Running", "Succeeded", "Failed", "Pending"} <= witness.lives.phases


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_the_world_in_which_everything_breaks_keeps_them_too(seed: int) -> None:
    witness, world = watched(load_scenario("faults"), seed)
    for _ in range(18):
        live(world, 600)
        check_room(world)
    assert witness.versions == sorted(set(witness.versions))
