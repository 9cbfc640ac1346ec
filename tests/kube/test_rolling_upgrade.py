"""Every process is replaced while ten pods a second are created: a new process is up first, then
the old one gets SIGTERM, as a rolling update does.

No pod is refused, no card is granted twice, no scrape and no page is missing. The truth about cards
is a watch of the test's own.
"""

from __future__ import annotations

import http.client
import re
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.kube.addresses import free_port
from tests.kube.control_plane import ControlPlane, running_control_plane
from tests.kube.deployed import of_file, on_this_machine, webhook_process
from tests.kube.extender import Extender, scheduler_for
from tests.kube.front_door import FrontDoor, open_door
from tests.kube.kubeconfigs import token_user, write_kubeconfig
from tests.kube.kwok_stages import RUN_TIME
from tests.kube.quota_line import QuotaController, bounded, enforce, install
from tests.kube.servers import Server, running
from tests.kube.share_truth import ShareTruth
from tests.kube.sharing_words import as_real, ready
from tests.kube.used_rights import unused
from tests.waiting import HANG_SECONDS, repeat, wait_until

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
SYSTEM = "fairlead-system"
ACCOUNTS = (
    "fairlead-admission-webhook",
    "fairlead-cluster-exporter",
    "fairlead-quota-controller",
    "fairlead-reader",
    "fairlead-scheduler",
)
"""The node agent needs a node: tests/cdi/test_node_agent.py has its rights, and
tests/kube/test_deploy.py those of the GPU exporter.
"""
PODS_A_SECOND = 10
PAGES = ("/api/v1/overview", "/api/v1/serving")
FAMILY = "\nfairlead_cluster_gpu_memory_bytes"


pytestmark = pytest.mark.turns(2, 1)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ControlPlane]:
    users = [f"system:serviceaccount:{SYSTEM}:{name}" for name in ACCOUNTS]
    with running_control_plane(audited=users) as made:
        install(made)
        files = ("reader.yaml", "cluster-exporter.yaml", "gpushare-extender.yaml")
        made.admin.apply([each for file in files for each in of_file(file)])
        scheduler = of_file("gpushare-scheduler.yaml")
        made.admin.apply([each for each in scheduler if "Role" in each["kind"]])
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
        self.scrapes = self.opened = 0
        self._ended = threading.Event()
        self._threads = [
            threading.Thread(target=repeat, args=(self._ended, *each), daemon=True)
            for each in ((1 / PODS_A_SECOND, self._create), (0.25, self._open), (1.0, self._scrape))
        ]

    def start(self) -> None:
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        self._ended.set()
        for each in self._threads:
            each.join(HANG_SECONDS)

    def _create(self) -> None:
        try:
            self._api.create(PODS, _pod(self.made), PLACE)
        except FairleadError as error:
            self.refused.append(str(error))
        self.made += 1

    def _open(self) -> None:
        line = http.client.HTTPConnection("127.0.0.1", self._console.port, timeout=10)
        try:
            self.opened += 1
            line.request("GET", PAGES[self.opened % len(PAGES)])
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


def _waiting(cluster: ControlPlane) -> list[Object]:
    """Pods without a node, and why."""
    return [
        {"name": each["metadata"]["name"], "status": each["status"], "spec": each["spec"]}
        for each in cluster.admin.get("pods", "-n", PLACE)
        if "nodeName" not in each["spec"]
    ]


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


def _job_with_a_deadline() -> Object:
    """It begins suspended, and the controller resumes it."""
    container = {"name": "main", "image": "app:1"}
    pod = {"containers": [container], "restartPolicy": "Never"}
    spec = {"activeDeadlineSeconds": 600, "template": {"spec": pod}}
    meta = {"name": "j", "namespace": PLACE}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec}


@contextmanager
def _webhook(cluster: ControlPlane, port: int) -> Iterator[int]:
    with webhook_process(cluster, port):
        yield port


@contextmanager
def _placing(cluster: ControlPlane, name: str) -> Iterator[None]:
    """An extender with its kube-scheduler."""
    extender = Extender(cluster, f"extender-{name}")
    scheduler = scheduler_for(
        cluster, extender.port, f"scheduler-{name}", backoff_seconds=1, is_shipped=True
    )
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
    account = "fairlead-reader" if verb == "console" else "fairlead-cluster-exporter"
    token = cluster.admin.run("create", "token", account, "-n", SYSTEM).strip()
    kubeconfig = write_kubeconfig(
        cluster.folder / f"{verb}-{name}.kubeconfig",
        cluster.server,
        cluster.authority,
        token_user(token),
    )
    return running(
        verb,
        f"--kubeconfig={kubeconfig}",
        *more,
        log=cluster.logs / f"{verb}-{name}.log",
    )


def test_nothing_is_refused_or_missing_while_every_process_is_replaced(
    cluster: ControlPlane,
) -> None:
    first = free_port()
    with ExitStack() as all_of:
        door = all_of.enter_context(open_door(first))
        files = (
            *("admission-webhook.yaml", "gpushare-webhook.yaml", "quota-webhook.yaml"),
            "people-webhook.yaml",
        )
        hooks = [each for file in files for each in of_file(file)]
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
        cluster.admin.create([_job_with_a_deadline()])
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
        assert load.refused == []
        wait_until(
            lambda: f"all are placed: {len(truth.placements)} of {load.made}; {_waiting(cluster)}",
            lambda: len(truth.placements) == load.made,
            60,
        )
    assert truth.faults == []
    assert load.pages == []
    following = [scrape for scrape in load.gaps if scrape - 1 in load.gaps]
    assert following == [], "a gap is one scrape at most"
    assert load.scrapes > 5


# --- rights ---------------------------------------------------------------------------------------


ROOT = Path(__file__).resolve().parents[2]
SECURITY = ROOT / "docs" / "concepts" / "security.md"
CERTIFICATE = (
    "tests/apps/test_webhook_certificate.py"
    "::test_an_old_one_is_renewed_by_one_and_read_by_the_other"
)
TAKEN_AWAY = "tests/kube/test_quota_rights.py::test_each_right_to_write_is_needed"
BY_HAND = "tests/kube/test_deploy.py::test_a_pod_placed_by_hand_is_adopted_or_reported"
LOGS = (
    "tests/apps/test_console_logs.py"
    "::test_a_log_comes_byte_for_byte_and_asks_for_no_more_than_it_may"
)
DATA_SETS = "tests/kube/test_console_operations.py::test_a_console_finishes_what_a_killed_one_began"
COMPONENTS = (
    "tests/kube/test_console_operations.py"
    "::test_a_component_needs_rights_that_the_console_does_not_have_by_itself"
)
STORMS = "tests/kube/test_share_storms.py::test_no_card_is_ever_sold_twice_and_nothing_is_lost"
RESIZED = "tests/kube/test_quota_admission.py::test_a_resize"
STAMPED = "tests/kube/test_quota_admission.py::test_a_new_pod"
ELSEWHERE = {
    "fairlead-admission-webhook": {
        "patch secrets/fairlead-admission-webhook": CERTIFICATE,
        "get elasticquotatrees.scheduling.sigs.k8s.io": RESIZED,
        "get namespaces": STAMPED,
    },
    "fairlead-cluster-exporter": {},
    "fairlead-quota-controller": {"create pods/eviction": TAKEN_AWAY, "delete pods": TAKEN_AWAY},
    "fairlead-reader": {
        "get pods/log": LOGS,
        "list persistentvolumeclaims": DATA_SETS,
        "list daemonsets.apps": COMPONENTS,
    },
    "fairlead-scheduler": {
        "patch pods": BY_HAND,
        "create events": BY_HAND,
        "get pods": STORMS,
    },
}
"""Rights that the upgrade need not use, and the test that uses each."""


def test_each_right_was_used_or_has_its_reason(cluster: ControlPlane) -> None:
    """Runs after the upgrade above, whose requests are in the audit log. Rights about kinds that
    the cluster does not serve are left out.
    """
    for account, elsewhere in ELSEWHERE.items():
        granted, not_used = unused(cluster, account, SYSTEM)
        assert elsewhere.keys() <= granted
        assert not_used <= elsewhere.keys(), account
    page = SECURITY.read_text(encoding="utf-8").partition("### Rights and their use")[2]
    named = {test for rows in ELSEWHERE.values() for test in rows.values()}
    assert {test for test in named if test not in page} == set()
    for test in named:
        file, _, function = test.partition("::")
        assert re.search(rf"def {function}\b", (ROOT / file).read_text(encoding="utf-8")), test
