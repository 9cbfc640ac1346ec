"""Contract: the official Python client lists, watches, creates, patches, scales and deletes. The
same assertions over both worlds.
"""

from __future__ import annotations

import json
from typing import Any

import kubernetes
import pytest
from kubernetes.client.exceptions import ApiException
from tests.contracts.api_client import ApiClient
from tests.contracts.objects import deployment, pod
from tests.contracts.simulated import SimulatedServer

from fairlead_sim.objects.resources import NAMESPACES


@pytest.fixture
def client(api: ApiClient) -> Any:
    return kubernetes.config.new_client_from_config(str(api.kubeconfig))


def test_pods(client: Any, space: str) -> None:
    core = kubernetes.client.CoreV1Api(client)
    made = core.create_namespaced_pod(space, pod(labels={"app": "x"}))
    assert (made.metadata.namespace, made.status.phase) == (space, "Pending")
    listed = core.list_namespaced_pod(space, label_selector="app=x", limit=1)
    assert [item.metadata.uid for item in listed.items] == [made.metadata.uid]
    patched = core.patch_namespaced_pod("a", space, {"metadata": {"labels": {"y": "z"}}})
    assert patched.metadata.labels == {"app": "x", "y": "z"}
    core.delete_namespaced_pod("a", space)
    with pytest.raises(ApiException) as caught:
        core.read_namespaced_pod("a", space)
    assert (caught.value.status, caught.value.reason) == (404, "Not Found")


def test_a_watch(client: Any, space: str) -> None:
    core = kubernetes.client.CoreV1Api(client)
    since = core.list_namespaced_config_map(space).metadata.resource_version
    for name in ("one", "two"):
        core.create_namespaced_config_map(
            space, {"metadata": {"name": name, "labels": {"mine": ""}}, "data": {"a": name}}
        )
    stream = kubernetes.watch.Watch().stream(
        core.list_namespaced_config_map,
        space,
        resource_version=since,
        label_selector="mine",
        timeout_seconds=2,
    )
    assert [(event["type"], event["object"].data) for event in stream] == [
        ("ADDED", {"a": "one"}),
        ("ADDED", {"a": "two"}),
    ]


def test_deployments_and_their_scale(client: Any, space: str) -> None:
    apps = kubernetes.client.AppsV1Api(client)
    apps.create_namespaced_deployment(space, deployment())
    apps.patch_namespaced_deployment_scale("web", space, {"spec": {"replicas": 2}})
    assert apps.read_namespaced_deployment("web", space).spec.replicas == 2
    apps.delete_namespaced_deployment("web", space)
    assert apps.list_namespaced_deployment(space).items == []


def test_the_dynamic_client_finds_its_way(client: Any, space: str) -> None:
    dynamic = kubernetes.dynamic.DynamicClient(client)
    jobs = dynamic.resources.get(api_version="batch/v1", kind="Job")
    template = {
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}
    }
    jobs.create(
        body={"metadata": {"name": "a"}, "spec": {"suspend": True, "template": template}},
        namespace=space,
    )
    assert [item.metadata.name for item in jobs.get(namespace=space).items] == ["a"]


def test_a_watch_that_is_resumed(client: Any, space: str) -> None:
    core = kubernetes.client.CoreV1Api(client)
    since = core.list_namespaced_config_map(space).metadata.resource_version
    for name in ("one", "two", "three"):
        core.create_namespaced_config_map(
            space, {"metadata": {"name": name, "labels": {"mine": ""}}}
        )
    seen = []
    for _ in range(3):
        watch = kubernetes.watch.Watch()
        stream = watch.stream(
            core.list_namespaced_config_map,
            space,
            resource_version=since,
            label_selector="mine",
            timeout_seconds=10,
        )
        event = next(stream)
        watch.stop()
        seen.append(event["object"].metadata.name)
        since = event["object"].metadata.resource_version
    assert seen == ["one", "two", "three"]


def test_a_watch_ends_by_a_word_about_a_version_that_is_too_old(simulated: SimulatedServer) -> None:
    core = kubernetes.client.CoreV1Api(
        kubernetes.config.new_client_from_config(str(simulated.kubeconfig))
    )
    for number in range(3):
        core.create_namespace({"metadata": {"name": f"old-{number}"}})
    simulated.do(lambda cluster: cluster.compact(NAMESPACES))
    with pytest.raises(ApiException) as caught:
        list(
            kubernetes.watch.Watch().stream(
                core.list_namespace, resource_version="1", timeout_seconds=2
            )
        )
    assert caught.value.status == 410


@pytest.mark.parametrize(
    ("media", "patch"),
    [
        ("application/merge-patch+json", {"data": {"b": "2"}}),
        ("application/strategic-merge-patch+json", {"data": {"b": "2"}}),
        (
            "application/json-patch+json",
            [
                {"op": "test", "path": "/data/a", "value": "1"},
                {"op": "add", "path": "/data/b", "value": "2"},
            ],
        ),
        (
            "application/apply-patch+yaml",
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "a"},
                "data": {"b": "2"},
            },
        ),
    ],
)
def test_patches_of_every_kind(client: Any, space: str, media: str, patch: Any) -> None:
    core = kubernetes.client.CoreV1Api(client)
    core.create_namespaced_config_map(space, {"metadata": {"name": "a"}, "data": {"a": "1"}})
    options = {"field_manager": "test", "force": True} if "apply" in media else {}
    patched = core.patch_namespaced_config_map("a", space, patch, _content_type=media, **options)
    assert patched.data == {"a": "1", "b": "2"}


def test_what_is_refused_is_an_exception_with_the_servers_words(client: Any, space: str) -> None:
    core = kubernetes.client.CoreV1Api(client)
    core.create_namespaced_config_map(space, {"metadata": {"name": "a"}})
    with pytest.raises(ApiException) as twice:
        core.create_namespaced_config_map(space, {"metadata": {"name": "a"}})
    with pytest.raises(ApiException) as wrong:
        core.create_namespaced_config_map(space, {"metadata": {"name": "A_b"}})
    reported = [json.loads(caught.value.body) for caught in (twice, wrong)]
    assert [(status["code"], status["reason"]) for status in reported] == [
        (409, "AlreadyExists"),
        (422, "Invalid"),
    ]
    assert reported[0]["message"] == 'configmaps "a" already exists'


def test_the_dynamic_client_patches_watches_and_deletes(client: Any, space: str) -> None:
    maps = kubernetes.dynamic.DynamicClient(client).resources.get(
        api_version="v1", kind="ConfigMap"
    )
    maps.create(
        body={"metadata": {"name": "a", "labels": {"mine": ""}}, "data": {"a": "1"}},
        namespace=space,
    )
    patch = {"data": {"b": "2"}}
    maps.patch(body=patch, name="a", namespace=space, content_type="application/merge-patch+json")
    event = next(iter(maps.watch(namespace=space, label_selector="mine", timeout=5)))
    assert (event["type"], event["object"].data.to_dict()) == ("ADDED", {"a": "1", "b": "2"})
    maps.server_side_apply(
        body={
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": "a"},
            "data": {"c": "3"},
        },
        name="a",
        namespace=space,
        field_manager="x",
    )
    maps.delete(name="a", namespace=space)
    assert maps.get(namespace=space, label_selector="mine").items == []


def test_logs(simulated: SimulatedServer) -> None:
    """Only on the simulated server: the real one has no kubelet here that could return logs."""
    core = kubernetes.client.CoreV1Api(
        kubernetes.config.new_client_from_config(str(simulated.kubeconfig))
    )
    core.create_namespaced_pod("default", pod("talker", spec={"nodeName": "n1"}))
    status = {
        "phase": "Running",
        "containerStatuses": [_status(running={"startedAt": "2026-01-05T08:00:00Z"})],
    }
    core.patch_namespaced_pod_status("talker", "default", {"status": status})
    simulated.do(
        lambda cluster: simulated.logs.written.update(
            {("default", "talker", "main", False): [(1.0, "one"), (2.0, "two")]}
        )
    )
    assert core.read_namespaced_pod_log("talker", "default") == "one\ntwo\n"
    assert core.read_namespaced_pod_log("talker", "default", tail_lines=1) == "two\n"
    ended = {
        **status,
        "phase": "Succeeded",
        "containerStatuses": [_status(terminated={"exitCode": 0})],
    }
    core.patch_namespaced_pod_status("talker", "default", {"status": ended})
    assert list(
        kubernetes.watch.Watch().stream(
            core.read_namespaced_pod_log, name="talker", namespace="default"
        )
    ) == ["one", "two"]
    core.delete_namespaced_pod("talker", "default", grace_period_seconds=0)


def _status(**state: Any) -> dict[str, Any]:
    return {
        "name": "main",
        "image": "i",
        "imageID": "",
        "ready": True,
        "restartCount": 0,
        "state": state,
    }
