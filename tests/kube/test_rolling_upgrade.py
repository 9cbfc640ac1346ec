"""Every process is replaced while ten pods a second are created: a new process is up first, then
the old one gets SIGTERM, as a rolling update does.

No pod is refused, no card is granted twice, no scrape and no page is missing. The truth about cards
is a watch of the test's own.
"""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import pytest
from tests.kube.addresses import free_port
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import of_file, on_this_machine, webhook_process
from tests.kube.extender import Extender, scheduler_for
from tests.kube.front_door import FrontDoor, open_door
from tests.kube.kwok_stages import RUN_TIME
from tests.kube.quota_line import QuotaController, bounded, enforce, install
from tests.kube.servers import Server, running
from tests.kube.share_truth import ShareTruth
from tests.kube.sharing_words import as_real, ready
from tests.waiting import wait_until

from fairlead.edge.connection.kubeconfig import find_connection
from fairlead.edge.kube.kube_blocking import KubeBlocking
from fairlead.edge.kube.resource import PODS
from fairlead.errors import FairleadError
from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.objects.resources import NODES
from fairlead_sim.scenario.scenario import NodePool, Scenario

Object = dict[str, Any]
POOL = NodePool(
    name="shared",
    count=3,
    cpu=64,
    memory="256Gi",
    gpu_model="Tesla V100-SXM2-16GB",
    gpus=4,
    shared=True,
)
PLACE = "ml"
PODS_A_SECOND = 10
FAMILY = "\nfairlead_cluster_gpu_memory_bytes"


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    with running_control_plane() as made:
        install(made)
        nodes = sharing_world(
            Scenario(title="upgrade", node_pools=(POOL,)), 1, 1_767_600_000.0
        ).cluster.list(NODES)
        made.admin.create([as_real(node) for node in nodes])
        wait_until("the nodes are ready", lambda: len(ready(made)) == len(nodes))
        yield made


class Load:
    """What users and Prometheus do meanwhile. Each list holds failures."""

    def __init__(self, cluster: ControlPlane, console: FrontDoor) -> None:
        connection = find_connection(str(cluster.kubeconfig))
        assert connection is not None
        self._api = KubeBlocking(connection)
        self._console = console
        self.exporters: list[Server] = []
        self.made = 0
        self.refused: list[str] = []
        self.pages: list[str] = []
        self.gaps: list[int] = []
        self.scrapes = 0
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=each, daemon=True)
            for each in ((1 / PODS_A_SECOND, self._create), (0.25, self._open), (1.0, self._scrape))
        ]

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._ended.set()
        for each in self._threads:
            each.join(30)

    def _repeat(self, seconds: float, act: Callable[[], None]) -> None:
        due = time.monotonic()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            act()
            due += seconds

    def _create(self) -> None:
        try:
            self._api.create(PODS, _pod(self.made), PLACE)
        except FairleadError as error:
            self.refused.append(str(error))
        self.made += 1

    def _open(self) -> None:
        line = http.client.HTTPConnection("127.0.0.1", self._console.port, timeout=10)
        try:
            line.request("GET", "/api/v1/overview")
            answer = line.getresponse()
            answer.read()
            if answer.status != 200:
                self.pages.append(f"{answer.status}")
        except (OSError, http.client.HTTPException) as error:
            self.pages.append(repr(error))
        finally:
            line.close()

    def _scrape(self) -> None:
        """All targets, as Prometheus does; a gap is a moment at which none has the numbers."""
        self.scrapes += 1
        if not any(_has_numbers(each) for each in list(self.exporters)):
            self.gaps.append(self.scrapes)


def _has_numbers(exporter: Server) -> bool:
    try:
        return FAMILY in exporter.get("/metrics", seconds=2).decode()
    except OSError:
        return False


def _pod(number: int) -> Object:
    """One unit of a card, for a second. The webhook chooses the scheduler, a policy the gate."""
    limits = {"cpu": "10m", "aliyun.com/gpu-mem": "1"}
    container = {"name": "main", "image": "app:1", "resources": {"limits": limits}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"p{number}", "annotations": {RUN_TIME: "1s"}},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }


@contextmanager
def _webhook(cluster: ControlPlane, port: int) -> Iterator[int]:
    with webhook_process(cluster, port):
        yield port


@contextmanager
def _placing(cluster: ControlPlane, name: str) -> Iterator[None]:
    """An extender with its kube-scheduler."""
    extender = Extender(cluster, f"extender-{name}")
    scheduler = scheduler_for(cluster, extender, f"scheduler-{name}", backoff_seconds=1)
    with ExitStack() as leaving:
        leaving.callback(extender.component.stop)
        extender.start()
        leaving.callback(scheduler.stop)
        scheduler.start()
        yield


@contextmanager
def _controller(cluster: ControlPlane, name: str) -> Iterator[None]:
    controller = QuotaController(cluster, name)
    try:
        controller.start()
        yield
    finally:
        controller.stop()


def _server(cluster: ControlPlane, verb: str, name: str) -> AbstractContextManager[Server]:
    more = ("--leader-elect", f"--identity={name}") if verb == "cluster-exporter" else ()
    return running(
        verb,
        f"--kubeconfig={cluster.kubeconfig}",
        *more,
        log=cluster.logs / f"{verb}-{name}.log",
    )


def test_nothing_is_refused_or_missing_while_every_process_is_replaced(
    cluster: ControlPlane,
) -> None:
    first = free_port()
    with ExitStack() as all_of:
        door = all_of.enter_context(open_door(first))
        hooks = [*of_file("admission-webhook.yaml"), *of_file("gpushare-webhook.yaml")]
        cluster.admin.apply([on_this_machine(each, door.port) for each in hooks])
        old = {name: all_of.enter_context(ExitStack()) for name in "whcxp"}
        old["w"].enter_context(_webhook(cluster, first))
        old["h"].enter_context(_placing(cluster, "a"))
        old["c"].enter_context(_controller(cluster, "quota-a"))
        exporter = old["x"].enter_context(_server(cluster, "cluster-exporter", "a"))
        console = old["p"].enter_context(_server(cluster, "console", "a"))
        page = all_of.enter_context(open_door(int(console.address.rpartition(":")[2])))
        root = bounded("root", 100, 100, children=[bounded("root.ml", 100, 100, [PLACE])])
        enforce(cluster, root)
        wait_until("the exporter has numbers", lambda: _has_numbers(exporter), 60)

        truth, load = ShareTruth(cluster), Load(cluster, page)
        all_of.callback(truth.stop)
        load.exporters.append(exporter)
        load.start()
        all_of.callback(load.stop)
        wait_until("pods are placed", lambda: len(truth.placements) > 10, 60)

        port = free_port()
        all_of.enter_context(_webhook(cluster, port))
        door.backend = port
        old["w"].close()

        old["h"].close()
        all_of.enter_context(_placing(cluster, "b"))

        all_of.enter_context(_controller(cluster, "quota-b"))
        old["c"].close()

        newer = all_of.enter_context(_server(cluster, "cluster-exporter", "b"))
        load.exporters.append(newer)
        old["x"].close()
        load.exporters.remove(exporter)

        console = all_of.enter_context(_server(cluster, "console", "b"))
        page.backend = int(console.address.rpartition(":")[2])
        old["p"].close()

        made = load.made
        wait_until("pods are created after it", lambda: load.made > made + 10, 60)
        load.stop()
        wait_until(
            lambda: f"all are placed: {len(truth.placements)} of {load.made}",
            lambda: len(truth.placements) == load.made,
            60,
        )
    assert load.refused == []
    assert truth.faults == []
    assert load.pages == []
    following = [scrape for scrape in load.gaps if scrape - 1 in load.gaps]
    assert following == [], "a gap is one scrape at most"
    assert load.scrapes > 5
