"""GPU exporters found by their pods: the pods of the shipped manifest on a served API, with real
pages on loopback; pods come, go and move.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from tests.contracts.api_client import ApiClient
from tests.contracts.simulated import simulated_server
from tests.edge import scripted
from tests.edge.exporter_pages import native_page, running
from tests.edge.scripted import ScriptedServer, status
from tests.edge.twins import connection_to
from tests.waiting import until

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.files.clock import WallClock
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.prometheus.exporter_pages import ExporterPages
from fairlead.edge.queries.exporter_pods import ExporterPods, PodSearch
from fairlead.model.devices.exporter_pod import ExporterPod
from fairlead.model.installation import Installation
from fairlead.model.source import SourceState
from fairlead.wire.installation.reading_parts import gpu_exporter

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
NAMESPACE = "fairlead-nodes"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


def manifest_pod(
    name: str, port: int, namespace: str = NAMESPACE, node: str = "n1"
) -> dict[str, Any]:
    """A pod of the DaemonSet in the shipped manifest, on another port."""
    documents = yaml.safe_load_all((DEPLOY / "gpu-exporter.yaml").read_text(encoding="utf-8"))
    template = next(each for each in documents if each["kind"] == "DaemonSet")["spec"]["template"]
    (container,) = template["spec"]["containers"]
    container["ports"][0]["containerPort"] = port
    spec = {
        "nodeName": node,
        "containers": [{key: container[key] for key in ("name", "image", "ports")}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, **template["metadata"]},
        "spec": spec,
    }


def test_with_its_value_the_exporter_may_read_the_kernels_log() -> None:
    """docs/spec/telemetry.md#alerts-on-xid-errors: an XID that occurred during a restart is only in
    the kernel's log, which only a `privileged` container may open.
    """
    [daemon_set] = [
        each for each in gpu_exporter(Installation(kernel_log=True)) if each["kind"] == "DaemonSet"
    ]
    spec = daemon_set["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    volume = next(
        each["name"] for each in spec["volumes"] if each["hostPath"]["path"] == "/dev/kmsg"
    )
    assert [each["mountPath"] for each in container["volumeMounts"] if each["name"] == volume] == [
        "/dev/kmsg"
    ]
    assert not [word for word in container["command"] if word.startswith("--kmsg")], (
        "on is the default"
    )
    assert (
        container["securityContext"]["privileged"]
        and "allowPrivilegeEscalation" not in container["securityContext"]
    )


class Cluster:
    """An API server without a kubelet: the test sets the pods' states."""

    def __init__(self, client: ApiClient, api: KubeApi) -> None:
        self.client = client
        self.api = api
        for name in (NAMESPACE, "elsewhere"):
            client.post(
                "/api/v1/namespaces",
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
            )

    def start(self, pod: dict[str, Any], ip: str = "127.0.0.1") -> None:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"
        assert (answer := self.client.post(path, pod)).status == 201, answer
        self.move(pod, ip)

    def move(self, pod: dict[str, Any], ip: str, phase: str = "Running") -> None:
        path = (
            f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/"
            "status"
        )
        assert (
            answer := self.client.patch(path, {"status": {"phase": phase, "podIP": ip}})
        ).status == 200, answer

    def stop(self, name: str) -> None:
        assert self.client.delete(f"{PODS}/{name}", gracePeriodSeconds=0).status == 200


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    with simulated_server(tmp_path, WallClock()) as server:
        connection = find_connection(str(server.kubeconfig), None, env={})
        assert connection is not None
        async with KubeApi(connection) as api:
            yield Cluster(ApiClient("simulated", server.kubeconfig), api)


@contextlib.asynccontextmanager
async def served_page(text: str, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[int]:
    """The port of a server whose page has this text."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=text)

    app = web.Application()
    app.router.add_get("/metrics", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, host, port).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def cards(pages: ExporterPages) -> list[tuple[str, str]]:
    return sorted((each.node, each.uuid) for each in pages.latest())


async def test_exporters_are_found_by_their_pods_come_go_and_move(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = native_page("n1", "GPU-1", 5), native_page("n2", "GPU-2", 5)
    async with (
        served_page(first) as one,
        served_page(second) as two,
        served_page(first, "127.0.0.2") as moved,
    ):
        finder = ExporterPods(cluster.api, WallClock())
        async with running(
            ExporterPages(
                [], WallClock(), interval_seconds=0.05, stale_after_seconds=1.0, finder=finder
            )
        ) as pages:
            await until(lambda: pages.source().state == SourceState.OFF)
            assert (
                "there is no pod with labels `app.kubernetes.io/name=fairlead-gpu-exporter`"
            ) in pages.source().message
            assert "parts.gpuExporter=true" in pages.source().hint

            cluster.start(manifest_pod("exporter-a", one))
            await until(lambda: cards(pages) == [("n1", "GPU-1")])
            cluster.start(manifest_pod("exporter-b", two, node="n2"))
            cluster.start(manifest_pod("not-ours", 1, namespace="elsewhere"))
            other = manifest_pod("other", 1)
            other["metadata"]["labels"] = {"app.kubernetes.io/name": "something-else"}
            cluster.start(other)
            await until(lambda: cards(pages) == [("n1", "GPU-1"), ("n2", "GPU-2")])
            assert (pages.source().state, pages.tally().read) == ("ok", 2)

            cluster.stop("exporter-b")
            await until(lambda: cards(pages) == [("n1", "GPU-1")])
            again = manifest_pod("exporter-c", moved)
            cluster.stop("exporter-a")
            cluster.start(again, "127.0.0.2")
            await until(lambda: list(finder.pages()) == [f"http://127.0.0.2:{moved}/metrics"])
            await until(lambda: pages.tally().read == 1 and cards(pages) == [("n1", "GPU-1")])
            assert (pages.source().state, pages.source().message) == ("ok", "")
            cluster.stop("exporter-c")
            await until(lambda: pages.source().state == SourceState.FAILING and not pages.latest())
    assert (
        sum(
            "no GPU values: no GPU exporter is found" in each.getMessage()
            for each in caplog.records
        )
        == 1
    )


async def test_a_pod_whose_address_changes_is_read_there(cluster: Cluster) -> None:
    page = native_page("n1", "GPU-1", 5)
    async with served_page(page) as port, served_page(page, "127.0.0.2", port):
        finder = ExporterPods(cluster.api, WallClock())
        async with running(
            ExporterPages([], WallClock(), interval_seconds=0.05, finder=finder)
        ) as pages:
            pod = manifest_pod("exporter-a", port)
            cluster.start(pod)
            await until(lambda: list(finder.pages()) == [f"http://127.0.0.1:{port}/metrics"])
            cluster.move(pod, "127.0.0.2")
            await until(lambda: list(finder.pages()) == [f"http://127.0.0.2:{port}/metrics"])
            await until(lambda: pages.tally().read == 1 and cards(pages) == [("n1", "GPU-1")])
            cluster.move(pod, "127.0.0.2", "Failed")
            await until(lambda: "none of 1 pods" in pages.source().message)


async def test_a_page_that_does_not_name_its_node_is_its_pods_nodes(cluster: Cluster) -> None:
    text = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",modelName="T4"} 5\n'
    async with served_page(text) as port:
        finder = ExporterPods(cluster.api, WallClock())
        async with running(
            ExporterPages([], WallClock(), interval_seconds=0.05, finder=finder)
        ) as pages:
            cluster.start(manifest_pod("exporter-a", port, node="n7"))
            await until(lambda: cards(pages) == [("n7", "GPU-1")])


async def test_a_pod_without_the_port_is_reported(cluster: Cluster) -> None:
    finder = ExporterPods(cluster.api, WallClock(), PodSearch(port="web"))
    async with running(ExporterPages([], WallClock(), finder=finder)) as pages:
        cluster.start(manifest_pod("exporter-a", 9400))
        await until(lambda: pages.source().state == SourceState.FAILING)
    source = pages.source()
    message = (
        f"pod `{NAMESPACE}/exporter-a` has no port `web`",
        "name its port with `--gpu-exporter-port`",
    )
    assert (source.message, source.hint) == message


async def test_a_user_that_may_not_list_pods_gets_the_reason() -> None:
    refused = status(
        403,
        "Forbidden",
        ('pods is forbidden: User "u" cannot list resource "pods" in API group ""'),
    )
    with ScriptedServer({PODS: [refused]}) as server:
        async with KubeApi(connection_to(server.url)) as api:
            async with running(
                ExporterPages([], WallClock(), finder=ExporterPods(api, WallClock()))
            ) as pages:
                await until(lambda: pages.source().state == SourceState.FORBIDDEN)
            assert "cannot list resource" in pages.source().message
    assert {each.query["labelSelector"] for each in server.requests_of(PODS)} == {
        "app.kubernetes.io/name=fairlead-gpu-exporter"
    }


def test_a_port_may_be_a_number() -> None:
    pod = ExporterPod("ns", "p", ip="10.0.0.7", ports={"metrics": 9400})
    urls = [PodSearch(port=port).url_of(pod) for port in ("metrics", "9500", "web")]
    assert urls == ["http://10.0.0.7:9400/metrics", "http://10.0.0.7:9500/metrics", ""]


@pytest.mark.parametrize(
    ("labelled", "found"),
    [
        (["gpu-nodes"], "gpu-nodes"),
        (["a", NAMESPACE], NAMESPACE),
        ([], NAMESPACE),
        (None, NAMESPACE),
    ],
    ids=["elsewhere", "default-first", "no-label", "not-allowed"],
)
async def test_without_a_name_the_namespace_is_the_installations(
    labelled: list[str] | None, found: str
) -> None:
    items = [{"metadata": {"name": name, "uid": name}} for name in labelled or ()]
    spaces = status(403, "Forbidden", "no") if labelled is None else scripted.page(items)
    path = f"/api/v1/namespaces/{found}/pods"
    script = {
        "/api/v1/namespaces": [spaces],
        path: [scripted.page([])],
        f"watch {path}": [scripted.Stream(then="hold")],
    }
    with ScriptedServer(script) as server:
        async with KubeApi(connection_to(server.url)) as api:
            pods = ExporterPods(api, WallClock(), PodSearch(namespace=None))
            running_search = asyncio.create_task(pods.run())
            await until(lambda: pods.source().state is SourceState.OFF)
            running_search.cancel()
    assert f"in namespace `{found}`" in pods.source().message
    (seen,) = server.requests_of("/api/v1/namespaces")
    assert seen.query["labelSelector"] == "fairlead.io/installation=nodes"
