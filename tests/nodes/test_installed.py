"""Fairlead from its image on three real nodes: installed by one command, used, one node unplugged,
and removed without a trace.

The oracles are kubectl, the programs inside containers, and the files of the nodes. The tests run
in their order: each finds the cluster as the one before it left it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.browser.chromium import window
from tests.documents.cuda_malloc import cuda_malloc
from tests.kube.addresses import free_port, is_listening
from tests.kube.component import Component
from tests.kube.driver_hook import NVML_VARIABLES
from tests.kube.kubectl import Kubectl
from tests.kube.kubelet import is_ready
from tests.kube.node_images import write_program_images
from tests.kube.programs import program
from tests.kube.share_truth import ShareTruth
from tests.nodes.cluster import CARDS, NEWER, SOURCES, SYSTEM, Cluster, is_true, uuid
from tests.nodes.load import Load, running_load
from tests.nodes.shared_pods import (
    SECONDS,
    complaints,
    is_running,
    running,
    running_versions,
    shared_pod,
    still_shared,
    visible_card,
)
from tests.nodes.tutorial import Tutorial
from tests.turns import is_module_in_turn
from tests.waiting import wait_until

from fairlead import __version__

Object = dict[str, Any]
WRITTEN = ("/var/lib/fairlead", "/run/fairlead", "/var/run/cdi", "/var/lib/kubelet/device-plugins")
"""Folders of a node into which Fairlead writes."""
SCRAPE_SECONDS = 15.0
"""From one scrape of the cluster exporter to the next, in the shipped configuration of Prometheus:
of its two pods one has numbers all the time.
"""
GAP_SECONDS = 120.0
"""Of a node's exporter, of which there is one: it starts anew. A machine on which all tests run
starts a container twenty times more slowly than a free one; the run prints what it measured.
"""
TREES = "elasticquotatrees.scheduling.sigs.k8s.io"


@pytest.fixture(scope="module")
def files_before(cluster: Cluster) -> dict[str, list[str]]:
    return {name: node.files(*WRITTEN) for name, node in cluster.nodes.items()}


@pytest.fixture(scope="module")
def page(
    cluster: Cluster, files_before: object, tmp_path_factory: pytest.TempPathFactory
) -> Tutorial:
    """docs/get-started/cluster.md, up to the installation."""
    page = Tutorial(cluster, tmp_path_factory.mktemp("tutorial"))
    page.play_all("Build the image", "Choose the cluster", "Label the nodes with GPUs", "Install")
    return page


@pytest.fixture(scope="module")
def admin(cluster: Cluster, page: Tutorial) -> Kubectl:
    """kubectl, after the installation."""
    return cluster.plane.admin


def test_every_pod_is_ready_and_the_doctor_has_no_complaint(
    cluster: Cluster, admin: Kubectl
) -> None:
    pods = cluster.own_pods()
    assert all(is_true(pod, "Ready") for pod in pods), pods
    assert spread_nodes(cluster) == PARTS

    identity = [
        n["metadata"]["annotations"]["fairlead.io/gpu-identity"] for n in admin.get("nodes")
    ]
    assert identity == ["deferred"] * len(cluster.nodes), "each agent has seen that CDI works"
    assert complaints(cluster) == []


PARTS = {
    "fairlead-admission-webhook": 2,
    "fairlead-cluster-exporter": 2,
    "fairlead-console": 1,
    "fairlead-gpu-exporter": 3,
    "fairlead-node-agent": 3,
    "fairlead-people-controller": 2,
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


def test_a_container_has_the_guard_of_the_image(
    cluster: Cluster, admin: Kubectl, tmp_path: Path
) -> None:
    """The agent of the DaemonSet has put it on the node: it shows the grant, not the card's memory,
    to a program that asks NVML. 8 of 14 units of 15079 MiB are 8616 MiB.
    """
    image, tar = "fairlead.test/query:1", tmp_path / "images.tar"
    write_program_images(tar, cuda_malloc(), {image: ["sleep", "1000000"]})
    for node in cluster.nodes.values():
        node.programs.import_images(tar)
    admin.create([shared_pod("query", image)])
    wait_until("it runs", lambda: is_running(admin, "query"), SECONDS)
    (pod,) = running(admin)
    assert pod["metadata"]["annotations"]["ALIYUN_COM_GPU_MEM_IDX"] == "0", "the program asks for 0"
    program = [
        "env",
        *(f"{name}={value}" for name, value in NVML_VARIABLES.items()),
        cuda_malloc().name,
    ]
    shown = admin.run("exec", "query", "-n", "default", "--", *program)
    assert shown.split() == ["0MiB", "/", "8616MiB"]
    admin.delete("pod", "query", "-n", "default")


def test_the_page_shares_a_gpu(page: Tutorial) -> None:
    page.play_all("Share a GPU")


def test_the_page_divides_the_cluster(admin: Kubectl, page: Tutorial) -> None:
    """The page waits for two pods of each team; then team b ends, and team a borrows again."""
    page.play_all("Divide the cluster")
    settled(admin, {("team-a", "Running"): 4})


def test_the_console_shows_the_nodes_in_a_browser(
    cluster: Cluster, admin: Kubectl, browser: Browser, page: Tutorial
) -> None:
    page.play_all("Open the console")
    token = admin.run("create", "token", "admin", "-n", "kube-ai").strip()
    with port_forward(cluster) as base, window(browser, base) as tab:
        order = {"way": "token", "secret": token}
        signed = tab.page.request.post(f"{base}/api/v1/signin", data=order)
        assert signed.ok, signed.text()
        tab.open("/nodes", "nodes")
        cards = tab.column("nodes", "Total GPUs")
        addresses = tab.column("nodes", "IP")
    assert cards == dict.fromkeys(cluster.nodes, str(CARDS))
    assert addresses == {name: node.link.address for name, node in cluster.nodes.items()}


@pytest.mark.parametrize("is_loaded", [is_module_in_turn(2, 1)])
def test_an_upgrade_and_the_way_back(
    cluster: Cluster, admin: Kubectl, page: Tutorial, is_loaded: bool
) -> None:
    """By the newer version's command, and back by the older one's; in every second run under load.
    Never in a run with Helm (part 0 of 6): the two together have no room in it.

    tests/kube/test_rolling_upgrade.py is under load in every run, without nodes.
    """
    with ExitStack() as ending:
        load, truth = ending.enter_context(running_load(cluster)) if is_loaded else (None, None)
        for packages, version in ((cluster.newer_packages(), NEWER), (SOURCES, __version__)):
            page.use(packages)
            page.play("Upgrade")
            assert running_versions(cluster) == {version}
            assert admin_version(admin) == version
            if load is not None:
                made = load.made
                wait_until("pods are created after it", lambda made=made: load.made > made + 20, 60)
        if load is not None and truth is not None:
            _check(load, truth)
    page.play("Upgrade")
    still_shared(admin)


def _check(load: Load, truth: ShareTruth) -> None:
    """Nothing was refused or missing, and no card was granted twice."""
    load.stop()
    print(f"\n{load.described}", *load.pages, sep="\n")
    assert load.refused == []
    wait_until(
        lambda: f"all have a place or have run: {load.unfinished(truth)}",
        lambda: load.unfinished(truth) == [],
        300,
    )
    assert truth.faults == []
    assert load.pages == []
    assert load.gaps["cluster"] <= SCRAPE_SECONDS
    assert max(load.gaps.values()) <= GAP_SECONDS
    assert load.rate > 2


def test_a_node_is_unplugged_and_comes_back(
    cluster: Cluster, admin: Kubectl, page: Tutorial
) -> None:
    """The node of the quota controller that works: the other one takes over, without its pods."""
    wait_until(
        lambda: f"replicas are on different nodes after upgrades, too: {places(cluster)}",
        lambda: spread_nodes(cluster) == PARTS,
        SECONDS,
    )
    leader = holder(admin, "fairlead-quota")
    name = next(
        p["spec"]["nodeName"] for p in cluster.own_pods() if leader == p["metadata"]["name"]
    )
    node = cluster.nodes[name]
    node.link.cut()
    try:
        wait_until(
            lambda: f"another replica works; {places(cluster)}",
            lambda: holder(admin, "fairlead-quota") != leader,
            120,
        )
        wait_until("the node is NotReady", lambda: not is_ready(cluster.plane, name), 120)
        admin.create([shared_pod(f"meanwhile-{number}") for number in range(CARDS * 3)])
        wait_until("pods run on the other nodes", lambda: len(running(admin)) == CARDS * 2, SECONDS)
        assert name not in {pod["spec"]["nodeName"] for pod in running(admin)}
        page.play("Take a node away")
    finally:
        node.link.mend()
    wait_until("the node is Ready", lambda: is_ready(cluster.plane, name), 120)
    wait_until("pods run on it, too", lambda: len(running(admin)) == CARDS * 3, SECONDS)
    given = {visible_card(admin, pod["metadata"]["name"]) for pod in running(admin)}
    assert len(given) == CARDS * 3
    admin.delete("pods", "-l", "fairlead-test=shared", "-n", "default")
    wait_until(
        "every pod of Fairlead is Ready again",
        lambda: all(is_true(pod, "Ready") for pod in cluster.own_pods()),
        SECONDS,
    )
    page.play("Take a node away")


def test_nothing_is_left_after_the_removal(
    cluster: Cluster, admin: Kubectl, page: Tutorial, files_before: dict[str, list[str]]
) -> None:
    """But for what docs/how-to/install.md lists. Each command of the page has been typed then."""
    page.play_all("Change it", "Remove it")
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
    assert page.left == {}, "each command of the page has been typed"


LEFT = {
    *("/var/run/cdi", "/run/fairlead", "/run/fairlead/gpu"),
    *("/var/lib/fairlead", "/var/lib/fairlead/gpu", "/var/lib/fairlead/gpu/containers"),
    *(f"/var/lib/fairlead/gpu/{name}" for name in ("faults.json", "grants.json", "runtime.json")),
    "/var/lib/fairlead/gpu/lock",
    # Containers that still have a shared GPU have these mapped.
    "/var/lib/fairlead/gpu/guard",
    *(f"/var/lib/fairlead/gpu/guard/{name}" for name in ("libfairlead-guard.so", "ld.so.preload")),
    # The kubelet's own record of what device plugins gave to containers.
    "/var/lib/kubelet/device-plugins/kubelet_internal_checkpoint",
}
"""What may be left on a node; folders are empty but for these."""


def of_part(pods: list[Object], part: str) -> list[Object]:
    return [p for p in pods if p["metadata"]["labels"].get("app.kubernetes.io/name") == part]


def spread_nodes(cluster: Cluster) -> dict[str, int]:
    """How many nodes run each part."""
    pods = cluster.own_pods()
    return {part: len({pod["spec"]["nodeName"] for pod in of_part(pods, part)}) for part in PARTS}


def places(cluster: Cluster) -> dict[str, str]:
    """The node of each pod of Fairlead."""
    return {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in cluster.own_pods()}


def holder(admin: Kubectl, lease: str) -> str:
    (found,) = admin.get("leases", "-n", SYSTEM, f"--field-selector=metadata.name={lease}")
    return str(found["spec"]["holderIdentity"])


def admin_version(admin: Kubectl) -> str:
    """As the inventory has it."""
    where = ("-n", SYSTEM, "--field-selector=metadata.name=fairlead-installation")
    (found,) = admin.get("configmaps", *where)
    return str(found["data"]["version"])


def settled(admin: Kubectl, wanted: dict[tuple[str, str], int]) -> None:
    """Wait until the pods of the teams are in these states, and no others."""

    def found() -> Counter[tuple[str, str]]:
        return Counter(
            (pod["metadata"]["namespace"], _state(pod))
            for pod in admin.get("pods", "-l", "app=team")
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
