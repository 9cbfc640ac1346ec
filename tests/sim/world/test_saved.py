"""A restored world: the saved state of one, loaded into another,
continues as if it had only slept.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.small_world import (
    CPU_POOL,
    EPOCH,
    GPU_POOL,
    SHARED_POOL,
    condition,
    get_pod,
    live,
    phase,
    pod,
    reasons,
    small_scenario,
)
from tests.sim.world.saved_worlds import HOURS_OFF, VERSION, woken

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import (
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    PODS,
    REPLICA_SETS,
)
from fairlead_sim.scenario.file import load_scenario
from fairlead_sim.scenario.scenario import (
    Duration,
    NodePool,
    Outage,
    Scenario,
    ScenarioService,
    Stream,
    Xid,
)
from fairlead_sim.scenario.workloads import render_service
from fairlead_sim.schema.status import ApiStatus
from fairlead_sim.world.world import World


def small(**more: Any) -> Scenario:
    return small_scenario(CPU_POOL, GPU_POOL, SHARED_POOL, **more)


def holders(world: World, node: str) -> dict[int, list[str]]:
    return {
        card.index: sorted(hold.pod for hold in card.holds) for card in world.devices.cards(node)
    }


def new_small_world(**more: Any) -> World:
    return sharing_world(small(**more), 1, EPOCH)


def test_everything_is_there_as_it_was_and_nothing_is_written_by_looking() -> None:
    before = sharing_world(load_scenario("default"), 0, EPOCH)
    before.run_until(EPOCH + 3600)
    after = woken(before)
    for ref in before.cluster.kinds():
        assert after.cluster.list(ref) == before.cluster.list(ref), ref
    assert after.cluster.resource_version == VERSION
    for node in before.cluster.list(NODES):
        name = node["metadata"]["name"]
        assert holders(after, name) == holders(before, name)
        assert [card.uuid for card in after.devices.cards(name)] == [
            card.uuid for card in before.devices.cards(name)
        ]


@pytest.mark.long
def test_a_living_world_goes_on_living() -> None:
    before = sharing_world(load_scenario("default"), 0, EPOCH)
    before.run_until(EPOCH + 3600)
    after = woken(before)
    running = {
        obj["metadata"]["uid"]
        for obj in before.cluster.list(PODS)
        if obj["status"]["phase"] == "Running"
    }
    live(after, 120)
    failed = [
        obj["metadata"]["name"]
        for obj in after.cluster.list(PODS)
        if obj["status"].get("reason") == "UnexpectedAdmissionError"
    ]
    assert failed == []
    left = {obj["metadata"]["uid"] for obj in after.cluster.list(PODS)}
    assert len(running - left) <= len(running) // 4, "most of what ran still runs two minutes later"
    live(after, 3 * 3600)
    young = [obj for obj in after.cluster.list(PODS) if obj["metadata"]["uid"] not in running]
    assert young, "jobs keep coming"
    assert all(len(names) <= 1 for index, names in holders(after, "gpu-a100-1").items())


def test_a_program_goes_on_with_what_was_left_of_its_run() -> None:
    world = new_small_world()
    world.cluster.create(pod("job", "train:10m", gpus=2))
    live(world, 300)
    started = get_pod(world, "job")["status"]["containerStatuses"][0]["state"]["running"][
        "startedAt"
    ]
    world = woken(world)
    live(world, 200)
    assert phase(world, "job") == "Running"
    assert (
        get_pod(world, "job")["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
        == started
    )
    world = woken(world, standstills=((EPOCH + 300, EPOCH + 300 + HOURS_OFF),))
    live(world, 40)
    assert phase(world, "job") == "Running"
    live(world, 120)
    assert phase(world, "job") == "Succeeded"
    assert holders(world, "gpu-1") == {0: [], 1: [], 2: [], 3: []}


def test_crashes_are_counted_on_and_the_back_off_grows_on() -> None:
    world = new_small_world()
    world.cluster.create(pod("crashes", "crash:5s", restartPolicy="Always"))
    live(world, 120)
    before = get_pod(world, "crashes")["status"]["containerStatuses"][0]
    assert before["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    world = woken(world, hours_off=1.0)
    live(world, 300)
    after = get_pod(world, "crashes")["status"]["containerStatuses"][0]
    assert before["restartCount"] < after["restartCount"] <= before["restartCount"] + 3


def test_a_pod_on_its_way_arrives() -> None:
    world = new_small_world()
    init = {"name": "first", "image": "init:1"}
    world.cluster.create(pod("late", "pause:9", initContainers=[init, {**init, "name": "second"}]))
    for moment in range(0, 60, 3):
        live(world, 3)
        then = woken(world)
        live(then, 120)
        assert phase(then, "late") == "Running", (
            f"stopped after {moment + 3} s: {get_pod(then, 'late')['status']}"
        )


def test_a_pod_that_was_asked_to_go_goes() -> None:
    world = new_small_world()
    world.cluster.create(pod("going", "pause:35", gpus=1))
    live(world, 60)
    world.cluster.delete(PODS, "work", "going")
    world = woken(world)
    live(world, 40)
    assert world.cluster.list(PODS, "work") == []
    assert holders(world, "gpu-1")[0] == []


def test_shared_cards_stay_with_their_pods_and_the_rest_of_a_card_can_be_given() -> None:
    world = new_small_world()
    for number in range(3):
        world.cluster.create(pod(f"share-{number}", "infer:1", gpu_memory=6))
        live(world, 60)
    before = holders(world, "shared-1")
    world = woken(world)
    assert holders(world, "shared-1") == before
    world.cluster.create(pod("another", "infer:1", gpu_memory=9))
    world.cluster.create(pod("too-much", "infer:1", gpu_memory=9))
    live(world, 60)
    assert phase(world, "another") == "Running"
    assert (
        "Insufficient aliyun.com/gpu-mem"
        in condition(get_pod(world, "too-much"), "PodScheduled")["message"]
    )


def test_a_waiting_pod_waits_on_for_the_same_reason_and_is_not_reported_twice() -> None:
    world = new_small_world()
    world.cluster.create(pod("greedy", gpus=9))
    live(world, 10)
    before = condition(get_pod(world, "greedy"), "PodScheduled")
    world = woken(world, hours_off=5.0)
    live(world, 30)
    assert condition(get_pod(world, "greedy"), "PodScheduled") == before
    assert reasons(world, "greedy") == ["FailedScheduling"]


def test_a_promised_place_is_still_promised() -> None:
    """No pod is preempted a second time."""
    world = new_small_world()
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 1000}
    world.cluster.create({**kind, "metadata": {"name": "high"}})
    for number in range(4):
        world.cluster.create(pod(f"low-{number}", gpus=1, terminationGracePeriodSeconds=600))
    live(world, 60)
    world.cluster.create(pod("high", gpus=1, priorityClassName="high"))
    live(world, 0.2)
    assert get_pod(world, "high")["status"]["nominatedNodeName"] == "gpu-1"
    world = woken(world, hours_off=5.0)
    live(world, 60)
    assert [
        event["count"]
        for event in world.cluster.list(EVENTS, "work")
        if event["reason"] == "Preempted"
    ] == [1]
    live(world, 900)
    assert phase(world, "high") == "Running"
    assert (
        sum(
            phase(world, f"low-{number}") == "Running"
            for number in range(4)
            if world.cluster.get(PODS, "work", f"low-{number}")
        )
        == 3
    )


def test_a_deployment_is_kept_at_its_number_without_a_new_rollout() -> None:
    world = new_small_world()
    world.cluster.create(
        render_service(ScenarioService(name="web", namespace="work", image="web:1", replicas=3))
    )
    live(world, 60)
    world = woken(world)
    live(world, 60)
    assert len(world.cluster.list(REPLICA_SETS, "work")) == 1
    deployment = world.cluster.get(DEPLOYMENTS, "work", "web")
    assert deployment is not None and deployment["status"]["availableReplicas"] == 3
    world.cluster.delete(PODS, "work", world.cluster.list(PODS, "work")[0]["metadata"]["name"])
    live(world, 60)
    assert len(world.cluster.list(PODS, "work")) == 3


def test_streams_number_their_jobs_on() -> None:
    stream = Stream(
        name="night",
        namespace="work",
        kind="job",
        every=Duration(60),
        runs=(Duration(30), Duration(40)),
        ttl=Duration(60),
    )
    world = new_small_world(streams=(stream,))
    live(world, 1800)
    submitted = world.arrivals[0].number
    assert submitted > 5
    world = woken(world)
    live(world, 1800)
    assert world.arrivals[0].number > submitted + 5


def test_what_the_scenario_let_happen_does_not_happen_again_and_the_rest_still_does() -> None:
    outage = Outage("gpu-1", at=Duration(600), until=Duration(1800))
    later = Xid("gpu-1", 1, 79, at=Duration(2400))
    world = new_small_world(outages=(outage,), xids=(Xid("gpu-1", 0, 79, at=Duration(60)), later))
    live(world, 900)
    world = woken(world)
    live(world, 60)
    node = world.cluster.get(NODES, None, "gpu-1")
    assert node is not None and condition(node, "Ready")["status"] == "Unknown"
    live(world, 900)
    node = world.cluster.get(NODES, None, "gpu-1")
    assert node is not None and condition(node, "Ready")["status"] == "True"
    assert [card.failed_by for card in world.devices.cards("gpu-1")] == [79, 0, 0, 0]
    assert reasons_of_node(world, "gpu-1").count("GPUUnhealthy") == 0, (
        "reported in the earlier life, and forgotten an hour later"
    )
    world = woken(world)
    live(world, 900)
    assert [card.failed_by for card in world.devices.cards("gpu-1")] == [79, 79, 0, 0]
    assert reasons_of_node(world, "gpu-1").count("GPUUnhealthy") == 1


def test_a_silence_that_was_not_noticed_yet_is_noticed_in_time() -> None:
    world = new_small_world(outages=(Outage("gpu-1", at=Duration(600)),))
    live(world, 620)
    world = woken(world)
    for seconds, state in ((25, "True"), (10, "Unknown")):
        live(world, seconds)
        node = world.cluster.get(NODES, None, "gpu-1")
        assert node is not None and condition(node, "Ready")["status"] == state


def reasons_of_node(world: World, name: str) -> list[str]:
    return [
        event["reason"]
        for event in world.cluster.list(EVENTS)
        if event["involvedObject"]["name"] == name
    ]


def test_old_events_are_forgotten_and_leases_renewed() -> None:
    world = new_small_world()
    world.cluster.create(pod("p"))
    live(world, 60)
    assert reasons(world, "p")
    world = woken(world)
    live(world, 30)
    assert reasons(world, "p") == []
    lease = world.cluster.get(LEASES, "kube-node-lease", "gpu-1")
    assert (
        lease is not None
        and lease["spec"]["renewTime"]
        > get_pod(world, "p")["metadata"]["creationTimestamp"][:10] + "T12"
    )


def test_what_was_deleted_stays_deleted_also_what_every_new_cluster_has() -> None:
    world = new_small_world()
    live(world, 60)
    world.cluster.delete(NODES, None, "cpu-1")
    world.cluster.delete(NAMESPACES, None, "kube-node-lease")
    world = woken(world)
    live(world, 60)
    assert world.cluster.get(NODES, None, "cpu-1") is None
    assert world.cluster.get(NAMESPACES, None, "kube-node-lease") is None


def test_watchers_of_the_earlier_life_have_to_begin_anew() -> None:
    world = new_small_world()
    version = world.cluster.resource_version
    world = woken(world)
    with pytest.raises(ApiStatus) as caught:
        world.cluster.watch(PODS, None, version)
    assert caught.value.code == 410
    watch = world.cluster.watch(PODS, None, world.cluster.resource_version)
    world.cluster.create(pod("new"))
    assert [event.type for event in watch.poll()] == ["ADDED"]
    assert int(get_pod(world, "new")["metadata"]["resourceVersion"]) > VERSION


def test_names_of_the_earlier_life_are_not_given_again() -> None:
    world = new_small_world()
    world.cluster.create(pod("a"))
    woke = woken(world)
    world.cluster.create(pod("lost"))
    woke.cluster.create(pod("b"))
    assert get_pod(world, "lost")["metadata"]["uid"] != get_pod(woke, "b")["metadata"]["uid"]


def test_a_kind_that_is_going_takes_its_objects_along() -> None:
    world = new_small_world()
    wodget = custom(world)
    held = {"name": "held", "namespace": "work", "finalizers": ["example.com/hold"]}
    world.cluster.create({"apiVersion": "example.com/v1", "kind": "Wodget", "metadata": held})
    world.cluster.delete(CUSTOM_RESOURCE_DEFINITIONS, None, "wodgets.example.com")
    live(world, 5)
    world = woken(world)
    live(world, 5)
    ref = next(ref for ref in world.cluster.kinds() if ref.kind == "Wodget")
    assert ref.plural == wodget
    left = world.cluster.get(ref, "work", "held")
    assert left is not None and "deletionTimestamp" in left["metadata"]
    world.cluster.mutate(
        ref, "work", "held", lambda old: {**old, "metadata": {**old["metadata"], "finalizers": []}}
    )
    live(world, 5)
    assert world.cluster.get(CUSTOM_RESOURCE_DEFINITIONS, None, "wodgets.example.com") is None


def custom(world: World) -> str:
    """A user's own kind; its plural."""
    names = {"plural": "wodgets", "singular": "wodget", "kind": "Wodget", "listKind": "WodgetList"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    world.cluster.create(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "wodgets.example.com"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": names,
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
            },
        }
    )
    return "wodgets"


def test_objects_of_a_kind_of_ones_own_come_back() -> None:
    world = new_small_world()
    custom(world)
    world.cluster.create(
        {
            "apiVersion": "example.com/v1",
            "kind": "Wodget",
            "metadata": {"name": "w", "namespace": "work"},
            "size": 3,
        }
    )
    version = world.cluster.resource_version
    world = woken(world)
    ref = next(ref for ref in world.cluster.kinds() if ref.kind == "Wodget")
    found = world.cluster.get(ref, "work", "w")
    assert found is not None and found["size"] == 3
    with pytest.raises(ApiStatus) as caught:
        world.cluster.watch(ref, None, version)
    assert caught.value.code == 410


def test_cards_divided_by_mig_are_divided_again_and_their_instances_held_by_the_same_pods() -> None:
    pool = NodePool(
        name="mig",
        cpu=96,
        memory="1Ti",
        gpu_model="NVIDIA H200",
        gpus=2,
        mig=("3g.71gb", "1g.18gb", "1g.18gb"),
    )
    services = (
        ScenarioService(
            name="part", namespace="work", image="i:1", mig="1g.18gb", load="inference", replicas=3
        ),
    )
    world = sharing_world(small_scenario(CPU_POOL, pool, services=services), 1, EPOCH)
    world.run_until(EPOCH + 300)
    again = woken(world)

    def held(world: World) -> list[tuple[int, int | None, str, int]]:
        cards = world.devices.cards("mig-1")
        return sorted(
            (card.index, hold.gpu_instance, hold.pod, hold.limit_mib)
            for card in cards
            for hold in card.holds
        )

    assert [(index, number) for index, number, _, _ in held(world)] == [(0, 7), (0, 8), (1, 7)]
    for before, after in zip(
        world.devices.cards("mig-1"), again.devices.cards("mig-1"), strict=True
    ):
        assert (after.instances, after.instance_uuids, after.uuid) == (
            before.instances,
            before.instance_uuids,
            before.uuid,
        )
    assert held(again) == held(world)


def test_the_guards_counts_of_a_container_that_waits_for_its_restart_are_kept() -> None:
    world = new_small_world()
    for name, gib in (("greedy", 6), ("fits", 3)):
        world.cluster.create(pod(name, f"cuda-malloc:{gib}G", gpu_memory=4, restartPolicy="Always"))
    live(world, 120)

    def counts() -> dict[str, tuple[int | None, int | None]]:
        return {
            each.pod: (each.accounted_bytes, each.denied)
            for card in world.devices.sample()
            for each in card.processes
        }

    waiting = get_pod(world, "greedy")["status"]["containerStatuses"][0]["state"]
    assert waiting["waiting"]["reason"] == "CrashLoopBackOff"
    assert counts() == {"greedy": (0, 1), "fits": (3193 << 20, 0)}
    world = woken(world)
    assert counts() == {"greedy": (0, 1), "fits": (3193 << 20, 0)}
