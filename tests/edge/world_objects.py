"""Lists, discovery and objects of a scripted API server."""

from __future__ import annotations

from typing import Any

from tests.edge.scripted import Reply, Stream

NODES, PODS, EVENTS = "/api/v1/nodes", "/api/v1/pods", "/api/v1/events"
MPI, TREES = (
    "/apis/kubeflow.org/v2beta1/mpijobs",
    "/apis/scheduling.sigs.k8s.io/v1beta1/namespaces/kube-system/elasticquotatrees",
)
HOLD = Stream(then="hold")


def groups(*served: tuple[str, str, str]) -> Reply:
    items = [
        {
            "metadata": {"name": group},
            "versions": [
                {"version": version, "resources": [{"resource": plural, "scope": "Namespaced"}]}
            ],
        }
        for group, version, plural in served
    ]
    kind = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    return Reply({"items": items}, headers={"Content-Type": kind})


MPI_SERVED, TREES_SERVED = (
    ("kubeflow.org", "v2beta1", "mpijobs"),
    ("scheduling.sigs.k8s.io", "v1beta1", "elasticquotatrees"),
)


def node(name: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
        "status": {"capacity": {"nvidia.com/gpu": "8"}},
    }


def mpi_job(name: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "1",
        },
        "spec": {"mpiReplicaSpecs": {}},
    }


def tree(root: dict[str, Any], name: str = "elasticquotatree") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "kube-system", "uid": name, "resourceVersion": "1"},
        "spec": {"root": root},
    }
