"""A small world with the stand-in of Fluid, a bound claim, and what people make there."""

from __future__ import annotations

from typing import Any

from tests.sim.small_world import NAMESPACE, get, live, pod, small_world

from fairlead.model.jobs.acceleration import Acceleration
from fairlead.wire.data.fluid import render_acceleration
from fairlead.wire.data.stand_in import stand_in_objects
from fairlead_sim.objects.resources import (
    ALLUXIO_RUNTIMES,
    DATA_LOADS,
    DATASETS,
    EVENTS,
    PERSISTENT_VOLUME_CLAIMS,
)
from fairlead_sim.world.world import World

Object = dict[str, Any]

SOURCE = "raw"
NAME = "raw-acc"
GIB = 1 << 30


def install(world: World) -> None:
    """The stand-in, until its workloads are ready."""
    for each in stand_in_objects():
        world.cluster.create(each)
    live(world, 60)


def claim(world: World, name: str = SOURCE, size: str = "10Gi") -> None:
    """A claim of many nodes and its volume, bound."""
    mode = "ReadWriteMany"
    spec: Object = {
        "accessModes": [mode],
        "storageClassName": "nas",
        "capacity": {"storage": size},
        "csi": {"driver": "nas.csi.example.com", "volumeHandle": name},
    }
    world.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": f"pv-{name}"},
            "spec": spec,
        }
    )
    wish = {
        "accessModes": [mode],
        "storageClassName": "nas",
        "volumeName": f"pv-{name}",
        "resources": {"requests": {"storage": size}},
    }
    world.cluster.create(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": wish,
        }
    )
    live(world, 1)
    assert get(world, PERSISTENT_VOLUME_CLAIMS, name)["status"]["phase"] == "Bound"


def accelerate(world: World, *, workers: int = 2, node: str = "", source: str = SOURCE) -> None:
    """As `fairlead dataset accelerate`: the Dataset first, then its runtime."""
    asked = Acceleration(NAMESPACE, source, NAME, "", workers, "MEM", 4 * GIB, node)
    for each in render_acceleration(asked):
        world.cluster.create(each)


def acceleration_objects(source: str, name: str, placement: str) -> list[Object]:
    """With as many workers as the small world has nodes."""
    asked = Acceleration(NAMESPACE, source, name, "", 3, "MEM", GIB, "")
    first, second = render_acceleration(asked)
    return [{**first, "spec": {**first["spec"], "placement": placement}}, second]


def accelerated(**more: Any) -> World:
    """A world whose Dataset is Bound, and its source listed."""
    world = small_world()
    install(world)
    claim(world)
    accelerate(world, **more)
    live(world, 150)
    assert dataset(world)["status"]["phase"] == "Bound"
    return world


def dataset(world: World) -> Object:
    return get(world, DATASETS, NAME)


def runtime(world: World) -> Object:
    return get(world, ALLUXIO_RUNTIMES, NAME)


def data_load(world: World, name: str = "warm", **spec: Any) -> None:
    world.cluster.create(
        {
            "apiVersion": "data.fluid.io/v1alpha1",
            "kind": "DataLoad",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {
                "dataset": {"name": NAME, "namespace": NAMESPACE},
                "loadMetadata": True,
                "policy": "Once",
                **spec,
            },
        }
    )


def load_phase(world: World, name: str = "warm") -> str:
    return str(get(world, DATA_LOADS, name).get("status", {}).get("phase", ""))


def reader(name: str = "reader", image: str = "train:1h") -> Object:
    """A pod that mounts the data set."""
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": NAME}}]
    return pod(name, image, volumes=volumes)


def reported(world: World, name: str = NAME) -> set[tuple[str, str]]:
    """Reasons and messages of the events about an object of Fluid."""
    return {
        (event["reason"], event["message"])
        for event in world.cluster.list(EVENTS, NAMESPACE)
        if event["involvedObject"]["name"] == name
        and event["involvedObject"]["kind"] in ("Dataset", "AlluxioRuntime", "DataLoad")
    }
