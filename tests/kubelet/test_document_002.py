"""Document 002 on a real node: dcgm-exporter's DaemonSet with Fairlead's image in it, board 12239,
pods that load their cards, an autoscaler.

The control plane, the kubelet, the containers, Prometheus, the adapter of custom metrics and the
way of a driver into a container are real. The driver itself is a library of the tests; values are
compared with its state. Autoscalers look every two seconds here, and forget a peak after five
(`tests/kube/control_plane.py`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import pytest
from tests.kube.component import Component
from tests.kube.control_plane import ControlPlane
from tests.kube.custom_metrics import pods_metric, running_adapter
from tests.kube.deployed import of_file, of_kind
from tests.kube.driver import installed_driver
from tests.kube.fairlead_images import write_fairlead_images
from tests.kube.kubelet import NODE, RealNode, kubelet_folder
from tests.kube.node_images import BUSYBOX
from tests.kube.node_room import end_one
from tests.kube.prometheus import running_prometheus
from tests.kube.servers import Page
from tests.kubelet import document_002 as document
from tests.kubelet.document_002 import EXPORTER_PODS, GPU, NAMESPACE, TESTER
from tests.kubelet.plugins import SimpleAnswers, WholeCards, running_plugin
from tests.kubelet.scene_002 import (
    CARDS,
    SECONDS,
    UTILIZATION,
    Scene,
    applied,
    at_rest,
    is_ready,
    page_of,
    reported,
    show,
    shown,
    url_of,
)
from tests.nvml.stub import StubState, uuid
from tests.waiting import wait_until

from fairlead.model.devices.kubelet import OfferedDevice
from fairlead.model.installation import Installation
from fairlead.wire.installation.reading_parts import gpu_exporter

pytestmark = pytest.mark.turns(4, 0)

Object = dict[str, Any]
NAMED_SECONDS, GONE_SECONDS = 15.0, 10.0
"""How long a started pod may lack its name, which is the chart's interval; and how long a deleted
pod may keep it (docs/spec/telemetry.md#names-of-deleted-pods).
"""
LINES = (
    "Skipping CreateDcgmGroups() since DCGM validation is disabled",
    "CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: 1024",
    "CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: 40",
    "CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: 7",
    "Max Memory bandwidth: 320064000000 bytes (320.06 GiB)",
    "CudaInit completed successfully.",
    "Skipping WatchFields() since DCGM validation is disabled",
    "TensorEngineActive: generated ???, dcgm 0.000 (",
)
"""Lines from the document."""


@pytest.fixture(scope="module")
def cards(node: ControlPlane) -> Iterator[StubState]:
    with installed_driver(kubelet_folder(node).parent, CARDS) as state:
        for card in range(CARDS):
            state.show_h200(card)
            state.say({f"{card}.uuid": uuid(card), f"{card}.bus": f"00000000:{7 + card:02X}:00.0"})
            show(state, card)
        yield state


@pytest.fixture(scope="module")
def plugin(node: ControlPlane, cards: StubState) -> Iterator[SimpleAnswers]:
    devices = [OfferedDevice(uuid(card)) for card in range(CARDS)]
    with running_plugin(
        node, WholeCards, resource=GPU, devices=devices, endpoint="fairlead-cards.sock"
    ) as (_, answers):
        wait_until("the node shows its cards", lambda: shown(node) == str(CARDS), SECONDS)
        yield answers


@pytest.fixture(scope="module")
def scene(
    node: ControlPlane,
    programs: RealNode,
    cards: StubState,
    plugin: SimpleAnswers,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Scene]:
    """Everything that the document sets up: the exporter runs, Prometheus has its page."""
    tar = tmp_path_factory.mktemp("images") / "images.tar"
    write_fairlead_images(tar)
    programs.import_images(tar)
    tar.unlink()
    with applied(node, *document.EXPORTER_OBJECTS):
        log, selector = node.logs / "document-002-prometheus.log", EXPORTER_PODS
        wait_until(
            lambda: f"the exporter is ready: {reported(node, selector)}",
            lambda: is_ready(node, selector),
            SECONDS,
        )
        with running_prometheus(
            {}, log, more=[document.scraping(node, honor_labels=False)]
        ) as prometheus:
            yield Scene(node, cards, plugin, prometheus)


# --- the board ------------------------------------------------------------------------------------


def test_every_expression_of_board_12239_has_the_cards_values(scene: Scene) -> None:
    scene.until_board_shows([])
    page = scene.page()
    assert page.value("fairlead_exporter_config_rows_rejected") == 0
    assert page.labels("fairlead_exporter_build_info")["backend"] == "nvml"
    assert (
        page.value("fairlead_exporter_nvml_up", node_name=scene.exporter()["metadata"]["name"]) == 1
    ), "this chart gives no pod its node"
    assert "kmsg" not in collectors(page) and {*collectors(page).values()} == {1.0}, (
        "no kernel's log is mounted there, and nothing else is missing"
    )
    (target,) = scene.prometheus.targets()
    assert (
        target["labels"]["pod"] == scene.exporter()["metadata"]["name"]
        and target["labels"]["container"] == "exporter"
    )
    assert not scene.owners(), "no pod has a card yet"


def test_the_documents_pod_moves_its_card_and_no_other(scene: Scene) -> None:
    """The pod as it is printed. Its name is on its card in both ways of scraping, and disappears
    with it. A pod with less work ends successfully beside it.
    """
    cluster, prometheus, short = scene.cluster, scene.prometheus, f"{TESTER}-short"
    with applied(cluster, document.tester(), document.tester(short, seconds=2)):
        card = card_of(scene, TESTER)
        inside = cluster.admin.run(
            "exec", TESTER, "-n", NAMESPACE, "--", "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES"
        )
        assert inside.strip() == card
        scene.until_board_shows([card])
        wait_until(
            lambda: f"its card carries its name: {scene.owners()}",
            lambda: scene.owners() == {card: TESTER},
            SECONDS,
        )
        (found,) = prometheus.query(f'{UTILIZATION}{{exported_pod="{TESTER}"}}')
        assert (found.labels["exported_namespace"], found.labels["exported_container"]) == (
            NAMESPACE,
            "dcgmproftester11",
        )
        prometheus.configure({}, more=[document.scraping(cluster, honor_labels=True)])
        prometheus.reload()
        others = {
            uuid(each): scene.exporter()["metadata"]["name"]
            for each in range(CARDS)
            if uuid(each) != card
        }
        honored = lambda: not scene.owners() and scene.owners("pod") == {card: TESTER, **others}  # noqa: E731 - asked often
        wait_until(lambda: f"labels are honored: {scene.owners('pod')}", honored, SECONDS)
        prometheus.configure({}, more=[document.scraping(cluster, honor_labels=False)])
        prometheus.reload()
        wait_until(
            lambda: f"it has ended well: {scene.pod(short)}",
            lambda: scene.pod(short)["status"]["phase"] == "Succeeded",
            SECONDS,
        )
        for name in (TESTER, short):
            printed = cluster.admin.run("logs", name, "-n", NAMESPACE)
            assert [line for line in LINES if line not in printed] == []
    assert not [*(scene.cards.folder.parent / "loads").glob("*.load")], (
        "asked to end, it takes its load along"
    )
    scene.until_board_shows([])
    wait_until("its card has no owner", lambda: not scene.owners(), SECONDS)


# --- the autoscaler -------------------------------------------------------------------------------


def test_a_load_scales_a_deployment_up_and_back(scene: Scene) -> None:
    """The shipped autoscaler and the adapter's shipped rules scale it; each pod's series are those
    of its card.
    """
    cluster, prometheus, most = scene.cluster, scene.prometheus, 2
    requests = document.orders(cluster)
    requests.parent.mkdir(exist_ok=True)
    with (
        running_adapter(cluster, prometheus),
        applied(cluster, document.inference(), document.autoscaler(most)),
    ):
        wait_until(
            lambda: f"one pod has its card's value: {works(scene)} {scaler(scene)}",
            lambda: works(scene) == rests(scene) != {},
            SECONDS,
        )
        (first,) = works(scene)
        requests.touch()
        wait_until(
            lambda: f"there are {most} pods: {scaler(scene)}",
            lambda: replicas(scene) == most,
            SECONDS,
        )
        wait_until(
            lambda: f"they work: {works(scene)} {scaler(scene)}",
            lambda: [*works(scene).values()] == ["98"] * most,
            SECONDS,
        )
        both = scene.pods("app=inference")
        assert first in both and works(scene).keys() == both.keys()
        assert scene.owners() == {
            card: name for name, pod in both.items() for card in document.cards_of(cluster, pod)
        }
        scene.until_board_shows(scene.owners())
        requests.unlink()
        wait_until(
            lambda: f"there is one pod again: {scaler(scene)}",
            lambda: replicas(scene) == 1,
            SECONDS,
        )
        scene.until_board_shows([])
        wait_until(
            lambda: f"one is reported at rest: {works(scene)}",
            lambda: works(scene) == rests(scene),
            SECONDS,
        )
    wait_until("no card has a pod", lambda: not scene.owners(), SECONDS)


def replicas(scene: Scene) -> int:
    (found,) = scene.cluster.admin.get(
        "deployments", "-n", NAMESPACE, "--field-selector=metadata.name=inference"
    )
    return int(found["spec"]["replicas"])


def scaler(scene: Scene) -> str:
    return str(
        [each["status"] for each in scene.cluster.admin.get("hpa", "-n", NAMESPACE)]
    ) + reported(scene.cluster, "app=inference")


def works(scene: Scene) -> dict[str, str]:
    """What an autoscaler receives about the pods of this namespace."""
    return pods_metric(scene.cluster, NAMESPACE, UTILIZATION)


def rests(scene: Scene) -> dict[str, str]:
    """Whether the cards of the Deployment's pods show no load."""
    shown = {uuid(card): f"{at_rest(card)['gpu']:.0f}" for card in range(CARDS)}
    return {
        name: shown[document.cards_of(scene.cluster, pod)[0]]
        for name, pod in scene.pods("app=inference").items()
    }


# --- parts beside the document --------------------------------------------------------------------


def test_our_own_daemonset_runs_beside_it_as_it_is_shipped(scene: Scene) -> None:
    """It runs on a labelled node without privileges, sees the node's processes, and reports the
    same as the other exporter of every card. With the value `kernelLog` it reads the kernel's log.
    """
    cluster, (objects, system, label) = scene.cluster, document.own_exporter()
    selector = "app.kubernetes.io/name=fairlead-gpu-exporter"
    cluster.admin.apply(of_file("namespace.yaml"))
    with labelled(cluster, label), applied(cluster, *objects), applied(cluster, holder("holds")):
        ready = lambda: is_ready(cluster, selector, system)  # noqa: E731 - asked often
        wait_until(lambda: f"it is ready: {reported(cluster, selector, system)}", ready, SECONDS)
        (exporter,) = cluster.admin.get("pods", "-n", system, "-l", selector)
        url, named = url_of(exporter), {card_of(scene, "holds"): "holds"}
        wait_until(
            lambda: f"it names {named}: {names(page_of(url))}",
            lambda: names(page_of(url)) == named,
            SECONDS,
        )
        page = page_of(url)
        assert page.by("DCGM_FI_DEV_GPU_UTIL", "UUID") == scene.page().by(
            "DCGM_FI_DEV_GPU_UTIL", "UUID"
        )
        assert page.value("fairlead_exporter_nvml_up", node_name=NODE) == 1
        assert page.value("fairlead_exporter_pod_map_errors_total", reason="no_host_pid") == 0
        assert collectors(page).keys() >= {"device", "events", "podmap", "processes"}
        assert "kmsg" not in collectors(page)
        assert {*collectors(page).values()} == {1.0}

        def reads_the_log() -> bool:
            """The next pod, once the one before it is gone."""
            pods = cluster.admin.get("pods", "-n", system, "-l", selector)
            if not ready() or len(pods) != 1 or pods[0]["metadata"]["uid"] == before:
                return False
            return collectors(page_of(url_of(pods[0]))).get("kmsg") == 1.0

        before = exporter["metadata"]["uid"]
        wanted = of_kind(gpu_exporter(Installation(kernel_log=True)), "DaemonSet")
        cluster.admin.run("replace", "-f", "-", stdin=json.dumps(wanted))
        wait_until(
            lambda: f"it reads it: {reported(cluster, selector, system)}", reads_the_log, SECONDS
        )


def collectors(page: Page) -> dict[str, float]:
    """Whether each collector finds its input, on every card."""
    found = [each for each in page.samples if each.name == "fairlead_exporter_collector_success"]
    return {
        name: min(each.value for each in found if each.labels["collector"] == name)
        for name in {each.labels["collector"] for each in found}
    }


@contextmanager
def labelled(cluster: ControlPlane, label: str) -> Iterator[None]:
    cluster.admin.run("label", "node", NODE, label)
    try:
        yield
    finally:
        cluster.admin.run("label", "node", NODE, f"{label.partition('=')[0]}-")


def test_the_pod_of_the_document_sets_what_its_card_shows(scene: Scene) -> None:
    """The pod as docs/how-to/gpu-load.md prints it, with a folder of the node."""
    pod, folder = (
        document.reported_load_pod(),
        scene.cluster.folder / "node" / "disk" / "fairlead" / "gpu-load",
    )
    name = pod["metadata"]["name"]
    with applied(scene.cluster, pod):
        card = card_of(scene, name)
        wait_until(
            lambda: f"it prints: {scene.cluster.admin.run('logs', name, '-n', NAMESPACE)}",
            lambda: [*folder.glob("*.load")],
            SECONDS,
        )
        (path,) = folder.glob("*.load")
        rows = dict(line.split(" ", 1) for line in path.read_text(encoding="utf-8").splitlines())
        assert (rows["node"], rows["gpus"], float(rows["1004"])) == (NODE, card, 0.87)
    assert not [*folder.iterdir()]


# --- pods that come and go ------------------------------------------------------------------------


def test_pods_are_named_when_they_come_and_no_more_when_they_are_gone(
    scene: Scene, kubelet: Component
) -> None:
    """This also holds while the kubelet is away and after it has come back. The exporter stays the
    same, and every page has every card.
    """
    cluster, (before,) = scene.cluster, scene.exporter()["status"]["containerStatuses"]
    with applied(cluster, holder("stays")), applied(cluster, holder("comes-later")):
        named = {card_of(scene, name): name for name in ("stays", "comes-later")}
        assert until_named(scene, named) < NAMED_SECONDS
        times_registered = scene.plugin.times_registered
        with without(kubelet):
            show(scene.cards, 0, temperature=77)
            wait_until(
                "a card is warmer",
                lambda: scene.page().value("DCGM_FI_DEV_GPU_TEMP", UUID=uuid(0)) == 77,
                SECONDS,
            )
            assert names(scene.page()) == named, "they stand for a while"
        wait_until(
            "the cards are registered again",
            lambda: scene.plugin.times_registered > times_registered,
            SECONDS,
        )
        wait_until("the node shows its cards", lambda: shown(cluster) == str(CARDS), SECONDS)
        with applied(cluster, holder("after")):
            named[card_of(scene, "after")] = "after"
            assert len(named) == 3
            assert until_named(scene, named) < NAMED_SECONDS
            cluster.admin.run("delete", "pod", "after", "-n", NAMESPACE)
            named = {card: name for card, name in named.items() if name != "after"}
            assert until_named(scene, named) < GONE_SECONDS
    assert until_named(scene, {}) < GONE_SECONDS
    show(scene.cards, 0)
    (now,) = scene.exporter()["status"]["containerStatuses"]
    assert (now["containerID"], now["restartCount"]) == (
        before["containerID"],
        before["restartCount"],
    )


@contextmanager
def without(kubelet: Component) -> Iterator[None]:
    end_one(kubelet)
    try:
        yield
    finally:
        kubelet.start()


def holder(name: str) -> Object:
    """A pod that has a card and leaves it idle."""
    container = {
        "name": "main",
        "image": BUSYBOX,
        "command": ["sleep", "1000000"],
        "resources": {"limits": {GPU: 1}},
    }
    spec = {"containers": [container], "terminationGracePeriodSeconds": 1}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def card_of(scene: Scene, name: str) -> str:
    (card,) = document.cards_of(scene.cluster, scene.runs(name))
    return card


def names(page: Page) -> dict[str, str]:
    """The pod of each card: all series of a card with a pod name it, and all cards are present."""
    cards: dict[str, set[str]] = {}
    for each in page.samples:
        if each.name.startswith("DCGM_") and each.labels.get("UUID"):
            cards.setdefault(each.labels["UUID"], set()).add(each.labels.get("pod", ""))
    assert cards.keys() == {uuid(card) for card in range(CARDS)}
    return {card: " and ".join(sorted(pods)) for card, pods in cards.items() if pods != {""}}


def until_named(scene: Scene, expected: dict[str, str]) -> float:
    """Seconds until the page names these pods and no other. A look that came late, because the
    machine was busy, counts half a second.
    """
    looks: list[float] = []

    def is_so() -> bool:
        looks.append(time.monotonic())
        return names(scene.page()) == expected

    wait_until(lambda: f"the page names {expected}: {names(scene.page())}", is_so, SECONDS, 0.1)
    return sum(min(later - earlier, 0.5) for earlier, later in pairwise(looks))
