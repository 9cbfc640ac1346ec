"""Contract: what the API server adds to claims and volumes, and that a claim in use stays."""

from __future__ import annotations

from tests.contracts.api_client import ApiClient, until
from tests.contracts.objects import Object

VOLUMES = "/api/v1/persistentvolumes"


def volume(name: str, space: str = "") -> Object:
    spec: Object = {
        "capacity": {"storage": "5Gi"},
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "nfs": {"server": "192.0.2.1", "path": "/raw"},
    }
    if space:
        spec["claimRef"] = {"namespace": space, "name": "raw"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": spec,
    }


def claim(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": "missing",
            "resources": {"requests": {"storage": "5Gi"}},
        },
    }


def test_a_new_volume_and_a_new_claim_have_the_same_fields(api: ApiClient, space: str) -> None:
    made = api.post(VOLUMES, volume(f"{space}-v"))
    assert made.status == 201, made.message
    assert made.body["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
    assert made.body["spec"] == {
        "accessModes": ["ReadWriteMany"],
        "capacity": {"storage": "5Gi"},
        "nfs": {"server": "192.0.2.1", "path": "/raw"},
        "persistentVolumeReclaimPolicy": "Retain",
        "volumeMode": "Filesystem",
    }
    claimed = api.post(f"/api/v1/namespaces/{space}/persistentvolumeclaims", claim("raw"))
    assert claimed.status == 201, claimed.message
    assert claimed.body["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert claimed.body["spec"]["storageClassName"] == ""
    for place in (f"{VOLUMES}/{space}-v", f"/api/v1/namespaces/{space}/persistentvolumeclaims/raw"):
        assert api.delete(place).status == 200
        until("it is gone", lambda place=place: api.get(place).status == 404)


def test_a_claim_stays_until_no_pod_on_a_node_uses_it(api: ApiClient, space: str) -> None:
    place = f"/api/v1/namespaces/{space}/persistentvolumeclaims/raw"
    assert api.post(place.removesuffix("/raw"), claim("raw")).status == 201
    pods = f"/api/v1/namespaces/{space}/pods"
    spec: Object = {
        "nodeName": "nowhere",
        "containers": [{"name": "c", "image": "i"}],
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "raw"}}],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "reader"}, "spec": spec}
    assert api.post(pods, pod).status == 201
    going = api.delete(place)
    assert going.status == 200
    kept = api.get(place).body["metadata"]
    assert kept["finalizers"] == ["kubernetes.io/pvc-protection"]
    assert kept["deletionTimestamp"]
    assert api.delete(f"{pods}/reader?gracePeriodSeconds=0").status == 200
    until("the claim is gone", lambda: api.get(place).status == 404)
