"""A company's cluster that grows: nodes of which half share their GPUs, and pods that hold them.

KWOK plays the kubelets. Each node has a pod of a GPU exporter; `page_server` answers for all.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any, Final

import msgspec
from tests.kube.control_plane import ControlPlane
from tests.kube.kwok_stages import READY_DELAY, RUN_TIME
from tests.kube.objects import namespace
from tests.kube.quota_line import bounded
from tests.kube.sharing_words import as_real

from bench.support.clusters import at_once, create
from bench.support.page_server import address_of
from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.api_request import ApiRequest
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.errors import FairleadError
from fairlead.model.refusal import Refusal
from fairlead.rules.sharing.ledger import Ledger
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead.wire.gpus.allocation import render_bind
from fairlead.wire.kube.objects import WireNode, WirePod, parse_node, parse_pod
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.scenario import NodePool, Scenario

Object = dict[str, Any]
MODEL: Final = "Tesla V100-SXM2-16GB"
CARDS: Final = 8
PODS_IN_A_TEAM: Final = 500
NODE_SPACE: Final = "fairlead-nodes"
LOAD: Final = "load"
NOW: Final = 1_767_600_000.0
GPUS: Final = "fairlead.io/gpus"
CPU: Final = 1_000_000
"""What a quota node may use: more than all pods request."""


class Company:
    """What the cluster has so far; `nodes` and `pods` count what was created.

    The pods of GPU exporters, one for each node, come on top. `page_port`: where they serve;
    0: there are none.
    """

    def __init__(self, plane: ControlPlane, most_nodes: int, page_port: int) -> None:
        self.nodes = self.pods = 0
        self._plane = plane
        self._page_port = page_port
        self._made = _nodes(most_nodes)
        self._ledger = Ledger()
        self._teams: list[str] = []
        self._held: dict[str, int] = {}
        self._round = 0

    def names(self) -> list[str]:
        """The names of all nodes that will ever be, in the order of their creation."""
        return [each["metadata"]["name"] for each in self._made]

    def uuids(self) -> dict[str, list[str]]:
        """The GPUs of each node."""
        return {
            each["metadata"]["name"]: [
                card["uuid"] for card in json.loads(each["metadata"]["annotations"][GPUS])
            ]
            for each in self._made
        }

    def grow(self, nodes: int, pods: int) -> None:
        """Create what is missing until there are this many; returns before all pods run.

        New pods are in namespaces of their own: quota would hold them back in those that it has.
        """
        self._round += 1
        asyncio.run(self._grow(nodes, pods))

    @property
    def root(self) -> Object:
        """A quota tree with a leaf for each namespace, and one for the load."""
        spaces = [*self._teams, LOAD]
        share = CPU // (len(spaces) + 1)
        leaves = [bounded(f"root.{each}", share, CPU, [each]) for each in spaces]
        return bounded("root", CPU, CPU, children=leaves)

    async def _grow(self, nodes: int, pods: int) -> None:
        connection = find_connection(str(self._plane.kubeconfig))
        assert connection is not None
        async with KubeApi(connection) as api:
            new = self._made[self.nodes : nodes]
            await at_once(lambda number: create(api, "/api/v1/nodes", new[number]), range(len(new)))
            for each in new:
                self._ledger.set_node(parse_node(_typed(each, WireNode)))
            exporters = [self._exporter(number) for number in range(self.nodes, nodes)]
            self.nodes = nodes
            if self._page_port:
                await at_once(
                    lambda number: _create_exporter(api, exporters[number]), range(len(new))
                )
            made = [self._pod(number) for number in range(self.pods, pods)]
            for space in dict.fromkeys(each["metadata"]["namespace"] for each in made):
                if space not in self._teams:
                    self._teams.append(space)
                    await create(api, "/api/v1/namespaces", namespace(space))
                    account = {"metadata": {"name": "default"}}
                    await _if_new(api, f"/api/v1/namespaces/{space}/serviceaccounts", account)
            await at_once(lambda number: _create_pod(api, made[number]), range(len(made)))
            self.pods = pods

    def _exporter(self, number: int) -> Object:
        """A pod that KWOK does not start: its status is written here."""
        container = {
            "name": "exporter",
            "image": "fairlead:0.1.0",
            "ports": [{"name": "metrics", "containerPort": self._page_port}],
        }
        labels = {"app.kubernetes.io/name": "fairlead-gpu-exporter"}
        meta = {
            "name": f"fairlead-gpu-exporter-{number:05d}",
            "namespace": NODE_SPACE,
            "labels": labels,
            "annotations": {READY_DELAY: "1000h"},
        }
        status = {
            "phase": "Running",
            "podIP": address_of(number),
            "podIPs": [{"ip": address_of(number)}],
        }
        spec = {"nodeName": self.names()[number], "containers": [container]}
        return {"metadata": meta, "spec": spec, "status": status}

    def _pod(self, number: int) -> Object:
        """On a shared node two units of a card; else a whole GPU, or none if all are held."""
        node = self._made[number % self.nodes]
        name = node["metadata"]["name"]
        limits = {"cpu": "1", "memory": "4Gi"}
        is_shared = "cgpu" in node["metadata"]["labels"]
        if is_shared:
            limits |= {"aliyun.com/gpu-mem": "2"}
        elif self._held.get(name, 0) < CARDS:
            self._held[name] = self._held.get(name, 0) + 1
            limits |= {"nvidia.com/gpu": "1"}
        job = f"train-{number // 10:05d}"
        container = {
            "name": "main",
            "image": "registry.example.com/team/train:2026-01-05",
            "command": ["python", "train.py", "--epochs", "90", "--data", "/data/imagenet"],
            "env": [
                {"name": f"SETTING_{index}", "value": f"value-{index}-of-{job}"}
                for index in range(12)
            ],
            "resources": {"limits": limits},
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
        meta: Object = {
            "name": f"{job}-worker-{number % 10}",
            "namespace": f"team-{self._round}-{number // PODS_IN_A_TEAM}",
            "labels": {"app": job, "part": "worker", "index": str(number % 10)},
        }
        pod: Object = {
            "metadata": meta,
            "spec": {
                "nodeName": name,
                "containers": [container],
                "volumes": [{"name": "data", "emptyDir": {}}],
                "automountServiceAccountToken": False,
            },
        }
        if is_shared:
            asking = parse_pod(_typed({**pod, "metadata": {**meta, "uid": f"{number}"}}, WirePod))
            grants = self._ledger.reserve(asking, name)
            assert not isinstance(grants, Refusal), grants.reason
            meta["annotations"] = render_bind(asking, grants, 15, NOW)
        return pod


def passing(number: int) -> Object:
    """A pod that quota admits, that gets one unit of a card, runs for a second, and ends."""
    limits = {"cpu": "10m", "aliyun.com/gpu-mem": "1"}
    container = {"name": "main", "image": "app:1", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "annotations": {RUN_TIME: "1s"}},
        "spec": {
            "containers": [container],
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 0,
        },
    }


def _nodes(count: int) -> list[Object]:
    pools = tuple(
        NodePool(
            name=name,
            count=(count + 1) // 2,
            cpu=256,
            memory="1024Gi",
            gpu_model=MODEL,
            gpus=CARDS,
            shared=name == "shared",
        )
        for name in ("shared", "whole")
    )
    world = sharing_world(Scenario(title="company", node_pools=pools), 1, NOW)
    made = [as_real(each) for each in world.cluster.list(NODES)]
    for each in made:
        each["metadata"]["labels"]["nvidia.com/gpu.present"] = "true"
    shared = [each for each in made if "cgpu" in each["metadata"]["labels"]]
    whole = [each for each in made if "cgpu" not in each["metadata"]["labels"]]
    return list(_in_turns(shared, whole))[:count]


def _in_turns(some: list[Object], others: list[Object]) -> Iterator[Object]:
    for one, other in zip(some, others, strict=True):
        yield one
        yield other


def _typed(obj: Object, form: Any) -> Any:
    return msgspec.json.decode(json.dumps(obj), type=form)


async def _create_exporter(api: KubeApi, pod: Object) -> None:
    path = f"/api/v1/namespaces/{NODE_SPACE}/pods"
    await create(api, path, {key: pod[key] for key in ("metadata", "spec")})
    body = json.dumps({"status": pod["status"]}).encode()
    target = f"{path}/{pod['metadata']['name']}/status"
    await api.send(ApiRequest("patch", "PATCH", target, body, "application/merge-patch+json"))


async def _create_pod(api: KubeApi, pod: Object) -> None:
    await create(api, f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods", pod)


async def _if_new(api: KubeApi, path: str, manifest: Object) -> None:
    """Another controller may have created it already."""
    try:
        await create(api, path, manifest)
    except FairleadError as error:
        if "already exists" not in str(error):
            raise
