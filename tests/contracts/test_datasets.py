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
from tests.contracts.objects import Object
from tests.kube.crds import fluid_definitions, install_fluid
from tests.kube.servers import fairlead_answer

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FLUID = "/apis/data.fluid.io/v1alpha1"
WITHOUT = "Fluid is not installed"


@pytest.fixture(params=["simulated", "real"])
def world(request: pytest.FixtureRequest) -> Iterator[tuple[ApiClient, Path]]:
    """An API server that serves Fluid's kinds, and its kubeconfig."""
    is_real = request.param == "real"
    server: Any = request.getfixturevalue("control_plane" if is_real else "simulated")
    api = ApiClient(request.param, server.kubeconfig, keeps_connections=True)
    if is_real:
        install_fluid(server.admin)
        yield api, server.kubeconfig
        return
    made = [each for each in fluid_definitions() if api.post(DEFINITIONS, each).status == 201]
    until("Fluid's kinds are served", lambda: api.get(f"{FLUID}/datasets").status == 200)
    yield api, server.kubeconfig
    for each in made:
        api.delete(f"{DEFINITIONS}/{each['metadata']['name']}")


def listed(kubeconfig: Path, *words: str) -> tuple[list[dict[str, Any]], str]:
    """The rows as documents, and the messages."""
    answer = fairlead_answer(kubeconfig, "dataset", "list", *words, "-o", "json")
    assert answer.returncode == 0, answer.stderr
    return json.loads(answer.stdout), answer.stderr


def claim(name: str, **annotations: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "fluid" if annotations else "",
            "volumeName": "missing",
            "resources": {"requests": {"storage": "5Gi"}},
        },
    }


def test_data_sets_and_claims_are_one_list(world: tuple[ApiClient, Path]) -> None:
    api, kubeconfig = world
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
