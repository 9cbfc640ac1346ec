"""The life of a data set under Fluid's simulated controllers: what they create, what they report,
and when they do nothing.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from typing import Any

import pytest
from tests.sim.operators.fluid_world import (
    NAME,
    accelerate,
    accelerated,
    acceleration_objects,
    claim,
    dataset,
    install,
    reader,
    reported,
    runtime,
)
from tests.sim.operators.scaled import scale
from tests.sim.small_world import NAMESPACE, condition, get, live, phase, pods, small_world
from tests.sim.world.saved_worlds import woken

from fairlead.wire.data.fluid import CONTROLLER, FLUID_NAMESPACE, parse_bytes
from fairlead.wire.data.stand_in import DATASET_CONTROLLER, stand_in_objects
from fairlead_sim.controllers.plan import Plan, View
from fairlead_sim.objects.resources import (
    ALLUXIO_RUNTIMES,
    CONFIG_MAPS,
    CSI_NODES,
    DAEMON_SETS,
    DATA_LOADS,
    DATASETS,
    DEPLOYMENTS,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    SECRETS,
    STATEFUL_SETS,
)
from fairlead_sim.world.controllers import CONTROLLERS
from fairlead_sim.world.world import World

Object = dict[str, Any]


def test_the_stand_in_becomes_ready_and_waits_for_a_runtime() -> None:
    world = small_world()
    assert not [each for each in world.cluster.served_kinds() if each.group == "data.fluid.io"]
    install(world)
    served = {each.plural for each in world.cluster.served_kinds() if each.group == "data.fluid.io"}
    assert served == {
        "datasets",
        "alluxioruntimes",
        "jindoruntimes",
        "thinruntimes",
        "juicefsruntimes",
        "dataloads",
    }
    states = {
        each["metadata"]["name"]: each["status"].get("readyReplicas", 0)
        for each in world.cluster.list(DEPLOYMENTS, FLUID_NAMESPACE)
    }
    assert states == {DATASET_CONTROLLER: 1, CONTROLLER: 0}


def test_a_data_set_with_its_runtime_becomes_bound() -> None:
    world = small_world()
    install(world)
    claim(world)
    accelerate(world)
    live(world, 5)
    assert dataset(world)["status"] == {"phase": "NotBound", "conditions": []}
    assert dataset(world)["metadata"]["finalizers"] == ["fluid-dataset-controller-finalizer"]
    controller = world.cluster.get(DEPLOYMENTS, FLUID_NAMESPACE, CONTROLLER)
    assert controller is not None and controller["spec"]["replicas"] == 1
    live(world, 120)
    status = dataset(world)["status"]
    assert status["phase"] == "Bound"
    assert condition(dataset(world), "Ready")["message"] == "The ddc runtime is ready."
    (bound,) = status["runtimes"]
    assert (bound["name"], bound["category"], bound["type"]) == (NAME, "Accelerate", "alluxio")

    (owner,) = runtime(world)["metadata"]["ownerReferences"]
    assert owner["uid"] == dataset(world)["metadata"]["uid"]
    assert runtime(world)["metadata"]["finalizers"] == ["alluxio-runtime-controller-finalizer"]
    phases = [runtime(world)["status"][f"{part}Phase"] for part in ("master", "worker", "fuse")]
    assert phases == ["Ready"] * 3
    names = {pod["metadata"]["name"] for pod in pods(world)}
    assert names == {f"{NAME}-master-0", f"{NAME}-worker-0", f"{NAME}-worker-1"}
    nodes = {pod["spec"]["nodeName"] for pod in pods(world) if "worker" in pod["metadata"]["name"]}
    assert len(nodes) == 2
    claims = [
        volume["persistentVolumeClaim"]["claimName"]
        for pod in pods(world)
        for volume in pod["spec"]["volumes"]
        if "persistentVolumeClaim" in volume
    ]
    assert claims == ["raw"] * 3


def test_fluids_volume_and_release_have_the_names_of_the_data_set() -> None:
    world = accelerated()
    own = get(world, PERSISTENT_VOLUME_CLAIMS, NAME)
    assert own["metadata"]["annotations"] == {"CreatedBy": "fluid"}
    assert own["spec"]["storageClassName"] == "fluid"
    assert own["spec"]["resources"]["requests"]["storage"] == "100Pi"
    assert (own["status"]["phase"], own["spec"]["volumeName"]) == ("Bound", f"{NAMESPACE}-{NAME}")
    volume = world.cluster.get(PERSISTENT_VOLUMES, None, f"{NAMESPACE}-{NAME}")
    assert volume is not None and volume["spec"]["csi"]["driver"] == "fuse.csi.fluid.io"
    kept = get(world, CONFIG_MAPS, f"sh.helm.release.v1.{NAME}.v1")
    assert kept["metadata"]["labels"].items() >= {("name", NAME), ("owner", "helm")}
    release = json.loads(gzip.decompress(b64decode(kept["data"]["release"])))
    assert (release["name"], release["info"]["status"]) == (NAME, "deployed")
    assert f'"name": "{NAME}-worker"' in release["manifest"]


def test_the_size_of_the_source_is_known_after_a_while_and_the_cache_is_empty() -> None:
    world = small_world()
    install(world)
    claim(world)
    accelerate(world)
    seen = set()
    for _ in range(75):
        live(world, 2)
        seen.add(dataset(world)["status"].get("ufsTotal", ""))
    assert "[Calculating]" in seen
    status = dataset(world)["status"]
    size = parse_bytes(status["ufsTotal"])
    assert size is not None and 3 << 30 <= size <= 8 << 30
    assert int(status["fileNum"]) > 0
    states = status["cacheStates"]
    assert (states["cached"], states["cachedPercentage"]) == ("0.00B", "0.0%")
    assert states["cacheCapacity"] == "8.00GiB"
    assert states == runtime(world)["status"]["cacheStates"]


def test_a_pod_that_mounts_it_fills_the_cache_and_starts_fuse_on_its_node() -> None:
    world = accelerated()
    world.cluster.create(reader())
    live(world, 120)
    first = parse_bytes(dataset(world)["status"]["cacheStates"]["cached"]) or 0
    live(world, 60)
    second = parse_bytes(dataset(world)["status"]["cacheStates"]["cached"]) or 0
    assert 0 < first < second
    node = world.cluster.get(PODS, NAMESPACE, "reader")["spec"]["nodeName"]  # type: ignore[index]
    fuse = [pod for pod in pods(world) if f"{NAME}-fuse" in pod["metadata"]["name"]]
    assert [pod["spec"]["nodeName"] for pod in fuse] == [node]
    live(world, 600)
    states = dataset(world)["status"]["cacheStates"]
    assert states["cachedPercentage"] == "100.0%"
    assert states["cached"] == dataset(world)["status"]["ufsTotal"]
    world.cluster.delete(PODS, NAMESPACE, "reader")
    live(world, 60)
    assert dataset(world)["status"]["cacheStates"] == states


def test_workers_follow_the_replicas_of_the_runtime() -> None:
    world = accelerated()
    world.cluster.merge_patch(ALLUXIO_RUNTIMES, NAMESPACE, NAME, {"spec": {"replicas": 1}})
    live(world, 60)
    status = runtime(world)["status"]
    assert (status["desiredWorkerNumberScheduled"], status["workerNumberReady"]) == (1, 1)
    assert dataset(world)["status"]["cacheStates"]["cacheCapacity"] == "4.00GiB"
    assert ("Succeed", "Runtime scaled in") in reported(world)


def test_a_claim_of_one_node_keeps_master_and_worker_together() -> None:
    world = accelerated(workers=1, node="gpu-1")
    assert {pod["spec"]["nodeName"] for pod in pods(world)} == {"gpu-1"}


def test_a_foreign_claim_of_the_name_leaves_the_data_set_bound_without_an_event() -> None:
    world = small_world()
    install(world)
    claim(world)
    claim(world, NAME)
    accelerate(world)
    live(world, 150)
    assert dataset(world)["status"]["phase"] == "Bound"
    assert reported(world) == set()
    assert get(world, PERSISTENT_VOLUME_CLAIMS, NAME)["spec"]["storageClassName"] == "nas"
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(world, 60)
    assert world.cluster.get(DATASETS, NAMESPACE, NAME) is None
    assert get(world, PERSISTENT_VOLUME_CLAIMS, NAME)["status"]["phase"] == "Bound"


def foreign_release(world: World, kind: str) -> None:
    labels = {"owner": "helm", "name": NAME, "status": "deployed", "version": "1"}
    world.cluster.create(
        {
            "apiVersion": "v1",
            "kind": kind,
            "metadata": {"name": "theirs", "namespace": NAMESPACE, "labels": labels},
        }
    )


def test_a_release_of_the_name_that_fluids_helm_does_not_see_is_left_alone() -> None:
    world = small_world()
    install(world)
    claim(world)
    foreign_release(world, "Secret")
    accelerate(world)
    live(world, 150)
    assert dataset(world)["status"]["phase"] == "Bound"
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(world, 60)
    assert get(world, SECRETS, "theirs")


def test_a_foreign_release_of_the_name_is_taken_over_and_nothing_starts() -> None:
    world = small_world()
    install(world)
    claim(world)
    foreign_release(world, "ConfigMap")
    accelerate(world)
    live(world, 150)
    assert dataset(world)["status"]["phase"] == "NotBound"
    fault = f'StatefulSet.apps "{NAME}-master" not found'
    assert condition(dataset(world), "NotReady")["message"] == fault
    assert world.cluster.list(STATEFUL_SETS, NAMESPACE) == []
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(world, 60)
    assert world.cluster.get(CONFIG_MAPS, NAMESPACE, "theirs") is None


def test_without_its_controllers_nothing_moves() -> None:
    world = small_world()
    install(world)
    claim(world)
    scale(world, DATASET_CONTROLLER, 0)
    live(world, 60)
    accelerate(world)
    live(world, 300)
    assert "status" not in dataset(world) and "finalizers" not in dataset(world)["metadata"]
    assert pods(world) == []
    scale(world, DATASET_CONTROLLER, 1)
    live(world, 150)
    assert dataset(world)["status"]["phase"] == "Bound"


def test_a_runtime_waits_for_its_data_set_and_a_data_set_for_its_runtime() -> None:
    world = small_world()
    install(world)
    claim(world)
    accelerate(world)
    live(world, 0.01)
    whole = dataset(world)
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    scale(world, CONTROLLER, 1)
    live(world, 60)
    waiting = "No dataset can be bound to the runtime, waiting."
    assert ("ErrorProcessRuntime", waiting) in reported(world)
    world.cluster.create(
        {key: whole[key] for key in ("apiVersion", "kind", "spec")}
        | {"metadata": {"name": NAME, "namespace": NAMESPACE}}
    )
    live(world, 120)
    assert dataset(world)["status"]["phase"] == "Bound"


def test_a_cache_without_its_master_is_reported_and_a_lost_worker_set_is_a_failure() -> None:
    world = accelerated()
    world.cluster.delete(STATEFUL_SETS, NAMESPACE, f"{NAME}-worker")
    live(world, 60)
    assert dataset(world)["status"]["phase"] == "Failed"
    assert condition(dataset(world), "Ready")["status"] == "False"
    assert any(reason == "ErrorProcessRuntime" for reason, _ in reported(world))


def test_no_room_for_the_workers_leaves_the_data_set_not_bound() -> None:
    world = small_world()
    install(world)
    claim(world, size="900Gi")
    accelerate(world)
    quota = {"levels": [{"mediumtype": "MEM", "path": "/dev/shm", "quota": "400Gi"}]}
    world.cluster.merge_patch(ALLUXIO_RUNTIMES, NAMESPACE, NAME, {"spec": {"tieredstore": quota}})
    live(world, 200)
    assert dataset(world)["status"]["phase"] == "NotBound"
    assert runtime(world)["status"]["workerPhase"] == "NotReady"
    assert runtime(world)["spec"]["worker"]["resources"]["requests"]["memory"] == "400Gi"
    assert phase(world, f"{NAME}-worker-0") == "Pending"


def test_a_kept_world_keeps_its_data_set_and_its_controllers_go_on() -> None:
    world = accelerated()
    later = woken(world)
    live(later, 120)
    assert dataset(later)["status"]["phase"] == "Bound"
    assert dataset(later)["status"] == dataset(world)["status"]
    later.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(later, 60)
    assert later.cluster.get(ALLUXIO_RUNTIMES, NAMESPACE, NAME) is None


def test_one_that_is_kept_while_it_starts_becomes_bound_later() -> None:
    world = small_world()
    install(world)
    claim(world)
    accelerate(world)
    live(world, 30)
    later = woken(world)
    live(later, 200)
    assert dataset(later)["status"]["phase"] == "Bound"


@pytest.mark.parametrize("name", ["20-images", "x" * 64])
def test_a_name_that_is_no_label_is_reported(name: str) -> None:
    world = small_world()
    install(world)
    world.cluster.create(
        {
            "apiVersion": "data.fluid.io/v1alpha1",
            "kind": "Dataset",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"mounts": [{"mountPoint": "s3://bucket"}]},
        }
    )
    live(world, 30)
    assert "status" not in get(world, DATASETS, name)
    assert [reason for reason, _ in reported(world, name)] == ["ErrorCreateDataset"]


def test_a_world_without_fluid_has_no_work_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def called(obj: Object, view: View) -> Plan:
        raise AssertionError(f"a controller of Fluid looked at {obj['metadata']['name']}")

    for ref in (DATASETS, ALLUXIO_RUNTIMES, DATA_LOADS):
        monkeypatch.setitem(CONTROLLERS, ref, ("none", called))
    world = small_world()
    world.cluster.create(reader(image="train:10m"))
    live(world, 3600)
    assert phase(world, "reader") == "Succeeded"
    assert world.cluster.list(CSI_NODES) == []
    for ref in (DATASETS, ALLUXIO_RUNTIMES, DATA_LOADS):
        assert not world.cluster.count(ref, NAMESPACE)


def test_every_object_is_marked_as_a_stand_in() -> None:
    marks = {
        each["metadata"]["annotations"]["fairlead.io/stand-in-for"] for each in stand_in_objects()
    }
    assert marks == {"fluid-1.0.8"}
    images = [
        container["image"]
        for each in stand_in_objects()
        if each["kind"] in ("Deployment", "DaemonSet")
        for container in each["spec"]["template"]["spec"]["containers"]
    ]
    assert len(images) == 4 and all(image.startswith("fluid-stand-in/") for image in images)


def test_node_labels_come_with_the_cache_and_go_with_it() -> None:
    world = accelerated()
    key = f"fluid.io/s-{NAMESPACE}-{NAME}"

    def labelled() -> int:
        return sum(key in node["metadata"].get("labels", {}) for node in world.cluster.list(NODES))

    assert labelled() == 2
    world.cluster.delete(DATASETS, NAMESPACE, NAME)
    live(world, 60)
    assert labelled() == 0
    assert world.cluster.list(DAEMON_SETS, NAMESPACE) == []


def test_a_data_set_that_is_only_there_is_not_written() -> None:
    world = accelerated()
    before = [each["metadata"]["resourceVersion"] for each in (dataset(world), runtime(world))]
    live(world, 3600)
    after = [each["metadata"]["resourceVersion"] for each in (dataset(world), runtime(world))]
    assert after == before


def test_an_exclusive_data_set_shares_no_node_with_another_one() -> None:
    """As Fluid's default is; a shared one needs only that its own workers are apart."""
    for placement, phase_of_second in (("Exclusive", "NotBound"), ("Shared", "Bound")):
        world = small_world()
        install(world)
        claim(world)
        claim(world, "other")
        made = [
            *acceleration_objects("raw", NAME, placement),
            *acceleration_objects("other", "second", placement),
        ]
        for each in made[:2]:
            world.cluster.create(each)
        live(world, 120)
        for each in made[2:]:
            world.cluster.create(each)
        live(world, 120)
        assert dataset(world)["status"]["phase"] == "Bound"
        assert get(world, DATASETS, "second")["status"]["phase"] == phase_of_second


@pytest.mark.parametrize(
    ("name", "source", "phase"),
    [("n" * 45, "raw", "Bound"), ("n" * 46, "raw", "NotBound"), (NAME, "raw.v2", "NotBound")],
)
def test_names_that_are_too_long_for_pods_or_no_names_of_volumes_end_not_bound(
    name: str, source: str, phase: str
) -> None:
    world = small_world()
    install(world)
    claim(world, source)
    for each in acceleration_objects(source, name, "Shared"):
        world.cluster.create(each)
    live(world, 200)
    found = get(world, DATASETS, name)
    assert found["status"]["phase"] == phase
    if source == "raw.v2":
        assert "RFC 1123 label" in condition(found, "NotReady")["message"]
