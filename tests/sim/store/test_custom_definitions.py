"""CustomResourceDefinitions inside the store: what listeners see, and what is left when one is
deleted. The contract suite checks the rest.
"""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_sim.objects.resources import CUSTOM_RESOURCE_DEFINITIONS, MPI_JOBS, PODS, TF_JOBS
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.cluster import StoredCluster
from fairlead_sim.time.clock import SimClock

Object = dict[str, Any]


@pytest.fixture
def cluster() -> StoredCluster:
    return StoredCluster(SimClock(1_767_600_000.0))


def definition(*versions: str, served: bool = True) -> Object:
    entries = [
        {
            "name": name,
            "served": served,
            "storage": index == 0,
            "schema": {"openAPIV3Schema": {"type": "object"}},
        }
        for index, name in enumerate(versions or ("v1",))
    ]
    spec = {
        "group": "x.io",
        "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": entries,
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.x.io"},
        "spec": spec,
    }


def thing(name: str = "a", **metadata: Any) -> Object:
    return {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": name, **metadata}}


def served(cluster: StoredCluster) -> list[str]:
    return [f"{ref.plural}/{ref.version}" for ref in cluster.served_kinds() if ref.group == "x.io"]


def test_every_object_that_a_listener_gets_has_a_kind(cluster: StoredCluster) -> None:
    reported: list[tuple[str, str]] = []
    cluster.witness(
        lambda event: reported.append((event.type, cluster.kind_of(event.object).plural))
    )
    cluster.create(definition())
    cluster.create(thing())
    cluster.delete(CUSTOM_RESOURCE_DEFINITIONS, None, "things.x.io")
    assert ("DELETED", "things") in reported and reported[-1] == (
        "DELETED",
        "customresourcedefinitions",
    )
    assert served(cluster) == []


def test_an_owner_takes_custom_objects_with_it_in_every_version(cluster: StoredCluster) -> None:
    cluster.create(definition("v1", "v2"))
    owner = cluster.create(thing("owner"))
    reference = {
        "apiVersion": "x.io/v2",
        "kind": "Thing",
        "name": "owner",
        "uid": owner["metadata"]["uid"],
    }
    cluster.create(thing("owned", ownerReferences=[reference]))
    kind = cluster.kind_of(owner)
    cluster.delete(kind, "default", "owner")
    assert cluster.list(kind) == []


def test_a_definition_that_comes_back_finds_its_place(cluster: StoredCluster) -> None:
    cluster.create(definition())
    before = cluster.kind_of(thing())
    cluster.delete(CUSTOM_RESOURCE_DEFINITIONS, None, "things.x.io")
    cluster.create(definition())
    assert cluster.kind_of(thing()) is before and served(cluster) == ["things/v1"]


def test_a_world_without_a_definition_goes_on(cluster: StoredCluster) -> None:
    """Controllers still hold the kind; it is only no longer served."""
    cluster.create(
        {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "a"}, "spec": {}}
    )
    cluster.delete(CUSTOM_RESOURCE_DEFINITIONS, None, "tfjobs.kubeflow.org")
    assert cluster.list(TF_JOBS) == []
    plurals = {ref.plural for ref in cluster.served_kinds()}
    assert "tfjobs" not in plurals and {"mpijobs", "pods"} <= plurals


def test_a_rehearsed_definition_serves_nothing(cluster: StoredCluster) -> None:
    cluster.rehearsal().create(definition())
    assert served(cluster) == []


def test_what_is_not_served_is_not_in_discovery(cluster: StoredCluster) -> None:
    cluster.create(definition(served=False))
    assert (
        served(cluster) == []
        and cluster.get(CUSTOM_RESOURCE_DEFINITIONS, None, "things.x.io") is not None
    )


def test_the_worlds_own_names_do_not_depend_on_definitions() -> None:
    """Histories stay what they were before: uids are assigned as if no definition existed."""
    cluster = StoredCluster(SimClock(0.0), seed=7)
    assert cluster.names.counter == len(
        ("default", "kube-node-lease", "kube-public", "kube-system")
    )
    uids = {obj["metadata"]["uid"] for obj in cluster.list(CUSTOM_RESOURCE_DEFINITIONS)}
    assert len(uids) == len(cluster.list(CUSTOM_RESOURCE_DEFINITIONS)) >= 4


def test_a_definition_without_a_storage_version_is_refused_before_anything_is_served(
    cluster: StoredCluster,
) -> None:
    broken = definition()
    broken["spec"]["versions"][0]["storage"] = False
    with pytest.raises(ApiStatus, match="must have exactly one version marked as storage version"):
        cluster.create(broken)
    assert served(cluster) == []


def test_the_kinds_of_controllers_keep_their_identity_under_a_new_definition(
    cluster: StoredCluster,
) -> None:
    found = cluster.get(CUSTOM_RESOURCE_DEFINITIONS, None, "mpijobs.kubeflow.org")
    assert found is not None
    versions = [
        *found["spec"]["versions"],
        {**found["spec"]["versions"][0], "name": "v3", "storage": False},
    ]
    cluster.update({**found, "spec": {**found["spec"], "versions": versions}})
    assert cluster.kind_of({"apiVersion": "kubeflow.org/v3", "kind": "MPIJob"}) is MPI_JOBS
    assert {"v2beta1", "v3"} <= {
        ref.version for ref in cluster.served_kinds() if ref.plural == "mpijobs"
    }
    assert PODS in cluster.served_kinds()
