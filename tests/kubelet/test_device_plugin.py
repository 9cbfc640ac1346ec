"""A resource of Fairlead's on a real kubelet: its node shows it, containers receive it, refusals
have readable messages, and it survives a restart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.kubectl import KubectlError
from tests.kube.kubelet import NODE
from tests.kube.node_images import BUSYBOX
from tests.kube.node_room import end_one
from tests.kubelet.plugins import (
    IDS,
    REFUSAL,
    REFUSED_UNITS,
    RESOURCE,
    SimpleAnswers,
    running_plugin,
)
from tests.waiting import wait_until

from fairlead.edge.kubelet.device_plugin import DevicePlugin
from fairlead.model.devices.kubelet import HeldDevices

pytestmark = pytest.mark.turns(2, 1)

Object = dict[str, Any]
SECONDS = 60.0
SHOWS = (
    'echo "parts $PARTS"; cat /etc/parts; test -c /dev/fuse && echo device; echo over > '
    "/etc/parts || echo read-only"
)


@pytest.fixture(scope="module")
def served(node: ControlPlane) -> Iterator[tuple[DevicePlugin, SimpleAnswers]]:
    with running_plugin(node) as plugin:
        wait_until("the node shows the resource", lambda: shown(node) == ("9", "8"), SECONDS)
        yield plugin
        node.admin.run(
            "delete",
            "pods",
            "holder",
            "refused",
            "closed",
            "keeper",
            "-n",
            "default",
            "--ignore-not-found",
            "--grace-period=0",
            "--force",
        )


@pytest.fixture
def answers(served: tuple[DevicePlugin, SimpleAnswers]) -> SimpleAnswers:
    return served[1]


@pytest.fixture(scope="module")
def holder(node: ControlPlane, served: tuple[DevicePlugin, SimpleAnswers]) -> Object:
    """A running pod whose init container had two of the ids, and whose app has two."""
    node.admin.create(
        [
            pod(
                "holder",
                container("app", 2, SHOWS + "; sleep 1000000"),
                init=container("prepare", 2, SHOWS),
            )
        ]
    )
    wait_until(
        "holder runs", lambda: one(node, "holder")["status"].get("phase") == "Running", SECONDS
    )
    return one(node, "holder")


def test_a_container_has_what_was_answered_at_once_and_both_lists_name_it(
    node: ControlPlane, answers: SimpleAnswers, holder: Object
) -> None:
    (init_ids, reported_at_init, noted_at_init), (app_ids, reported_at_start, noted_at_start) = (
        answers.starts
    )
    assert len(init_ids) == len(app_ids) == 2 and {*init_ids, *app_ids} <= set(IDS[:8])
    for name, ids in (("prepare", init_ids), ("app", app_ids)):
        wait_until(
            f"{name} has printed all", lambda name=name: "read-only" in log(node, name), SECONDS
        )
        lines = [line for line in log(node, name).splitlines() if "can't create" not in line]
        assert lines == [f"parts {','.join(ids)}", "of a card", "device", "read-only"]
    uid = holder["metadata"]["uid"]
    in_app = HeldDevices(RESOURCE, app_ids, "app", "default", "holder")
    assert reported_at_init == reported_at_start == (in_app,)
    noted = {
        HeldDevices(RESOURCE, init_ids, "prepare", pod_uid=uid),
        HeldDevices(RESOURCE, app_ids, "app", pod_uid=uid),
    }
    assert set(noted_at_init) == set(noted_at_start) == noted


def test_a_refused_allocation_ends_the_pod_with_our_words(
    node: ControlPlane, answers: SimpleAnswers
) -> None:
    node.admin.create([pod("refused", container("app", REFUSED_UNITS, "true"))])
    wait_until(
        "refused has failed",
        lambda: one(node, "refused")["status"].get("phase") == "Failed",
        SECONDS,
    )
    status = one(node, "refused")["status"]
    assert status["reason"] == "UnexpectedAdmissionError"
    assert f"code = FailedPrecondition desc = {REFUSAL.reason}" in status["message"]


def test_a_refused_start_is_reported_and_tried_again(
    node: ControlPlane, answers: SimpleAnswers
) -> None:
    answers.is_closed = True
    node.admin.create([pod("closed", container("app", 1, "sleep 1000000"))])
    wait_until(
        "an event has our words",
        lambda: "GPU GPU-1 is Unhealthy (XID 79)" in events(node, "closed"),
        SECONDS,
    )
    assert one(node, "closed")["status"]["phase"] == "Pending"
    answers.is_closed = False
    wait_until(
        "closed runs", lambda: one(node, "closed")["status"].get("phase") == "Running", SECONDS
    )


def test_a_kubelet_that_starts_anew_gets_the_resource_again_and_leaves_the_container(
    node: ControlPlane, kubelet: Component, served: tuple[DevicePlugin, SimpleAnswers]
) -> None:
    """The pod has no init containers: if one of them had devices, a kubelet that admits the pod
    again before the plugin is back would end it.
    """
    plugin, answers = served
    node.admin.run(
        "delete",
        "pods",
        "holder",
        "closed",
        "-n",
        "default",
        "--ignore-not-found",
        "--grace-period=0",
        "--force",
    )
    node.admin.create([pod("keeper", container("app", 2, "echo started; sleep 1000000"))])
    wait_until(
        "keeper runs", lambda: one(node, "keeper")["status"].get("phase") == "Running", SECONDS
    )
    wait_until("and has printed it", lambda: "started" in log(node, "app", "keeper"), SECONDS)
    before, same = answers.times_registered, lives(node, "keeper")
    end_one(kubelet)
    wait_until("no client watches", lambda: not plugin.is_watched, SECONDS)
    kubelet.start()
    wait_until(
        "it is registered again",
        lambda: answers.times_registered == before + 1 and plugin.is_watched,
        SECONDS,
    )
    wait_until("the node shows it again", lambda: shown(node) == ("9", "8"), SECONDS)
    assert lives(node, "keeper") == same
    wait_until(
        "its log is served again", lambda: "started" in log_if_served(node, "keeper"), SECONDS
    )
    assert log(node, "app", "keeper").count("started") == 1


def lives(node: ControlPlane, name: str) -> list[tuple[str, int, Object]]:
    """For each container: its id, its number of restarts, and its state with the time of it."""
    return [
        (each["containerID"], each["restartCount"], each["state"])
        for each in one(node, name)["status"]["containerStatuses"]
    ]


def shown(node: ControlPlane) -> tuple[str | None, str | None]:
    (status,) = [
        each["status"] for each in node.admin.get("nodes") if each["metadata"]["name"] == NODE
    ]
    ready = {each["type"]: each["status"] for each in status["conditions"]}["Ready"] == "True"
    return (
        (status["capacity"].get(RESOURCE), status["allocatable"].get(RESOURCE))
        if ready
        else (None, None)
    )


def container(name: str, units: int, program: str) -> Object:
    resources = {"limits": {RESOURCE: str(units)}}
    return {
        "name": name,
        "image": BUSYBOX,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", program],
        "resources": resources,
    }


def pod(name: str, app: Object, init: Object | None = None) -> Object:
    spec = {
        "nodeName": NODE,
        "containers": [app],
        "initContainers": [init] if init else [],
        "terminationGracePeriodSeconds": 0,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def one(node: ControlPlane, name: str) -> Object:
    (found,) = node.admin.get("pods", "-n", "default", f"--field-selector=metadata.name={name}")
    return found


def log(node: ControlPlane, name: str, of: str = "holder") -> str:
    return node.admin.run("-n", "default", "logs", of, "-c", name)


def log_if_served(node: ControlPlane, name: str) -> str:
    """The log, or nothing: a kubelet that has just started answers 404 for a moment, though its
    node is Ready.
    """
    try:
        return log(node, "app", name)
    except KubectlError:
        return ""


def events(node: ControlPlane, name: str) -> str:
    return "".join(
        each["message"]
        for each in node.admin.get(
            "events", "-n", "default", f"--field-selector=involvedObject.name={name}"
        )
    )
