"""Contract: `fairlead dataset show`, and why a data set is stuck, over both worlds, with Fluid's
own definitions (docs/spec/datasets.md#one-data-set, docs/spec/datasets.md#reasons).
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.contracts.data_objects import DataSpace, claim

pytestmark = pytest.mark.turns(2, 0)

SECRET = "aBcD1234-never-shown"
STAMP = "2026-01-02T03:04:05Z"


def test_a_data_set_is_shown_with_all_that_belongs_to_it(data_space: DataSpace) -> None:
    space = data_space
    mounts = [
        {
            "mountPoint": f"https://user:{SECRET}@files.example/faces?sign={SECRET}",
            "name": "faces",
            "path": "/",
            "readOnly": True,
            "options": {"fs.oss.endpoint": "oss.example", "fs.oss.accessKeySecret": SECRET},
            "encryptOptions": [
                {
                    "name": "fs.oss.accessKeyId",
                    "valueFrom": {"secretKeyRef": {"name": "keys", "key": "id"}},
                }
            ],
        }
    ]
    space.fluid_object("Dataset", "faces", {"mounts": mounts}, finalizers=["example.com/kept"])
    space.fluid_object("AlluxioRuntime", "faces", {"replicas": 2})
    load = {"dataset": {"name": "faces", "namespace": space.space}, "target": [{"path": "/a"}]}
    space.fluid_object("DataLoad", "faces-load", load)
    space.fluid_object("DataLoad", "other", {"dataset": {"name": "other"}})
    ready = {
        "type": "Ready",
        "status": "True",
        "reason": "DatasetReady",
        "message": "The ddc runtime is ready.",
        "lastUpdateTime": STAMP,
        "lastTransitionTime": STAMP,
    }
    states = {
        "cached": "512.00MiB",
        "cacheCapacity": "4.00GiB",
        "cachedPercentage": "50.0%",
        "cacheHitRatio": "75.0%",
        "localHitRatio": "25.0%",
    }
    status = {
        "phase": "Bound",
        "ufsTotal": "[Calculating]",
        "fileNum": "[Calculating]",
        "conditions": [ready],
        "cacheStates": states,
        "operationRef": {"DataLoad": "faces-load"},
    }
    space.status("Dataset", "faces", status)
    parts = {
        "valueFile": "faces-values",
        "masterPhase": "Ready",
        "workerPhase": "PartialReady",
        "workerReason": "The workers are partially ready.",
        "fusePhase": "Ready",
        "workerNumberReady": 1,
        "desiredWorkerNumberScheduled": 2,
        "currentWorkerNumberScheduled": 2,
        "desiredMasterNumberScheduled": 1,
        "currentMasterNumberScheduled": 1,
        "masterNumberReady": 1,
        "currentFuseNumberScheduled": 0,
        "desiredFuseNumberScheduled": 0,
        "fuseNumberReady": 0,
    }
    space.status("AlluxioRuntime", "faces", parts)
    space.create(f"{space.core}/persistentvolumeclaims", claim("faces", CreatedBy="fluid"))
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "faces"}}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "reader"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": volumes},
    }
    space.create(f"{space.core}/pods", pod)
    owner: dict[str, Any] = {}
    for name in ("train", "train-part"):  # a job, and what stands between it and its pods
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **owner}}
        place = f"{space.core}/configmaps"
        space.create(place, made)
        uid = space.api.get(f"{place}/{name}").body["metadata"]["uid"]
        by = {"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}
        owner = {"ownerReferences": [{**by, "controller": True}]}
    for name in ("worker-0", "worker-1"):
        space.create(f"{space.core}/pods", {**pod, "metadata": {"name": name, **owner}})
    for kind, name in (("Dataset", "warned"), ("Pod", "unrelated")):
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name},
            "type": "Warning",
            "reason": "ErrorDeleteDataset",
            "message": f"about a {kind}",
            "lastTimestamp": STAMP,
            "involvedObject": {"kind": kind, "name": "faces", "namespace": space.space},
        }
        space.create(f"{space.core}/events", event)

    text = space.run("show", "faces")
    assert SECRET not in text
    lines = {
        line.partition(":")[0].strip(): line.partition(":")[2].strip() for line in text.splitlines()
    }
    assert lines["Status"] == "Ready (Bound)"
    assert lines["Runtime"] == "AlluxioRuntime, 1 of 2 workers ready"
    assert lines["worker"] == "PartialReady: The workers are partially ready."
    assert lines["Cached"] == "512MiB (50%)"
    assert lines["Hits"] == "all 75%, same node 25%"
    assert lines["Finalizers"] == "example.com/kept"
    used = [line.split(":", 1)[1].strip() for line in text.splitlines() if "Used by:" in line]
    assert used == ["ConfigMap/train: worker-0, worker-1", "reader"]
    assert "fs.oss.accessKeyId from Secret keys, key id" in text
    assert "fs.oss.endpoint=oss.example" in text
    assert f"pods mount it: `{space.space}/reader`" in lines["Cannot end"]
    assert "an operation runs: `DataLoad faces-load`" in lines["Cannot end"]
    assert "ErrorDeleteDataset" in text
    assert "about a Pod" not in text

    shown = space.run("show", "faces", "-o", "json")
    assert SECRET not in shown
    document = json.loads(shown)
    assert (document["sizeBytes"], document["files"]) == (None, None)
    assert (document["cachedBytes"], document["cachedPercent"]) == (512 << 20, 50)
    assert [each["name"] for each in document["preheats"]] == ["faces-load"]
    train = {"ownerKind": "ConfigMap", "owner": "train"}
    assert document["usedBy"] == [
        {"pod": "reader", "node": "", "ownerKind": "", "owner": ""},
        *({"pod": name, "node": "", **train} for name in ("worker-0", "worker-1")),
    ]
    assert document["mounts"][0]["secrets"] == [
        {"option": "fs.oss.accessKeyId", "secret": "keys", "key": "id"}
    ]
    assert document["unread"] == []
    assert "kind: AlluxioRuntime" in space.run("show", "faces", "-o", "yaml")
    assert SECRET not in space.run("list", "-o", "json")


def test_what_cannot_be_shown_has_its_reason(data_space: DataSpace) -> None:
    space = data_space
    space.create(f"{space.core}/persistentvolumeclaims", claim("raw"))
    space.fluid_object("JindoRuntime", "left", {"replicas": 1})
    assert "output format `csv` is not known" in space.run("show", "raw", "-o", "csv", status=1)
    assert "`raw` is a claim; name the data set that mounts it" in space.run(
        "show", "raw", status=1
    )
    assert "a JindoRuntime of this name is left" in space.run("show", "left", status=1)
    assert f"there is no data set `{space.space}/none`" in space.run("show", "none", status=1)


def test_a_foreign_claim_of_its_name_is_reported(data_space: DataSpace) -> None:
    space = data_space
    space.fluid_object("Dataset", "faces", {"mounts": [{"mountPoint": "s3://faces"}]})
    space.fluid_object("AlluxioRuntime", "faces", {"replicas": 1})
    space.status("Dataset", "faces", {"phase": "Bound", "conditions": []})
    assert "Bound, but" not in space.run("list")
    space.create(f"{space.core}/persistentvolumeclaims", claim("faces"))
    assert "data set " + f"{space.space}/faces: Bound, but its claim is not Fluid's" in space.run(
        "list"
    )
    document = json.loads(space.run("show", "faces", "-o", "json"))
    assert (document["status"], document["phase"]) == ("NotReady", "Bound")
