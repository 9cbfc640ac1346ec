"""Fairlead from its image on three real nodes: installed by one command, used, one node unplugged,
and removed without a trace.

The oracles are kubectl, the programs inside containers, and the files of the nodes. The tests run
in their order: each finds the cluster as the one before it left it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.browser.chromium import window
from tests.kube.addresses import free_port, is_listening
from tests.kube.component import Component
from tests.kube.kubectl import Kubectl
from tests.kube.kubelet import is_ready
from tests.kube.node_images import PRINTS, SIMULATED
from tests.kube.programs import program
from tests.nodes.cluster import CARDS, FAIRLEAD_IMAGE, SYSTEM, Cluster, is_true, uuid
from tests.waiting import wait_until

Object = dict[str, Any]
SERVES = next(name for name in SIMULATED if "nginx" in name)
"""The image of a program that runs until it is asked to end."""
MEMORY = "aliyun.com/gpu-mem"
WRITTEN = ("/var/lib/fairlead", "/run/fairlead", "/var/run/cdi", "/var/lib/kubelet/device-plugins")
"""Folders of a node into which Fairlead writes."""
TREES = "elasticquotatrees.scheduling.sigs.k8s.io"
SECONDS = 90.0


@pytest.fixture(scope="module")
def files_before(cluster: Cluster) -> dict[str, list[str]]:
    return {name: node.files(*WRITTEN) for name, node in cluster.nodes.items()}


@pytest.fixture(scope="module")
def admin(cluster: Cluster, files_before: object) -> Kubectl:
    """kubectl, after the installation by the command of docs/how-to/install.md."""
    admin = cluster.plane.admin
    admin.run("label", "nodes", "--all", "nvidia.com/gpu.present=true", "cgpu=true")
    written = cluster.fairlead("install", f"--set=image={FAIRLEAD_IMAGE}", "--wait=240")
    assert written.splitlines()[-1].startswith("fairlead 0.1.0: ")
    return admin


def test_every_pod_is_ready_and_the_doctor_has_no_complaint(
    cluster: Cluster, admin: Kubectl
) -> None:
    pods = cluster.own_pods()
    assert all(is_true(pod, "Ready") for pod in pods), pods
    places = {part: {pod["spec"]["nodeName"] for pod in of_part(pods, part)} for part in PARTS}
    assert {part: len(found) for part, found in places.items()} == PARTS, "replicas are spread"

    identity = [
        n["metadata"]["annotations"]["fairlead.io/gpu-identity"] for n in admin.get("nodes")
    ]
    assert identity == ["deferred"] * len(cluster.nodes), "each agent has seen that CDI works"
    found = json.loads(cluster.fairlead("doctor", "-o", "json"))["items"]
    bad = [each for each in found if each["state"] != "ok"]
    assert [each["check"] for each in bad] == ["prometheus"], "there is none on these nodes"


PARTS = {
    "fairlead-admission-webhook": 2,
    "fairlead-cluster-exporter": 2,
    "fairlead-console": 1,
    "fairlead-gpu-exporter": 3,
    "fairlead-node-agent": 3,
    "fairlead-quota-controller": 2,
    "fairlead-scheduler": 2,
}
"""Nodes that run each part."""


def test_images_come_from_the_registry_and_nothing_else_is_reachable(
    cluster: Cluster, admin: Kubectl
) -> None:
    for node in cluster.nodes.values():
        address = node.link.address
        assert (address, "fairlead:0.1.0") in cluster.registry.pulled
        assert "default" not in node.run("ip", "route")
    schedulers = [a for a, name in cluster.registry.pulled if name.startswith("kube-scheduler:")]
    assert len(schedulers) == 2


def test_no_card_is_sold_twice_and_each_container_has_the_card_of_its_grant(
    cluster: Cluster, admin: Kubectl
) -> None:
    """Each card has room for one of these pods, so one pod more than cards waits."""
    cards = {uuid(node, card) for node in (1, 2, 3) for card in range(CARDS)}
    names = [f"shared-{number}" for number in range(len(cards) + 1)]
    admin.create(shared_pod(name) for name in names)
    wait_until("a pod runs on each card", lambda: len(running(admin)) == len(cards), SECONDS)
    pods = {pod["metadata"]["name"]: pod for pod in running(admin)}
    given = {name: visible_card(admin, name) for name in pods}
    assert set(given.values()) == cards
    for name, pod in pods.items():
        number = int(pod["spec"]["nodeName"].removeprefix("node-"))
        card = int(pod["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"])
        assert given[name] == uuid(number, card)

    (waiting,) = set(names) - set(pods)
    gone = next(iter(pods))
    admin.delete("pod", gone, "-n", "default")
    wait_until("the waiting pod runs", lambda: is_running(admin, waiting), SECONDS)
    assert visible_card(admin, waiting) == given[gone]
    admin.delete("pods", "-l", "fairlead-test=shared", "-n", "default")


def test_a_namespace_borrows_and_gives_back(cluster: Cluster, admin: Kubectl) -> None:
    """A tree of 400m with two leaves of 200m each, and pods of 100m."""
    for leaf in ("a", "b"):
        admin.run("create", "namespace", f"team-{leaf}")
    half, whole = {"cpu": "0.2"}, {"cpu": "0.4"}
    leaves = [
        {"name": leaf, "min": half, "max": whole, "namespaces": [f"team-{leaf}"]} for leaf in "ab"
    ]
    tree = {
        "apiVersion": "scheduling.sigs.k8s.io/v1beta1",
        "kind": "ElasticQuotaTree",
        "metadata": {"name": "elasticquotatree", "namespace": "kube-system"},
        "spec": {"root": {"name": "root", "min": whole, "max": whole, "children": leaves}},
    }
    admin.create([tree])
    for leaf in ("a", "b"):
        wait_until(
            f"team-{leaf} is enforced",
            lambda leaf=leaf: has_quota(admin, f"team-{leaf}"),
            SECONDS,
        )
    admin.create([deployment("team-a")])
    settled(admin, {("team-a", "Running"): 4})
    admin.create([deployment("team-b")])
    settled(
        admin,
        {
            ("team-a", "Running"): 2,
            ("team-a", "Gated"): 2,
            ("team-b", "Running"): 2,
            ("team-b", "Gated"): 2,
        },
    )
    admin.delete("deployment", "web", "-n", "team-b")
    settled(admin, {("team-a", "Running"): 4})


def test_the_console_shows_the_nodes_in_a_browser(
    cluster: Cluster, admin: Kubectl, browser: Browser
) -> None:
    with port_forward(cluster) as base, window(browser, base) as tab:
        tab.open("/nodes", "nodes")
        cards = tab.column("nodes", "Total GPUs")
        addresses = tab.column("nodes", "IP")
    assert cards == dict.fromkeys(cluster.nodes, str(CARDS))
    assert addresses == {name: node.link.address for name, node in cluster.nodes.items()}


def test_a_node_is_unplugged_and_comes_back(cluster: Cluster, admin: Kubectl) -> None:
    """The node of the quota controller that works: the other one takes over, without its pods."""
    leader = holder(admin, "fairlead-quota")
    name = next(
        p["spec"]["nodeName"] for p in cluster.own_pods() if leader == p["metadata"]["name"]
    )
    node = cluster.nodes[name]
    node.link.cut()
    try:
        wait_until("another replica works", lambda: holder(admin, "fairlead-quota") != leader, 60)
        wait_until("the node is NotReady", lambda: not is_ready(cluster.plane, name), 60)
        admin.create([shared_pod(f"meanwhile-{number}") for number in range(CARDS * 3)])
        wait_until("pods run on the other nodes", lambda: len(running(admin)) == CARDS * 2, SECONDS)
        assert name not in {pod["spec"]["nodeName"] for pod in running(admin)}
    finally:
        node.link.mend()
    wait_until("the node is Ready", lambda: is_ready(cluster.plane, name), 60)
    wait_until("pods run on it, too", lambda: len(running(admin)) == CARDS * 3, SECONDS)
    given = {visible_card(admin, pod["metadata"]["name"]) for pod in running(admin)}
    assert len(given) == CARDS * 3
    admin.delete("pods", "-l", "fairlead-test=shared", "-n", "default")
    wait_until(
        "every pod of Fairlead is Ready again",
        lambda: all(is_true(pod, "Ready") for pod in cluster.own_pods()),
        SECONDS,
    )


def test_nothing_is_left_after_the_removal(
    cluster: Cluster, admin: Kubectl, files_before: dict[str, list[str]]
) -> None:
    """But for what docs/how-to/install.md lists."""
    admin.delete("namespace", "team-a", "team-b")
    cluster.fairlead("uninstall", "--delete-data")
    kinds = admin.run("api-resources", "--verbs=list", "-o", "name").split()
    wanted = ",".join(each for each in kinds if each not in ("events", "events.events.k8s.io"))
    names = admin.run("get", wanted, "-A", "--no-headers", "-o", "name").splitlines()
    assert [each for each in names if "fairlead" in each or TREES in each] == []
    for obj in admin.get("nodes"):
        marks = {**obj["metadata"]["labels"], **obj["metadata"]["annotations"]}
        assert [key for key in marks if key.startswith(("fairlead.io/", "aliyun."))] == []
        assert "GPUShareReady" not in {each["type"] for each in obj["status"]["conditions"]}
    for name, node in cluster.nodes.items():
        left = set(node.files(*WRITTEN)) - set(files_before[name])
        assert left <= LEFT
        processes = node.run("ps", "-eo", "args")
        assert "fairlead " not in processes.replace("/fairlead ", ""), processes


LEFT = {
    *("/var/run/cdi", "/run/fairlead", "/run/fairlead/gpu"),
    *("/var/lib/fairlead", "/var/lib/fairlead/gpu", "/var/lib/fairlead/gpu/containers"),
    *(f"/var/lib/fairlead/gpu/{name}" for name in ("faults.json", "grants.json", "runtime.json")),
    "/var/lib/fairlead/gpu/lock",
    # The kubelet's own record of what device plugins gave to containers.
    "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
}
"""What may be left on a node; folders are empty but for these."""


def of_part(pods: list[Object], part: str) -> list[Object]:
    return [p for p in pods if p["metadata"]["labels"].get("app.kubernetes.io/name") == part]


def holder(admin: Kubectl, lease: str) -> str:
    (found,) = admin.get("leases", "-n", SYSTEM, f"--field-selector=metadata.name={lease}")
    return str(found["spec"]["holderIdentity"])


def shared_pod(name: str) -> Object:
    """A pod that takes more than half of a card's memory."""
    container = {
        "name": "app",
        "image": PRINTS,
        "imagePullPolicy": "Never",
        "resources": {"limits": {MEMORY: "8"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"fairlead-test": "shared"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }


def running(admin: Kubectl) -> list[Object]:
    pods = admin.get("pods", "-n", "default", "-l", "fairlead-test=shared")
    return [pod for pod in pods if pod["status"]["phase"] == "Running"]


def is_running(admin: Kubectl, name: str) -> bool:
    return name in {pod["metadata"]["name"] for pod in running(admin)}


def visible_card(admin: Kubectl, name: str) -> str:
    """The card that the container sees."""
    wait_until(
        f"{name} has printed everything",
        lambda: admin.run("logs", name, "-n", "default").endswith("end\n"),
        SECONDS,
    )
    lines = dict(
        line.partition("=")[::2] for line in admin.run("logs", name, "-n", "default").splitlines()
    )
    return lines["NVIDIA_VISIBLE_DEVICES"]


def deployment(namespace: str) -> Object:
    container = {
        "name": "web",
        "image": SERVES,
        "imagePullPolicy": "Never",
        "resources": {"requests": {"cpu": "100m"}},
    }
    labels = {"app": "web"}
    pod = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def has_quota(admin: Kubectl, namespace: str) -> bool:
    (found,) = admin.get("namespaces", f"--field-selector=metadata.name={namespace}")
    return found["metadata"]["labels"].get("fairlead.io/quota") == "enforced"


def settled(admin: Kubectl, wanted: dict[tuple[str, str], int]) -> None:
    """Wait until the pods of the teams are in these states, and no others."""

    def found() -> Counter[tuple[str, str]]:
        return Counter(
            (pod["metadata"]["namespace"], _state(pod))
            for pod in admin.get("pods", "-l", "app=web")
        )

    wait_until(lambda: f"{wanted}, not {found()}", lambda: found() == wanted, SECONDS)


def _state(pod: Object) -> str:
    return "Gated" if pod["spec"].get("schedulingGates") else str(pod["status"]["phase"])


@contextmanager
def port_forward(cluster: Cluster) -> Iterator[str]:
    """The console's URL on this machine."""
    port = free_port()
    words = ["-n", SYSTEM, "port-forward", "--address=127.0.0.1", "deployment/fairlead-console"]
    component = Component(
        "kubectl port-forward",
        [program("kubectl"), f"--kubeconfig={cluster.plane.kubeconfig}", *words, f"{port}:8080"],
        cluster.plane.logs / "port-forward.log",
    )
    component.start()
    try:
        component.wait_until(lambda: is_listening(port), SECONDS)
        yield f"http://127.0.0.1:{port}"
    finally:
        component.stop()
