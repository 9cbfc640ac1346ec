"""Runs the pods of `deploy/` where no kubelet runs containers: each container of Fairlead's that
serves is a process at its pod's address.

KWOK gives the pods addresses from their nodes' ranges. Those addresses lead to this machine. So
ports are the manifests' own, every client that discovers a pod reaches it, and a pod without a
process does not answer. That needs root.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.kube.addresses import claim, free_port
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.servers import FAIRLEAD, READY_SECONDS, Server, environment
from tests.waiting import HANG_SECONDS

Object = dict[str, Any]
IMAGE = "fairlead:"
SYSTEM, NODE_SPACE = "fairlead-system", "fairlead-nodes"
NEEDS_ROOT = (
    "addresses of pods are led to this machine, which is root's to do" if os.geteuid() else ""
)
_PLAYED = {
    "gpu-exporter": ("--backend=sim",),
    "device-plugin": ("--backend=sim", "--sim-gpus=1xTesla-T4"),
}
"""The exporter plays cards of the simulated cluster's node of the same name, and the device plugin
plays cards that no kubelet hands out.
"""


@dataclass(frozen=True, eq=False)
class Serving:
    """A container of Fairlead's that answers HTTP at its pod's
    address, as its manifest describes.

    `has_tls`: over TLS. `elsewhere`: it serves there instead.
    """

    pod: Object
    container: Object
    port: int
    has_tls: bool = False
    elsewhere: str = ""

    @property
    def address(self) -> str:
        return self.elsewhere or f"{self.pod['status']['podIP']}:{self.port}"

    @property
    def words(self) -> list[str]:
        """The words of its command after `fairlead`."""
        return [*self.container["command"], *self.container.get("args", ())][1:]

    @property
    def is_extender(self) -> bool:
        return self.words[0] == "scheduler-extender"


def serving(pod: Object) -> list[Serving]:
    """Containers that serve HTTP to other pods: none that listens only on loopback, and none that
    uses TLS.
    """
    return [each for each in _serving(pod) if not each.has_tls]


def all_serving(pod: Object) -> list[Serving]:
    """All that do not listen only on loopback.

    The extender answers questions from its pod's loopback alone, so it serves on this machine's.
    """
    return [
        replace(each, elsewhere=f"127.0.0.1:{free_port()}") if each.is_extender else each
        for each in _serving(pod)
    ]


def _serving(pod: Object) -> list[Serving]:
    found = []
    for container in pod["spec"]["containers"]:
        probe = container.get("readinessProbe", {}).get("httpGet", {})
        words = [*container.get("command", ()), *container.get("args", ())]
        ports = [word.removeprefix("--listen=:") for word in words if word.startswith("--listen=:")]
        if container["image"].startswith(IMAGE):
            has_tls = probe.get("scheme", "HTTP") == "HTTPS"
            found += [Serving(pod, container, int(port), has_tls) for port in ports]
    return found


def running_pods(cluster: ControlPlane) -> list[Object]:
    """Pods of Fairlead's namespaces that have an address, have not
    ended and are not being deleted.
    """
    found = [
        each for space in (SYSTEM, NODE_SPACE) for each in cluster.admin.get("pods", "-n", space)
    ]
    return [
        each
        for each in found
        if each["status"].get("phase") == "Running" and "deletionTimestamp" not in each["metadata"]
    ]


@contextmanager
def pod_ranges(count: int) -> Iterator[list[str]]:
    """This number of ranges for pods of this process's nodes, `10.97.X.Y/26` each; the real node's
    pods have 10.98.
    """
    number = next(number for number in range(256) if claim(f"pod-range-{number}"))
    local = ["local", f"10.97.{number}.0/24", "dev", "lo"]
    subprocess.run(
        ["ip", "route", "replace", *local], check=True, capture_output=True, timeout=HANG_SECONDS
    )
    try:
        yield [f"10.97.{number}.{64 * part}/26" for part in range(count)]
    finally:
        subprocess.run(
            ["ip", "route", "del", *local],
            check=False,
            capture_output=True,
            timeout=HANG_SECONDS,
        )


@contextmanager
def played(
    cluster: ControlPlane, which: Callable[[Object], list[Serving]] = serving
) -> Iterator[dict[Serving, Component]]:
    """The present pods, played by processes for the block. `which`: their containers to play."""
    with ExitStack() as leaving:
        found = {
            each: _started(cluster, each, leaving)
            for pod in running_pods(cluster)
            for each in which(pod)
        }
        for each, component in found.items():
            component.wait_until(partial(_answers, each, component), READY_SECONDS)
        yield found


def _answers(each: Serving, component: Component) -> bool:
    if not each.has_tls:
        return Server(component, f"http://{each.address}").answers()
    host, _, port = each.address.partition(":")
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except OSError:
        return False
    return True


def _started(cluster: ControlPlane, each: Serving, leaving: ExitStack) -> Component:
    name = each.pod["metadata"]["name"]
    argv = [*FAIRLEAD, *_flags(each, leaving.enter_context(_disk())), *_identity(cluster, each.pod)]
    component = Component(
        name, argv, cluster.logs / f"{name}.log", {**environment(), **_variables(each)}
    )
    leaving.callback(component.stop)
    component.start()
    return component


@contextmanager
def _disk() -> Iterator[Path]:
    """What the pod sees of its node, under a path that is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="fairlead-pod-"))
    try:
        (folder / "device-plugins").mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _flags(each: Serving, folder: Path) -> list[str]:
    variables = _variables(each)
    words = [
        word.replace(f"--listen=:{each.port}", f"--listen={each.address}")
        for word in each.words
        if word != "--backend=nvml"
    ]
    for name, value in variables.items():
        words = [word.replace(f"$({name})", value) for word in words]
    folders = [f"--kubelet-dir={folder}"] if words[0] in _PLAYED else []
    if words[0] == "device-plugin":
        folders += [f"--{name}-dir={folder / name}" for name in ("cdi", "state", "run")]
    if words[0] == "usage-recorder":  # its manifest names no database server
        folders = [f"--store=sqlite:///{folder / 'usage.sqlite'}"]
    return [*words, *_PLAYED.get(words[0], ()), *folders]


def _identity(cluster: ControlPlane, pod: Object) -> list[str]:
    """The pod's account by a token that names the pod; no identity where the manifest gives no
    account.
    """
    if pod["spec"].get("automountServiceAccountToken") is False:
        return []
    return [f"--kubeconfig={pod_kubeconfig(cluster, pod)}"]


def pod_kubeconfig(cluster: ControlPlane, pod: Object) -> Path:
    """A kubeconfig of the pod's account, by a token that names the pod."""
    spec, name = pod["spec"], pod["metadata"]["name"]
    words = ("--bound-object-kind=Pod", f"--bound-object-name={name}", "--duration=2h")
    token = cluster.admin.run(
        "create", "token", spec["serviceAccountName"], "-n", pod["metadata"]["namespace"], *words
    ).strip()
    file = cluster.folder / f"{name}.kubeconfig"
    return write_kubeconfig(file, cluster.server, cluster.authority, token_user(token))


def _variables(each: Serving) -> dict[str, str]:
    """The environment variables that the kubelet would set from the pod itself."""
    fields = {
        "metadata.name": each.pod["metadata"]["name"],
        "spec.nodeName": each.pod["spec"]["nodeName"],
    }
    return {
        printed["name"]: fields[printed["valueFrom"]["fieldRef"]["fieldPath"]]
        for printed in each.container.get("env", ())
        if "valueFrom" in printed
    }
