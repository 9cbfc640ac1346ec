"""How soon Fairlead is right again after a fault, on a real API server."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import NamedTuple

from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.quota_line import QuotaController, big_node, bounded, enforce, install
from tests.kube.quota_truth import QuotaTruth, is_admitted
from tests.kube.servers import Server, running
from tests.waiting import wait_until

from bench.support.options import options

PLACE, MOST = "ml", 60
FAMILY = "\nfairlead_cluster_gpus"
LEASES = {"quota controller": "fairlead-quota", "cluster exporter": "fairlead-cluster-exporter"}


class Pair(NamedTuple):
    """Two replicas by identity, and what shows that their work is done."""

    title: str
    replicas: dict[str, Component]
    is_right: Callable[[], bool]


def measure_recovery() -> None:
    """Seconds from a fault until a new pod is admitted, or the page has the cluster again.

        python -m bench recovery [--away 60]

    Quota controller and cluster exporter, two of each. Each is killed (SIGKILL) and frozen
    (SIGSTOP), once while it holds the Lease and once while it stands by; then the API server is
    away. A watch of its own counts wrong decisions: pods above the max of a leaf.
    """
    parser = options(measure_recovery)
    parser.add_argument("--away", type=float, default=60.0, help="seconds without an API server")
    away = parser.parse_args().away
    with running_control_plane() as cluster, ExitStack() as leaving:
        install(cluster)
        cluster.admin.apply([big_node("n1", 64)])
        controllers = {name: QuotaController(cluster, name) for name in ("quota-a", "quota-b")}
        for each in controllers.values():
            leaving.callback(each.stop)
            each.start()
        exporters = {name: leaving.enter_context(_exporter(cluster, name)) for name in ("a", "b")}
        leaf = bounded("root.ml", MOST, MOST, [PLACE])
        root = bounded("root", MOST, MOST, children=[leaf])
        enforce(cluster, root)
        truth = QuotaTruth(cluster, root)
        leaving.callback(truth.stop)
        pods = Pods(cluster, truth)
        pairs = (
            Pair(
                "quota controller",
                {name: each.component for name, each in controllers.items()},
                pods.is_admitted,
            ),
            Pair(
                "cluster exporter",
                {name: each.component for name, each in exporters.items()},
                lambda: any(_has_cluster(each) for each in exporters.values()),
            ),
        )
        print(f"{'fault':56}{'right again after s':>20}{'wrong decisions':>17}", flush=True)
        for pair in pairs:
            for role in ("leader", "standby"):
                for way in ("killed", "frozen"):
                    seconds = _strike(cluster, pair, role, way, pods)
                    _print(f"{pair.title}, {role}: {way}", seconds, truth)
        cluster.components["kube-apiserver"].kill()
        time.sleep(away)
        cluster.start_component("kube-apiserver")
        began = time.monotonic()
        pods.create()
        for pair in pairs:
            _until(pair.is_right)
            seconds = time.monotonic() - began
            _print(f"{pair.title}: API server away {away:.0f} s", seconds, truth)
        print(f"load {os.getloadavg()[0]:.1f}")


class Pods:
    """A new pod after each fault; one more than the leaf's max is never made."""

    def __init__(self, cluster: ControlPlane, truth: QuotaTruth) -> None:
        self._cluster = cluster
        self._truth = truth
        self._number = 0

    def create(self) -> None:
        self._number += 1
        container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
        meta = {"name": f"p{self._number}", "namespace": PLACE}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
        self._cluster.admin.create([{**pod, "spec": {"containers": [container]}}])

    def is_admitted(self) -> bool:
        """Whether the newest pod has no gate, by a watch."""
        name = f"p{self._number}"
        return any(
            each["metadata"]["name"] == name and is_admitted(each)
            for each in list(self._truth.pods.values())
        )


def _strike(cluster: ControlPlane, pair: Pair, role: str, way: str, pods: Pods) -> float:
    holder = _holder(cluster, pair)
    struck = next(
        component
        for name, component in pair.replicas.items()
        if (name == holder) == (role == "leader")
    )
    if way == "killed":
        struck.kill()
    else:
        struck.freeze()
    began = time.monotonic()
    pods.create()
    _until(pair.is_right)
    seconds = time.monotonic() - began
    if way == "killed":
        struck.start()
    else:
        struck.thaw()
    wait_until("a replica holds the Lease", lambda: _holder(cluster, pair) in pair.replicas, 60)
    _until(pods.is_admitted)
    return seconds


def _holder(cluster: ControlPlane, pair: Pair) -> str:
    path = "jsonpath={.spec.holderIdentity}"
    lease = ("lease", LEASES[pair.title], "-n", "fairlead-system")
    return cluster.admin.run("get", *lease, "-o", path)


def _exporter(cluster: ControlPlane, name: str) -> AbstractContextManager[Server]:
    return running(
        "cluster-exporter",
        f"--kubeconfig={cluster.kubeconfig}",
        "--leader-elect",
        f"--identity={name}",
        log=cluster.logs / f"exporter-{name}.log",
    )


def _has_cluster(server: Server) -> bool:
    try:
        return FAMILY in server.get("/metrics", seconds=0.5).decode()
    except OSError:
        return False


def _until(is_right: Callable[[], bool]) -> None:
    wait_until("it is right again", is_right, 120, pause_seconds=0.05)


def _print(title: str, seconds: float, truth: QuotaTruth) -> None:
    print(f"{title:56}{seconds:>20.1f}{len(truth.faults):>17}", flush=True)
