"""The whole simulated cluster as quota reads it, compared with a count of its raw objects."""

from __future__ import annotations

from collections import Counter

import pytest

from fairlead.rules.quota.sight import quota_state
from fairlead.run.initial_worlds import scenario_world
from fairlead_sim.world.snapshot import take_snapshot


@pytest.mark.long
def test_quota_sees_the_simulated_cluster_as_its_objects_are() -> None:
    world = scenario_world("default").world(7)
    snapshot = take_snapshot(world)
    objects = [obj for ref in world.cluster.kinds() for obj in world.cluster.scan(ref)]
    there = Counter(obj["kind"] for obj in objects)
    rows = Counter(row.kind for row in snapshot.workloads)
    assert rows["MPIJob"] == there["MPIJob"] > 0
    assert {kind: there[kind] for kind in rows} == rows
    assert len(snapshot.namespaces) == there["Namespace"] > 0
    state = quota_state(snapshot, snapshot.taken_at)
    leaves = {name for leaf in state.tree.leaves() for name in leaf.namespaces}
    pods = [
        obj for obj in objects if obj["kind"] == "Pod" and obj["metadata"]["namespace"] in leaves
    ]
    unfinished = {
        obj["metadata"]["uid"]: obj
        for obj in pods
        if obj["status"].get("phase") not in ("Succeeded", "Failed")
    }
    assert unfinished.keys() == {pod.uid for pod in state.pods}
    owners = {
        obj["metadata"]["uid"]: obj
        for obj in objects
        if obj["kind"] in ("MPIJob", "TFJob", "PyTorchJob")
    }
    own = [pod for pod in state.pods if pod.owner in owners]
    assert own
    for pod in own:
        job = owners[pod.owner]
        assert pod.gang == f"{job['kind'].lower()}/{job['metadata']['name']}"
        assert (
            0
            < pod.gang_size
            <= sum(
                role.get("replicas", 1)
                for key in job["spec"]
                if key.endswith("ReplicaSpecs")
                for role in job["spec"][key].values()
            )
        )
    assert state.nodes is not None
    assert len(state.nodes) == there["Node"]
