"""Three real nodes beside a real control plane: each with its own kubelet, containerd, kube-proxy,
network, processes and mounts.

Nodes have GPUs without hardware: a library plays the driver (`tests/kube/driver`). Images come from
a registry of this machine; nothing else is reachable.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kube.addresses import free_port
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.driver import installed_driver, make_device_files
from tests.kube.fairlead_images import (
    write_busybox_image,
    write_newer_images,
    write_program_image,
    write_shipped_images,
)
from tests.kube.kubeconfigs import certificate_user, write_kubeconfig
from tests.kube.kubelet import Place, RealNode, is_ready, started_node
from tests.kube.node_room import beside
from tests.kube.programs import program
from tests.kube.servers import run_fairlead
from tests.nodes.network import MACHINE, POD_RANGE, Link, nodes_network
from tests.nodes.registry import Registry, running_registry
from tests.programs import run_program
from tests.waiting import wait_until

from fairlead import __version__

Object = dict[str, Any]
SYSTEM, NODE_SPACE = "fairlead-system", "fairlead-nodes"
FAIRLEAD_IMAGE = "registry.example.com/fairlead:0.1.0"
NEWER = "0.2.0"
"""The version after this one: the same code, with another number."""
NEWER_IMAGE = f"registry.example.com/fairlead:{NEWER}"
CARDS = 2
"""GPUs of each node."""
SOURCES = Path(__file__).resolve().parents[2] / "src"
_READY_SECONDS = 120.0


@dataclass(frozen=True)
class Machine:
    """One node with its link."""

    name: str
    programs: RealNode
    link: Link

    def run(self, *argv: str) -> str:
        """Standard output of a program in the node's namespaces."""
        return run_program(beside(self.programs.room, *argv), check=True).stdout

    def files(self, *folders: str) -> list[str]:
        """What lies in these folders of the node, whether or not they exist."""
        found = self.run("sh", "-c", 'find "$@" 2>/dev/null || true', "find", *folders)
        return sorted(found.splitlines())


@dataclass(frozen=True)
class Cluster:
    """`nodes` by name."""

    plane: ControlPlane
    nodes: Mapping[str, Machine]
    registry: Registry

    def fairlead(self, *words: str, status: int = 0) -> str:
        """Output and messages of the command; its exit status is `status`."""
        return run_fairlead(self.plane.kubeconfig, *words, status=status, seconds=300)

    def newer_packages(self) -> Path:
        """A folder for PYTHONPATH with the command of the version NEWER."""
        folder = self.plane.folder / "newer"
        if not folder.exists():
            shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("__pycache__"))
            module = folder / "fairlead" / "__init__.py"
            text = module.read_text(encoding="utf-8")
            module.write_text(text.replace(__version__, NEWER), encoding="utf-8")
        return folder

    def own_pods(self) -> list[Object]:
        """The pods of Fairlead, of both namespaces."""
        return self.plane.admin.get("pods", "-l", "app.kubernetes.io/part-of=fairlead")


def is_true(obj: Object, condition: str) -> bool:
    """Whether the status of an object has this condition."""
    found = obj["status"].get("conditions", ())
    return any((each["type"], each["status"]) == (condition, "True") for each in found)


@contextmanager
def running_cluster(count: int = 3) -> Iterator[Cluster]:
    """A cluster of `count` Ready nodes for the block."""
    with ExitStack() as leaving:
        links = leaving.enter_context(nodes_network(count))
        plane = leaving.enter_context(
            running_control_plane(routes_to_endpoints=True, nodes_at=MACHINE)
        )
        # When the nodes are gone it would wait for their connections.
        leaving.callback(plane.components["kube-apiserver"].kill)
        archives = _archives(plane.folder)
        registry = leaving.enter_context(running_registry(MACHINE, free_port(), archives))
        hosts = registry.write_hosts(plane.folder / "registries")
        nodes = {}
        for number, link in enumerate(links, 1):
            name = f"node-{number}"
            nodes[name] = leaving.enter_context(_machine(plane, name, link, hosts))
        for number, node in enumerate(nodes.values(), 1):
            driver = leaving.enter_context(installed_driver(node.programs.disk, CARDS))
            driver.say({f"{card}.uuid": uuid(number, card) for card in range(CARDS)})
        wait_until(
            "all nodes are Ready",
            lambda: all(is_ready(plane, name) for name in nodes),
            _READY_SECONDS,
        )
        yield Cluster(plane, nodes, registry)


def uuid(number: int, card: int) -> str:
    """Of a card of node `number`, counted from 1."""
    return f"GPU-{number:08x}-0000-0000-0000-{card:012x}"


def _archives(folder: Path) -> Sequence[Path]:
    names = ("fairlead", "newer", "kube-scheduler", "busybox")
    shipped, newer, scheduler, busybox = (folder / f"{name}.oci.tar" for name in names)
    write_newer_images(newer, write_shipped_images(shipped), NEWER)
    write_program_image(scheduler, program("kube-scheduler"), "kube-scheduler", "v1.36.3")
    write_busybox_image(busybox, "1.36")
    return shipped, newer, scheduler, busybox


@contextmanager
def _machine(plane: ControlPlane, name: str, link: Link, hosts: Path) -> Iterator[Machine]:
    def prepare(room: Component) -> None:
        link.connect(room)
        make_device_files(room, CARDS)

    place = Place(
        name=name,
        folder=name,
        address=link.address,
        pod_subnet=link.pod_subnet,
        cgroup=link.cgroup,
        registries=hosts,
        connect=prepare,
    )
    with (
        started_node(plane, place, with_cdi=True, status_seconds=2) as programs,
        _kube_proxy(plane, name, programs.room),
    ):
        yield Machine(name, programs, link)


@contextmanager
def _kube_proxy(plane: ControlPlane, name: str, room: Component) -> Iterator[None]:
    """Routes the addresses of Services on this node."""
    user = plane.issue_user("system:kube-proxy", ())
    kubeconfig = write_kubeconfig(
        plane.folder / f"{name}-kube-proxy.kubeconfig",
        plane.server_for_nodes,
        plane.authority,
        certificate_user(user),
    )
    flags = [
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={name}",
        "--proxy-mode=nftables",
        f"--cluster-cidr={POD_RANGE}",
        # Only the machine's own network namespace may change these.
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
    ]
    argv = beside(room, program("kube-proxy"), *flags)
    component = Component("kube-proxy", argv, plane.logs / f"{name}-kube-proxy.log")
    try:
        component.start()
        yield
    finally:
        component.kill()
