"""A scheduler extender in the fewest lines: our rules behind the five verbs, and a kube-scheduler of its own that asks it.

The ledger is built anew from the API for each question, so the answers are those of an extender that has just been restarted.
"""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import msgspec
from tests.kube.control_plane import ControlPlane

from fairlead.model.pod import Pod
from fairlead.model.refusal import Refusal
from fairlead.model.snapshot import ClusterSnapshot
from fairlead.rules.share_ledger import Ledger, ledger_of
from fairlead.rules.share_preempt import Victims, plan_preemption
from fairlead.wire.allocation import render_bind
from fairlead.wire.kube import WireNode, WirePod, parse_node, parse_pod

Object = dict[str, Any]
PREFIX = "/gpushare-scheduler"


class Extender:
    """Its answers, by verb; `calls` counts them."""

    def __init__(self, cluster: ControlPlane) -> None:
        self._cluster = cluster
        self._context = ssl.create_default_context(cafile=str(cluster.authority))
        self._context.load_cert_chain(*cluster.issue_user("system:serviceaccount:fairlead-system:fairlead-scheduler"))
        self.calls: list[str] = []

    def answer(self, verb: str, asked: Object) -> Any:
        self.calls.append(verb)
        return getattr(self, f"_{verb}")(asked)

    def _filter(self, asked: Object) -> Object:
        answer = self._ledger().filter(_pod(asked["Pod"]), asked["NodeNames"])
        return {"NodeNames": answer.passed, "FailedNodes": answer.failed, "FailedAndUnresolvableNodes": answer.hopeless, "Error": ""}

    def _prioritize(self, asked: Object) -> list[Object]:
        scores = self._ledger().prioritize(_pod(asked["Pod"]), asked["NodeNames"])
        return [{"Host": name, "Score": score} for name, score in scores]

    def _preempt(self, asked: Object) -> Object:
        proposed = {
            name: Victims(tuple(pod["UID"] for pod in meta["Pods"]), meta["NumPDBViolations"])
            for name, meta in asked["NodeNameToMetaVictims"].items()
        }
        planned = plan_preemption(self._ledger(), _pod(asked["Pod"]), proposed)
        told = {name: {"Pods": [{"UID": uid} for uid in each.uids], "NumPDBViolations": each.violations} for name, each in planned.items()}
        return {"NodeNameToMetaVictims": told}

    def _bind(self, asked: Object) -> Object:
        pod = next(pod for pod in self._pods() if pod.uid == asked["PodUID"])
        ledger = self._ledger()
        grants = ledger.reserve(pod, asked["Node"])
        if isinstance(grants, Refusal):
            return {"Error": grants.reason}
        units = max(card.units for card in ledger.nodes[asked["Node"]].cards)
        metadata = {"name": pod.name, "uid": pod.uid, "annotations": render_bind(pod, grants, units, 1_767_600_000.0)}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": {"kind": "Node", "name": asked["Node"]}}
        status, body = self._call("POST", f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/binding", binding)
        return {"Error": "" if status == 201 else json.loads(body)["message"]}

    def _ledger(self) -> Ledger:
        nodes = msgspec.json.decode(self._call("GET", "/api/v1/nodes")[1], type=_Nodes).items
        return ledger_of(ClusterSnapshot(nodes=tuple(parse_node(node) for node in nodes), pods=tuple(self._pods())))

    def _pods(self) -> list[Pod]:
        return [parse_pod(pod) for pod in msgspec.json.decode(self._call("GET", "/api/v1/pods")[1], type=_Pods).items]

    def _call(self, method: str, path: str, body: Object | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPSConnection("127.0.0.1", self._cluster.port, timeout=10, context=self._context)
        try:
            connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()


class _Nodes(msgspec.Struct):
    items: list[WireNode]


class _Pods(msgspec.Struct):
    items: list[WirePod]


def _pod(obj: Object) -> Pod:
    return parse_pod(msgspec.json.decode(msgspec.json.encode(obj), type=WirePod))


@contextmanager
def extended_scheduler(cluster: ControlPlane) -> Iterator[Extender]:
    """A second kube-scheduler beside the cluster's, named `fairlead-scheduler`, that asks our rules about shared GPUs."""
    extender = Extender(cluster)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            body = json.dumps(extender.answer(self.path.removeprefix(f"{PREFIX}/"), asked)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    scheduler = cluster.extra_component("kube-scheduler", "fairlead-scheduler", f"--config={_configuration(cluster, server.server_port)}")
    scheduler.start()
    try:
        yield extender
    finally:
        scheduler.stop()
        server.shutdown()
        server.server_close()


def _configuration(cluster: ControlPlane, port: int) -> str:
    """Sharing contract 2.6, without a lease."""
    verbs = {f"{verb}Verb": verb for verb in ("filter", "prioritize", "preempt", "bind")}
    managed = [{"name": name, "ignoredByScheduler": False} for name in ("aliyun.com/gpu-mem", "aliyun.com/gpu-core.percentage")]
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
        "clientConnection": {"kubeconfig": str(cluster.write_kubeconfig("fairlead-scheduler", cluster.admin_pair))},
        "leaderElection": {"leaderElect": False},
        "profiles": [{"schedulerName": "fairlead-scheduler"}],
        "extenders": [{**extender, **verbs, "managedResources": managed}],
    }
    path = cluster.folder / "fairlead-scheduler.json"
    path.write_text(json.dumps(config))
    return str(path)
