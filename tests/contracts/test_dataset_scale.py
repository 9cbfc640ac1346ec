"""Contract: `fairlead dataset scale` over both worlds, with Fluid's own definitions
(docs/spec/datasets.md#workers).
"""

from __future__ import annotations

import pytest
from tests.contracts.data_objects import DataSpace, with_fluid_node

pytestmark = pytest.mark.turns(2, 1)

STATUS = {
    "valueFile": "v",
    "masterPhase": "Ready",
    "workerPhase": "Ready",
    "fusePhase": "Ready",
    "currentWorkerNumberScheduled": 1,
    "desiredMasterNumberScheduled": 1,
    "currentMasterNumberScheduled": 1,
    "masterNumberReady": 1,
    "currentFuseNumberScheduled": 0,
    "desiredFuseNumberScheduled": 0,
    "fuseNumberReady": 0,
}


def test_the_number_of_workers_changes_when_all_checks_pass(data_space: DataSpace) -> None:
    space = data_space
    space.fluid_object("Dataset", "faces", {"mounts": [{"mountPoint": "s3://faces"}]})
    space.fluid_object("AlluxioRuntime", "faces", {"replicas": 1})
    place = f"{space.fluid}/alluxioruntimes/faces"
    assert "--workers is `0`" in space.run("scale", "faces", "--workers", "0", status=1)
    none = space.run("scale", "none", "--workers", "2", status=1)
    assert f"there is no data set `{space.space}/none`" in none
    many = space.run("scale", "faces", "--workers", "999", status=1)
    assert "of 999 nodes can run a worker" in many
    assert space.api.get(place).body["spec"]["replicas"] == 1
    with with_fluid_node(space.api, "scale-a"), with_fluid_node(space.api, "scale-b"):
        done = space.run("scale", "faces", "--workers", "2", "--wait", "0")
        assert f"data set {space.space}/faces: 1 -> 2 workers" in done
        assert space.api.get(place).body["spec"]["replicas"] == 2
        late = space.run("scale", "faces", "--workers", "2", "--wait", "0.1", status=1)
        assert "0 of 2 workers are ready" in late
        ready = {"workerNumberReady": 2, "desiredWorkerNumberScheduled": 2}
        space.status("AlluxioRuntime", "faces", {**STATUS, **ready})
        assert f"data set {space.space}/faces: done" in space.run(
            "scale", "faces", "--workers", "2"
        )
        fewer = space.run("scale", "faces", "--workers", "1", "--wait", "0")
        assert "read from the source again" in fewer
    assert space.api.get(place).body["spec"]["replicas"] == 1
