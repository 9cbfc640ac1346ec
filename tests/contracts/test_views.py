"""Contract: what kubectl builds its tables, short names and completions from, compared field by
field between the two worlds.
"""

from __future__ import annotations

from typing import Any

import pytest
from tests.contracts.api_client import TABLE, ApiClient
from tests.contracts.conftest import new_space
from tests.contracts.discovery import discovered
from tests.contracts.objects import config_map, config_maps, deployment, deployments, job, pod, pods

Both = tuple[ApiClient, ApiClient]

_COLLECTIONS = (
    *(
        "/api/v1/" + plural
        for plural in (
            "configmaps",
            "endpoints",
            "events",
            "namespaces",
            "nodes",
            "pods",
            "secrets",
            "services",
        )
    ),
    *(
        "/api/v1/" + plural
        for plural in ("persistentvolumes", "persistentvolumeclaims", "serviceaccounts")
    ),
    *(
        "/apis/apps/v1/" + plural
        for plural in ("daemonsets", "deployments", "replicasets", "statefulsets")
    ),
    *("/apis/batch/v1/" + plural for plural in ("cronjobs", "jobs")),
    *(
        "/apis/rbac.authorization.k8s.io/v1/" + plural
        for plural in ("clusterroles", "clusterrolebindings", "roles", "rolebindings")
    ),
    "/apis/coordination.k8s.io/v1/leases",
    "/apis/policy/v1/poddisruptionbudgets",
    "/apis/scheduling.k8s.io/v1/priorityclasses",
    "/apis/storage.k8s.io/v1/storageclasses",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    *(
        "/api/v1/" + plural
        for plural in ("limitranges", "podtemplates", "replicationcontrollers", "resourcequotas")
    ),
    "/apis/apps/v1/controllerrevisions",
    *(f"/apis/autoscaling/{version}/horizontalpodautoscalers" for version in ("v1", "v2")),
    "/apis/discovery.k8s.io/v1/endpointslices",
    "/apis/events.k8s.io/v1/events",
    *(
        "/apis/networking.k8s.io/v1/" + plural
        for plural in ("ingresses", "ingressclasses", "networkpolicies")
    ),
    "/apis/node.k8s.io/v1/runtimeclasses",
    *(
        "/apis/storage.k8s.io/v1/" + plural
        for plural in ("csidrivers", "csinodes", "volumeattachments", "volumeattributesclasses")
    ),
    *(
        f"/apis/admissionregistration.k8s.io/v1/{plural}"
        for kind in ("mutating", "validating")
        for plural in (
            f"{kind}admissionpolicies",
            f"{kind}admissionpolicybindings",
            f"{kind}webhookconfigurations",
        )
    ),
)


@pytest.mark.parametrize("path", _COLLECTIONS)
def test_tables_have_the_columns_of_the_real_server(both: Both, path: str) -> None:
    def columns(api: ApiClient) -> list[tuple[Any, ...]]:
        answer = api.table(path)
        assert (answer.status, answer.body["kind"]) == (200, "Table")
        return [
            tuple(column[key] for key in ("name", "type", "format", "priority"))
            for column in answer.body["columnDefinitions"]
        ]

    simulated, real = both
    assert columns(simulated) == columns(real)


def _cells(api: ApiClient, path: str, name: str) -> Any:
    rows = api.table(path, fieldSelector=f"metadata.name={name}").body["rows"]
    return rows[0]["cells"], rows[0].get("conditions"), rows[0]["object"]["kind"]


def _same_rows(both: Both, make: Any, path: Any, name: str) -> None:
    """Make the same object in both worlds and compare its row; ages are a second or two, so digits
    of `Ns` do not count.
    """

    def row(api: ApiClient) -> Any:
        space = new_space(api)
        make(api, space)
        cells, conditions, kind = _cells(api, path(space), name)
        return [_ageless(cell) for cell in cells], conditions, kind

    simulated, real = both
    assert row(simulated) == row(real)


def _ageless(cell: Any) -> Any:
    text = str(cell)
    return "<age>" if text.endswith("s") and text[:-1].isdecimal() else cell


def _running(restarts: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "name": "main",
        "image": "i",
        "imageID": "",
        "ready": True,
        "restartCount": restarts,
        "state": {"running": {}},
        **more,
    }


def _waiting(reason: str) -> dict[str, Any]:
    return {
        "name": "main",
        "image": "i",
        "imageID": "",
        "ready": False,
        "restartCount": 4,
        "state": {"waiting": {"reason": reason}},
    }


def _ended(code: int, reason: str = "", signal: int = 0) -> dict[str, Any]:
    ended = {"exitCode": code, "signal": signal} | ({"reason": reason} if reason else {})
    return {
        "name": "main",
        "image": "i",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": ended},
    }


_READY = [{"type": "Ready", "status": "True"}]
_INIT = [{"name": "prepare", "image": "i:1"}, {"name": "warm", "image": "i:1"}]
_SIDECAR = [{"name": "proxy", "image": "i:1", "restartPolicy": "Always"}]
_RESTARTED = {"lastState": {"terminated": {"exitCode": 1, "finishedAt": "2020-01-01T00:00:00Z"}}}

_PODS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "new": ({}, {}),
    "gated": (
        {},
        {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}]},
    ),
    "creating": ({}, {"containerStatuses": [_waiting("ContainerCreating")]}),
    "running": (
        {},
        {
            "phase": "Running",
            "conditions": _READY,
            "containerStatuses": [_running()],
            "podIPs": [{"ip": "10.0.0.9"}],
        },
    ),
    "restarted": (
        {},
        {
            "phase": "Running",
            "conditions": _READY,
            "containerStatuses": [_running(3, **_RESTARTED)],
        },
    ),
    "crash loop": ({}, {"phase": "Running", "containerStatuses": [_waiting("CrashLoopBackOff")]}),
    "no image": ({}, {"containerStatuses": [_waiting("ImagePullBackOff")]}),
    "completed": ({}, {"phase": "Succeeded", "containerStatuses": [_ended(0, "Completed")]}),
    "error": ({}, {"phase": "Failed", "containerStatuses": [_ended(1, "Error")]}),
    "oom": ({}, {"phase": "Failed", "containerStatuses": [_ended(137, "OOMKilled")]}),
    "exit code": ({}, {"phase": "Failed", "containerStatuses": [_ended(7)]}),
    "signal": ({}, {"phase": "Failed", "containerStatuses": [_ended(137, signal=9)]}),
    "evicted": ({}, {"phase": "Failed", "reason": "Evicted"}),
    "admission": (
        {},
        {"phase": "Failed", "reason": "UnexpectedAdmissionError", "containerStatuses": []},
    ),
    "init running": (
        {"initContainers": _INIT},
        {
            "initContainerStatuses": [{**_running(), "name": "prepare", "ready": False}],
            "containerStatuses": [_waiting("PodInitializing")],
        },
    ),
    "init second": (
        {"initContainers": _INIT},
        {
            "initContainerStatuses": [
                {**_ended(0, "Completed"), "name": "prepare"},
                {**_waiting("PodInitializing"), "name": "warm"},
            ],
            "containerStatuses": [_waiting("PodInitializing")],
        },
    ),
    "init error": (
        {"initContainers": _INIT},
        {
            "initContainerStatuses": [{**_ended(1, "Error"), "name": "prepare"}],
            "containerStatuses": [_waiting("PodInitializing")],
        },
    ),
    "init crash loop": (
        {"initContainers": _INIT},
        {"initContainerStatuses": [{**_waiting("CrashLoopBackOff"), "name": "prepare"}]},
    ),
    "sidecar": (
        {"initContainers": _SIDECAR},
        {
            "phase": "Running",
            "conditions": [*_READY, {"type": "Initialized", "status": "True"}],
            "initContainerStatuses": [{**_running(2), "name": "proxy", "started": True}],
            "containerStatuses": [_running(1)],
        },
    ),
    "one of two done": (
        {"containers": [{"name": "main", "image": "i:1"}, {"name": "other", "image": "i:1"}]},
        {
            "phase": "Running",
            "containerStatuses": [_ended(0, "Completed"), {**_running(), "name": "other"}],
        },
    ),
    "readiness gates": (
        {"readinessGates": [{"conditionType": "x.io/a"}, {"conditionType": "x.io/b"}]},
        {"conditions": [{"type": "x.io/a", "status": "True"}]},
    ),
    "nominated": ({}, {"nominatedNodeName": "n9"}),
}


@pytest.mark.parametrize("case", _PODS, ids=lambda case: case.replace(" ", "-"))
def test_pods_are_set_to_do_the_same(both: Both, case: str) -> None:
    spec, status = _PODS[case]

    def make(api: ApiClient, space: str) -> None:
        made = api.post(pods(space), pod(spec=spec))
        assert made.status == 201, made.message
        answer = api.patch(pods(space, "a", "status"), {"status": status})
        assert answer.status == 200, answer.message

    _same_rows(both, make, pods, "a")


def test_a_pod_that_is_going(both: Both) -> None:
    def make(api: ApiClient, space: str) -> None:
        api.post(pods(space), pod(spec={"nodeName": "no-such-node"}))
        api.patch(
            pods(space, "a", "status"),
            {"status": {"phase": "Running", "containerStatuses": [_running()]}},
        )
        api.delete(pods(space, "a"))

    _same_rows(both, make, pods, "a")


@pytest.mark.parametrize(
    "status",
    [
        {},
        {
            "startTime": "2026-01-05T08:00:00Z",
            "completionTime": "2026-01-05T08:03:20Z",
            "succeeded": 1,
            "conditions": [
                {"type": "SuccessCriteriaMet", "status": "True"},
                {"type": "Complete", "status": "True"},
            ],
        },
        {"conditions": [{"type": "Suspended", "status": "True"}]},
        {"conditions": [{"type": "FailureTarget", "status": "True"}]},
    ],
    ids=["new", "done", "suspended", "failing"],
)
def test_jobs(both: Both, status: dict[str, Any]) -> None:
    def path(space: str) -> str:
        return f"/apis/batch/v1/namespaces/{space}/jobs"

    def row(api: ApiClient) -> list[Any]:
        space = new_space(api)
        body = job(suspend=False)
        # so that the real controller leaves it alone
        body["spec"]["managedBy"] = "example.com/nobody"
        assert api.post(path(space), body).status == 201
        answer = api.patch(f"{path(space)}/a/status", {"status": status})
        assert answer.status == 200, answer.message
        cells = _cells(api, path(space), "a")[0]
        return [_ageless(cell) for cell in cells[:-1]]  # the selector has the uid in it

    simulated, real = both
    assert row(simulated) == row(real)


def test_other_kinds(both: Both) -> None:
    def make(api: ApiClient, space: str) -> None:
        api.post(config_maps(space), config_map("one", {"a": "1", "b": "2"}))
        api.post(deployments(space), deployment("web"))

    _same_rows(both, make, config_maps, "one")
    _same_rows(both, make, deployments, "web")


def test_services(both: Both) -> None:
    def row(api: ApiClient, **spec: Any) -> list[Any]:
        space = new_space(api)
        path = f"/api/v1/namespaces/{space}/services"
        ports = [{"name": "a", "port": 80}, {"name": "b", "port": 53, "protocol": "UDP"}]
        made = api.post(
            path,
            {
                "metadata": {"name": "s"},
                "spec": {"ports": ports, "selector": {"b": "2", "a": "1"}, **spec},
            },
        )
        assert made.status == 201, made.message
        cells = [_ageless(cell) for cell in _cells(api, path, "s")[0]]
        return [
            cell if index != 2 or not str(cell).startswith("10.") else "<address>"
            for index, cell in enumerate(cells)
        ]

    simulated, real = both
    for spec in (
        {},
        {"clusterIP": "None"},
        {"type": "ExternalName", "externalName": "x.io", "ports": None},
        {"externalIPs": ["1.2.3.4"]},
    ):
        assert row(simulated, **spec) == row(real, **spec)


def test_nodes(both: Both) -> None:
    def row(api: ApiClient) -> list[Any]:
        node = {
            "metadata": {
                "name": "contract-node",
                "labels": {"node-role.kubernetes.io/gpu": "", "kubernetes.io/role": "worker"},
            },
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "addresses": [{"type": "InternalIP", "address": "10.1.2.3"}],
                "nodeInfo": {
                    **dict.fromkeys(("machineID", "systemUUID", "bootID", "kubeProxyVersion"), ""),
                    "kernelVersion": "6.1",
                    "osImage": "Debian",
                    "containerRuntimeVersion": "containerd://2",
                    "kubeletVersion": "v1.36.3",
                    "operatingSystem": "linux",
                    "architecture": "amd64",
                },
            },
        }
        assert api.post("/api/v1/nodes", node).status == 201
        cells = _cells(api, "/api/v1/nodes", "contract-node")[0]
        api.delete("/api/v1/nodes/contract-node")
        return [_ageless(cell) for cell in cells]

    simulated, real = both
    assert row(simulated) == row(real)


def test_events(both: Both) -> None:
    def make(api: ApiClient, space: str) -> None:
        event = {
            "metadata": {"name": "e.1"},
            "involvedObject": {
                "kind": "Pod",
                "name": "a",
                "namespace": space,
                "fieldPath": "spec.containers{main}",
            },
            "reason": "Started",
            "message": " x \n",
            "type": "Normal",
            "source": {"component": "kubelet", "host": "n1"},
            "firstTimestamp": "2020-01-01T00:00:00Z",
            "lastTimestamp": "2021-01-01T00:00:00Z",
            "count": 7,
        }
        assert api.post(f"/api/v1/namespaces/{space}/events", event).status == 201

    _same_rows(both, make, lambda space: f"/api/v1/namespaces/{space}/events", "e.1")


def test_what_rows_carry_of_their_objects(both: Both) -> None:
    for api in both:
        space = new_space(api)
        api.post(config_maps(space), config_map())
        for include, wanted in (
            ("None", None),
            ("Metadata", "PartialObjectMetadata"),
            ("Object", "ConfigMap"),
        ):
            answer = api.ask(
                "GET",
                config_maps(space, "a"),
                query={"includeObject": include},
                headers={"Accept": TABLE},
            )
            carried = answer.body["rows"][0]["object"]
            assert (carried["kind"] if carried else None) == wanted, api.name


# --- discovery ------------------------------------------------------------------------------------

_KEYS = ("scope", "singularResource", "shortNames", "categories", "responseKind")


def test_shared_kinds_are_discovered_alike(both: Both) -> None:
    simulated, real = (discovered(api) for api in both)
    shared = [key for key in simulated if key in real]
    assert len(shared) >= 26
    for key in shared:
        own, theirs = simulated[key], real[key]
        assert {name: own.get(name) for name in _KEYS} == {
            name: theirs.get(name) for name in _KEYS
        }, key
        assert set(own["verbs"]) <= set(theirs["verbs"]), key
        known = {entry["subresource"]: entry for entry in theirs.get("subresources", ())}
        for entry in own.get("subresources", ()):
            assert entry["responseKind"] == known[entry["subresource"]]["responseKind"], key
            assert set(entry["verbs"]) <= set(known[entry["subresource"]]["verbs"]), key


def test_the_old_discovery_agrees(both: Both) -> None:
    simulated, real = both
    for path in ("/api/v1", "/apis/apps/v1", "/apis/batch/v1"):
        theirs = {resource["name"]: resource for resource in real.get(path).body["resources"]}
        own = simulated.get(path).body
        assert own["groupVersion"] == path.removeprefix("/apis/").removeprefix("/api/")
        for resource in own["resources"]:
            known = theirs[resource["name"]]
            for key in (
                "kind",
                "namespaced",
                "singularName",
                "shortNames",
                "categories",
                "group",
                "version",
            ):
                assert resource.get(key) == known.get(key), (path, resource["name"], key)
