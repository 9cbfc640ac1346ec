"""A pod's life on its node: start, end, restart, deletion, and
the cards that it holds meanwhile.
"""

from __future__ import annotations

import pytest
from tests.sim.small_world import (
    CPU_POOL,
    NAMESPACE,
    NodePool,
    condition,
    container,
    get_pod,
    live,
    phase,
    pod,
    reasons,
    small_world,
    states,
)

from fairlead.wire.kube.time import parse_time
from fairlead_sim.objects.resources import EVENTS, NODES, PODS
from fairlead_sim.scheduler.pod_shape import unreadable
from fairlead_sim.tables.pod import pod_status


def test_a_pod_starts_with_what_readers_look_for() -> None:
    world = small_world()
    world.cluster.create(pod())
    live(world, 60)
    running = get_pod(world)
    status = running["status"]
    assert status["phase"] == "Running"
    assert states(running)["Ready"] == "True"
    assert status["hostIP"] == "192.168.0.11"
    assert status["podIP"].startswith("10.244.1.")
    assert status["containerStatuses"][0]["ready"]
    assert status["containerStatuses"][0]["state"]["running"]["startedAt"]
    assert status["containerStatuses"][0]["containerID"].startswith("containerd://")
    assert reasons(world, "p") == ["Scheduled", "Pulling", "Pulled", "Created", "Started"]


def test_before_it_runs_it_shows_container_creating() -> None:
    world = small_world()
    world.cluster.create(pod())
    live(world, 1)
    waiting = get_pod(world)
    assert waiting["status"]["phase"] == "Pending"
    assert (
        waiting["status"]["containerStatuses"][0]["state"]["waiting"]["reason"]
        == "ContainerCreating"
    )


@pytest.mark.parametrize(
    ("image", "phase_at_end", "exit_code", "reason"),
    [
        ("hub/train:5m", "Succeeded", 0, "Completed"),
        ("fail:30s", "Failed", 1, "Error"),
        ("crash:1m30s", "Failed", 139, "Error"),
    ],
)
def test_images_define_how_a_container_ends(
    image: str, phase_at_end: str, exit_code: int, reason: str
) -> None:
    world = small_world()
    world.cluster.create(pod(image=image))
    live(world, 400)
    ended = get_pod(world)["status"]["containerStatuses"][0]["state"]["terminated"]
    assert phase(world) == phase_at_end
    assert (ended["exitCode"], ended["reason"]) == (exit_code, reason)


def test_a_run_lasts_for_the_time_of_its_image() -> None:
    world = small_world()
    world.cluster.create(pod(image="train:5m"))
    live(world, 400)
    ended = get_pod(world)["status"]["containerStatuses"][0]["state"]["terminated"]
    assert parse_time(ended["finishedAt"]) - parse_time(ended["startedAt"]) == pytest.approx(
        300, abs=1
    )


def test_a_crash_loop_backs_off_longer_and_longer() -> None:
    world = small_world()
    world.cluster.create(pod(image="crash:5s", restartPolicy="Always"))
    waits: list[str] = []
    for _ in range(1200):
        live(world, 1)
        state = (get_pod(world)["status"].get("containerStatuses") or [{"state": {}}])[0]["state"]
        message = state.get("waiting", {}).get("message", "")
        if message.startswith("back-off") and (not waits or waits[-1] != message.split()[1]):
            waits.append(message.split()[1])
    assert waits == ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s"]
    status = get_pod(world)["status"]["containerStatuses"][0]
    assert status["restartCount"] == 8
    assert status["lastState"]["terminated"]["exitCode"] == 139
    assert phase(world) == "Running"
    assert "BackOff" in reasons(world, "p")


def test_on_failure_restarts_failures_and_accepts_success() -> None:
    world = small_world()
    world.cluster.create(pod("bad", image="fail:5s", restartPolicy="OnFailure"))
    world.cluster.create(pod("good", image="train:5s", restartPolicy="OnFailure"))
    live(world, 120)
    assert phase(world, "good") == "Succeeded"
    assert phase(world, "bad") == "Running"
    assert get_pod(world, "bad")["status"]["containerStatuses"][0]["restartCount"] >= 2


def test_init_containers_run_first_one_after_another() -> None:
    world = small_world()
    inits = [container("busybox", name="one"), container("train:20s", name="two")]
    world.cluster.create(pod(initContainers=inits))
    seen = set()
    for _ in range(600):
        live(world, 0.25)
        status = get_pod(world)["status"]
        kinds = [
            next(iter(item["state"]))
            for item in (
                *status.get("initContainerStatuses", ()),
                *status.get("containerStatuses", ()),
            )
        ]
        seen.add(tuple(kinds))
    assert ("terminated", "running", "waiting") in seen
    assert ("terminated", "terminated", "running") in seen
    assert not any(kinds[1:2] == ("running",) and kinds[0] != "terminated" for kinds in seen)
    assert phase(world) == "Running"


def test_an_image_that_may_not_be_pulled_is_waited_for_until_another_pod_brings_it() -> None:
    world = small_world(CPU_POOL)
    world.cluster.create(pod(containers=[container("train:1h", imagePullPolicy="Never")]))
    live(world, 5)
    waiting = get_pod(world)["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting == {
        "reason": "ErrImageNeverPull",
        "message": ('Container image "train:1h" is not present with pull policy of Never'),
    }
    assert reasons(world, "p") == ["Scheduled", "ErrImageNeverPull", "Failed"]
    world.cluster.create(pod("brings", image="train:1h"))
    live(world, 90)
    assert (phase(world), phase(world, "brings")) == ("Running", "Running")


def test_the_run_before_keeps_its_own_id() -> None:
    world = small_world()
    world.cluster.create(pod(image="crash:5s", restartPolicy="Always"))
    seen: set[tuple[str, str]] = set()
    for _ in range(240):
        live(world, 0.5)
        status = (get_pod(world)["status"].get("containerStatuses") or [{}])[0]
        ended = status.get("lastState", {}).get("terminated")
        if ended:
            seen.add(
                (
                    next(iter(status["state"])),
                    "same" if ended["containerID"] == status["containerID"] else "another",
                )
            )
    assert seen == {("waiting", "same"), ("running", "another")}


def test_a_failing_init_container_fails_a_pod_that_never_restarts() -> None:
    world = small_world()
    world.cluster.create(pod(initContainers=[container("fail:3s", name="setup")]))
    live(world, 120)
    assert phase(world) == "Failed"
    assert "waiting" in get_pod(world)["status"]["containerStatuses"][0]["state"]


def test_a_sidecar_runs_beside_and_does_not_hold_the_end_up() -> None:
    world = small_world()
    world.cluster.create(
        pod(
            image="train:30s",
            initContainers=[container("proxy:1", name="proxy", restartPolicy="Always")],
        )
    )
    live(world, 60)
    running = get_pod(world)["status"]
    assert "running" in running["initContainerStatuses"][0]["state"]
    live(world, 120)
    assert phase(world) == "Succeeded"


def test_an_image_that_cannot_be_pulled_waits_and_is_reported() -> None:
    world = small_world()
    world.cluster.create(pod(image="missing:1"))
    live(world, 120)
    waiting = get_pod(world)["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "ImagePullBackOff"
    assert "missing:1" in waiting["message"]
    assert phase(world) == "Pending"


def test_deletion_takes_a_moment_and_then_the_pod_is_gone() -> None:
    world = small_world()
    world.cluster.create(pod(gpus=1))
    live(world, 60)
    world.cluster.delete(PODS, NAMESPACE, "p")
    assert get_pod(world)["metadata"]["deletionGracePeriodSeconds"] == 30
    assert len(world.devices.free_cards("gpu-1")) == 3, "a terminating pod holds what it holds"
    live(world, 10)
    assert world.cluster.get(PODS, NAMESPACE, "p") is None
    assert len(world.devices.free_cards("gpu-1")) == 4
    assert "Killing" in reasons(world, "p")


def test_a_pod_deleted_while_it_is_being_created_goes_too() -> None:
    world = small_world()
    world.cluster.create(pod())
    live(world, 1)
    world.cluster.delete(PODS, NAMESPACE, "p")
    live(world, 40)
    assert world.cluster.get(PODS, NAMESPACE, "p") is None


def test_a_namesake_is_another_pod() -> None:
    world = small_world()
    world.cluster.create(pod(image="train:2m"))
    live(world, 60)
    world.cluster.delete(PODS, NAMESPACE, "p", grace_seconds=0)
    world.cluster.create(pod(image="pause:35"))
    live(world, 300)
    assert phase(world) == "Running"


def test_whole_cards_are_held_until_the_pod_is_finished() -> None:
    world = small_world()
    world.cluster.create(pod(image="train:3m", gpus=3))
    live(world, 60)
    sample = [device for device in world.devices.sample() if device.node == "gpu-1"]
    assert [[process.pod for process in device.processes] for device in sample] == [
        ["p"],
        ["p"],
        ["p"],
        [],
    ]
    assert {process.allocate_mode for device in sample for process in device.processes} == {
        "exclusive"
    }
    live(world, 200)
    assert phase(world) == "Succeeded"
    assert len(world.devices.free_cards("gpu-1")) == 4


def test_a_pod_put_on_a_full_node_by_hand_is_rejected() -> None:
    world = small_world()
    world.cluster.create(pod("first", gpus=4))
    live(world, 30)
    world.cluster.create(pod("second", gpus=1, nodeName="gpu-1"))
    live(world, 5)
    rejected = get_pod(world, "second")["status"]
    assert (rejected["phase"], rejected["reason"]) == ("Failed", "UnexpectedAdmissionError")
    assert "Requested: 1, Available: 0" in rejected["message"]
    assert "containerStatuses" not in rejected, "what was never tried is not being created"
    assert "Ready" not in states(get_pod(world, "second"))
    world.cluster.delete(PODS, NAMESPACE, "second")
    live(world, 5)
    assert world.cluster.get(PODS, NAMESPACE, "second") is None


@pytest.mark.parametrize(
    ("asks", "reason", "message"),
    [
        (
            {"cpu": "1000"},
            "OutOfcpu",
            "Node didn't have enough resource: cpu, requested: 1000000, used: 1000, capacity: ",
        ),
        (
            {"memory": "9Ti"},
            "OutOfmemory",
            (
                f"Node didn't have enough resource: memory, requested: {9 << 40}, used: {1 << 30}, "
                "capacity: "
            ),
        ),
    ],
)
def test_a_pod_put_by_hand_on_a_node_whose_sums_have_no_room_is_ended(
    asks: dict[str, str], reason: str, message: str
) -> None:
    """`lifecycle/predicate.go` of the kubelet; the messages of the pod and of the event are those
    of `rejectPod`.
    """
    world = small_world()
    world.cluster.create(pod("first", nodeName="cpu-1"))
    live(world, 30)
    assert phase(world, "first") == "Running"
    resources = {"requests": asks, "limits": asks}
    world.cluster.create(
        pod(
            "second",
            nodeName="cpu-1",
            containers=[{"name": "main", "image": "pause:35", "resources": resources}],
        )
    )
    live(world, 5)
    status = get_pod(world, "second")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", reason)
    assert status["message"].startswith(f"Pod was rejected: {message}")
    (event,) = (each for each in world.cluster.list(EVENTS) if each["reason"] == reason)
    assert event["message"].startswith(message)


def test_a_pod_put_by_hand_on_a_node_of_other_labels_is_ended() -> None:
    """`AdmissionCheck` of kube-scheduler, which the kubelet calls; `tests/kubelet/test_twins.py`
    compares the real one.
    """
    world = small_world()
    world.cluster.create(pod("first", nodeName="cpu-1", nodeSelector={"disk": "ssd"}))
    live(world, 5)
    status = get_pod(world, "first")["status"]
    why = (
        "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node "
        "affinity/selector"
    )
    assert (status["phase"], status["reason"], status["message"]) == ("Failed", "NodeAffinity", why)


def test_a_pod_that_is_gone_makes_room_for_one_placed_by_hand() -> None:
    world = small_world()
    half = {"requests": {"cpu": "9"}, "limits": {"cpu": "9"}}
    spec = {
        "nodeName": "cpu-1",
        "containers": [{"name": "main", "image": "pause:35", "resources": half}],
    }
    world.cluster.create(pod("first", **spec))
    live(world, 5)
    world.cluster.create(pod("second", **spec))
    live(world, 5)
    assert (phase(world, "first"), get_pod(world, "second")["status"].get("reason")) == (
        "Running",
        "OutOfcpu",
    )
    world.cluster.delete(PODS, NAMESPACE, "first")
    live(world, 60)
    world.cluster.create(pod("third", **spec))
    live(world, 10)
    assert phase(world, "third") == "Running"


def test_kubectl_shows_why_a_pod_was_rejected() -> None:
    world = small_world()
    world.cluster.create(pod("first", gpus=4))
    live(world, 30)
    world.cluster.create(
        pod("second", gpus=1, nodeName="gpu-1", initContainers=[container("init:1", name="init")])
    )
    live(world, 5)
    assert pod_status(get_pod(world, "second"))[0] == "UnexpectedAdmissionError"


def test_a_grant_that_is_too_small_kills_the_program_that_wants_more() -> None:
    world = small_world()
    world.cluster.create(pod("fits", image="cuda-malloc:3G", gpu_memory=4))
    world.cluster.create(pod("greedy", image="cuda-malloc:6G", gpu_memory=4))
    live(world, 90)
    used = {
        process.pod: process.memory_used_bytes >> 20
        for device in world.devices.sample()
        for process in device.processes
    }
    assert phase(world, "fits") == "Running"
    assert used["fits"] == 3193
    assert phase(world, "greedy") == "Failed"


def test_a_node_without_a_kubelet_starts_nothing() -> None:
    world = small_world(NodePool(name="dead", ready=False, gpus=2, gpu_model="Tesla T4"), CPU_POOL)
    world.cluster.create(pod(nodeName="dead-1"))
    live(world, 60)
    assert phase(world) == "Pending"
    assert "podIP" not in get_pod(world)["status"]
    dead = world.cluster.get(NODES, None, "dead-1")
    assert dead is not None
    assert condition(dead, "Ready")["status"] == "Unknown"
    assert world.devices.sample() == []


@pytest.mark.parametrize(
    "spec",
    [
        {"overhead": {"memory": "much"}},
        {"nodeSelector": {"a": 1}},
        {"tolerations": [{"key": 7}]},
    ],
)
def test_a_pod_that_cannot_be_read_waits_with_a_sentence_and_stops_no_other(
    spec: dict[str, object],
) -> None:
    world = small_world()
    broken = pod("broken")
    broken["spec"] |= spec
    assert unreadable(broken)
    world.cluster.create(broken)
    world.cluster.create(pod("fine"))
    live(world, 60)
    assert "spec cannot be read" in condition(get_pod(world, "broken"), "PodScheduled")["message"]
    assert phase(world, "fine") == "Running"


def test_a_sidecar_that_crashes_is_started_again_and_ends_no_pod() -> None:
    world = small_world()
    first = {**container("crash:20s", name="beside"), "restartPolicy": "Always"}
    world.cluster.create(pod("p", "train:10m", restartPolicy="Never", initContainers=[first]))
    live(world, 300)
    found = get_pod(world)
    assert phase(world) == "Running"
    assert states(found)["Initialized"] == "True"
    assert found["status"]["initContainerStatuses"][0]["restartCount"] > 0
    live(world, 600)
    assert phase(world) == "Succeeded"
