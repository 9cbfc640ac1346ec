"""StatefulSets, DaemonSets, disruption budgets, and `kubectl rollout undo`."""

from __future__ import annotations

from typing import Any

from tests.sim.controllers.workloads import Object, workload
from tests.sim.small_world import (
    CPU_POOL,
    GPU_POOL,
    NAMESPACE,
    container,
    get,
    live,
    pods,
    reasons,
    small_world,
)

from fairlead_sim.objects.resources import (
    DAEMON_SETS,
    DEPLOYMENTS,
    NODES,
    POD_DISRUPTION_BUDGETS,
    PODS,
    REPLICA_SETS,
    STATEFUL_SETS,
)
from fairlead_sim.scenario.scenario import NodePool, PoolTaint
from fairlead_sim.world.world import World

REVISION = "deployment.kubernetes.io/revision"


def with_image(world: World, ref: Any, image: str, name: str = "app") -> None:
    def change(old: Object) -> Object:
        spec = old["spec"]
        template = {
            **spec["template"],
            "spec": {**spec["template"]["spec"], "containers": [container(image)]},
        }
        return {**old, "spec": {**spec, "template": template}}

    world.cluster.mutate(ref, NAMESPACE, name, change)


def images(world: World) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in pods(world)}


def birth_order(world: World) -> list[str]:
    return [
        pod["metadata"]["name"]
        for pod in sorted(pods(world), key=lambda pod: pod["metadata"]["creationTimestamp"])
    ]


# --- StatefulSet ----------------------------------------------------------------------------------


def test_stateful_pods_come_one_after_the_other_with_their_names() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(workload("StatefulSet", replicas=3, serviceName="peers"))
    live(world, 2)
    assert birth_order(world) == ["app-0"]
    live(world, 120)
    assert birth_order(world) == ["app-0", "app-1", "app-2"]
    first = get(world, PODS, "app-0")
    assert (first["spec"]["hostname"], first["spec"]["subdomain"]) == ("app-0", "peers")
    assert first["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "app-0"
    status = get(world, STATEFUL_SETS, "app")["status"]
    assert (status["replicas"], status["readyReplicas"], status["currentRevision"]) == (
        3,
        3,
        status["updateRevision"],
    )
    assert reasons(world, "app")[0] == "SuccessfulCreate"


def test_parallel_ones_come_at_once() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(workload("StatefulSet", replicas=3, podManagementPolicy="Parallel"))
    live(world, 2)
    assert sorted(images(world)) == ["app-0", "app-1", "app-2"]


def test_a_lost_one_comes_back_under_its_name_and_the_last_goes_first() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(workload("StatefulSet", replicas=3))
    live(world, 120)
    old = get(world, PODS, "app-1")["metadata"]["uid"]
    world.cluster.delete(PODS, NAMESPACE, "app-1")
    live(world, 60)
    assert get(world, PODS, "app-1")["metadata"]["uid"] != old
    world.cluster.scale(STATEFUL_SETS, NAMESPACE, "app", {"spec": {"replicas": 1}})
    live(world, 1)
    assert [
        pod["metadata"]["name"] for pod in pods(world) if "deletionTimestamp" in pod["metadata"]
    ] == ["app-2"]
    live(world, 60)
    assert sorted(images(world)) == ["app-0"]


def test_a_new_template_goes_from_the_top_down_to_the_partition() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(
        workload(
            "StatefulSet",
            replicas=3,
            updateStrategy={"type": "RollingUpdate", "rollingUpdate": {"partition": 1}},
        )
    )
    live(world, 120)
    with_image(world, STATEFUL_SETS, "app:2")
    live(world, 200)
    assert images(world) == {"app-0": "pause:35", "app-1": "app:2", "app-2": "app:2"}
    assert get(world, STATEFUL_SETS, "app")["status"]["updatedReplicas"] == 2


# --- DaemonSet ------------------------------------------------------------------------------------


def daemon_nodes(world: World) -> set[str]:
    return {pod["spec"].get("nodeName") for pod in pods(world)}


def test_one_daemon_on_every_node_that_suits_it() -> None:
    closed = NodePool(name="closed", cordoned=True)
    tainted = NodePool(name="tainted", taints=(PoolTaint("k"),))
    world = small_world(CPU_POOL, GPU_POOL, closed, tainted)
    world.cluster.create(workload("DaemonSet"))
    live(world, 120)
    assert daemon_nodes(world) == {"cpu-1", "gpu-1", "closed-1"}
    status = get(world, DAEMON_SETS, "app")["status"]
    assert (status["desiredNumberScheduled"], status["numberReady"], status["numberAvailable"]) == (
        3,
        3,
        3,
    )


def test_daemons_follow_labels_and_nodes() -> None:
    world = small_world(NodePool(name="n", count=2))
    world.cluster.create(workload("DaemonSet", pod={"nodeSelector": {"cgpu": "true"}}))
    live(world, 60)
    assert daemon_nodes(world) == set()

    def label(node: Object) -> Object:
        return {
            **node,
            "metadata": {
                **node["metadata"],
                "labels": {**node["metadata"]["labels"], "cgpu": "true"},
            },
        }

    world.cluster.mutate(NODES, None, "n-2", label)
    live(world, 60)
    assert daemon_nodes(world) == {"n-2"}
    world.cluster.mutate(
        NODES, None, "n-2", lambda node: {**node, "metadata": {**node["metadata"], "labels": {}}}
    )
    live(world, 60)
    assert daemon_nodes(world) == set()


def test_daemons_are_replaced_one_by_one() -> None:
    world = small_world(NodePool(name="n", count=3))
    world.cluster.create(workload("DaemonSet"))
    live(world, 120)
    with_image(world, DAEMON_SETS, "app:2")
    live(world, 1)
    assert sum("deletionTimestamp" in pod["metadata"] for pod in pods(world)) == 1
    live(world, 300)
    assert set(images(world).values()) == {"app:2"}
    assert get(world, DAEMON_SETS, "app")["status"]["updatedNumberScheduled"] == 3


# --- budgets --------------------------------------------------------------------------------------


def budget_of(world: World, **spec: Any) -> Object:
    metadata = {"name": "b", "namespace": NAMESPACE}
    selector = {"matchLabels": {"app": "app"}}
    world.cluster.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": metadata,
            "spec": {"selector": selector, **spec},
        }
    )
    live(world, 1)
    return get(world, POD_DISRUPTION_BUDGETS, "b")["status"]


def test_a_budget_counts_healthy_pods_against_what_the_owner_wants() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(workload("Deployment", replicas=4))
    live(world, 1)
    early = budget_of(world, maxUnavailable="25%")
    assert (
        early["expectedPods"],
        early["desiredHealthy"],
        early["currentHealthy"],
        early["disruptionsAllowed"],
    ) == (4, 3, 0, 0)
    live(world, 120)
    status = get(world, POD_DISRUPTION_BUDGETS, "b")["status"]
    assert (status["currentHealthy"], status["disruptionsAllowed"]) == (4, 1)
    assert status["conditions"][0]["reason"] == "SufficientPods"


def test_an_eviction_spends_the_budget_until_the_pod_is_replaced() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(workload("Deployment", replicas=2))
    live(world, 120)
    assert budget_of(world, minAvailable=1)["disruptionsAllowed"] == 1
    world.cluster.evict(NAMESPACE, pods(world)[0]["metadata"]["name"], {})
    live(world, 0.2)
    assert get(world, POD_DISRUPTION_BUDGETS, "b")["status"]["disruptionsAllowed"] == 0
    live(world, 60)
    status = get(world, POD_DISRUPTION_BUDGETS, "b")["status"]
    assert (status["currentHealthy"], status["disruptionsAllowed"], "disruptedPods" in status) == (
        2,
        1,
        False,
    )


# --- revisions ------------------------------------------------------------------------------------


def test_revisions_grow_and_an_undone_template_becomes_the_newest() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(workload("Deployment", replicas=1))
    live(world, 60)
    with_image(world, DEPLOYMENTS, "app:2")
    live(world, 60)

    def revisions() -> dict[str, str]:
        sets = world.cluster.list(REPLICA_SETS, NAMESPACE)
        return {
            item["spec"]["template"]["spec"]["containers"][0]["image"]: item["metadata"][
                "annotations"
            ][REVISION]
            for item in sets
        }

    assert revisions() == {"pause:35": "1", "app:2": "2"}
    assert get(world, DEPLOYMENTS, "app")["metadata"]["annotations"][REVISION] == "2"
    with_image(world, DEPLOYMENTS, "pause:35")  # what `kubectl rollout undo` does
    live(world, 60)
    assert revisions() == {"pause:35": "3", "app:2": "2"}
    assert get(world, DEPLOYMENTS, "app")["metadata"]["annotations"][REVISION] == "3"
    assert set(images(world).values()) == {"pause:35"}


def test_old_revisions_beyond_the_limit_are_forgotten() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(workload("Deployment", replicas=1, revisionHistoryLimit=1))
    for number in range(2, 5):
        live(world, 60)
        with_image(world, DEPLOYMENTS, f"app:{number}")
    live(world, 90)
    assert len(world.cluster.list(REPLICA_SETS, NAMESPACE)) == 2
