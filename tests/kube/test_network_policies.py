"""The NetworkPolicies of an installation, enforced by kube-router: each listed flow passes, and
all others are refused.

One network namespace is a node, with a bridge; one on the bridge is each pod, of which the API
server has an object. A pod listens on every port that any part of Fairlead has, and on one more.
Runs by name: `python3 tools/run_tests.py --only policies`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.kubeconfigs import certificate_user, write_kubeconfig
from tests.kube.machine_turn import only_run
from tests.kube.node_room import NODE_LOCK, ip
from tests.kube.programs import program
from tests.programs import run_program
from tests.waiting import wait_until

from fairlead.model.installation import Installation
from fairlead.wire.installation.components import installed_objects

Object = dict[str, Any]
SYSTEM, NODES, ELSEWHERE = "fairlead-system", "fairlead-nodes", "default"
MACHINE, NODE = "10.111.0.254", "10.111.0.1"
ROOM, UPLINK, PREFIX = "fl-policies", "fl-policies-up", "fl-policies-"
OTHER_PORT = 7777
FLOWS: Mapping[str, tuple[str, frozenset[int]]] = {
    "fairlead-admission-webhook": (SYSTEM, frozenset({8443})),
    "fairlead-cluster-exporter": (SYSTEM, frozenset({9401})),
    "fairlead-console": (SYSTEM, frozenset({8080})),
    "fairlead-gpu-exporter": (NODES, frozenset({9400})),
    "fairlead-node-agent": (NODES, frozenset({9403})),
    "fairlead-people-controller": (SYSTEM, frozenset({9404})),
    "fairlead-quota-controller": (SYSTEM, frozenset({9402})),
    "fairlead-scheduler": (SYSTEM, frozenset({10259, 12345})),
    "fairlead-usage-recorder": (SYSTEM, frozenset({9405})),
}
"""docs/concepts/security.md#network: namespace of each part, and ports that pods reach."""
FROM_ANYWHERE = {8443}
"""The API server is no pod."""
PORTS = sorted({OTHER_PORT, 8080}.union(*(ports for _, ports in FLOWS.values())))


def inside(room: str, *argv: str) -> list[str]:
    return ["ip", "netns", "exec", room, *argv]


def run(*argv: str) -> str:
    done = run_program(argv, check=True)
    return done.stdout


@contextmanager
def network() -> Iterator[None]:
    """The node's namespace, with a link to this machine and a bridge for pods."""
    with only_run("test node runs", NODE_LOCK), ExitStack() as leaving:
        leaving.callback(ip, "netns", "delete", ROOM, may_fail=True)
        ip("netns", "delete", ROOM, may_fail=True)
        ip("netns", "add", ROOM)
        ip("link", "add", UPLINK, "type", "veth", "peer", "name", "up0", "netns", ROOM)
        ip("address", "add", f"{MACHINE}/24", "dev", UPLINK)
        ip("link", "set", UPLINK, "up")
        for words in (
            f"address add {NODE}/24 dev up0",
            "link set up0 up",
            "link set lo up",
            f"route add default via {MACHINE}",
            "link add br0 type bridge",
            "address add 10.111.1.1/24 dev br0",
            "link set br0 up",
        ):
            run(*inside(ROOM, "ip", *words.split()))
        for setting in ("net.ipv4.ip_forward", "net.bridge.bridge-nf-call-iptables"):
            run(*inside(ROOM, "sysctl", "-w", f"{setting}=1"))
        ip("route", "add", "10.111.1.0/24", "via", NODE)
        yield


class Pods:
    """Pods on the bridge. `rooms`: their network namespaces, by name."""

    def __init__(self, cluster: ControlPlane, leaving: ExitStack) -> None:
        self._cluster = cluster
        self._leaving = leaving
        self.addresses: dict[str, str] = {}
        self.rooms: dict[str, str] = {}

    def add(self, name: str, namespace: str, *, listens: bool) -> None:
        number = len(self.rooms) + 10
        address, room = f"10.111.1.{number}", f"{PREFIX}{number}"
        self.addresses[name], self.rooms[name] = address, room
        self._write(name, namespace, address)
        ip("netns", "delete", room, may_fail=True)
        ip("netns", "add", room)
        self._leaving.callback(ip, "netns", "delete", room, may_fail=True)
        peer = f"type veth peer name eth0 netns {room}".split()
        run(*inside(ROOM, "ip", "link", "add", f"v{number}", *peer))
        run(*inside(ROOM, "ip", "link", "set", f"v{number}", "master", "br0", "up"))
        for words in (
            f"address add {address}/24 dev eth0",
            "link set eth0 up",
            "link set lo up",
            "route add default via 10.111.1.1",
        ):
            run(*inside(room, "ip", *words.split()))
        for port in PORTS if listens else ():
            argv = inside(room, "busybox", "nc", "-ll", "-p", str(port), "-e", "true")
            server = Component(f"{name}:{port}", argv, self._cluster.logs / "listening.log")
            server.start()
            self._leaving.callback(server.kill)

    def _write(self, name: str, namespace: str, address: str) -> None:
        locked = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        secure = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        spec = {
            "nodeName": "node",
            "automountServiceAccountToken": False,
            "securityContext": secure,
            "tolerations": [{"operator": "Exists"}],
            "containers": [{"name": "app", "image": "app", "securityContext": locked}],
        }
        labels = {"app.kubernetes.io/name": name}
        meta = {"name": name, "namespace": namespace, "labels": labels}
        admin = self._cluster.admin
        admin.create([{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}])
        status = {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "hostIP": NODE,
            "hostIPs": [{"ip": NODE}],
        }
        patch = json.dumps({"status": status})
        admin.run("patch", "pod", name, "-n", namespace, "--subresource=status", "-p", patch)

    def reached(self, name: str, room: str | None) -> set[int]:
        """Ports of the pod that answer: asked from this namespace, None = from this machine."""
        ports = " ".join(map(str, PORTS))
        ask = f"busybox nc -w 2 {self.addresses[name]} $port </dev/null >/dev/null 2>&1"
        script = f"for port in {ports}; do {ask} && echo $port & done; wait"
        argv = ["sh", "-c", script]
        return {int(line) for line in run(*(inside(room, *argv) if room else argv)).split()}


@pytest.fixture(scope="module")
def pods() -> Iterator[Pods]:
    with network(), running_control_plane(nodes_at=MACHINE) as cluster, ExitStack() as leaving:
        admin, objects = cluster.admin, installed_objects(Installation())
        for kind in ("Namespace", "NetworkPolicy"):
            admin.apply([each for each in objects if each["kind"] == kind])
        admin.create([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node"}}])
        patch = {"status": {"addresses": [{"type": "InternalIP", "address": NODE}]}}
        admin.run("patch", "node", "node", "--subresource=status", "-p", json.dumps(patch))
        made = Pods(cluster, leaving)
        for name, (namespace, _) in FLOWS.items():
            made.add(name, namespace, listens=True)
        made.add("client", ELSEWHERE, listens=False)
        for name in FLOWS:
            wait_until(
                f"{name} listens, and is open to all",
                lambda name=name: made.reached(name, made.rooms["client"]) == set(PORTS),
            )
        user = cluster.issue_user("kube-router", ["system:masters"])
        kubeconfig = write_kubeconfig(
            cluster.folder / "kube-router.kubeconfig",
            cluster.server_for_nodes,
            cluster.authority,
            certificate_user(user),
        )
        flags = [
            "--run-router=false",
            "--run-service-proxy=false",
            "--run-firewall=true",
            f"--kubeconfig={kubeconfig}",
            "--hostname-override=node",
            "--health-port=0",
        ]
        argv = inside(ROOM, str(program("kube-router")), *flags)
        router = Component("kube-router", argv, cluster.logs / "kube-router.log")
        leaving.callback(router.kill)
        router.start()
        router.wait_until(lambda: made.reached("fairlead-console", None) == set(), 120)
        yield made


@pytest.mark.parametrize("name", FLOWS)
def test_listed_flows_pass_and_all_others_are_refused(pods: Pods, name: str) -> None:
    wanted = set(FLOWS[name][1])
    assert pods.reached(name, pods.rooms["client"]) == wanted
    assert pods.reached(name, None) == wanted & FROM_ANYWHERE
    assert pods.reached(name, ROOM) == set(PORTS), "the kubelet's probes come from the node"
