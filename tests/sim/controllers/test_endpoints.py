"""Services and the endpoints of the pods behind them."""

from __future__ import annotations

from typing import Any

from tests.sim.small_world import CPU_POOL, EPOCH, NAMESPACE, live, small_scenario

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import ENDPOINT_SLICES, PODS, SERVICES
from fairlead_sim.world.world import World

Object = dict[str, Any]


def world_with(service: Object, *pods: Object) -> World:
    world = sharing_world(small_scenario(CPU_POOL), 1, EPOCH)
    for obj in (service, *pods):
        world.cluster.create(obj)
    live(world, 60)
    return world


def a_service(name: str = "web", **spec: Any) -> Object:
    body = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}], **spec}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": {"team": "a"}},
        "spec": body,
    }


def a_pod(name: str, app: str = "web", image: str = "pause:35") -> Object:
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"app": app}}
    spec = {
        "restartPolicy": "Never",
        "containers": [
            {"name": "c", "image": image, "ports": [{"name": "http", "containerPort": 8080}]}
        ],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def slices(world: World) -> list[Object]:
    return world.cluster.list(ENDPOINT_SLICES, NAMESPACE)


def ready(world: World) -> dict[str, bool]:
    (found,) = slices(world)
    return {
        each["targetRef"]["name"]: each["conditions"]["ready"] for each in found["endpoints"] or ()
    }


def test_a_service_has_the_pods_that_it_selects_with_the_port_by_number() -> None:
    world = world_with(a_service(), a_pod("a"), a_pod("b"), a_pod("other", app="db"))
    (found,) = slices(world)
    assert ready(world) == {"a": True, "b": True}
    assert found["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "web"
    assert found["metadata"]["labels"]["team"] == "a"
    addresses = {each["addresses"][0] for each in found["endpoints"]}
    assert addresses == {
        world.cluster.get(PODS, NAMESPACE, name)["status"]["podIP"] for name in ("a", "b")
    }  # type: ignore[index]


def test_pods_come_and_go() -> None:
    world = world_with(
        a_service(),
        a_pod("short", image="train:90s"),
        a_pod("leaving"),
        a_pod("stranger", app="db"),
    )
    assert ready(world) == {"leaving": True, "short": True}
    world.cluster.delete(PODS, NAMESPACE, "leaving")
    world.cluster.merge_patch(PODS, NAMESPACE, "stranger", {"metadata": {"labels": {"app": "web"}}})
    live(world, 1)
    assert ready(world) == {"leaving": False, "short": True, "stranger": True}
    world.cluster.merge_patch(PODS, NAMESPACE, "stranger", {"metadata": {"labels": {"app": "db"}}})
    live(world, 120)
    (found,) = slices(world)
    assert (found["endpoints"], found["ports"]) == (None, None)


def test_a_slice_follows_its_service() -> None:
    world = world_with(a_service(), a_pod("a"))
    world.cluster.merge_patch(
        SERVICES, NAMESPACE, "web", {"spec": {"ports": [{"port": 81, "targetPort": 9}]}}
    )
    world.cluster.delete(ENDPOINT_SLICES, NAMESPACE, slices(world)[0]["metadata"]["name"])
    live(world, 1)
    assert [each["port"] for each in slices(world)[0]["ports"]] == [9]
    world.cluster.delete(SERVICES, NAMESPACE, "web")
    live(world, 5)
    assert not slices(world)


def test_a_service_that_selects_nothing_or_is_a_job_s_has_no_slice() -> None:
    owner = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "kube-root-ca.crt",
        "uid": "u",
        "controller": True,
    }
    of_job = a_service("of-job")
    of_job["metadata"]["ownerReferences"] = [owner]
    world = world_with(of_job, a_service("bare", selector=None), a_pod("a"))
    assert not slices(world)


def test_the_api_server_s_own_service_comes_back() -> None:
    world = sharing_world(small_scenario(CPU_POOL), 1, EPOCH)
    before = world.cluster.get(SERVICES, "default", "kubernetes")
    assert before is not None
    world.cluster.delete(SERVICES, "default", "kubernetes")
    live(world, 12)
    after = world.cluster.get(SERVICES, "default", "kubernetes")
    assert after is not None
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["spec"] == before["spec"]
