"""Objects of data sets for tests without Fluid's controllers: a test writes the status as these
controllers write it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.contracts.api_client import MERGE, ApiClient, until
from tests.contracts.objects import Object
from tests.kube.servers import fairlead_answer

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FLUID = "/apis/data.fluid.io/v1alpha1"
_VERSION = "data.fluid.io/v1alpha1"


def claim(name: str, **annotations: str) -> Object:
    """Of 5 GiB, for a volume that does not exist. With annotations it is of Fluid's class."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "fluid" if annotations else "",
            "volumeName": "missing",
            "resources": {"requests": {"storage": "5Gi"}},
        },
    }


@contextmanager
def with_fluid_node(api: ApiClient, name: str) -> Iterator[None]:
    """A node with Fluid's volume driver and much memory."""
    ready = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
    meta = {"name": name, "labels": {"kubernetes.io/os": "linux"}}
    made = api.post("/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": meta})
    assert made.status == 201, made.message
    amounts = {"memory": "64Gi", "cpu": "8", "pods": "110"}
    status = {"conditions": [ready], "capacity": amounts, "allocatable": amounts}
    driver = {"name": "fuse.csi.fluid.io", "nodeID": name, "topologyKeys": None}
    csi_node = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }
    made = api.post("/apis/storage.k8s.io/v1/csinodes", csi_node)
    assert made.status in (201, 404), made.message
    place = f"/api/v1/nodes/{name}/status"
    until("the node is Ready", lambda: api.patch(place, {"status": status}, MERGE).status == 200)
    # a real API server gives a new node the taint `not-ready`, and its controller removes it later
    until("it has no taint", lambda: not _taints(api, name))
    yield
    api.delete(f"/apis/storage.k8s.io/v1/csinodes/{name}")
    api.delete(f"/api/v1/nodes/{name}")


def _taints(api: ApiClient, node: str) -> list[Object]:
    spec = api.get(f"/api/v1/nodes/{node}").body.get("spec", {})
    return list(spec.get("taints", []))


def fluid_controller(api: ApiClient) -> None:
    """Fluid's Deployment, without replicas, as Fluid leaves it until a runtime exists."""
    api.post("/api/v1/namespaces", {"metadata": {"name": "fluid-system"}})
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    name = "alluxioruntime-controller"
    api.post(
        "/apis/apps/v1/namespaces/fluid-system/deployments",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template},
        },
    )


class DataSpace:
    """A namespace with data sets, and `fairlead dataset` in it."""

    def __init__(self, api: ApiClient, kubeconfig: Path, space: str) -> None:
        self.api, self.kubeconfig, self.space = api, kubeconfig, space
        self.fluid = f"{FLUID}/namespaces/{space}"
        self.core = f"/api/v1/namespaces/{space}"

    def run(self, *words: str, status: int = 0) -> str:
        """Output and messages of `fairlead dataset WORDS`."""
        answer = fairlead_answer(self.kubeconfig, "dataset", *words, "-n", self.space)
        assert answer.returncode == status, answer.stdout + answer.stderr
        return answer.stdout + answer.stderr

    def create(self, path: str, manifest: Object) -> Object:
        made = self.api.post(path, manifest)
        assert made.status == 201, made.message
        body: Object = made.body
        return body

    def fluid_object(self, kind: str, name: str, spec: Object, **meta: Any) -> Object:
        manifest = {
            "apiVersion": _VERSION,
            "kind": kind,
            "metadata": {"name": name, **meta},
            "spec": spec,
        }
        return self.create(f"{self.fluid}/{kind.lower()}s", manifest)

    def status(self, kind: str, name: str, status: Object) -> None:
        place = f"{self.fluid}/{kind.lower()}s/{name}/status"
        done = self.api.patch(place, {"status": status}, MERGE)
        assert done.status == 200, done.message
