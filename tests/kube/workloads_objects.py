"""Workloads of owners and finalizers: which objects are deleted with which, in which order, and
what prevents it.
"""

from __future__ import annotations

from tests.kube.places import Object, Place
from tests.kube.workload_cases import workload
from tests.kube.workload_objects import config_map, deployment, owned, replica_set, template

FINALIZER = "example.com/hold"


def _family(place: Place, *, blocks: bool = True) -> Object:
    """A config map that owns two others, of which one has a finalizer."""
    place.create(config_map("parent"))
    parent = place.the("configmaps", "parent")
    reference = [owned(parent, blockOwnerDeletion=blocks)]
    place.create(
        config_map("child", ownerReferences=reference),
        config_map("held", ownerReferences=reference, finalizers=[FINALIZER]),
    )
    return parent


def _gone(place: Place, name: str, plural: str = "configmaps") -> None:
    place.until(f"{name} is gone", lambda: place.get(plural, name) is None)


@workload
def cascade_in_the_background(place: Place) -> None:
    _family(place)
    place.delete("configmaps", "parent", "Background")
    _gone(place, "child")
    place.until(
        "held is going",
        lambda: "deletionTimestamp" in place.the("configmaps", "held")["metadata"],
    )


@workload
def cascade_in_the_foreground(place: Place) -> None:
    _family(place)
    place.delete("configmaps", "parent", "Foreground")
    _gone(place, "child")
    place.until(
        "held is going",
        lambda: "deletionTimestamp" in place.the("configmaps", "held")["metadata"],
    )
    place.rest(1)
    assert place.get("configmaps", "parent") is not None, "the owner waits for what blocks it"


@workload
def cascade_in_the_foreground_that_nothing_blocks(place: Place) -> None:
    _family(place, blocks=False)
    place.delete("configmaps", "parent", "Foreground")
    _gone(place, "parent")


@workload
def orphans(place: Place) -> None:
    _family(place)
    place.delete("configmaps", "parent", "Orphan")
    _gone(place, "parent")
    place.until(
        "the child has no owner",
        lambda: "ownerReferences" not in place.the("configmaps", "child")["metadata"],
    )


@workload
def child_of_no_owner(place: Place) -> None:
    """An object with no existing owner is deleted; if one of its owners exists, it is kept with
    this owner.
    """
    place.create(config_map("parent"))
    parent = place.the("configmaps", "parent")
    stranger = {**owned(parent), "name": "stranger", "uid": "11111111-2222-4333-8444-555555555555"}
    place.create(
        config_map("lost", ownerReferences=[stranger]),
        config_map("half", ownerReferences=[stranger, owned(parent)]),
    )
    _gone(place, "lost")
    place.until(
        "one owner is left",
        lambda: len(place.the("configmaps", "half")["metadata"]["ownerReferences"]) == 1,
    )


@workload
def finalizer_taken_off(place: Place) -> None:
    place.create(
        config_map("held", finalizers=[FINALIZER]), config_map("kept", finalizers=[FINALIZER])
    )
    for name in ("held", "kept"):
        place.delete("configmaps", name)
    place.patch("configmaps", "held", {"metadata": {"finalizers": None}})
    _gone(place, "held")


@workload
def deployment_deleted_in_the_foreground(place: Place) -> None:
    place.create(deployment(template(), 2))
    place.until(
        "two are available",
        lambda: place.the("deployments", "web").get("status", {}).get("availableReplicas") == 2,
    )
    place.delete("deployments", "web", "Foreground")
    _gone(place, "web", "deployments")


@workload
def replica_set_orphaned(place: Place) -> None:
    place.create(replica_set(template(), 2))
    place.until(
        "two are ready",
        lambda: place.the("replicasets", "web").get("status", {}).get("readyReplicas") == 2,
    )
    place.delete("replicasets", "web", "Orphan")
    _gone(place, "web", "replicasets")
    place.until(
        "the pods have no owner",
        lambda: not any("ownerReferences" in item["metadata"] for item in place.list("pods")),
    )


@workload
def namespace_that_cannot_end(place: Place) -> None:
    place.create(
        config_map("free"), config_map("held", finalizers=[FINALIZER]), deployment(template(), 1)
    )
    place.until(
        "it is available",
        lambda: place.the("deployments", "web").get("status", {}).get("availableReplicas") == 1,
    )
    place.delete("namespaces", place.namespace)

    def is_reported() -> bool:
        status = place.the("namespaces", place.namespace)["status"]
        found = {item["type"]: item["status"] for item in status.get("conditions") or ()}
        return (
            status["phase"] == "Terminating" and found.get("NamespaceFinalizersRemaining") == "True"
        )

    place.until("the namespace shows what holds it", is_reported)
    _gone(place, "web", "deployments")
    refused = place.api.post(place.path("configmaps"), config_map("late"))
    assert (refused.status, refused.reason) == (403, "Forbidden"), refused
    conditions = place.the("namespaces", place.namespace)["status"]["conditions"]
    remaining = {
        item["type"]: (item["reason"], item["message"])
        for item in conditions
        if item["status"] == "True"
    }
    assert remaining == {
        "NamespaceContentRemaining": (
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "SomeFinalizersRemain",
            (
                f"Some content in the namespace has finalizers remaining: {FINALIZER} in 1 "
                "resource instances"
            ),
        ),
    }, remaining
