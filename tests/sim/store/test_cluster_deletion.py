"""The object store: how objects are deleted, with grace periods,
finalizers, owners and namespaces.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.objects import StillClock, config_map, job, namespace, owner, pod

from fairlead_sim.objects.resources import CONFIG_MAPS, JOBS, NAMESPACES, PODS
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.cluster import StoredCluster


@pytest.fixture
def cluster() -> StoredCluster:
    return StoredCluster(StillClock())


def running(cluster: StoredCluster, name: str = "a", **more: Any) -> dict[str, Any]:
    cluster.create(pod(name, node="n1", **more))
    return cluster.merge_patch(
        PODS, "default", name, {"status": {"phase": "Running"}}, subresource="status"
    )


def test_a_pod_without_a_node_goes_at_once(cluster: StoredCluster) -> None:
    cluster.create(pod())
    cluster.delete(PODS, "default", "a")
    assert cluster.get(PODS, "default", "a") is None


def test_a_running_pod_gets_its_grace_and_its_kubelet_ends_it(cluster: StoredCluster) -> None:
    running(cluster)
    going = cluster.delete(PODS, "default", "a")
    assert going["metadata"]["deletionGracePeriodSeconds"] == 30
    assert going["metadata"]["deletionTimestamp"] == "2026-01-05T08:00:30Z"
    assert cluster.get(PODS, "default", "a") is going
    cluster.delete(PODS, "default", "a", grace_seconds=0)
    assert cluster.get(PODS, "default", "a") is None


def test_a_second_request_can_only_shorten_the_grace(cluster: StoredCluster) -> None:
    running(cluster)
    cluster.delete(PODS, "default", "a", grace_seconds=10)
    assert (
        cluster.delete(PODS, "default", "a", grace_seconds=60)["metadata"][
            "deletionGracePeriodSeconds"
        ]
        == 10
    )
    assert (
        cluster.delete(PODS, "default", "a", grace_seconds=5)["metadata"][
            "deletionGracePeriodSeconds"
        ]
        == 5
    )


def test_a_pod_that_is_done_needs_no_grace(cluster: StoredCluster) -> None:
    running(cluster)
    cluster.merge_patch(
        PODS, "default", "a", {"status": {"phase": "Succeeded"}}, subresource="status"
    )
    cluster.delete(PODS, "default", "a")
    assert cluster.get(PODS, "default", "a") is None


def test_finalizers_hold_an_object_until_the_last_is_gone(cluster: StoredCluster) -> None:
    cluster.create(config_map(finalizers=["x.io/a", "x.io/b"]))
    going = cluster.delete(CONFIG_MAPS, "default", "a")
    assert going["metadata"]["deletionTimestamp"]
    cluster.merge_patch(CONFIG_MAPS, "default", "a", {"metadata": {"finalizers": ["x.io/b"]}})
    assert cluster.get(CONFIG_MAPS, "default", "a") is not None
    cluster.merge_patch(CONFIG_MAPS, "default", "a", {"metadata": {"finalizers": None}})
    assert cluster.get(CONFIG_MAPS, "default", "a") is None


def test_grace_and_finalizers_both_hold_a_pod(cluster: StoredCluster) -> None:
    running(cluster, finalizers=["x.io/a"])
    cluster.delete(PODS, "default", "a")
    cluster.merge_patch(PODS, "default", "a", {"metadata": {"finalizers": []}})
    assert cluster.get(PODS, "default", "a") is not None, "its grace is not over"
    cluster.delete(PODS, "default", "a", grace_seconds=0)
    assert cluster.get(PODS, "default", "a") is None


@pytest.mark.parametrize(
    ("condition", "word"),
    [({"uid": "other"}, "UID"), ({"resource_version": "1"}, "ResourceVersion")],
)
def test_preconditions_that_fail_are_conflicts(
    cluster: StoredCluster, condition: dict[str, str], word: str
) -> None:
    cluster.create(pod())
    with pytest.raises(ApiStatus, match=f"the {word} in the precondition ") as caught:
        cluster.delete(PODS, "default", "a", **condition)
    assert caught.value.code == 409
    assert cluster.get(PODS, "default", "a") is not None


def test_what_an_owner_owned_goes_with_it_down_to_the_last_generation(
    cluster: StoredCluster,
) -> None:
    top = cluster.create(job("top"))
    middle = cluster.create(config_map("middle", ownerReferences=[owner(top)]))
    cluster.create(config_map("leaf", ownerReferences=[owner(middle)]))
    cluster.create(config_map("stranger"))
    cluster.delete(JOBS, "default", "top")
    assert [found["metadata"]["name"] for found in cluster.list(CONFIG_MAPS)] == ["stranger"]


def test_a_second_living_owner_keeps_a_dependant(cluster: StoredCluster) -> None:
    owners = [cluster.create(job(name)) for name in ("one", "two")]
    cluster.create(config_map(ownerReferences=[owner(obj) for obj in owners]))
    cluster.delete(JOBS, "default", "one")
    kept = cluster.get(CONFIG_MAPS, "default", "a")
    assert kept is not None and [
        reference["name"] for reference in kept["metadata"]["ownerReferences"]
    ] == ["two"]
    cluster.delete(JOBS, "default", "two")
    assert cluster.get(CONFIG_MAPS, "default", "a") is None


def test_orphans_stay_without_their_owner(cluster: StoredCluster) -> None:
    top = cluster.create(job("top"))
    cluster.create(config_map(ownerReferences=[owner(top)]))
    cluster.delete(JOBS, "default", "top", propagation="Orphan")
    kept = cluster.get(CONFIG_MAPS, "default", "a")
    assert kept is not None and "ownerReferences" not in kept["metadata"]


def test_in_the_foreground_the_owner_waits_for_its_pods(cluster: StoredCluster) -> None:
    top = cluster.create(job("top"))
    running(cluster, "a", owners=[{**owner(top), "blockOwnerDeletion": True}])
    cluster.delete(JOBS, "default", "top", propagation="Foreground")
    waiting = cluster.get(JOBS, "default", "top")
    assert waiting is not None and waiting["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert cluster.list(PODS)[0]["metadata"]["deletionTimestamp"]
    cluster.delete(PODS, "default", "a", grace_seconds=0)
    assert cluster.get(JOBS, "default", "top") is None


def test_a_namespace_goes_after_its_content(cluster: StoredCluster) -> None:
    cluster.create(namespace("team"))
    cluster.create(pod("a", "team", node="n1"))
    cluster.create({**config_map(), "metadata": {"name": "c", "namespace": "team"}})
    going = cluster.delete(NAMESPACES, None, "team")
    assert going["status"]["phase"] == "Terminating"
    assert cluster.list(CONFIG_MAPS, "team") == []
    with pytest.raises(ApiStatus, match="because it is being terminated") as caught:
        cluster.create(pod("late", "team"))
    assert caught.value.code == 403
    cluster.delete(PODS, "team", "a", grace_seconds=0)
    assert cluster.get(NAMESPACES, None, "team") is None


def test_an_empty_namespace_goes_at_once(cluster: StoredCluster) -> None:
    cluster.create(namespace("team"))
    cluster.delete(NAMESPACES, None, "team")
    assert cluster.get(NAMESPACES, None, "team") is None


def test_a_namesake_of_an_owner_is_not_the_owner(cluster: StoredCluster) -> None:
    first = cluster.create(job("top"))
    cluster.delete(JOBS, "default", "top")
    second = cluster.create(job("top"))
    cluster.create(config_map(ownerReferences=[owner(second)]))
    assert first["metadata"]["uid"] != second["metadata"]["uid"]
    assert [
        found["metadata"]["name"] for found in cluster.dependents(second["metadata"]["uid"])
    ] == ["a"]
    assert cluster.dependents(first["metadata"]["uid"]) == []
