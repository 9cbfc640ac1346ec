"""Contract: `fairlead dataset list` over both worlds, with Fluid's own definitions.

Fluid itself does not run: a test writes the status as its controllers write it
(docs/spec/datasets.md#data-list).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.api_client import MERGE, ApiClient, until
from tests.contracts.conftest import new_space
from tests.contracts.data_objects import FLUID, claim, fluid_controller, with_fluid_node
from tests.contracts.objects import Object
from tests.kube.servers import fairlead_answer

from fairlead.model.installation import INSTALLATION_LABEL, SYSTEM_PART
from fairlead.wire.names import LABEL_OPERATION

WITHOUT = "Fluid is not installed"
RECORDS = f"labelSelector={LABEL_OPERATION}"


def listed(kubeconfig: Path, *words: str) -> tuple[list[dict[str, Any]], str]:
    """The rows as documents, and the messages."""
    answer = fairlead_answer(kubeconfig, "dataset", "list", *words, "-o", "json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout), answer.stderr


def test_data_sets_and_claims_are_one_list(fluid_world: tuple[ApiClient, Path]) -> None:
    api, kubeconfig = fluid_world
    space = new_space(api)
    place = f"{FLUID}/namespaces/{space}"
    for each in (claim("raw"), claim("cached", CreatedBy="fluid"), claim("other")):
        made = api.post(f"/api/v1/namespaces/{space}/persistentvolumeclaims", each)
        assert made.status == 201, made.message
    mounts = [{"mountPoint": "pvc://raw/images", "name": "raw", "path": "/", "readOnly": True}]
    for name, points in (("cached", mounts), ("lonely", [{"mountPoint": "s3://bucket/x"}])):
        dataset = {"metadata": {"name": name}, "spec": {"mounts": points}}
        made = api.post(
            f"{place}/datasets",
            {"apiVersion": "data.fluid.io/v1alpha1", "kind": "Dataset", **dataset},
        )
        assert made.status == 201, made.message
    made = api.post(
        f"{place}/alluxioruntimes",
        {
            "apiVersion": "data.fluid.io/v1alpha1",
            "kind": "AlluxioRuntime",
            "metadata": {"name": "cached"},
            "spec": {"replicas": 2},
        },
    )
    assert made.status == 201, made.message
    status = {
        "phase": "Bound",
        "ufsTotal": "1.50GiB",
        "fileNum": "60000",
        "conditions": [],
        "cacheStates": {"cached": "768.00MiB", "cachedPercentage": "50.0%"},
    }
    done = api.patch(f"{place}/datasets/cached/status", {"status": status}, MERGE)
    assert done.status == 200, done.message

    rows, messages = listed(kubeconfig, "-n", space)
    assert messages == ""
    assert [(row["name"], row["type"], row["status"], row["phase"]) for row in rows] == [
        ("cached", "Dataset", "Ready", "Bound"),
        ("lonely", "Dataset", "NotReady", "Pending"),
        ("other", "PersistentVolumeClaim", "NotReady", rows[2]["phase"]),
        ("raw", "PersistentVolumeClaim", "NotReady", rows[3]["phase"]),
    ]
    cached, lonely, other, raw = rows
    assert cached["source"] == ["pvc://raw/images"]
    assert (cached["cachedPercent"], cached["sizeBytes"], cached["files"]) == (50, 3 << 29, 60000)
    assert cached["runtime"] == "AlluxioRuntime 0/2"
    assert lonely["message"] == "no runtime has its name"
    assert (raw["acceleratedBy"], raw["accelerated"]) == (["cached"], True)
    assert (other["acceleratedBy"], other["accelerated"]) == ([], False)
    assert raw["sizeBytes"] == 5 << 30

    answer = fairlead_answer(kubeconfig, "dataset", "list", "-n", space)
    heads, first, *_ = answer.stdout.splitlines()
    assert " ".join(heads.split()) == "NAME SOURCE ACCELERATED STATUS CACHED SIZE FILES AGE"
    assert " ".join(first.split()[:7]) == "cached pvc://raw/images Yes Ready 50% 1.5GiB 60000"
    for_arena = fairlead_answer(kubeconfig, "data", "list", "-n", space)
    heads, *_ = for_arena.stdout.splitlines()
    assert heads.split()[-1] == "ACCELERATED"
    everywhere, _ = listed(kubeconfig, "-A")
    assert {(space, "cached"), (space, "raw")} <= {
        (row["namespace"], row["name"]) for row in everywhere
    }


def test_without_fluid_there_are_claims_and_a_note(simulated: Any) -> None:
    api = ApiClient("simulated", simulated.kubeconfig, keeps_connections=True)
    assert api.get(f"{FLUID}/datasets").status == 404
    space = new_space(api)
    api.post(f"/api/v1/namespaces/{space}/persistentvolumeclaims", claim("raw"))
    rows, messages = listed(simulated.kubeconfig, "-n", space)
    assert [row["name"] for row in rows] == ["raw"]
    assert WITHOUT in messages


def volume(name: str, space: str, claim_name: str) -> Object:
    """For the claim; the controller that binds volumes binds it."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteMany"],
            "hostPath": {"path": "/tmp/nothing"},
            "claimRef": {"namespace": space, "name": claim_name},
        },
    }


@pytest.fixture
def node(fluid_world: tuple[ApiClient, Path]) -> Iterator[None]:
    """A node with Fluid's volume driver and much memory."""
    with with_fluid_node(fluid_world[0], "with-fluid"):
        yield


@pytest.fixture
def system(fluid_world: tuple[ApiClient, Path]) -> Iterator[str]:
    """The namespace of an installation, for records of operations."""
    api, _ = fluid_world
    name = f"{new_space(api)}-system"
    meta = {"name": name, "labels": {INSTALLATION_LABEL: SYSTEM_PART}}
    assert api.post("/api/v1/namespaces", {"metadata": meta}).status == 201
    yield name
    api.delete(f"/api/v1/namespaces/{name}")
    until("it is gone", lambda: api.get(f"/api/v1/namespaces/{name}").status == 404)


def test_a_claim_is_accelerated_and_the_end_leaves_it_alone(
    fluid_world: tuple[ApiClient, Path], node: None
) -> None:
    """Without Fluid's controllers: nothing adopts, binds or deletes."""
    api, kubeconfig = fluid_world
    space = new_space(api)
    place = f"{FLUID}/namespaces/{space}"
    claims = f"/api/v1/namespaces/{space}/persistentvolumeclaims"

    def run(*words: str, status: int = 0) -> str:
        answer = fairlead_answer(kubeconfig, "dataset", *words, "-n", space)
        assert answer.returncode == status, answer.stdout + answer.stderr
        return answer.stdout + answer.stderr

    for flag in ("--quota=x", "--quota=-1", "--workers=-1", "--sub-path=a/../b"):
        name, _, value = flag.partition("=")
        assert f"{name} is `{value}`" in run("accelerate", "raw", flag, status=1)
    assert f"there is no claim `{space}/raw`" in run("accelerate", "raw", status=1)
    made = api.post("/api/v1/persistentvolumes", volume(f"pv-{space}", space, "raw"))
    assert made.status == 201, made.message
    raw = claim("raw")
    raw["spec"]["volumeName"] = f"pv-{space}"
    assert api.post(claims, raw).status == 201
    if api.name == "simulated":  # an API server alone, without controllers
        api.patch(f"{claims}/raw/status", {"status": {"phase": "Bound"}}, MERGE)
    until(
        "the claim is bound",
        lambda: api.get(f"{claims}/raw").body["status"].get("phase") == "Bound",
    )
    fluid_controller(api)
    shown = run("accelerate", "raw", "--dry-run", "--workers", "1", "--quota", "1Gi")
    assert "kind: AlluxioRuntime" in shown and 'mountPoint: "pvc://raw"' in shown
    assert api.get(f"{place}/datasets").body["items"] == []

    words = ("accelerate", "raw", "--workers", "1", "--quota", "1Gi", "--wait", "0")
    assert f"data set {space}/raw-acc created" in run(*words)
    runtime = api.get(f"{place}/alluxioruntimes/raw-acc").body
    level = runtime["spec"]["tieredstore"]["levels"][0]
    assert (level["mediumtype"], level["quota"], level["high"]) == ("MEM", "1Gi", "0.95")
    assert api.get(f"{place}/datasets/raw-acc").body["spec"]["mounts"][0]["readOnly"] is True
    again = run(*words, status=1)
    assert "name-free" in again and "not-accelerated" in again
    # As a run that was killed between the two leaves it.
    api.delete(f"{place}/alluxioruntimes/raw-acc")
    until("it is gone", lambda: api.get(f"{place}/alluxioruntimes/raw-acc").status == 404)
    run(*words)
    assert api.get(f"{place}/alluxioruntimes/raw-acc").status == 200

    status = {"phase": "Bound", "conditions": []}
    api.patch(f"{place}/datasets/raw-acc/status", {"status": status}, MERGE)
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "raw-acc"}}]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "reader"},
        "spec": {"containers": [{"name": "c", "image": "i"}], "volumes": volumes},
    }
    assert api.post(f"/api/v1/namespaces/{space}/pods", pod).status == 201
    assert f"pods mount it: `{space}/reader`" in run("unaccelerate", "raw-acc", status=1)
    assert api.get(f"{place}/datasets/raw-acc").status == 200
    api.delete(f"/api/v1/namespaces/{space}/pods/reader?gracePeriodSeconds=0")
    until(
        "the pod is gone",
        lambda: api.get(f"/api/v1/namespaces/{space}/pods/reader").status == 404,
    )
    assert "done" in run("unaccelerate", "raw-acc", "--wait", "60")
    for plural in ("datasets", "alluxioruntimes"):
        assert api.get(f"{place}/{plural}/raw-acc").status == 404
    assert api.get(f"{claims}/raw").status == 200
    assert "there is no data set" in run("unaccelerate", "raw-acc", status=1)


def test_the_runtime_that_an_interrupted_end_left_goes_by_the_next_run(
    fluid_world: tuple[ApiClient, Path],
) -> None:
    """Of any kind, not of Alluxio alone."""
    api, kubeconfig = fluid_world
    space = new_space(api)
    place = f"{FLUID}/namespaces/{space}/jindoruntimes"
    runtime = {"apiVersion": "data.fluid.io/v1alpha1", "kind": "JindoRuntime"}
    made = api.post(place, {**runtime, "metadata": {"name": "left"}, "spec": {"replicas": 1}})
    assert made.status == 201, made.message
    answer = fairlead_answer(kubeconfig, "dataset", "unaccelerate", "left", "-n", space)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.endswith(f"data set {space}/left: done\n")
    assert api.get(f"{place}/left").status == 404


def test_an_end_without_waiting_deletes_the_data_set_and_leaves_the_rest(
    fluid_world: tuple[ApiClient, Path], system: str
) -> None:
    """Its finalizer is that of a controller which works later."""
    api, kubeconfig = fluid_world
    space = new_space(api)
    place = f"{FLUID}/namespaces/{space}"
    meta = {"name": "slow", "finalizers": ["fluid-dataset-controller-finalizer"]}
    head = {"apiVersion": "data.fluid.io/v1alpha1", "kind": "Dataset", "metadata": meta}
    made = api.post(f"{place}/datasets", {**head, "spec": {"mounts": [{"mountPoint": "s3://b"}]}})
    assert made.status == 201, made.message
    head = {**head, "kind": "AlluxioRuntime", "metadata": {"name": "slow"}}
    assert api.post(f"{place}/alluxioruntimes", {**head, "spec": {"replicas": 1}}).status == 201

    words = ("dataset", "unaccelerate", "slow", "--wait=0", "-n", space)
    answer = fairlead_answer(kubeconfig, *words)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.endswith(f"data set {space}/slow deleted\n")
    assert f"more is to be done when Dataset {space}/slow is gone" in answer.stderr
    assert api.get(f"{place}/datasets/slow").body["metadata"]["deletionTimestamp"]
    assert api.get(f"{place}/alluxioruntimes/slow").status == 200
    (record,) = api.get(f"/api/v1/namespaces/{system}/configmaps?{RECORDS}").body["items"]
    state = json.loads(record["data"]["state"])
    assert (state["state"], state.get("holder", "")) == ("Running", "")

    free = {"metadata": {"finalizers": []}}
    assert api.patch(f"{place}/datasets/slow", free, MERGE).status == 200
    id = record["metadata"]["name"].removeprefix("operation-")
    answer = fairlead_answer(kubeconfig, "operation", "resume", id)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    for plural in ("datasets", "alluxioruntimes"):
        assert api.get(f"{place}/{plural}/slow").status == 404
