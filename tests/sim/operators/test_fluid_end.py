"""How a data set of Fluid ends: what blocks it, in which order its parts go, and what stays while
the controllers are away.
"""

from __future__ import annotations

from tests.sim.operators.fluid_world import NAME, accelerated, dataset, reader, reported, runtime
from tests.sim.operators.scaled import scale
from tests.sim.small_world import NAMESPACE, live, pods

from fairlead.wire.data.fluid import CONTROLLER, FLUID_NAMESPACE
from fairlead.wire.data.stand_in import DATASET_CONTROLLER
from fairlead_sim.objects.resources import (
    ALLUXIO_RUNTIMES,
    CONFIG_MAPS,
    DAEMON_SETS,
    DATASETS,
    DEPLOYMENTS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    STATEFUL_SETS,
)
from fairlead_sim.world.world import World


def left(world: World) -> set[str]:
    """Kinds and names of what still belongs to the data set."""
    kinds = (DATASETS, ALLUXIO_RUNTIMES, STATEFUL_SETS, DAEMON_SETS, CONFIG_MAPS)
    kinds = (*kinds, PERSISTENT_VOLUME_CLAIMS, PODS)
    found = {
        f"{ref.kind} {each['metadata']['name']}"
        for ref in kinds
        for each in world.cluster.list(ref, NAMESPACE)
        if NAME in each["metadata"]["name"]
    }
    volumes = world.cluster.list(PERSISTENT_VOLUMES)
    return found | {
        f"PersistentVolume {each['metadata']['name']}"
        for each in volumes
        if NAME in each["metadata"]["name"]
    }


def test_everything_goes_and_the_source_stays() -> None:
    world = accelerated()
    assert len(left(world)) == 14
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(world, 90)
    assert left(world) == set()
    claims = [each["metadata"]["name"] for each in world.cluster.list(PERSISTENT_VOLUME_CLAIMS)]
    assert claims == ["raw"]


def test_the_data_set_vanishes_before_its_runtime_stops() -> None:
    world = accelerated()
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(world, 1)
    assert world.cluster.get(DATASETS, NAMESPACE, NAME) is None
    assert "deletionTimestamp" in runtime(world)["metadata"]
    assert world.cluster.get(PERSISTENT_VOLUME_CLAIMS, NAMESPACE, NAME) is None
    assert len(pods(world)) == 3
    live(world, 5)
    assert world.cluster.get(ALLUXIO_RUNTIMES, NAMESPACE, NAME) is None


def test_a_pod_that_mounts_it_blocks_the_end() -> None:
    world = accelerated()
    world.cluster.create(reader())
    live(world, 60)
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(world, 60)
    message = (
        "Failed to delete dataset because err: can not delete dataset because Pod reader in "
        f"Namespace {NAMESPACE} is using it"
    )
    assert ("ErrorDeleteDataset", message) in reported(world)
    assert dataset(world)["status"]["phase"] == "Bound"
    world.cluster.delete(PODS, NAMESPACE, "reader", grace_seconds=0)
    live(world, 90)
    assert left(world) == set()


def test_a_pod_that_has_ended_blocks_nothing() -> None:
    world = accelerated()
    world.cluster.create(reader(image="train:5s"))
    live(world, 90)
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(world, 90)
    assert left(world) == set()


def test_data_sets_that_refer_to_it_block_the_end() -> None:
    world = accelerated()
    status = {**dataset(world)["status"], "datasetRef": ["other/mirror"]}
    world.cluster.update_status({**dataset(world), "status": status})
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(world, 30)
    message = "Failed to delete dataset because there are datasets [other/mirror] mounted to it"
    assert ("ErrorDeleteDataset", message) in reported(world)


def test_deletions_hang_while_the_controllers_are_away() -> None:
    world = accelerated()
    scale(world, DATASET_CONTROLLER, 0)
    live(world, 60)
    away = world.cluster.get(DEPLOYMENTS, FLUID_NAMESPACE, CONTROLLER)
    assert away is not None
    world.cluster.delete(DEPLOYMENTS, FLUID_NAMESPACE, CONTROLLER)
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(world, 600)
    assert "deletionTimestamp" in dataset(world)["metadata"]
    assert "deletionTimestamp" not in runtime(world)["metadata"]
    scale(world, DATASET_CONTROLLER, 1)
    live(world, 30)
    assert world.cluster.get(DATASETS, NAMESPACE, NAME) is None
    live(world, 300)
    assert "deletionTimestamp" in runtime(world)["metadata"]
    metadata = {"name": CONTROLLER, "namespace": FLUID_NAMESPACE}
    world.cluster.create({**away, "metadata": metadata})
    live(world, 90)
    assert left(world) == set()


def test_the_controller_of_runtimes_is_started_for_an_end_too() -> None:
    world = accelerated()
    scale(world, CONTROLLER, 0)
    live(world, 60)
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(world, 90)
    assert left(world) == set()
    controller = world.cluster.get(DEPLOYMENTS, FLUID_NAMESPACE, CONTROLLER)
    assert controller is not None and controller["spec"]["replicas"] == 1


def test_a_runtime_that_goes_alone_leaves_its_data_set_not_bound() -> None:
    world = accelerated()
    world.cluster.delete(ALLUXIO_RUNTIMES, NAMESPACE, NAME)
    live(world, 60)
    status = dataset(world)["status"]
    assert (status["phase"], status["conditions"]) == ("NotBound", [])
    assert "ufsTotal" not in status and "runtimes" not in status
    assert left(world) == {f"Dataset {NAME}"}


def test_a_runtime_stays_while_a_pod_mounts_its_volume() -> None:
    world = accelerated()
    world.cluster.create(reader())
    live(world, 60)
    world.cluster.delete(ALLUXIO_RUNTIMES, NAMESPACE, NAME)
    live(world, 60)
    assert "deletionTimestamp" in runtime(world)["metadata"]
    what = f"the PVC {NAME} in ns {NAMESPACE} is not cleaned up after 10-second retry"
    assert ("ErrorProcessRuntime", f"Failed to delete volume {what}") in reported(world)
