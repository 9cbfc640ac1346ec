"""The network between the nodes: a bridge of this machine, and a link to each node.

A node has its own network namespace, with routes to the other nodes' pods and to Services, and no
default route: nothing outside is reachable. The machine has an address on the bridge, for the API
server and the registry, and routes to the pods, because the API server calls webhooks.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.kube.component import Component
from tests.kube.control_plane import SERVICE_RANGE
from tests.kube.machine_turn import only_run
from tests.kube.node_room import (
    beside,
    check_machine,
    first_pid,
    ip,
    make_cgroups,
    remove_cgroups,
)
from tests.waiting import HANG_SECONDS

MACHINE = "10.94.0.1"
"""Played pods have 10.97 (`tests/kube/played_pods`), a single real node's 10.98."""
POD_RANGE = "10.95.0.0/16"
_BRIDGE = "fairlead-nodes"
_LOCK = Path("/tmp/fairlead-test-nodes.lock")


class Link:
    """The link of node number `number`, counted from 1."""

    def __init__(self, number: int, count: int) -> None:
        self.address = f"10.94.0.{10 + number}"
        self.pod_subnet = f"10.95.{number}.0/24"
        self.cgroup = f"fairlead-node-{number}"
        self._outside = f"fl-node-{number}"
        self._others = [each for each in range(1, count + 1) if each != number]

    def connect(self, room: Component) -> None:
        """Give the namespace of `room` its link, addresses and routes."""
        inside = "eth0"
        ip("link", "add", self._outside, "type", "veth", "peer", "name", f"{self._outside}p")
        ip("link", "set", f"{self._outside}p", "netns", str(first_pid(room)), "name", inside)
        ip("link", "set", self._outside, "master", _BRIDGE, "up")
        self._inside(room, "link", "set", "lo", "up")
        self._inside(room, "address", "add", f"{self.address}/24", "dev", inside)
        self._inside(room, "link", "set", inside, "up")
        # Services' addresses are replaced before a packet leaves; until then they need a route.
        self._inside(room, "route", "add", SERVICE_RANGE, "via", MACHINE)
        for number in self._others:
            other = f"10.94.0.{10 + number}"
            self._inside(room, "route", "add", f"10.95.{number}.0/24", "via", other)
        ip("route", "add", self.pod_subnet, "via", self.address)

    def cut(self) -> None:
        """Unplug the cable; processes of the node go on."""
        ip("link", "set", self._outside, "down")

    def mend(self) -> None:
        ip("link", "set", self._outside, "up")

    def remove(self) -> None:
        """The kernel removes a link a moment after its namespace has ended; here it has gone."""
        ip("link", "delete", self._outside, may_fail=True)
        ip("route", "delete", self.pod_subnet, may_fail=True)

    def _inside(self, room: Component, *words: str) -> None:
        subprocess.run(
            beside(room, "ip", *words), check=True, capture_output=True, timeout=HANG_SECONDS
        )


@contextmanager
def nodes_network(count: int) -> Iterator[Sequence[Link]]:
    """The bridge, and a link for each node, for the block; ComponentError when the machine lacks
    what a node needs.
    """
    check_machine({"nft": "nftables"})
    links = [Link(number, count) for number in range(1, count + 1)]
    with only_run("test of several nodes runs", _LOCK):
        _sweep(links)
        try:
            ip("link", "add", _BRIDGE, "type", "bridge")
            ip("address", "add", f"{MACHINE}/24", "dev", _BRIDGE)
            ip("link", "set", _BRIDGE, "up")
            for link in links:
                make_cgroups(link.cgroup)
            yield links
        finally:
            _sweep(links)


def _sweep(links: Sequence[Link]) -> None:
    """Remove what is outside the namespaces."""
    for link in links:
        remove_cgroups(link.cgroup)
        link.remove()
    ip("link", "delete", _BRIDGE, may_fail=True)
