"""A real API server's protobuf and its JSON produce the same rows: lists and watches of random
objects, each kind, and refusals.

The numbers of fields come from Kubernetes's Go types. A wrong number fails here, because the API
server does not share Fairlead's table.
"""

from __future__ import annotations

import asyncio
import random
import re
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from msgspec import structs
from tests.contracts.api_client import ApiClient
from tests.kube.connections import connect
from tests.kube.control_plane import ControlPlane
from tests.kube.servers import environment
from tests.programs import run_program
from tests.waiting import until, wait_until
from tests.wire.message_readers import READERS

from fairlead.edge.kube.api_page import Change, ItemReader, Listing
from fairlead.edge.kube.api_request import Selection, list_request
from fairlead.edge.kube.conversation import PROTOBUF_OR_JSON, is_protobuf
from fairlead.edge.kube.kube_api import KubeApi

MARK: Final = "test.fairlead.io/form"
SEED = 20_261_125
WORDS = ("", "a", "gpu-1", "two words", 'quo"te \\ and <tag>', "雪", "line\nline", "x" * 300)
LABELS = ("", "a", "gpu-1", "A.b_c", "x" * 63)
AMOUNTS = ("1", "500m", "16Gi", "1e3", "0.5", "1500Mi", "100000n")
ANNOTATIONS = (
    "fairlead.io/gpu-allocation",
    "ALIYUN_COM_GPU_MEM_IDX",
    "fairlead.io/gpu-mem-limit-mib",
    "k8s.v1.cni.cncf.io/status",
    "x",
)


class Chance:
    """Random objects that an API server accepts, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def some(self, **parts: Any) -> dict[str, Any]:
        """A random half of these parts; each is a value or a function that draws one."""
        return {
            name: part() if callable(part) else part
            for name, part in parts.items()
            if self._rng.random() < 0.5
        }

    def word(self) -> str:
        return self._rng.choice(WORDS)

    def time(self) -> str:
        of = self._rng.randint
        return f"20{of(10, 40)}-0{of(1, 9)}-1{of(0, 9)}T08:{of(10, 59)}:07Z"

    def amounts(self) -> dict[str, str]:
        whole = {"nvidia.com/gpu": "2", "aliyun.com/gpu-mem": "15"}
        return self.some(
            cpu="750m",
            memory=lambda: self._rng.choice(AMOUNTS),
            **{"ephemeral-storage": "20Gi"},
            **whole,
        )

    def meta(self, name: str) -> dict[str, Any]:
        labels = {
            MARK: "yes",
            **self.some(
                app=lambda: self._rng.choice(LABELS),
                **{"example.com/role": lambda: self._rng.choice(LABELS)},
            ),
        }
        reported = [
            f'{{"c0":[{{"index":{self._rng.randint(0, 7)},"units":4}}]}}',
            '{"c0":3500}',
            "1",
            self.word(),
        ]
        return {
            "name": name,
            "labels": labels,
            **self.some(
                annotations=self.some(**{key: self._rng.choice(reported) for key in ANNOTATIONS})
            ),
        }

    def container(self, name: str) -> dict[str, Any]:
        limits = self.amounts()
        return {
            "name": name,
            "image": self._rng.choice(("train:1", "registry.example/a/b@sha256:" + "0" * 64)),
            "resources": {"limits": limits} if self._rng.random() < 0.7 else {},
            **self.some(
                env=[{"name": "WORD", "value": self.word()}],
                command=["sh", "-c", self.word()],
                ports=[{"containerPort": 80}],
            ),
        }

    def pod(self, name: str) -> dict[str, Any]:
        spec = {
            "schedulerName": "nobody",
            "containers": [self.container(f"c{place}") for place in range(self._rng.randint(1, 3))],
            **self.some(
                initContainers=lambda: [
                    self.container("i0"),
                    {**self.container("i1"), "restartPolicy": "Always"},
                ],
                nodeSelector={"pool": "a", "zone": "b"},
                tolerations=[
                    {"operator": "Exists"},
                    {"key": "gpu", "value": "yes", "effect": "NoExecute", "tolerationSeconds": 7},
                ],
                schedulingGates=[{"name": "example.com/a"}, {"name": "example.com/b"}],
                terminationGracePeriodSeconds=lambda: self._rng.choice((0, 1, 30, 1 << 33)),
                affinity=self.affinity,
                volumes=[
                    {"name": "data", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
                    {"name": "own", "persistentVolumeClaim": {"claimName": "raw-acc"}},
                ],
                resources={"limits": {"cpu": "8", "memory": "64Gi"}},
                priorityClassName="system-node-critical",
            ),
        }
        return {"apiVersion": "v1", "kind": "Pod", "metadata": self.meta(name), "spec": spec}

    def affinity(self) -> dict[str, Any]:
        expression = {
            "key": "zone",
            "operator": self._rng.choice(("In", "NotIn")),
            "values": ["b", "c"],
        }
        terms = [
            {"matchExpressions": [expression]},
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]},
        ]
        return {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
            }
        }

    def state(self) -> dict[str, Any]:
        ended = {"exitCode": self._rng.randint(0, 255)}
        ended |= self.some(signal=9, reason=self.word, message=self.word, startedAt=self.time)
        waits = self.some(reason=self.word, message=self.word)
        return self._rng.choice(
            (
                {},
                {"waiting": waits},
                {"running": self.some(startedAt=self.time)},
                {"terminated": ended},
            )
        )

    def container_status(self, container: Mapping[str, Any]) -> dict[str, Any]:
        given = {"cpu": "2", "memory": "1Gi"}
        return {
            "name": container["name"],
            "image": container["image"],
            "imageID": self.word(),
            "ready": self._rng.random() < 0.5,
            "restartCount": self._rng.randint(0, 1 << 20),
            "state": self.state(),
            **self.some(
                lastState=self.state, started=self._rng.random() < 0.5, allocatedResources=given
            ),
        }

    def condition(self, kind: str) -> dict[str, Any]:
        reported = {"type": kind, "status": self._rng.choice(("True", "False", "Unknown"))}
        return reported | self.some(
            reason=self.word, message=self.word, lastTransitionTime=self.time
        )

    def pod_status(self, pod: Mapping[str, Any]) -> dict[str, Any]:
        reported = list(map(self.container_status, pod["spec"]["containers"]))
        conditions = list(
            map(self.condition, ("PodScheduled", "Initialized", "Ready", "example.com/own"))
        )
        return {
            "phase": self._rng.choice(("Pending", "Running", "Succeeded", "Failed", "Unknown"))
        } | self.some(
            reason=self.word,
            message=self.word,
            hostIP="10.0.0.1",
            startTime=self.time,
            containerStatuses=reported,
            conditions=conditions,
            nominatedNodeName="gpu-1",
        )

    def node(self, name: str) -> dict[str, Any]:
        taints = [
            {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
            {"key": "own", "effect": "PreferNoSchedule"},
        ]
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": self.meta(name),
            "spec": self.some(unschedulable=True, taints=taints),
        }

    def node_status(self) -> dict[str, Any]:
        reported = {
            "architecture": "amd64",
            "kubeletVersion": "v1.36.3",
            "containerRuntimeVersion": "containerd://2",
            "osImage": self.word(),
        }
        rest = (
            "bootID",
            "kernelVersion",
            "kubeProxyVersion",
            "machineID",
            "operatingSystem",
            "systemUUID",
        )
        conditions = [
            {
                "type": "Ready",
                "status": "True",
                **self.some(reason=self.word, message=self.word, lastTransitionTime=self.time),
            }
        ]
        return self.some(
            capacity=self.amounts,
            allocatable=self.amounts,
            conditions=conditions,
            addresses=[
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "Hostname", "address": "n"},
            ],
            nodeInfo=reported | dict.fromkeys(rest, ""),
            images=[{"names": ["a", "b"], "sizeBytes": 1 << 40}],
        )

    def event(self, name: str, namespace: str) -> dict[str, Any]:
        times = self.some(count=7, firstTimestamp=self.time, lastTimestamp=self.time)
        reported = {
            **self.some(type="Warning", reason="FailedScheduling", message=self.word),
            **times,
        }
        if self._rng.random() < 0.4:  # as newer clients write them
            reported |= {
                "eventTime": "2026-01-05T08:00:00.123456Z",
                "action": "a",
                "reason": "r",
                "type": "Normal",
            }
            reported |= {"reportingComponent": "c", "reportingInstance": "i"}
            reported |= self.some(
                series={"count": 3, "lastObservedTime": "2026-01-05T09:00:00.654321Z"}
            )
        about = {
            "kind": "Pod",
            "namespace": namespace,
            **self.some(name="p", uid="u", fieldPath="spec"),
        }
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": self.meta(name),
            "involvedObject": about,
            **reported,
        }


def made(api: ApiClient, path: str, body: dict[str, Any]) -> None:
    answer = api.post(path, body)
    assert answer.status == 201, answer.message


def write_pods(api: ApiClient, chance: Chance, space: str, begins: str) -> None:
    """Write sixty pods, each twice."""
    for number in range(60):
        pod = chance.pod(f"{begins}{number}")
        made(api, f"/api/v1/namespaces/{space}/pods", pod)
        answer = api.patch(
            f"/api/v1/namespaces/{space}/pods/{begins}{number}/status",
            {"status": chance.pod_status(pod)},
        )
        assert answer.status == 200, answer.message


def version_of(api: ApiClient, space: str) -> str:
    """The current version. On a slow machine, after a hundred changes an API server forgets
    versions that are older than a minute.
    """
    return str(api.get(f"/api/v1/namespaces/{space}/pods").body["metadata"]["resourceVersion"])


@pytest.fixture(scope="module")
def written(control_plane: ControlPlane) -> Iterator[str]:
    """The namespace that contains them."""
    api, chance, space = ApiClient("real", control_plane.kubeconfig), Chance(SEED), "test-forms"
    make = partial(made, api)
    make(
        "/api/v1/namespaces",
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": space, "labels": {MARK: "yes"}},
        },
    )
    wait_until(
        "its account",
        lambda: api.get(f"/api/v1/namespaces/{space}/serviceaccounts/default").status == 200,
    )
    write_pods(api, chance, space, "p")
    for number in range(20):
        make("/api/v1/nodes", chance.node(f"form-{number}"))
        assert (
            api.patch(
                f"/api/v1/nodes/form-{number}/status", {"status": chance.node_status()}
            ).status
            == 200
        )
    for number in range(40):
        make(f"/api/v1/namespaces/{space}/events", chance.event(f"e{number}", space))
    for number in range(5):
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {**chance.meta(f"unhealthy-gpu-n{number}")},
            "data": {"gpus": "0,3"},
        }
        make(f"/api/v1/namespaces/{space}/configmaps", body)
    yield space
    api.delete("/api/v1/nodes", labelSelector=MARK)
    api.delete(f"/api/v1/namespaces/{space}")


async def listed(
    control_plane: ControlPlane, reader: ItemReader[Any], *, as_json: bool
) -> Listing[Any]:
    async with KubeApi(connect(control_plane.kubeconfig)) as api:
        if as_json:
            api.conversation.json_only("this test asks for it")
        else:
            request = structs.replace(
                list_request(reader.resource, Selection(), limit=1), accept=PROTOBUF_OR_JSON
            )
            assert is_protobuf((await api.send(request)).headers)
        return await api.list_all(reader, Selection(labels=MARK))


async def listed_in_both(
    control_plane: ControlPlane, reader: ItemReader[Any]
) -> tuple[Listing[Any], Listing[Any]]:
    """In JSON and in protobuf, of one moment: controllers still add taints to the nodes."""
    before = await listed(control_plane, reader, as_json=True)
    while True:
        in_protobuf = await listed(control_plane, reader, as_json=False)
        after = await listed(control_plane, reader, as_json=True)
        if before.rows == after.rows:
            return after, in_protobuf
        before = after


@pytest.mark.parametrize(
    ("kind", "count"),
    [("Pod", 60), ("Node", 20), ("Event", 40), ("Namespace", 1), ("ConfigMap", 5)],
)
async def test_lists_in_both_forms_are_the_same_rows(
    control_plane: ControlPlane, written: str, kind: str, count: int
) -> None:
    async with asyncio.timeout(60):
        in_json, in_protobuf = await listed_in_both(control_plane, READERS[kind])
    assert len(in_json.rows) == count
    for key, row in in_json.rows.items():
        assert in_protobuf.rows[key] == row
    assert (list(in_protobuf.rows), in_protobuf.malformed) == (
        list(in_json.rows),
        in_json.malformed,
    )


IN_JSON = Path(__file__).resolve().parents[2] / "bench" / "support" / "in_json.py"


@pytest.mark.parametrize(
    "words",
    [
        "top node",
        "top node -d",
        "top node -o json",
        "list -A",
        "top job -A",
        "list -A -o yaml",
        "list -A -o json",
    ],
)
def test_commands_print_the_same_bytes_in_both_forms(company: ControlPlane, words: str) -> None:
    """A list of up to 500 items is one page, and the first page comes as JSON. With pages of 5,
    most of the list comes as protobuf.
    """
    asked = [*words.split(), "--kubeconfig", str(company.kubeconfig)]

    def printed(*begin: str) -> str:
        answer = run_program([sys.executable, *begin, *asked], check=True, env=environment())
        return re.sub(r"\b\d+[smhd]\b", "AGE", answer.stdout)

    small_pages = (
        "from fairlead.edge.kube import api_request; api_request.PAGE_SIZE = 5; from "
        "fairlead.run.programs import run_arena; run_arena()"
    )
    in_protobuf = printed("-c", small_pages)
    assert in_protobuf == printed(str(IN_JSON)) and len(in_protobuf.splitlines()) > 3


async def test_watches_in_both_forms_are_the_same_changes(
    control_plane: ControlPlane, written: str
) -> None:
    api_client, space = ApiClient("real", control_plane.kubeconfig), written
    version = version_of(api_client, space)

    async def changes(*, as_json: bool) -> list[Change[Any]]:
        seen: list[Change[Any]] = []
        async with KubeApi(connect(control_plane.kubeconfig)) as api:
            if as_json:
                api.conversation.json_only("this test asks for it")
            async for batch in api.watch(READERS["Pod"], version, Selection(space)):
                seen += batch
                if len(seen) >= 120:
                    break
        return seen

    async with asyncio.timeout(120):
        writing = asyncio.to_thread(write_pods, api_client, Chance(SEED + 1), space, "later-")
        in_json, in_protobuf, _ = await asyncio.gather(
            changes(as_json=True), changes(as_json=False), writing
        )
    assert [each.type for each in in_json[:120]].count("ADDED") == 60
    assert in_protobuf[:120] == in_json[:120]


async def test_a_watch_in_protobuf_receives_a_deletion(
    control_plane: ControlPlane, written: str
) -> None:
    api_client, space = ApiClient("real", control_plane.kubeconfig), written
    version = version_of(api_client, space)
    name = "short-lived"
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "i"}]},
    }
    seen: list[tuple[str, bool]] = []
    async with KubeApi(connect(control_plane.kubeconfig)) as api:

        async def follow() -> None:
            async for batch in api.watch(
                READERS["Pod"], version, Selection(space, fields=f"metadata.name={name}")
            ):
                seen.extend((change.type, change.row is not None) for change in batch)

        following = asyncio.create_task(follow())
        await asyncio.to_thread(api_client.post, f"/api/v1/namespaces/{space}/pods", body)
        await asyncio.to_thread(
            api_client.delete, f"/api/v1/namespaces/{space}/pods/{name}", gracePeriodSeconds="0"
        )
        await until(lambda: ("DELETED", False) in seen, 30)
        following.cancel()
        assert seen[0] == ("ADDED", True)
        assert api.conversation.speaks_protobuf
