"""The scheduler extender as a process of its own, and a stock kube-scheduler that calls it.

See docs/spec/gpu-sharing.md#scheduler-configuration.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import yaml
from tests.kube.addresses import free_port
from tests.kube.clocks import clock_ahead
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.kubeconfigs import certificate_user, write_kubeconfig
from tests.kube.objects import namespace
from tests.kube.servers import FAIRLEAD, READY_SECONDS, Page, Server, environment

Object = dict[str, Any]
DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PREFIX = "/gpushare-scheduler"
USER = "system:serviceaccount:fairlead-system:fairlead-scheduler"
SYSTEM, NODE_SPACE = "fairlead-system", "fairlead-nodes"
"""Namespaces of Fairlead's pods, and of those that use their node."""


class Extender:
    """One extender process; its port stays the same over restarts. `server`: the API server's
    address, if the extender uses another one than the cluster's own. `clock`: seconds by which its
    clock is ahead.
    """

    def __init__(
        self,
        cluster: ControlPlane,
        name: str,
        flags: Sequence[str] = (),
        server: str = "",
        clock: float = 0.0,
    ) -> None:
        self.port = free_port()
        pair = cluster.issue_user(USER)
        path = write_kubeconfig(
            cluster.folder / f"{name}.kubeconfig",
            server or cluster.server,
            cluster.authority,
            certificate_user(pair),
        )
        argv = [
            *FAIRLEAD,
            "scheduler-extender",
            f"--listen=127.0.0.1:{self.port}",
            f"--kubeconfig={path}",
            f"--identity={name}",
            *flags,
        ]
        surroundings = environment() | clock_ahead(clock)
        self.component = Component(name, argv, cluster.logs / f"{name}.log", surroundings)
        self._server = Server(self.component, f"http://127.0.0.1:{self.port}")

    def start(self, seconds: float = READY_SECONDS) -> None:
        self.component.start()
        self.start_is_done(seconds)

    def start_is_done(self, seconds: float = READY_SECONDS) -> None:
        self.component.wait_until(self._server.is_ready, seconds)

    def ask(self, verb: str, asked: Object, seconds: float = 15.0) -> Any:
        """The answer of one verb, as kube-scheduler would receive it; OSError or HTTPException when
        there is none.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            connection.request(
                "POST", f"{PREFIX}/{verb}", json.dumps(asked), {"Content-Type": "application/json"}
            )
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status == 200, (answer.status, body)
            return json.loads(body)
        finally:
            connection.close()

    def inspect(self) -> dict[str, Object]:
        """Shared nodes by name."""
        return {
            node["name"]: node
            for node in json.loads(self._server.get(f"{PREFIX}/inspect"))["nodes"]
        }

    def metrics(self) -> Page:
        return self._server.metrics()

    def is_ready(self) -> bool:
        try:
            return self._server.is_ready()
        except urllib.error.URLError:
            return False


@contextmanager
def extended_scheduler(
    cluster: ControlPlane, *flags: str, server: str = "", qps: int = 50
) -> Iterator[Extender]:
    """A second kube-scheduler beside the cluster's, named `fairlead-scheduler`, that calls
    Fairlead's extender for shared GPUs.
    """
    cluster.admin.apply([namespace(SYSTEM), namespace(NODE_SPACE)])
    extender = Extender(cluster, "fairlead-extender", flags, server)
    scheduler = scheduler_for(cluster, extender.port, "fairlead-scheduler", qps)
    with ExitStack() as leaving:
        leaving.callback(extender.component.stop)
        extender.start()
        leaving.callback(scheduler.stop)
        scheduler.start()
        yield extender


def scheduler_for(
    cluster: ControlPlane,
    port: int,
    name: str,
    qps: int = 50,
    backoff_seconds: int = 10,
    *,
    is_shipped: bool = False,
) -> Component:
    """A kube-scheduler, not started, of the profile `fairlead-scheduler`, as an administrator and
    without a lease. `port`: of its extender on this machine. `backoff_seconds`: the longest pause
    between tries. `is_shipped`: with the account and the leader election of
    deploy/gpushare-scheduler.yaml.
    """
    path = _configuration(cluster, port, name, qps, backoff_seconds, is_shipped=is_shipped)
    elected = ["--leader-elect=true"] if is_shipped else []
    return cluster.extra_component("kube-scheduler", name, f"--config={path}", *elected)


def _configuration(
    cluster: ControlPlane,
    port: int,
    name: str,
    qps: int,
    backoff_seconds: int,
    *,
    is_shipped: bool,
) -> Path:
    pair = cluster.issue_user(USER) if is_shipped else cluster.admin_pair
    verbs = {f"{verb}Verb": verb for verb in ("filter", "prioritize", "preempt", "bind")}
    managed = [
        {"name": name, "ignoredByScheduler": False}
        for name in ("aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage")
    ]
    extender = {
        "urlPrefix": f"http://127.0.0.1:{port}{PREFIX}",
        "weight": 5,
        "httpTimeout": "10s",
        "nodeCacheCapable": True,
        "ignorable": False,
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {
            "kubeconfig": str(cluster.write_kubeconfig(name, pair)),
            "qps": qps,
            "burst": 2 * qps,
        },
        "leaderElection": _shipped_election() if is_shipped else {"leaderElect": False},
        "podMaxBackoffSeconds": backoff_seconds,
        "profiles": [{"schedulerName": "fairlead-scheduler"}],
        "extenders": [{**extender, **verbs, "managedResources": managed}],
    }
    path = cluster.folder / f"{name}.json"
    path.write_text(json.dumps(config))
    return path


def _shipped_election() -> Object:
    """The leader election of the shipped configuration."""
    (made,) = (
        each
        for each in yaml.safe_load_all((DEPLOY / "gpushare-scheduler.yaml").read_text("utf-8"))
        if each and each["kind"] == "ConfigMap"
    )
    (text,) = made["data"].values()
    found: Object = yaml.safe_load(text)["leaderElection"]
    return found
