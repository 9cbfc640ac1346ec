"""Volumes and claims: which are bound to each other, and when they go."""

from __future__ import annotations

from typing import Any

from tests.sim.small_world import NAMESPACE, get, live, pod, small_world

from fairlead_sim.objects.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from fairlead_sim.world.world import World

Object = dict[str, Any]


def make(world: World, kind: str, name: str, **spec: Any) -> None:
    metadata = {"name": name} | ({"namespace": NAMESPACE} if kind.endswith("Claim") else {})
    size = (
        {"resources": {"requests": {"storage": "1Gi"}}}
        if kind.endswith("Claim")
        else {"capacity": {"storage": "1Gi"}, "nfs": {"server": "192.0.2.1", "path": "/"}}
    )
    fixed = {"accessModes": ["ReadWriteMany"], "storageClassName": "nas", **size}
    world.cluster.create(
        {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": {**fixed, **spec}}
    )


def volume_phase(world: World, name: str) -> str:
    found = world.cluster.get(PERSISTENT_VOLUMES, None, name)
    return str(found["status"]["phase"]) if found else "gone"


def reserved(name: str) -> Object:
    return {"claimRef": {"namespace": NAMESPACE, "name": name}}


def test_a_volume_that_is_reserved_for_a_claim_waits_for_it_and_is_released_after_it() -> None:
    world = small_world()
    make(world, "PersistentVolume", "v", **reserved("c"))
    live(world, 1)
    assert volume_phase(world, "v") == "Available"
    make(world, "PersistentVolumeClaim", "c", volumeName="v")
    live(world, 1)
    assert volume_phase(world, "v") == "Bound"
    claim = get(world, PERSISTENT_VOLUME_CLAIMS, "c")
    volume = world.cluster.get(PERSISTENT_VOLUMES, None, "v")
    assert volume is not None
    assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
    world.cluster.delete(PERSISTENT_VOLUME_CLAIMS, NAMESPACE, "c")
    live(world, 1)
    assert volume_phase(world, "v") == "Released"


def test_a_volume_for_a_claim_that_has_another_one_stays_available() -> None:
    world = small_world()
    make(world, "PersistentVolume", "first")
    make(world, "PersistentVolumeClaim", "c", volumeName="first")
    live(world, 1)
    make(world, "PersistentVolume", "second", **reserved("c"))
    live(world, 1)
    assert [volume_phase(world, name) for name in ("first", "second")] == ["Bound", "Available"]


def test_a_claim_goes_after_the_pod_that_mounts_it_and_its_volume_after_the_claim() -> None:
    world = small_world()
    make(world, "PersistentVolume", "v")
    make(world, "PersistentVolumeClaim", "c", volumeName="v")
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]
    world.cluster.create(pod("reader", "train:5m", volumes=volumes))
    live(world, 60)
    world.cluster.delete(PERSISTENT_VOLUME_CLAIMS, NAMESPACE, "c")
    world.cluster.delete(PERSISTENT_VOLUMES, None, "v")
    live(world, 60)
    assert "deletionTimestamp" in get(world, PERSISTENT_VOLUME_CLAIMS, "c")["metadata"]
    assert volume_phase(world, "v") == "Bound"
    live(world, 600)
    assert get(world, PODS, "reader")["status"]["phase"] == "Succeeded"
    assert world.cluster.get(PERSISTENT_VOLUME_CLAIMS, NAMESPACE, "c") is None
    assert volume_phase(world, "v") == "gone"


def test_a_volume_that_goes_is_not_given_to_a_claim() -> None:
    world = small_world()
    make(world, "PersistentVolume", "v")
    held = {"metadata": {"finalizers": ["example.com/held", "kubernetes.io/pv-protection"]}}
    world.cluster.merge_patch(PERSISTENT_VOLUMES, None, "v", held)
    world.cluster.delete(PERSISTENT_VOLUMES, None, "v")
    make(world, "PersistentVolumeClaim", "late")
    live(world, 1)
    assert get(world, PERSISTENT_VOLUME_CLAIMS, "late")["status"] == {"phase": "Pending"}
