"""What users, a browser and Prometheus do while Fairlead is replaced on real nodes.

Ten pods a second are created, one page of the console is open, and metrics are read each second.
Played nodes take most of the pods, because real containers cost more than this machine has. Each
list of failures is empty where nothing went wrong.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import quote

from tests.kube.addresses import free_port, is_listening
from tests.kube.component import Component
from tests.kube.kwok_stages import RUN_TIME
from tests.kube.node_images import BUSYBOX
from tests.kube.programs import program
from tests.kube.share_truth import ShareTruth
from tests.kube.sharing_words import as_real
from tests.nodes.cluster import NODE_SPACE, SYSTEM, Cluster
from tests.waiting import HANG_SECONDS, repeat, wait_until

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.scenario import NodePool, Scenario

Object = dict[str, Any]
PLACE = "load"
PODS_A_SECOND = 10
REAL_EVERY = 40
"""One of this number of pods runs on a real node, until the load ends.

A Job creates it, and creates another one if the kubelet refuses it: that happens while no node
agent answers.
"""
REAL_MOST = 40
"""All of them have room at once: each takes one unit of some 84."""
PLAYED = "fairlead-test-played"
POOL = NodePool(
    name="played",
    count=2,
    cpu=64,
    memory="256Gi",
    gpu_model="Tesla V100-SXM2-16GB",
    gpus=4,
    shared=True,
)
PAGE = "/api/v1/overview"
_GPU_PRESENT = "nvidia.com/gpu.present"


@contextmanager
def played_nodes(cluster: Cluster) -> Iterator[None]:
    """Nodes without kubelets beside the real ones, for pods that tolerate them."""
    kwok = cluster.plane.kwok()
    world = sharing_world(Scenario(title="load", node_pools=(POOL,)), 1, 1_767_600_000.0)
    nodes = [_played(as_real(each)) for each in world.cluster.list(NODES)]
    names = [each["metadata"]["name"] for each in nodes]
    kwok.start()
    try:
        cluster.plane.admin.create(nodes)
        wait_until("played nodes are Ready", lambda: set(names) <= set(ready_ones(cluster)))
        yield
    finally:
        kwok.stop()
        cluster.plane.admin.run("delete", "nodes", *names, "--ignore-not-found")


def ready_ones(cluster: Cluster) -> list[str]:
    """Nodes that are Ready, and have no taint but that of played nodes."""
    return [
        node["metadata"]["name"]
        for node in cluster.plane.admin.get("nodes")
        if all(taint["key"] == PLAYED for taint in node["spec"].get("taints", ()))
        and any(
            (each["type"], each["status"]) == ("Ready", "True")
            for each in node["status"].get("conditions", ())
        )
    ]


def _played(node: Object) -> Object:
    """Without the pods of a DaemonSet."""
    meta = node["metadata"]
    labels = {key: text for key, text in meta["labels"].items() if key != _GPU_PRESENT}
    taint = {"key": PLAYED, "value": "true", "effect": "NoSchedule"}
    return {
        **node,
        "metadata": {**meta, "labels": {**labels, PLAYED: "true"}},
        "spec": {"taints": [taint]},
    }


class Load:
    """`refused`: answers to pods that were not created. `pages`: answers of the console that are
    errors of a server. `gaps`: by name, the longest time without numbers, in seconds.

    `made`, `scrapes`, `answers`: counted.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.made = self.scrapes = self.answers = self.hints = 0
        self.refused: list[str] = []
        self.pages: list[str] = []
        self.gaps: dict[str, float] = {}
        self._seen: dict[str, float] = {}
        self._began = time.monotonic()
        self.seconds = 0.0
        self._ended = threading.Event()
        rounds = ((1 / PODS_A_SECOND, self._create), (1.0, self._scrape), (0.25, self._open))
        self._threads = [
            threading.Thread(target=repeat, args=(self._ended, *each), daemon=True)
            for each in rounds
        ]
        self._threads.append(threading.Thread(target=self._listen, daemon=True))
        self._creating, self._scraping = self._line(), self._line()
        self._port = free_port()
        token = cluster.plane.admin.run("create", "token", "admin", "-n", "kube-ai").strip()
        self._signed_in = {"Authorization": f"Bearer {token}"}
        self._forward = self._port_forward()

    def start(self) -> None:
        self._began = time.monotonic()
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        if not self._ended.is_set():
            self.seconds = time.monotonic() - self._began
        self._ended.set()
        for each in self._threads:
            each.join(HANG_SECONDS)
        self._forward.stop()

    @property
    def described(self) -> str:
        gaps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in self.gaps.items())
        return (
            f"{self.rate:.1f} pods a second for {self.seconds:.0f} s, {self.scrapes} scrapes; "
            f"longest gaps: {gaps}; {self.answers} pages and {self.hints} lines of events"
        )

    def unfinished(self, truth: ShareTruth) -> list[str]:
        """Pods that have not been placed, and Jobs whose pod does not run."""
        placed = {pod.name for uid, pod in list(truth.pods.items()) if uid in truth.placements}
        pods = {f"p{number}" for number in range(self.made) if not _is_real(number)}
        jobs = [
            job["metadata"]["name"]
            for job in self._cluster.plane.admin.get("jobs", "-n", PLACE)
            if not job["status"].get("ready")
        ]
        return [*sorted(pods - placed), *jobs]

    @property
    def rate(self) -> float:
        """Pods that were created per second."""
        return self.made / (self.seconds or time.monotonic() - self._began)

    # --- pods -------------------------------------------------------------------------------------

    def _create(self) -> None:
        obj = load_job(self.made) if _is_real(self.made) else load_pod(self.made)
        path = "/api/v1" if obj["kind"] == "Pod" else "/apis/batch/v1"
        path += f"/namespaces/{PLACE}/{obj['kind'].lower()}s"
        body = self._ask(self._creating, "POST", path, obj)
        if body.get("kind") != obj["kind"]:
            self.refused.append(f"{obj['metadata']['name']}: {body.get('message', body)}")
        self.made += 1

    # --- metrics ----------------------------------------------------------------------------------

    def _scrape(self) -> None:
        """All targets, as Prometheus does. The cluster's metrics are missing while no exporter has
        the numbers, those of a node while its exporter does not answer.
        """
        self.scrapes += 1
        exporters = self._addresses(SYSTEM, "fairlead-cluster-exporter")
        found = any(b"\nfairlead_cluster_gpu_memory_bytes" in _page(a, 9401) for _, a in exporters)
        self._count("cluster", found=found)
        answered = {
            node
            for node, address in self._addresses(NODE_SPACE, "fairlead-gpu-exporter")
            if b"\nfairlead_gpu_" in _page(address, 9400)
        }
        for node in self._cluster.nodes:
            self._count(node, found=node in answered)

    def _count(self, name: str, *, found: bool) -> None:
        now = time.monotonic()
        self.gaps[name] = max(self.gaps.get(name, 0.0), now - self._seen.setdefault(name, now))
        if found:
            self._seen[name] = now

    def _addresses(self, namespace: str, part: str) -> list[tuple[str, str]]:
        """Nodes and addresses of the running pods of a part."""
        label = quote(f"app.kubernetes.io/name={part}")
        path = f"/api/v1/namespaces/{namespace}/pods?labelSelector={label}"
        pods = self._ask(self._scraping, "GET", path).get("items", [])
        return [
            (pod["spec"]["nodeName"], pod["status"]["podIP"])
            for pod in pods
            if pod["status"].get("podIP") and pod["spec"].get("nodeName") in self._cluster.nodes
        ]

    # --- console ----------------------------------------------------------------------------------

    def _port_forward(self) -> Component:
        words = ["-n", SYSTEM, "port-forward", "deployment/fairlead-console", f"{self._port}:8080"]
        plane = self._cluster.plane
        return Component(
            "kubectl port-forward",
            [program("kubectl"), f"--kubeconfig={plane.kubeconfig}", *words],
            plane.logs / "load-port-forward.log",
        )

    def _open(self) -> None:
        """One page. `kubectl port-forward` ends with its pod; a user starts it again."""
        if not self._forward.is_running:
            self._forward.start()
        if not is_listening(self._port):
            return
        line = http.client.HTTPConnection("127.0.0.1", self._port, timeout=10)
        try:
            line.request("GET", PAGE, headers=self._signed_in)
            answer = line.getresponse()
            body = answer.read()
            self.answers += answer.status == 200
            if answer.status != 200:
                self.pages.append(f"{answer.status} {PAGE}: {body[:300]!r}")
                self.pages += self._consoles()
        except (OSError, http.client.HTTPException):
            # The pod has gone, and with it the forwarded port.
            if self._forward.is_running:
                self._forward.stop()
        finally:
            line.close()

    def _consoles(self) -> list[str]:
        """Pods of the console, each with what a reader of a failed test asks."""
        parts = "{.metadata.name} {.status.containerStatuses[0]} {.metadata.deletionTimestamp}"
        words = f"jsonpath={{range .items[*]}}{parts}{{'\\n'}}{{end}}"
        label = "app.kubernetes.io/name=fairlead-console"
        admin = self._cluster.plane.admin
        return admin.run("get", "pods", "-n", SYSTEM, "-l", label, "-o", words).splitlines()

    def _listen(self) -> None:
        """The event stream of an open page, opened again when it ends."""
        while not self._ended.wait(0.5):
            line = http.client.HTTPConnection("127.0.0.1", self._port, timeout=5)
            with contextlib.suppress(OSError, http.client.HTTPException):
                line.request("GET", "/api/v1/changes", headers=self._signed_in)
                answer = line.getresponse()
                if answer.status != 200:
                    self.pages.append(f"{answer.status} /changes")
                while not self._ended.is_set() and answer.readline():
                    self.hints += 1
            line.close()

    # --- API server -------------------------------------------------------------------------------

    def _line(self) -> http.client.HTTPSConnection:
        plane = self._cluster.plane
        context = ssl.create_default_context(cafile=str(plane.authority))
        context.load_cert_chain(*plane.admin_pair)
        return http.client.HTTPSConnection("127.0.0.1", plane.port, timeout=30, context=context)

    def _ask(
        self, line: http.client.HTTPSConnection, verb: str, path: str, body: object = None
    ) -> Object:
        headers = {"Content-Type": "application/json"}
        line.request(verb, path, None if body is None else json.dumps(body), headers)
        found: Object = json.loads(line.getresponse().read())
        return found


def _page(address: str, port: int) -> bytes:
    """/metrics; b"" without an answer."""
    line = http.client.HTTPConnection(address, port, timeout=2)
    try:
        line.request("GET", "/metrics")
        answer = line.getresponse()
        return b"\n" + answer.read() if answer.status == 200 else b""
    except (TimeoutError, OSError, http.client.HTTPException):
        return b""
    finally:
        line.close()


def _is_real(number: int) -> bool:
    return number % REAL_EVERY == 0 and number < REAL_EVERY * REAL_MOST


def load_pod(number: int) -> Object:
    """On a played node, for a second."""
    toleration = {"key": PLAYED, "operator": "Exists"}
    where = {"nodeSelector": {PLAYED: "true"}, "tolerations": [toleration]}
    meta = {"name": f"p{number}", "annotations": {RUN_TIME: "1s"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {**_pod_spec(), **where}}


def load_job(number: int) -> Object:
    """On a real node.

    Its pod does not end: with pods that end, a kubelet may give the same ids to two pods
    (docs/project/limits.md#sharing-gpus).
    """
    spec = {"backoffLimit": 20, "template": {"spec": _pod_spec()}}
    meta = {"name": f"j{number}"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


def _pod_spec() -> Object:
    """One unit of a card."""
    limits = {"cpu": "10m", "aliyun.com/gpu-mem": "1"}
    container = {"name": "main", "image": BUSYBOX, "resources": {"limits": limits}}
    container |= {"imagePullPolicy": "Never", "command": ["sleep", "1000000"]}
    return {
        "containers": [container],
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
    }


@contextmanager
def running_load(cluster: Cluster) -> Iterator[tuple[Load, ShareTruth]]:
    """The load for the block, once pods are placed; its pods are gone at the end."""
    admin = cluster.plane.admin
    admin.run("create", "namespace", PLACE)
    with ExitStack() as leaving:
        leaving.callback(_remove_namespace, cluster)
        leaving.enter_context(played_nodes(cluster))
        leaving.callback(_remove_pods, cluster)
        truth, load = ShareTruth(cluster.plane), Load(cluster)
        leaving.callback(truth.stop)
        leaving.callback(load.stop)
        load.start()
        wait_until("pods are placed", lambda: len(truth.placements) > 10, 120)
        wait_until("the console answers", lambda: load.answers > 3, 120)
        yield load, truth


def _remove_namespace(cluster: Cluster) -> None:
    admin = cluster.plane.admin
    admin.run("delete", "namespace", PLACE, "--wait=false")
    place = f"--field-selector=metadata.name={PLACE}"
    wait_until("the load's namespace is gone", lambda: not admin.get("namespaces", place), 300)


def _remove_pods(cluster: Cluster) -> None:
    """While KWOK still plays their kubelets. One request for each kind: they are thousands."""
    for group, kind in (("apis/batch/v1", "jobs"), ("api/v1", "pods")):
        path = f"/{group}/namespaces/{PLACE}/{kind}?gracePeriodSeconds=0"
        cluster.plane.admin.run("delete", "--raw", f"{path}&propagationPolicy=Background")
