"""Starts prometheus-adapter beside a real control plane: the aggregated API
`custom.metrics.k8s.io`, with the shipped rules.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.kube.addresses import free_port
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.deployed import DEPLOY
from tests.kube.kubectl import KubectlError
from tests.kube.programs import program
from tests.kube.prometheus import Prometheus
from tests.waiting import wait_until

RULES = DEPLOY / "autoscaling" / "adapter-rules.yaml"
NAMESPACE, NAME = "custom-metrics", "prometheus-adapter"
GROUP = "/apis/custom.metrics.k8s.io/v1beta1"


@contextmanager
def running_adapter(cluster: ControlPlane, prometheus: Prometheus) -> Iterator[Component]:
    """The adapter, and the API server that calls it, for the block."""
    port = free_port()
    serving = cluster.issue(NAME, names=[f"{NAME}.{NAMESPACE}.svc"])
    kubeconfig = cluster.write_kubeconfig(NAME, cluster.issue_user("custom-metrics"))
    kubeconfigs = [
        f"--{what}-kubeconfig={kubeconfig}"
        for what in ("lister", "authentication", "authorization")
    ]
    argv = [
        program("prometheus-adapter"),
        f"--config={RULES}",
        f"--prometheus-url={prometheus.url}",
        "--metrics-relist-interval=2s",
        f"--bind-address={cluster.address if cluster.routes_to_endpoints else '127.0.0.1'}",
        f"--secure-port={port}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        *kubeconfigs,
    ]
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.lower().endswith("_proxy") and key != "KUBECONFIG"
    }
    adapter = Component(NAME, argv, cluster.logs / f"{NAME}.log", environment)
    try:
        adapter.start()
        cluster.admin.create(_registration(cluster, port))
        wait_until(
            lambda: f"the aggregated API is Available: {_availability(cluster)}",
            lambda: _availability(cluster)[:1] == ["True"],
            60,
        )
        yield adapter
    finally:
        # Delete this first: an API that is registered and does not answer prevents the deletion of
        # namespaces.
        cluster.admin.delete("apiservice", "v1beta1.custom.metrics.k8s.io")
        adapter.stop()
        cluster.admin.run("delete", "namespace", NAMESPACE, "--ignore-not-found", "--wait=false")


def _registration(cluster: ControlPlane, port: int) -> list[dict[str, Any]]:
    """A Service without a selector, the port where it is served, and the APIService of the group.

    Where the API server does not use endpoints, the Service has an external name, as the Services
    of webhooks have there.
    """
    metadata = {"name": NAME, "namespace": NAMESPACE}
    service: dict[str, Any] = {"ports": [{"name": "https", "port": 443}]}
    slices: dict[str, Any] = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {**metadata, "labels": {"kubernetes.io/service-name": NAME}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [cluster.address], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
    }
    if not cluster.routes_to_endpoints:
        service = {"type": "ExternalName", "externalName": "localhost"}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
        *([slices] if cluster.routes_to_endpoints else []),
        {
            "apiVersion": "apiregistration.k8s.io/v1",
            "kind": "APIService",
            "metadata": {"name": "v1beta1.custom.metrics.k8s.io"},
            "spec": {
                "group": "custom.metrics.k8s.io",
                "version": "v1beta1",
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {
                    "name": NAME,
                    "namespace": NAMESPACE,
                    "port": 443 if cluster.routes_to_endpoints else port,
                },
                "caBundle": base64.b64encode(cluster.authority.read_bytes()).decode(),
            },
        },
    ]


def _availability(cluster: ControlPlane) -> list[str]:
    """Status and message of the condition; empty before it exists."""
    found: dict[str, Any] = json.loads(
        cluster.admin.run("get", "apiservice", "v1beta1.custom.metrics.k8s.io", "-o", "json")
    )
    conditions = found.get("status", {}).get("conditions", ())
    return [
        word
        for each in conditions
        if each["type"] == "Available"
        for word in (each["status"], each["message"])
    ]


def pods_metric(cluster: ControlPlane, namespace: str, metric: str) -> dict[str, str]:
    """What an autoscaler receives: pod -> value; empty while the adapter has no value."""
    try:
        answer = cluster.admin.run(
            "get", "--raw", f"{GROUP}/namespaces/{namespace}/pods/*/{metric}"
        )
    except KubectlError as error:
        if "NotFound" in str(error):
            return {}
        raise
    return {item["describedObject"]["name"]: item["value"] for item in json.loads(answer)["items"]}


def wait_for_metric(
    cluster: ControlPlane, namespace: str, metric: str, count: int
) -> dict[str, str]:
    """Wait until this number of pods have the metric."""
    found: dict[str, str] = {}

    def all_there() -> bool:
        found.clear()
        found.update(pods_metric(cluster, namespace, metric))
        return len(found) == count

    wait_until(lambda: f"{count} pods have `{metric}`: {found}", all_there, 60)
    return found
