"""Contract: the official Python client lists, watches, creates, patches, scales and deletes. The same assertions over both worlds."""

from __future__ import annotations

from typing import Any

import kubernetes
import pytest
from kubernetes.client.exceptions import ApiException
from tests.contracts.api_client import ApiClient
from tests.contracts.objects import deployment, pod


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
        core.create_namespaced_config_map(space, {"metadata": {"name": name, "labels": {"mine": ""}}, "data": {"a": name}})
    stream = kubernetes.watch.Watch().stream(
        core.list_namespaced_config_map, space, resource_version=since, label_selector="mine", timeout_seconds=2
    )
    assert [(event["type"], event["object"].data) for event in stream] == [("ADDED", {"a": "one"}), ("ADDED", {"a": "two"})]


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
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]}}
    jobs.create(body={"metadata": {"name": "a"}, "spec": {"suspend": True, "template": template}}, namespace=space)
    assert [item.metadata.name for item in jobs.get(namespace=space).items] == ["a"]
