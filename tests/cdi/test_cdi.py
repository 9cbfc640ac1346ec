"""In deferred mode the plugin gives the kubelet only a name; what the container gets is in a file
that is written when the container starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.kube.control_plane import ControlPlane
from tests.kube.kubelet import NODE
from tests.kube.node_images import BUSYBOX
from tests.kubelet.plugins import RESOURCE, SimpleAnswers, running_plugin
from tests.waiting import wait_until

from fairlead.model.devices.granted import DeviceRefusal
from fairlead.model.devices.kubelet import CdiDevices, ContainerEdits, MountedFile
from fairlead.rules.devices.ids import token
from fairlead.wire.kubelet.cdi import cdi_file_name, device_name, render_cdi

pytestmark = pytest.mark.turns(2, 1)

SECONDS = 60.0
SHOWS = (
    'echo "start $START"; cat /etc/parts; test -c /dev/fuse && echo device; echo over > '
    "/etc/parts || echo read-only"
)


class DeferringAnswers(SimpleAnswers):
    """START in the environment counts the starts of containers with the same ids. While
    `is_closed`, no file is written.
    """

    async def allocate(self, ids: Sequence[str]) -> CdiDevices:
        return CdiDevices((device_name(token(RESOURCE, ids)),))

    async def start(self, ids: Sequence[str]) -> DeviceRefusal | None:
        self.starts.append((tuple(sorted(ids)), (), ()))
        number = sum(same == tuple(sorted(ids)) for same, _, _ in self.starts)
        mounted = MountedFile("/var/lib/kubelet/parts", "/etc/parts")
        edits = ContainerEdits({"START": str(number)}, ("/dev/fuse",), (mounted,))
        if not self.is_closed:
            path = self.folder / "cdi" / cdi_file_name(token(RESOURCE, ids))
            scratch = path.with_suffix(".tmp")
            scratch.write_bytes(render_cdi(token(RESOURCE, ids), edits))
            scratch.replace(path)
        return None


@pytest.fixture(scope="module")
def answers(node: ControlPlane) -> Iterator[SimpleAnswers]:
    with running_plugin(node, DeferringAnswers) as (_, answering):
        wait_until("the node has the resource", lambda: allocatable(node) == "8", SECONDS)
        yield answering


def test_the_file_is_read_when_the_container_is_made(
    node: ControlPlane, answers: SimpleAnswers
) -> None:
    """The init and app containers have the same ids, so one file; each reads its contents at its
    own start.
    """
    node.admin.create(
        [
            pod(
                "both",
                [container("app", SHOWS + "; sleep 1000000")],
                [container("prepare", SHOWS)],
            )
        ]
    )
    wait_until("both runs", lambda: phase(node, "both") == "Running", SECONDS)
    (first, _, _), (second, _, _) = answers.starts
    assert first == second
    for name, number in (("prepare", 1), ("app", 2)):
        wait_until(
            f"{name} has printed all",
            lambda name=name: "read-only" in log(node, "both", name),
            SECONDS,
        )
        lines = [
            line for line in log(node, "both", name).splitlines() if "can't create" not in line
        ]
        assert lines == [f"start {number}", "of a card", "device", "read-only"]


def test_without_its_file_no_container_is_made(node: ControlPlane, answers: SimpleAnswers) -> None:
    answers.is_closed = True
    node.admin.create([pod("closed", [container("app", "sleep 1000000")])])
    wait_until(
        "it is reported",
        lambda: (
            "CDI device injection failed: unresolvable CDI devices fairlead.io/gpu=alloc-"
            in reported(node)
        ),
        SECONDS,
    )
    assert phase(node, "closed") == "Pending"


def allocatable(node: ControlPlane) -> str | None:
    (found,) = [each for each in node.admin.get("nodes") if each["metadata"]["name"] == NODE]
    return str(found["status"]["allocatable"].get(RESOURCE))


def container(name: str, program: str) -> dict[str, Any]:
    resources = {"limits": {RESOURCE: "2"}}
    return {
        "name": name,
        "image": BUSYBOX,
        "imagePullPolicy": "Never",
        "command": ["sh", "-c", program],
        "resources": resources,
    }


def pod(
    name: str, containers: Sequence[dict[str, Any]], init: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    spec = {
        "nodeName": NODE,
        "containers": [*containers],
        "initContainers": [*init],
        "terminationGracePeriodSeconds": 0,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def phase(node: ControlPlane, name: str) -> str:
    (found,) = node.admin.get("pods", "-n", "default", f"--field-selector=metadata.name={name}")
    return str(found["status"].get("phase"))


def log(node: ControlPlane, name: str, of: str) -> str:
    return node.admin.run("-n", "default", "logs", name, "-c", of)


def reported(node: ControlPlane) -> str:
    return "".join(each["message"] for each in node.admin.get("events", "-n", "default"))
