"""When containers end whose image has no known behaviour: their command decides, or they end after
a while; and which containers keep running.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.sim.small_world import NAMESPACE, get_pod, live, phase, pod, pods, small_world
from tests.sim.world.copies import copy_of

from fairlead.wire.kube.time import parse_time
from fairlead_sim.kubelet.behaviour import LONG_SECONDS, SHORT_SECONDS
from fairlead_sim.objects.resources import CRON_JOBS, JOBS, PODS
from fairlead_sim.world.world import World

Object = dict[str, Any]


def container(image: str = "busybox", **more: Any) -> Object:
    return {"name": "main", "image": image, **more}


def one(image: str = "busybox", policy: str = "Never", **more: Any) -> Object:
    return pod(restartPolicy=policy, containers=[container(image, **more)])


def job(image: str, **more: Any) -> Object:
    template = {"spec": {"restartPolicy": "Never", "containers": [container(image, **more)]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "hello", "namespace": NAMESPACE},
        "spec": {"template": template},
    }


def ended(world: World) -> Object:
    state: Object = get_pod(world)["status"]["containerStatuses"][0]["state"]
    assert "terminated" in state, state
    return dict(state["terminated"])


def ran_seconds(state: Object) -> float:
    return parse_time(state["finishedAt"]) - parse_time(state["startedAt"])


def lines(world: World, name: str = "p") -> list[str]:
    return [text for _, text in world.logs.lines(NAMESPACE, name, "main", False) or ()]


@pytest.mark.parametrize(
    ("words", "exit_code", "seconds", "printed"),
    [
        ({"args": ["echo", "hi"]}, 0, 0, ["hi"]),
        ({"args": ["true"]}, 0, 0, []),
        ({"args": ["false"]}, 1, 0, []),
        ({"args": ["sleep", "20"]}, 0, 20, []),
        ({"args": ["exit", "4"]}, 4, 0, []),
        ({"command": ["/bin/sh", "-c", "echo hi; sleep 5; exit 3"]}, 3, 5, ["hi"]),
        ({"command": ["bash", "-c"], "args": ["sleep 7 && echo late"]}, 0, 7, ["late"]),
        (
            {
                "command": ["echo"],
                "args": ["$(WHO) there"],
                "env": [{"name": "WHO", "value": "you"}],
            },
            0,
            0,
            ["you there"],
        ),
    ],
)
def test_a_command_that_is_understood_ends_with_its_own_status(
    words: Object, exit_code: int, seconds: float, printed: list[str]
) -> None:
    world = small_world()
    world.cluster.create(one(**words))
    live(world, 90)
    state = ended(world)
    assert phase(world) == ("Failed" if exit_code else "Succeeded")
    assert state["exitCode"] == exit_code
    assert abs(ran_seconds(state) - seconds) <= 1, "the API writes whole seconds"
    assert lines(world) == printed


@pytest.mark.parametrize("policy", ["Never", "OnFailure"])
def test_what_is_not_understood_succeeds_after_a_while(policy: str) -> None:
    world = small_world()
    world.cluster.create(
        one("perl:5.34", policy, command=["perl", "-Mbignum=bpi", "-wle", "print bpi(2000)"])
    )
    live(world, 90)
    assert phase(world) == "Succeeded"
    assert SHORT_SECONDS[0] - 1 <= ran_seconds(ended(world)) <= SHORT_SECONDS[1] + 1


def test_how_long_follows_from_names_and_seed() -> None:
    def seconds(name: str, seed: int = 1) -> float:
        world = small_world(seed=seed)
        made = pod(name, image="busybox")
        world.cluster.create(made)
        live(world, 90)
        state = get_pod(world, name)["status"]["containerStatuses"][0]["state"]["terminated"]
        return ran_seconds(state)

    assert seconds("p") == seconds("p")
    assert len({seconds(f"p-{number}") for number in range(6)}) > 1
    assert len({seconds("p", seed) for seed in range(6)}) > 1


def test_what_trains_takes_longer() -> None:
    world = small_world()
    world.cluster.create(pod(image="pytorch/pytorch:2.6", gpus=1))
    live(world, LONG_SECONDS[0])
    assert phase(world) == "Running"
    live(world, LONG_SECONDS[1])
    assert LONG_SECONDS[0] - 1 <= ran_seconds(ended(world)) <= LONG_SECONDS[1] + 1


def test_a_job_of_a_tutorial_completes_and_a_cron_job_strikes_again() -> None:
    world = small_world()
    words = {"command": ["/bin/sh", "-c", "date; echo Hello from the Kubernetes cluster"]}
    spec = {"schedule": "* * * * *", "jobTemplate": {"spec": job("busybox:1.28", **words)["spec"]}}
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "tick", "namespace": NAMESPACE},
        "spec": spec,
    }
    world.cluster.create(job("busybox", args=["echo", "hi"]))
    world.cluster.create(cron)
    live(world, 230)
    hello = world.cluster.get(JOBS, NAMESPACE, "hello")
    assert hello is not None
    assert hello["status"]["succeeded"] == 1
    struck = world.cluster.get(CRON_JOBS, NAMESPACE, "tick")
    assert struck is not None
    assert struck["status"].get("lastSuccessfulTime")
    ticks = [
        found["metadata"]["name"]
        for found in pods(world)
        if found["metadata"]["name"].startswith("tick-")
    ]
    reported = [lines(world, name) for name in ticks]
    assert all(
        len(each) == 2
        and each[0].endswith("UTC 2026")
        and each[1] == "Hello from the Kubernetes cluster"
        for each in reported
    ), reported
    assert len(ticks) >= 2


def test_a_container_that_always_restarts_runs_on_unless_its_command_ends() -> None:
    world = small_world()
    world.cluster.create(
        {**one(policy="Always"), "metadata": {"name": "p", "namespace": NAMESPACE}}
    )
    world.cluster.create(
        {
            **one(policy="Always", args=["sleep", "5"]),
            "metadata": {"name": "short", "namespace": NAMESPACE},
        }
    )
    live(world, 120)
    assert get_pod(world)["status"]["containerStatuses"][0]["restartCount"] == 0
    again = get_pod(world, "short")["status"]["containerStatuses"][0]
    assert again["restartCount"] >= 2
    assert again["lastState"]["terminated"]["exitCode"] == 0
    assert again["lastState"]["terminated"]["reason"] == "Completed"


@pytest.mark.parametrize(
    "more",
    [
        {"image": "nginx"},
        {"image": "registry.k8s.io/pause:3.10"},
        {"image": "hub/redis:7", "args": ["--save", ""]},
        {"args": ["sleep", "infinity"]},
        {"command": ["sh", "-c", "i=0; while true; do echo $i; i=$((i+1)); sleep 1; done"]},
        {"image": "mpi", "command": ["/usr/sbin/sshd", "-De"]},
    ],
)
def test_a_server_and_what_waits_for_ever_run_on(more: Object) -> None:
    world = small_world()
    world.cluster.create(one(**more))
    live(world, 4000)
    assert phase(world) == "Running"


def test_an_image_with_an_end_of_its_own_ends_that_way() -> None:
    world = small_world()
    world.cluster.create(one("train:1m", command=["sh", "-c", "sleep 5; exit 1"]))
    live(world, 200)
    assert (ended(world)["exitCode"], ran_seconds(ended(world))) == (0, 60)


def test_init_containers_and_sidecars_follow_their_annotations_too() -> None:
    world = small_world()
    inits = [
        {"name": "wait", "image": "busybox", "command": ["sleep", "15"]},
        {
            "name": "until",
            "image": "busybox",
            "command": ["sh", "-c", "until nslookup db; do sleep 2; done"],
        },
        {
            "name": "log",
            "image": "busybox",
            "restartPolicy": "Always",
            "command": ["tail", "-f", "/var/log/x"],
        },
    ]
    world.cluster.create(pod(initContainers=inits, containers=[container(args=["sleep", "30"])]))
    live(world, 200)
    reported = {
        each["name"]: each["state"] for each in get_pod(world)["status"]["initContainerStatuses"]
    }
    assert ran_seconds(reported["wait"]["terminated"]) == 15
    assert ran_seconds(reported["until"]["terminated"]) == 3
    assert phase(world) == "Succeeded", "a sidecar keeps no pod"


def test_an_init_container_that_fails_fails_its_pod() -> None:
    world = small_world()
    inits = [{"name": "check", "image": "busybox", "command": ["sh", "-c", "echo no; exit 1"]}]
    world.cluster.create(pod(initContainers=inits))
    live(world, 200)
    assert phase(world) == "Failed"


def test_in_a_copy_of_another_cluster_what_is_not_scripted_goes_on() -> None:
    """The copy has no commands of the other cluster, so what its programs do is unknown."""
    world = small_world()
    world.cluster.create(job("batch/report:7"))
    live(world, 20)
    (before,) = pods(world)
    assert before["status"]["phase"] in ("Pending", "Running")
    copied = copy_of(world)
    live(copied, 7200)
    assert [found["status"]["phase"] for found in pods(copied)] == ["Running"]
    (again,) = pods(copied)
    copied.cluster.delete(PODS, NAMESPACE, again["metadata"]["name"])
    live(copied, 7200)
    assert [
        found["status"]["phase"]
        for found in pods(copied)
        if found["metadata"]["uid"] != again["metadata"]["uid"]
    ] == ["Running"]
