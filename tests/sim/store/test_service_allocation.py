"""What Services hold is read from the existing ones: nothing has to be given back, and a restored
world gives nothing twice.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.sim.objects import StillClock

from fairlead_sim.objects.resources import SERVICES
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.store.cluster import StoredCluster

Object = dict[str, Any]


def service(name: str, *, node_port: int = 0, **spec: Any) -> Object:
    port = {"port": 80, **({"nodePort": node_port} if node_port else {})}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name},
        "spec": {"type": "NodePort", "ports": [port], **spec},
    }


def held(made: Object) -> tuple[str, int]:
    return made["spec"]["clusterIP"], made["spec"]["ports"][0]["nodePort"]


@pytest.fixture
def cluster() -> StoredCluster:
    return StoredCluster(StillClock())


def test_a_world_that_goes_on_gives_nothing_twice(cluster: StoredCluster) -> None:
    """The restored world numbers names from the same start as the first one, so it would choose the
    same address.
    """
    other = StoredCluster(StillClock())
    first = cluster.create(service("a"))
    other.restore(json.loads(json.dumps(first)))
    second = other.create(service("b"))
    assert held(second)[0] != held(first)[0]
    assert held(second)[1] != held(first)[1]
    with pytest.raises(ApiStatus, match="provided port is already allocated"):
        other.create(service("c", node_port=held(first)[1]))
    with pytest.raises(ApiStatus, match="provided IP is already allocated"):
        other.create(service("c", clusterIP=held(first)[0]))


def test_a_service_of_another_cluster_keeps_what_it_has(cluster: StoredCluster) -> None:
    """Its address is outside the range here, and its ports may be, too."""
    foreign = service("a", node_port=20000, clusterIP="172.16.0.9", clusterIPs=["172.16.0.9"])
    cluster.load({**foreign, "metadata": {**foreign["metadata"], "namespace": "default"}})
    changed = cluster.merge_patch(SERVICES, "default", "a", {"spec": {"selector": {"app": "a"}}})
    assert held(changed) == ("172.16.0.9", 20000)


def test_what_a_deleted_service_held_is_free(cluster: StoredCluster) -> None:
    address, port = held(cluster.create(service("a")))
    cluster.delete(SERVICES, "default", "a")
    assert held(cluster.create(service("b", node_port=port, clusterIP=address))) == (address, port)


def test_a_rehearsal_takes_nothing(cluster: StoredCluster) -> None:
    cluster.rehearsal().create(service("a", node_port=30050))
    assert held(cluster.create(service("b", node_port=30050)))[1] == 30050


@pytest.mark.long
def test_when_all_ports_are_taken_that_is_reported(cluster: StoredCluster) -> None:
    ports = [{"name": f"p{number}", "port": number} for number in range(1, 2769)]
    made = cluster.create(service("a", ports=ports))
    assert len({port["nodePort"] for port in made["spec"]["ports"]}) == 2768
    with pytest.raises(ApiStatus, match="failed to allocate a nodePort: range is full"):
        cluster.create(service("b"))
