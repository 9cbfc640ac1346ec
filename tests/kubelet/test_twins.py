"""Does a simulated kubelet report the same about a pod as a real one? The same pods on both:
status, conditions, events, word for word.

What only one of them can know is left out: times, ids, the counts of events, and how often a
container has restarted in the meantime.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane
from tests.kube.kubelet import NODE
from tests.kube.node_images import SIMULATED
from tests.kubelet.jobs import SECONDS
from tests.kubelet.plain_pods import SIMULATED_NODE, Object, container, manifest
from tests.sim.small_world import CPU_POOL, NAMESPACE, live, small_world
from tests.waiting import wait_until

from fairlead_sim.objects.resources import EVENTS, PODS
from fairlead_sim.world.world import World

pytestmark = pytest.mark.turns(2, 1)

ENDS, FAILS, CRASHES, RUNS = SIMULATED
EVENT_SECONDS = 30.0


def asking(**amounts: str) -> Object:
    return {"requests": amounts, "limits": amounts}


def finished(pod: Object) -> bool:
    return bool(pod.get("status", {}).get("phase") in ("Succeeded", "Failed"))


def running(name: str) -> Callable[[Object], bool]:
    return lambda pod: any(
        "running" in each["state"] for each in statuses(pod) if each["name"] == name
    )


def waits(words: str) -> Callable[[Object], bool]:
    def does(pod: Object) -> bool:
        return any(
            words in " ".join(each["state"].get("waiting", {}).values()) for each in statuses(pod)
        )

    return does


def statuses(pod: Object) -> list[Object]:
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]


CASES: dict[str, tuple[Object, Callable[[Object], bool]]] = {
    "ends": ({"restartPolicy": "Never", "containers": [container(ENDS)]}, finished),
    "fails": ({"restartPolicy": "Never", "containers": [container(FAILS)]}, finished),
    "runs": ({"containers": [container(RUNS)]}, running("main")),
    "crashes": ({"containers": [container(CRASHES)]}, waits("back-off 10s")),
    "initializes": (
        {
            "initContainers": [container(RUNS, "one"), container(RUNS, "two")],
            "containers": [container(RUNS)],
        },
        running("one"),
    ),
    "init-fails": (
        {
            "restartPolicy": "Never",
            "initContainers": [container(FAILS, "setup")],
            "containers": [container(RUNS)],
        },
        finished,
    ),
    "init-crashes": (
        {"initContainers": [container(CRASHES, "setup")], "containers": [container(RUNS)]},
        waits("back-off 10s"),
    ),
    "beside": (
        {
            "restartPolicy": "Never",
            "initContainers": [container(RUNS, "side", restartPolicy="Always")],
            "containers": [container(ENDS)],
        },
        finished,
    ),
    "two-of-which-one-ends": (
        {"restartPolicy": "Never", "containers": [container(ENDS), container(RUNS, "other")]},
        lambda pod: any("terminated" in each["state"] for each in statuses(pod)),
    ),
    "too-much-cpu": (
        {"nodeName": "NODE", "containers": [container(RUNS, resources=asking(cpu="1000"))]},
        finished,
    ),
    "too-much-memory": (
        {"nodeName": "NODE", "containers": [container(RUNS, resources=asking(memory="100Ti"))]},
        finished,
    ),
    "other-labels": (
        {"nodeName": "NODE", "nodeSelector": {"disk": "none"}, "containers": [container(RUNS)]},
        finished,
    ),
    "image-never-pulled": (
        {"containers": [container("fairlead.test/missing:1", imagePullPolicy="Never")]},
        waits("ErrImageNeverPull"),
    ),
}


@pytest.fixture(scope="module")
def simulated() -> World:
    """A simulated world of one node that has the images."""
    world = small_world(CPU_POOL)
    for number, image in enumerate(SIMULATED):
        world.cluster.create(
            manifest(
                f"pulls-{number}", NAMESPACE, {"containers": [container(image)]}, SIMULATED_NODE
            )
        )
    live(world, 300)
    return world


@pytest.mark.parametrize("name", CASES)
def test_both_kubelets_agree(node: ControlPlane, simulated: World, name: str) -> None:
    spec, is_settled = CASES[name]
    reported = simulated_twin(simulated, name, spec, is_settled)
    assert reported == real_twin(node, name, spec, is_settled, reported["events"])


def real_twin(
    node: ControlPlane,
    name: str,
    spec: Object,
    is_settled: Callable[[Object], bool],
    expected: set[Any],
) -> Object:
    admin, found = node.admin, [{}]
    admin.create([manifest(name, "default", spec, NODE)])

    def is_there() -> bool:
        found[:] = admin.get("pods", "-n", "default", f"--field-selector=metadata.name={name}")
        return is_settled(found[0])

    def events() -> list[Object]:
        return admin.get(
            "events",
            "-n",
            "default",
            f"--field-selector=involvedObject.uid={found[0]['metadata']['uid']}",
        )

    wait_until(f"{name} has settled on the real node", is_there, SECONDS, pause_seconds=0.1)
    # the kubelet sends its events a little after the status; a missing event is shown as a
    # difference
    with suppress(TimeoutError):
        wait_until(
            "the events are there",
            lambda: twin(found[0], events())["events"] == expected,
            EVENT_SECONDS,
        )
    return twin(found[0], events())


def simulated_twin(
    world: World, name: str, spec: Object, is_settled: Callable[[Object], bool]
) -> Object:
    world.cluster.create(manifest(name, NAMESPACE, spec, SIMULATED_NODE))
    pod: Object = {}
    for _ in range(1200):
        live(world, 0.1)
        pod = world.cluster.get(PODS, NAMESPACE, name) or {}
        if is_settled(pod):
            break
    assert is_settled(pod), pod
    uid = pod["metadata"]["uid"]
    return twin(
        pod,
        [
            each
            for each in world.cluster.list(EVENTS, NAMESPACE)
            if each["involvedObject"]["uid"] == uid
        ],
    )


def twin(pod: Object, events: list[Object]) -> Object:
    status = pod["status"]
    return {
        "phase": status["phase"],
        "reason": status.get("reason"),
        "message": plain(status.get("message", ""), pod),
        "has address": bool(status.get("podIP")),
        "conditions": {
            each["type"]: (each["status"], each.get("reason"), each.get("message"))
            for each in status.get("conditions", ())
        },
        "containers": {each["name"]: container_twin(each, pod) for each in statuses(pod)},
        "events": {(each["type"], each["reason"], plain(each["message"], pod)) for each in events},
    }


def container_twin(status: Object, pod: Object) -> Object:
    """The status of a container, and the keys of its state and its last state."""
    kept = {key: status[key] for key in ("image", "ready", "started")}
    for which in ("state", "lastState"):
        for state, reported in status[which].items():
            kept[which] = (
                state,
                reported.get("reason"),
                plain(reported.get("message", ""), pod),
                reported.get("exitCode"),
                sorted(reported),
            )
    return kept


def plain(text: str, pod: Object) -> str:
    metadata = pod["metadata"]
    for words, name in (
        (metadata["uid"], "UID"),
        (f"_{metadata['namespace']}(", "_NAMESPACE("),
        (f"{metadata['namespace']}/", "NAMESPACE/"),
    ):
        text = text.replace(words, name)
    text = re.sub(r"used: \d+, capacity: \d+", "used: N, capacity: N", text)  # on two nodes
    return text.replace(pod["spec"]["nodeName"], "NODE")
