"""A cluster with a quota tree, and the quota controller beside it as a process of its own.

See docs/spec/quota.md#the-quota-controller, docs/spec/quota.md#the-40-core-demo.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.kube.addresses import free_port
from tests.kube.clocks import clock_ahead
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.deployed import DEPLOY
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.kubectl import KubectlError
from tests.kube.quota_truth import QuotaTruth
from tests.kube.servers import FAIRLEAD, READY_SECONDS, Page, Server, environment
from tests.waiting import wait_until

Object = dict[str, Any]
SYSTEM = "fairlead-system"
ACCOUNT = "fairlead-quota-controller"
CRD = "quota-crd.yaml"
FILES = (
    "namespace.yaml",
    "quota-controller.yaml",
    "quota-admission.yaml",
    "account-admission.yaml",
)
TREES = "elasticquotatrees.scheduling.sigs.k8s.io"


class QuotaController:
    """One process under the shipped account, with only its rights. Its port and name stay the same
    over restarts.

    `server`: the API server's address, if the controller uses another one than the cluster's own.
    `clock`: seconds by which its clock is ahead.
    """

    def __init__(
        self,
        cluster: ControlPlane,
        name: str = "quota-0",
        server: str = "",
        more: Sequence[str] = (),
        clock: float = 0.0,
    ) -> None:
        self.port = free_port()
        token = cluster.admin.run("create", "token", ACCOUNT, "-n", SYSTEM, "--duration=4h").strip()
        path = write_kubeconfig(
            cluster.folder / f"{name}.kubeconfig",
            server or cluster.server,
            cluster.authority,
            token_user(token),
        )
        argv = [
            *FAIRLEAD,
            "quota-controller",
            f"--listen=127.0.0.1:{self.port}",
            f"--kubeconfig={path}",
            f"--identity={name}",
            *more,
        ]
        surroundings = environment() | clock_ahead(clock)
        self.component = Component(name, argv, cluster.logs / f"{name}.log", surroundings)
        self.server = Server(self.component, f"http://127.0.0.1:{self.port}")

    def start(self, seconds: float = READY_SECONDS) -> None:
        """Start it, and wait until it, or another controller, works."""
        self.component.start()
        self.component.wait_until(self.server.is_ready, seconds)

    def kill(self) -> None:
        """Kill it as a power cut would, and start it again; does not wait until it works."""
        self.component.kill()
        self.component.start()

    def stop(self) -> None:
        self.component.stop()

    def metrics(self) -> Page:
        return self.server.metrics()


@contextmanager
def running_controller(
    cluster: ControlPlane, root: Object | None = None, name: str = "quota-0", server: str = ""
) -> Iterator[QuotaController]:
    """A working controller that enforces the tree, if one is given."""
    made = QuotaController(cluster, name, server)
    try:
        made.start()
        if root is not None:
            enforce(cluster, root)
        yield made
    finally:
        made.stop()


def install(cluster: ControlPlane) -> None:
    """Apply the shipped files of quota, in the documents' order."""
    install_crd(cluster)
    for file in FILES:
        cluster.admin.run("apply", "--server-side", "--force-conflicts", "-f", str(DEPLOY / file))


def install_crd(cluster: ControlPlane) -> None:
    """Apply the shipped CRD of the tree."""
    cluster.admin.run("apply", "--server-side", "--force-conflicts", "-f", str(DEPLOY / CRD))
    cluster.admin.run(
        "wait", "--for=condition=Established", "--timeout=30s", f"customresourcedefinition/{TREES}"
    )


def tree(root: Object) -> Object:
    metadata = {"name": "elasticquotatree", "namespace": "kube-system"}
    return {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": metadata,
        "spec": {"root": root},
    }


def enforce(cluster: ControlPlane, root: Object, *, adopts_running: bool = False) -> None:
    """Apply the tree, and wait until new pods of its namespaces receive the gate. `adopts_running`:
    pods run in them already.
    """
    places = sorted(_namespaces(root))
    cluster.admin.apply(
        [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}} for place in places]
    )
    made = tree(root)
    if adopts_running:
        made["metadata"]["annotations"] = {"fairlead.io/adopt-running": "true"}
    cluster.admin.apply([made])
    for place in places:
        wait_until(f"the gate stands in {place}", lambda place=place: _gates(cluster, place))  # type: ignore[misc]


def _namespaces(node: Object) -> set[str]:
    return {
        *node.get("namespaces", ()),
        *(place for child in node.get("children", ()) for place in _namespaces(child)),
    }


def _gates(cluster: ControlPlane, place: str) -> bool:
    """Whether a new pod would receive the gate here; the namespace's default service account may
    still be missing.
    """
    try:
        made = cluster.admin.run(
            *("run", "probe", "-n", place, "--image=app:1", "--restart=Never", "--dry-run=server"),
            *("-o", "jsonpath={.spec.schedulingGates[*].name}"),
        )
    except KubectlError:
        return False
    return "fairlead.io/quota" in made


def deployment(name: str, place: str, replicas: int, cpu: str, **metadata: Any) -> Object:
    """A Deployment; `metadata` goes to its pods."""
    labels = {"app": name, **metadata.pop("labels", {})}
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    template = {
        "metadata": {"labels": labels, **metadata},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": place},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": template,
        },
    }


def job(name: str, place: str, pods: int, cpu: str, **more: Any) -> Object:
    """A Job whose pods run until they are deleted. `more`: further fields of its spec."""
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "restartPolicy": "Never", "terminationGracePeriodSeconds": 1}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": place},
        "spec": {
            "parallelism": pods,
            "completions": pods,
            "backoffLimit": 0,
            "template": {"spec": spec},
            **more,
        },
    }


def stateful_set(name: str, place: str, replicas: int, cpu: str) -> Object:
    found = deployment(name, place, replicas, cpu)
    spec = {**found["spec"], "serviceName": name, "podManagementPolicy": "Parallel"}
    return {**found, "kind": "StatefulSet", "spec": spec}


def budget(name: str, place: str, app: str, unavailable: int) -> Object:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": place},
        "spec": {"maxUnavailable": unavailable, "selector": {"matchLabels": {"app": app}}},
    }


def settled(
    truth: QuotaTruth, wanted: dict[str, int], seconds: float = 60.0, still: float = 1.0
) -> None:
    """Wait until the wanted number of pods run in each namespace, and still do a moment later;
    AssertionError with what was seen instead.
    """

    def is_so() -> bool:
        return truth.running() == wanted and truth.is_quiet()

    try:
        while True:
            wait_until(f"{wanted} run", is_so, seconds)
            limit = time.monotonic() + still
            while time.monotonic() < limit and is_so():
                time.sleep(0.05)
            if is_so():
                return
    except TimeoutError as error:
        reasons = {place: truth.reasons(place) for place in truth.above}
        raise AssertionError(
            f"{truth.running()} run, not {wanted}; {reasons}; evicted: "
            f"{sorted(truth.evicted.values())}"
        ) from error


def clear(cluster: ControlPlane, places: Sequence[str]) -> None:
    """Remove everything from these namespaces."""
    owners = "deployments,statefulsets,jobs,poddisruptionbudgets"
    for place in places:
        cluster.admin.run("delete", owners, "--all", "-n", place, "--wait=false")
    for place in places:
        cluster.admin.run(
            "delete",
            "pods",
            "--all",
            "-n",
            place,
            "--force",
            "--grace-period=0",
            "--wait",
            seconds=60,
        )
    wait_until(
        "nothing is left",
        lambda: not any(cluster.admin.get(f"pods,{owners}", "-n", place) for place in places),
    )


def bounded(
    name: str, low: int, high: int, namespaces: Sequence[str] = (), children: Sequence[Object] = ()
) -> Object:
    """A node of the tree with bounds on cpu alone."""
    node: Object = {"name": name, "min": {"cpu": str(low)}, "max": {"cpu": str(high)}}
    return {
        **node,
        **({"namespaces": list(namespaces)} if namespaces else {}),
        **({"children": list(children)} if children else {}),
    }


DEMO = bounded(
    "root",
    40,
    40,
    children=[
        bounded(
            "root.a",
            20,
            40,
            children=[
                bounded("root.a.1", 10, 20, ["namespace1"]),
                bounded("root.a.2", 10, 20, ["namespace2"]),
            ],
        ),
        bounded(
            "root.b",
            20,
            40,
            children=[
                bounded("root.b.1", 10, 20, ["namespace3"]),
                bounded("root.b.2", 10, 20, ["namespace4"]),
            ],
        ),
    ],
)
"""The tree of docs/spec/quota.md#the-40-core-demo."""
STEPS = ((4,), (4, 4), (3, 3, 2), (2, 2, 2, 2))
"""The number of pods that run in each namespace after each step."""
EVICTIONS = (0, 0, 2, 4)
"""The number of pods evicted by the end of each step."""


def big_node(name: str, cpu: int) -> Object:
    amounts = {"cpu": str(cpu), "memory": "512Gi", "pods": "500"}
    metadata = {
        "name": name,
        "labels": {"kubernetes.io/hostname": name},
        "annotations": {"kwok.x-k8s.io/node": "fake"},
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "status": {"capacity": amounts, "allocatable": amounts},
    }
