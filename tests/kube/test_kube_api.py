"""Do both Kubernetes clients and the reflector agree with kubectl on a real API server?

Writes touch only ConfigMaps of a namespace of their own: other tests count nodes, pods and jobs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import Struct
from tests.edge.twins import REAL_TWINS, TWINS, Twin, node_reader, pod_reader
from tests.kube.connections import connect
from tests.kube.control_plane import ControlPlane
from tests.waiting import until

from fairlead.edge.files.clock import WallClock
from fairlead.edge.kube import api_request
from fairlead.edge.kube.api_failure import Conflict, Gone, NotServed, Unauthorized, Unreachable
from fairlead.edge.kube.api_page import ItemReader, ObjectMeta
from fairlead.edge.kube.api_request import Selection
from fairlead.edge.kube.cluster import KubeCluster
from fairlead.edge.kube.kube_api import KubeApi
from fairlead.edge.kube.reflector import Mirror, Reflector
from fairlead.edge.kube.resource import PODS, Resource
from fairlead.errors import Forbidden
from fairlead.wire.kube.forms import JsonForm

NAMESPACE = "edge-tests"
CONFIG_MAPS = Resource("", "v1", "configmaps", kind="ConfigMap")
REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", is_namespaced=False)


class WireConfigMap(Struct):
    metadata: ObjectMeta
    data: dict[str, str] | None = None


class Leaflet(Struct, frozen=True):
    name: str
    text: str


def leaflet_reader() -> ItemReader[Leaflet]:
    return ItemReader(
        CONFIG_MAPS,
        JsonForm(
            WireConfigMap,
            lambda wire: Leaflet(wire.metadata.name or "", (wire.data or {}).get("text", "")),
        ),
    )


def leaflet(name: str, text: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"leaflet": "yes"}},
        "data": {"text": text},
    }


ONLY_LEAFLETS = Selection(NAMESPACE, labels="leaflet=yes")


def with_user(source: Path, target: Path, **changes: Any) -> Path:
    """A copy of the kubeconfig with other fields of its user (or, by the key `cluster`, of its
    cluster).
    """
    document = yaml.safe_load(source.read_text())
    document["clusters"][0]["cluster"].update(changes.pop("cluster", {}))
    document["users"][0]["user"].update(changes)
    target.write_text(yaml.safe_dump(document))
    return target


@pytest.fixture(scope="module")
def namespace(company: ControlPlane) -> Iterator[str]:
    company.admin.run("create", "namespace", NAMESPACE)
    yield NAMESPACE
    company.admin.run("delete", "namespace", NAMESPACE, "--wait=false")


@pytest.fixture(params=REAL_TWINS.keys())
def twin(request: pytest.FixtureRequest, company: ControlPlane) -> Twin:
    return REAL_TWINS[request.param](connect(company.kubeconfig))


def test_lists_are_kubectls(twin: Twin, company: ControlPlane) -> None:
    nodes = twin.call("list_all", node_reader())
    pods = twin.call("list_all", pod_reader(), Selection(fields="spec.nodeName!="))
    assert sorted(row.name for row in nodes.rows.values()) == sorted(
        each["metadata"]["name"] for each in company.admin.get("nodes")
    )
    bound = [each for each in company.admin.get("pods") if each["spec"].get("nodeName")]
    assert {(row.name, row.node) for row in pods.rows.values()} == {
        (each["metadata"]["name"], each["spec"]["nodeName"]) for each in bound
    }
    assert (nodes.malformed, pods.malformed) == ([], [])


def test_a_list_in_small_pages_is_the_whole_list(
    twin: Twin, company: ControlPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api_request, "PAGE_SIZE", 7)
    listing = twin.call("list_all", pod_reader())
    expected = len(company.admin.get("pods"))
    assert (len(listing.rows), twin.requests_total) == (expected, -(-expected // 7))


def test_discovery_is_one_request_and_knows_the_crds(twin: Twin) -> None:
    found = twin.call("discovery", ["kubeflow.org"])
    assert twin.requests_total == 1
    served = found.find("kubeflow.org", "mpijobs", ("v2beta1", "v1"))
    assert (served.version, served.kind, served.is_namespaced) == ("v2beta1", "MPIJob", True)
    assert found.find("apps", "deployments").version == "v1"
    assert found.find("kubeflow.org", "nonsense") is None
    assert twin.call("version").numbers >= (1, 30)


def test_a_life_of_writes(twin: Twin, company: ControlPlane, namespace: str) -> None:
    twin.call("create", CONFIG_MAPS, leaflet("dry", "x"), namespace, dry_run=True)
    with pytest.raises(NotServed, match='configmaps "dry" not found'):
        twin.call("get", CONFIG_MAPS, "dry", namespace)
    made = twin.call("create", CONFIG_MAPS, leaflet("life", "one"), namespace)
    with pytest.raises(Conflict, match="already exists"):
        twin.call("create", CONFIG_MAPS, leaflet("life", "one"), namespace)
    twin.call("patch", CONFIG_MAPS, "life", {"data": {"merge": "two"}}, namespace)
    twin.call(
        "patch",
        CONFIG_MAPS,
        "life",
        [{"op": "add", "path": "/data/json", "value": "three"}],
        namespace,
        kind="json",
    )
    apply = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "life"},
        "data": {"apply": "four", "text": "taken"},
    }
    with pytest.raises(Conflict, match="conflict"):
        twin.call(
            "patch", CONFIG_MAPS, "life", apply, namespace, kind="apply", field_manager="other"
        )
    twin.call(
        "patch",
        CONFIG_MAPS,
        "life",
        apply,
        namespace,
        kind="apply",
        field_manager="other",
        force=True,
    )
    [seen] = company.admin.get("configmaps", "-n", namespace, "--field-selector=metadata.name=life")
    assert seen["data"] == {"text": "taken", "merge": "two", "json": "three", "apply": "four"}
    with pytest.raises(Conflict, match="modified"):
        twin.call("update", CONFIG_MAPS, "life", made, namespace)
    twin.call("delete", CONFIG_MAPS, "life", namespace)
    with pytest.raises(NotServed):
        twin.call("delete", CONFIG_MAPS, "life", namespace)


def test_the_user_that_the_server_sees(company: ControlPlane, tmp_path: Path) -> None:
    def username(kubeconfig: Path, kind: str) -> str:
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        return str(
            TWINS[kind](connect(kubeconfig)).call("create", REVIEWS, review)["status"]["userInfo"][
                "username"
            ]
        )

    ann = with_user(
        company.kubeconfig, tmp_path / "ann", **{"as": "ann", "as-groups": ["system:authenticated"]}
    )
    for kind in TWINS:
        assert username(company.kubeconfig, kind) == "admin"
        assert username(ann, kind) == "ann"
        assert username(company.write_user_kubeconfig("carol"), kind) == "carol"


def test_a_user_without_rights_gets_the_servers_refusal(company: ControlPlane) -> None:
    kubeconfig = company.write_user_kubeconfig("dave")
    for make in TWINS.values():
        with pytest.raises(
            Forbidden,
            match=('User "dave" cannot list resource "pods" in API group "" at the cluster scope'),
        ):
            make(connect(kubeconfig)).call("list_all", pod_reader())


def test_a_rotated_token_file_is_read_again_on_401(company: ControlPlane, tmp_path: Path) -> None:
    nodes_only = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    kubeconfig = company.write_service_account_kubeconfig("edge-reader", nodes_only)
    token = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]["token"]
    (tmp_path / "token").write_text("stale")
    with_file = with_user(kubeconfig, tmp_path / "config", token=None, tokenFile="token")
    for make in TWINS.values():
        client = make(connect(with_file))
        with pytest.raises(Unauthorized):
            client.call("list_all", node_reader())
        (tmp_path / "token").write_text(token)
        assert client.call("list_all", node_reader()).rows
        (tmp_path / "token").write_text("stale")


def test_another_authority_is_not_trusted(company: ControlPlane, tmp_path: Path) -> None:
    from tests.edge.pki import Authority

    (tmp_path / "other.crt").write_bytes(Authority("other").pem)
    changed = {
        "certificate-authority-data": None,
        "certificate-authority": str(tmp_path / "other.crt"),
    }
    kubeconfig = with_user(company.kubeconfig, tmp_path / "config", cluster=changed)
    for make in TWINS.values():
        with pytest.raises(Unreachable) as caught:
            make(connect(kubeconfig)).call("version")
        sentence = f"the certificate of API server `{company.server}` is not trusted: "
        assert caught.value.what.startswith(sentence)


async def test_a_mirror_follows_every_change(company: ControlPlane, namespace: str) -> None:
    async with KubeApi(connect(company.kubeconfig)) as api:
        mirror: Mirror[Leaflet] = Mirror(lambda row: row.name)
        reflector = Reflector(
            api, leaflet_reader(), "leaflets", mirror.observe, selection=ONLY_LEAFLETS
        )
        task = asyncio.create_task(reflector.run())
        await until(lambda: reflector.is_current)
        for number in range(30):
            await api.create(CONFIG_MAPS, leaflet(f"leaf-{number:02}", "new"), namespace)
        for number in range(0, 30, 2):
            await api.patch(
                CONFIG_MAPS, f"leaf-{number:02}", {"data": {"text": "changed"}}, namespace
            )
        for number in range(0, 30, 3):
            await api.delete(CONFIG_MAPS, f"leaf-{number:02}", namespace)
        await until(lambda: reflector.events_total >= 55)
        reported = company.admin.get("configmaps", "-n", namespace, "-l", "leaflet=yes")
        assert [(row.name, row.text) for row in mirror.rows()] == sorted(
            (each["metadata"]["name"], each["data"]["text"]) for each in reported
        )
        assert (reflector.events_total, reflector.lists_total) == (55, 1)
        await end(task)


async def test_a_cluster_read_with_few_rights_lists_what_is_missing(company: ControlPlane) -> None:
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}]
    kubeconfig = company.write_service_account_kubeconfig("edge-nodes-only", rules)
    async with KubeApi(connect(kubeconfig)) as api:
        cluster = KubeCluster(api, WallClock())
        task = asyncio.create_task(cluster.run())
        await until(lambda: cluster.is_ready)
        snapshot = cluster.snapshot()
        assert len(snapshot.nodes) == len(company.admin.get("nodes"))
        assert snapshot.sources["nodes"].state == "ok"
        assert snapshot.sources["pods"].state == "forbidden"
        assert "edge-nodes-only" in snapshot.sources["pods"].message
        assert snapshot.sources["mpijobs"].state == "forbidden"
        await end(task)


async def test_a_whole_cluster_becomes_a_snapshot(company: ControlPlane) -> None:
    async with KubeApi(connect(company.kubeconfig)) as api:
        cluster = KubeCluster(api, WallClock())
        task = asyncio.create_task(cluster.run())
        await until(lambda: cluster.is_ready)
        snapshot = cluster.snapshot()
        assert len(snapshot.pods) == len(company.admin.get(PODS.plural))
        assert {(job.kind, job.name) for job in snapshot.jobs} == {
            (each["kind"], each["metadata"]["name"])
            for plural in ("mpijobs", "tfjobs", "pytorchjobs")
            for each in company.admin.get(plural)
        }
        await end(task)


async def test_an_api_server_that_restarts_is_followed_on_and_keeps_no_old_version(
    company: ControlPlane, namespace: str
) -> None:
    async with KubeApi(connect(company.kubeconfig)) as api:
        mirror: Mirror[Leaflet] = Mirror(lambda row: row.name)
        reflector = Reflector(
            api, leaflet_reader(), "leaflets", mirror.observe, selection=ONLY_LEAFLETS
        )
        task = asyncio.create_task(reflector.run())
        await api.create(CONFIG_MAPS, leaflet("before", "x"), namespace)
        await until(lambda: any(row.name == "before" for row in mirror.rows()))
        server = company.components["kube-apiserver"]
        server.kill()
        await until(lambda: reflector.last_error is not None)
        assert any(row.name == "before" for row in mirror.rows())
        assert not reflector.is_current
        # not in a worker thread: a component dies with the thread that started it
        company.start_component("kube-apiserver")
        await api.create(CONFIG_MAPS, leaflet("after", "x"), namespace)
        await until(lambda: any(row.name == "after" for row in mirror.rows()))
        # the row may have come with a new list, before its watch
        await until(lambda: reflector.is_current)
        # the restarted server's cache begins with its own start
        with pytest.raises(Gone, match="too old resource version"):
            async with asyncio.timeout(20):
                async for _ in api.watch(pod_reader(), "1"):
                    pass
        await end(task)


async def end(task: asyncio.Task[None]) -> None:
    assert not task.done(), "it ended by itself"
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
