"""No request of a user stops the world: deleted nodes and namespaces, emptied statuses, specs of
any shape.
"""

from __future__ import annotations

import contextlib
from typing import Any

from hypothesis import strategies as st
from tests.examples import examples
from tests.sim.small_world import EPOCH, NAMESPACE, live, pod

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import (
    DEPLOYMENTS,
    JOBS,
    MPI_JOBS,
    NAMESPACES,
    NODES,
    PODS,
    PYTORCH_JOBS,
    REPLICA_SETS,
    TF_JOBS,
)
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.world.world import World

KINDS = (NODES, NAMESPACES, PODS, DEPLOYMENTS, REPLICA_SETS, JOBS, MPI_JOBS, TF_JOBS, PYTORCH_JOBS)
CUSTOM = (MPI_JOBS, TF_JOBS, PYTORCH_JOBS)

scraps: st.SearchStrategy[Any] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 300),
        st.sampled_from(["", "a", "1e30", "Running", "train:5s"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(
                [
                    "template",
                    "spec",
                    "containers",
                    "Worker",
                    "Master",
                    "Launcher",
                    "replicas",
                    "runPolicy",
                ]
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)
pick = st.integers(0, 1000)
actions = st.one_of(
    st.tuples(st.just("delete"), st.sampled_from(KINDS), pick),
    st.tuples(
        st.just("status"),
        st.sampled_from(KINDS),
        pick,
        st.sampled_from([None, {}, {"conditions": None}, {"phase": "Running"}]),
    ),
    st.tuples(st.just("custom"), st.sampled_from(CUSTOM), pick, scraps),
    st.tuples(st.just("live"), st.integers(1, 900)),
)


def do(world: World, kind: str, *rest: Any) -> None:
    if kind == "live":
        live(world, rest[0])
        return
    ref, number, *more = rest
    if kind == "custom":
        key = {
            MPI_JOBS: "mpiReplicaSpecs",
            TF_JOBS: "tfReplicaSpecs",
            PYTORCH_JOBS: "pytorchReplicaSpecs",
        }[ref]
        metadata = {"name": f"odd-{number}", "namespace": "vision"}
        world.cluster.create(
            {
                "apiVersion": ref.api_version,
                "kind": ref.kind,
                "metadata": metadata,
                "spec": {key: more[0], "runPolicy": more[0]},
            }
        )
        return
    found = world.cluster.list(ref)
    if not found:
        return
    metadata = found[number % len(found)]["metadata"]
    if kind == "delete":
        world.cluster.delete(ref, metadata.get("namespace"), metadata["name"])
    else:
        world.cluster.mutate(
            ref, metadata.get("namespace"), metadata["name"], lambda old: {**old, "status": more[0]}
        )


def test_a_pod_whose_status_was_emptied_can_still_be_deleted() -> None:
    world = sharing_world(load_scenario("default"), 0, EPOCH)
    live(world, 900)
    for found in [each["metadata"] for each in world.cluster.list(PODS)]:
        world.cluster.mutate(
            PODS, found["namespace"], found["name"], lambda old: {**old, "status": None}
        )
        world.cluster.delete(PODS, found["namespace"], found["name"])
    live(world, 900)


@examples(1, 16, st.integers(0, 1000), st.lists(actions, min_size=4, max_size=25))
def test_the_world_goes_on(seed: int, steps: list[tuple[Any, ...]]) -> None:
    world = sharing_world(load_scenario("default"), seed, EPOCH)
    live(world, 900)
    for step in steps:
        with contextlib.suppress(ApiStatus):  # refused, as it should be
            do(world, *step)
    live(world, 900)
    before = world.cluster.resource_version
    world.cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    world.cluster.create(pod("afterwards"))
    live(world, 30)
    assert world.cluster.resource_version > before + 2
