"""The words that users read while a pod lives, in `kubectl get pods`, the status and the events,
are those of a real kubelet.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from tests.sim.small_world import (
    NAMESPACE,
    condition,
    container,
    get_pod,
    live,
    phase,
    pod,
    small_world,
)

from fairlead.wire.kube.time import parse_time
from fairlead_sim.objects.resources import EVENTS
from fairlead_sim.tables.pod import pod_status
from fairlead_sim.world.world import World


def words(world: World, seconds: float, step: float = 0.2) -> list[str]:
    """The STATUS words that a user sees one after the other while the world runs."""
    seen: list[str] = []
    for _ in range(int(seconds / step)):
        live(world, step)
        found = world.cluster.list(
            world.cluster.kind_of({"apiVersion": "v1", "kind": "Pod"}), NAMESPACE
        )
        word = pod_status(found[0])[0] if found else "gone"
        if not seen or seen[-1] != word:
            seen.append(word)
    return seen


def messages(world: World, reason: str) -> set[str]:
    return {
        event["message"]
        for event in world.cluster.list(EVENTS, NAMESPACE)
        if event["reason"] == reason
    }


def world_with(spec: dict[str, Any]) -> World:
    world = small_world()
    world.cluster.create({**pod(), "spec": {**pod()["spec"], **spec}})
    return world


def test_the_words_of_a_plain_life() -> None:
    assert words(world_with({"containers": [container("train:20s")]}), 120) == [
        "Pending",
        "ContainerCreating",
        "Running",
        "Completed",
    ]


def test_the_words_of_a_crash_loop() -> None:
    world = world_with({"restartPolicy": "Always", "containers": [container("fail:3s")]})
    seen = words(world, 150)
    assert seen[:3] == ["Pending", "ContainerCreating", "Running"]
    assert seen[3:7] == ["Error", "Running", "CrashLoopBackOff", "Running"]


def test_the_pauses_of_a_crash_loop_are_0_10_20_40_80_160_300() -> None:
    world = world_with({"restartPolicy": "Always", "containers": [container("fail:1s")]})
    ends, reported = [], []
    for _ in range(1500):
        live(world, 1)
        status = (get_pod(world)["status"].get("containerStatuses") or [{}])[0]
        last = (status.get("lastState") or {}).get("terminated")
        if last and last["finishedAt"] not in ends:
            ends.append(last["finishedAt"])
        message = (status.get("state") or {}).get("waiting", {}).get("message", "")
        if message.startswith("back-off") and message.split()[1] not in reported:
            reported.append(message.split()[1])
    assert reported == ["10s", "20s", "40s", "1m20s", "2m40s", "5m0s"]
    between = [parse_time(after) - parse_time(before) for before, after in pairwise(ends)]
    assert [round(pause - 1, -1) for pause in between[:6]] == [0, 10, 20, 40, 80, 160]


def test_what_is_written_about_a_crash_loop() -> None:
    world = world_with({"restartPolicy": "Always", "containers": [container("fail:1s")]})
    live(world, 60)
    uid = get_pod(world)["metadata"]["uid"]
    waiting = get_pod(world)["status"]["containerStatuses"][0]["state"]["waiting"]
    assert waiting["reason"] == "CrashLoopBackOff"
    assert waiting["message"].endswith(f"restarting failed container=main pod=p_work({uid})")
    assert messages(world, "BackOff") == {
        f"Back-off restarting failed container main in pod p_work({uid})"
    }
    assert condition(get_pod(world), "Ready")["message"] == "containers with unready status: [main]"


def test_a_container_that_ends_well_is_started_again_too_where_that_is_the_policy() -> None:
    world = world_with({"restartPolicy": "Always", "containers": [container("train:2s")]})
    live(world, 60)
    assert pod_status(get_pod(world))[0] in ("CrashLoopBackOff", "Completed", "Running")
    assert get_pod(world)["status"]["containerStatuses"][0]["restartCount"] >= 2


def test_the_words_of_init_containers() -> None:
    inits = [container("train:10s", name="one"), container("train:10s", name="two")]
    world = world_with({"initContainers": inits, "containers": [container("pause:35")]})
    assert words(world, 150) == ["Pending", "Init:0/2", "Init:1/2", "PodInitializing", "Running"]


def test_the_words_of_an_init_container_that_fails() -> None:
    world = world_with(
        {"restartPolicy": "Always", "initContainers": [container("fail:2s", name="one")]}
    )
    seen = words(world, 120)
    assert seen[:2] == ["Pending", "Init:0/1"]
    assert {"Init:Error", "Init:CrashLoopBackOff"} <= set(seen)
    assert phase(world) == "Pending"
    state = condition(get_pod(world), "Initialized")
    assert (state["reason"], state["message"]) == (
        "ContainersNotInitialized",
        "containers with incomplete status: [one]",
    )


def test_an_init_container_that_fails_once_and_for_all() -> None:
    world = world_with(
        {"restartPolicy": "Never", "initContainers": [container("fail:2s", name="one")]}
    )
    live(world, 90)
    assert (pod_status(get_pod(world))[0], phase(world)) == ("Init:Error", "Failed")


def test_a_sidecar_counts_among_the_ready() -> None:
    sidecar = container("proxy:1", name="proxy", restartPolicy="Always")
    world = world_with(
        {
            "restartPolicy": "Never",
            "initContainers": [sidecar],
            "containers": [container("train:1m")],
        }
    )
    live(world, 80)
    assert pod_status(get_pod(world))[:3] == ("Running", 2, 0)
    live(world, 90)
    assert phase(world) == "Succeeded", "a sidecar does not hold its pod"


@pytest.mark.parametrize("policy", ["Never", "OnFailure", "Always"])
def test_a_sidecar_is_started_again_whatever_the_policy(policy: str) -> None:
    sidecar = container("crash:5s", name="proxy", restartPolicy="Always")
    world = world_with(
        {
            "restartPolicy": policy,
            "initContainers": [sidecar],
            "containers": [container("pause:35")],
        }
    )
    live(world, 120)
    assert phase(world) == "Running"
    assert get_pod(world)["status"]["initContainerStatuses"][0]["restartCount"] >= 2


def test_the_words_of_an_image_that_is_absent() -> None:
    world = world_with({"containers": [container("missing:1")]})
    seen = words(world, 60)
    assert seen[:4] == ["Pending", "ContainerCreating", "ErrImagePull", "ImagePullBackOff"]
    assert 'Back-off pulling image "missing:1"' in messages(world, "BackOff")
    assert {"Error: ErrImagePull", "Error: ImagePullBackOff"} <= messages(world, "Failed")


def test_an_image_that_is_there_is_not_pulled_again() -> None:
    world = world_with({"restartPolicy": "Always", "containers": [container("fail:1s")]})
    live(world, 30)
    assert (
        'Container image "fail:1s" already present on machine and can be accessed by the pod'
    ) in messages(world, "Pulled")
    assert (messages(world, "Created"), messages(world, "Started")) == (
        {"Container created"},
        {"Container started"},
    )


def test_the_grace_of_a_pod_is_an_upper_bound() -> None:
    world = world_with({"terminationGracePeriodSeconds": 1, "containers": [container("pause:35")]})
    live(world, 60)
    world.cluster.delete(world.cluster.kind_of({"apiVersion": "v1", "kind": "Pod"}), NAMESPACE, "p")
    assert words(world, 2) in (["Terminating", "gone"], ["gone"])
    assert messages(world, "Killing") == {"Stopping container main"}


def test_probes_are_taken_and_never_asked() -> None:
    probe = {"httpGet": {"path": "/", "port": 80}, "periodSeconds": 1, "failureThreshold": 1}
    world = world_with(
        {
            "containers": [
                container("pause:35", livenessProbe=probe, readinessProbe=probe, startupProbe=probe)
            ]
        }
    )
    live(world, 90)
    assert pod_status(get_pod(world))[:3] == ("Running", 1, 0)


@pytest.mark.parametrize(
    ("image", "fault"),
    [
        ("bad image", "invalid reference format"),
        ("Upper", "invalid reference format: repository name (library/Upper) must be lowercase"),
        ("x@sha256:12", "invalid reference format"),
        ("x:", "invalid reference format"),
    ],
)
def test_the_words_of_a_name_that_no_image_can_have(image: str, fault: str) -> None:
    world = world_with({"containers": [container(image)]})
    assert words(world, 30) == ["Pending", "InvalidImageName"]
    message = (
        f'Failed to apply default image tag "{image}": couldn\'t parse image name "{image}": '
        f"{fault}"
    )
    assert get_pod(world)["status"]["containerStatuses"][0]["state"]["waiting"] == {
        "reason": "InvalidImageName",
        "message": message,
    }
    assert messages(world, "InspectFailed") == {message}
    assert "Error: InvalidImageName" in messages(world, "Failed")
