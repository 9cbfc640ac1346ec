"""Are the GPU values that `arena` shows those of the exporters' pages, through a real Prometheus?
And what does it show when Prometheus is gone or wrong?

Two pages of other exporters (`gpu_pages`) report the company's cards, with numbers that the test
chose; both families, some cards in both. Prometheus scrapes them as in clusters: its own labels
`namespace` and `pod` replace the page's.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kube import objects
from tests.kube.control_plane import ControlPlane
from tests.kube.gpu_pages import MIB, Card, dcgm_page, nvidia_page, served
from tests.kube.prometheus import Prometheus, running_prometheus
from tests.kube.servers import environment
from tests.programs import run_program
from tests.waiting import wait_until

from fairlead.edge.queries.gpu_query import gpu_query

UNAVAILABLE = "GPU metrics unavailable: "
SCRAPE_SECONDS = 3
"""A page that is not read in this time loses its samples until the next scrape: one second is short
on a busy machine.
"""
EXPORTER = {"namespace": "monitoring", "pod": "dcgm-exporter-x1y2z", "container": "exporter"}
TOTAL_MIB = 81920
SHARED_TOTAL_MIB = 15360

pytestmark = pytest.mark.turns(2, 1)


class Cards:
    """What the pages report: cards by family, and by the pod that holds them."""

    def __init__(self, cluster: ControlPlane) -> None:
        self.dcgm: list[Card] = []
        self.nvidia: list[Card] = []
        self.by_pod: dict[tuple[str, str], list[Card]] = {}
        self.nodes = {
            pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in _training_pods(cluster)
        }
        for number, (pod, node) in enumerate(sorted(self.nodes.items())):
            self._hold(
                ("research", pod), node, 4 if pod.startswith("bert") else 1, is_dcgm=number % 2 == 0
            )
        self.idle = [
            Card(node, 7, 99, 7777, TOTAL_MIB)
            for node in sorted(set(self.nodes.values()))
            if self._count_on(node) < 8
        ]
        assert self.idle, "each node of the training jobs is full"
        self.dcgm += self.idle  # their sensors may show any value
        self._doubles()

    def _hold(self, pod: tuple[str, str], node: str, count: int, *, is_dcgm: bool) -> None:
        first = self._count_on(node)
        for index in range(first, first + count):
            number = 10 * len(self.by_pod) + index
            card = Card(node, index, 30 + number, 20_000 + number, TOTAL_MIB, pod)
            self.by_pod.setdefault(pod, []).append(card)
            (self.dcgm if is_dcgm else self.nvidia).append(card)

    def _count_on(self, node: str) -> int:
        return sum(card.node == node for card in (*self.dcgm, *self.nvidia))

    def _doubles(self) -> None:
        """Each card of dcgm-exporter's also exists in the other family, with other values; and a
        pod's name also exists in another namespace.
        """
        self.nvidia += [card._replace(duty=1, used_mib=1) for card in self.dcgm]
        self.dcgm.append(Card("gpu-99", 0, 88, 8888, TOTAL_MIB, ("vision", "bert-worker-0")))
        sharers = (("vision", "service-0", 11, 1100), ("vision", "service-4", 22, 2200))
        self.nvidia.append(Card("share-1", 0, 35, 3400, SHARED_TOTAL_MIB, None, sharers))

    def reported(self, pod: str) -> list[tuple[str, str, str]]:
        """What a table must show of a pod of `research`, card by card."""
        return [
            (str(card.index), f"{card.duty}.0%", f"{card.used_mib}.0/{card.total_mib}.0(MiB)")
            for card in self._of(pod)
        ]

    def measured(self, pod: str) -> dict[str, dict[str, int]]:
        """The same in the form of a document's `gpuMetrics`."""
        return {
            str(card.index): {
                "gpuDutyCycle": card.duty,
                "usedGPUMemory": card.used_mib * MIB,
                "totalGPUMemory": card.total_mib * MIB,
            }
            for card in self._of(pod)
        }

    def _of(self, pod: str) -> list[Card]:
        return self.by_pod.get(("research", pod), [])


def _training_pods(cluster: ControlPlane) -> list[dict[str, Any]]:
    """The pods with GPUs that are bound and run."""
    names = ("bert-worker-", "mnist-")
    pods = cluster.admin.get("pods", "-n", "research")
    return [
        pod
        for pod in pods
        if pod["metadata"]["name"].startswith(names) and pod["spec"].get("nodeName")
    ]


@pytest.fixture(scope="module")
def cards(company: ControlPlane) -> Cards:
    return Cards(company)


@pytest.fixture(scope="module")
def targets(cards: Cards) -> Iterator[dict[str, str]]:
    with served(dcgm_page(cards.dcgm)) as dcgm, served(nvidia_page(cards.nvidia)) as nvidia:
        yield {"dcgm": dcgm, "nvidia": nvidia}


@pytest.fixture(scope="module")
def prometheus(company: ControlPlane, targets: dict[str, str]) -> Iterator[Prometheus]:
    with running_prometheus(
        targets, company.logs / "prometheus-values.log", SCRAPE_SECONDS, labels={"dcgm": EXPORTER}
    ) as server:
        server.wait_for_data("DCGM_FI_DEV_FB_RESERVED")
        server.wait_for_data("nvidia_gpu_memory_total_bytes")
        yield server


class Asking:
    """Runs `arena` as a user types it, with the settings of one Prometheus."""

    def __init__(self, kubeconfig: Path, **settings: str) -> None:
        self._kubeconfig = kubeconfig
        self._settings = settings

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        code = (
            "import sys; from fairlead.run.main import main; sys.exit(main('arena', sys.argv[1:]))"
        )
        argv = [sys.executable, "-c", code, *arguments, "--kubeconfig", str(self._kubeconfig)]
        typed_in = {**environment(), **self._settings}
        return run_program(argv, env=typed_in)

    def output(self, *arguments: str) -> str:
        """The output of a command that prints no warning."""
        done = self(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def arena(company: ControlPlane, prometheus: Prometheus) -> Asking:
    return Asking(company.kubeconfig, PROMETHEUS_ADDRESS=prometheus.url)


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def block(printed: str, title: str) -> list[list[str]]:
    """The rows of one block of `top job JOB` or `get JOB -g`, without its header and its dashes."""
    lines = printed.split(f"{title}:\n")[1].split("\n\n")[0].splitlines()
    return [cells(line) for line in lines[2:]]


class TestJobs:
    def test_top_job(self, arena: Asking, cards: Cards) -> None:
        for job, pods in (
            ("bert", [f"bert-worker-{index}" for index in range(3)]),
            ("mnist", ["mnist-chief-0", "mnist-worker-0"]),
        ):
            rows = block(arena.output("top", "job", job, "-n", "research"), "Instances")
            reported = [tuple(row[-3:]) for row in rows]
            launcher = [("N/A", "N/A", "N/A")] if job == "bert" else []
            assert reported == [
                *launcher,
                *(value for pod in pods for value in cards.reported(pod)),
            ]

    def test_get(self, arena: Asking, cards: Cards) -> None:
        rows = block(arena.output("get", "bert", "-g", "-n", "research"), "GPUs")
        reported = [tuple(row[-3:]) for row in rows]
        assert reported[1:] == [
            value for index in range(3) for value in cards.reported(f"bert-worker-{index}")
        ]

    def test_documents(self, arena: Asking, cards: Cards) -> None:
        """Documents of all jobs at once, and of one; a job without pods has no values, and no other
        command queries Prometheus.
        """
        listed = json.loads(arena.output("list", "-n", "research", "-o", "json"))
        found = {each["name"]: each["gpuMetrics"] for job in listed for each in job["instances"]}
        assert {name: cards.measured(name) for name in found} == found
        assert sum(map(len, found.values())) == 14
        one = json.loads(arena.output("get", "mnist", "-n", "research", "-o", "json"))
        assert {each["name"]: each["gpuMetrics"] for each in one["instances"]} == {
            name: cards.measured(name) for name in ("mnist-chief-0", "mnist-worker-0")
        }

    def test_one_namespace_is_asked_for(self, prometheus: Prometheus, cards: Cards) -> None:
        """All that a namespace's pods hold, parts of cards too, and none of the others' cards."""

        def cards_of(namespace: str) -> set[str]:
            found = prometheus.query(gpu_query(namespace))
            return {sample.labels.get("UUID") or sample.labels["uuid"] for sample in found}

        assert cards_of("research") == {
            card.uuid for held in cards.by_pod.values() for card in held
        }
        assert cards_of("vision") == {"GPU-gpu-99-0", "GPU-share-1-0"}
        reported = {
            sample.labels["__name__"]
            for sample in prometheus.query(gpu_query("vision"))
            if sample.labels.get("uuid") == "GPU-share-1-0"
        }
        assert "nvidia_gpu_memory_total_bytes" in reported, "it stands on the card alone"
        assert cards_of("nowhere") == set()

    def test_all_namespaces(self, arena: Asking, cards: Cards) -> None:
        """A pod of the same name in another namespace also holds a card."""
        listed = json.loads(arena.output("list", "-A", "-o", "json"))
        (bert,) = (job for job in listed if job["name"] == "bert")
        (worker,) = (each for each in bert["instances"] if each["name"] == "bert-worker-0")
        assert worker["gpuMetrics"] == cards.measured("bert-worker-0")

    def test_legacy(self, arena: Asking, cards: Cards) -> None:
        printed = arena.output("top", "job", "mnist", "-n", "research", "--legacy")
        (card,) = cards.by_pod["research", "mnist-worker-0"]
        message = f"{card.index}  {card.duty}%  {card.used_mib}.0MiB / {card.total_mib}.0MiB"
        assert message in " ".join(printed.split("mnist-worker-0")[1].split()).replace(
            " ", "  "
        ).replace("  /  ", " / "), printed


class TestNodes:
    def test_details(self, arena: Asking, cards: Cards) -> None:
        """A card without holder shows 0, whatever its sensors report."""
        node = cards.idle[0].node
        printed = arena.output("top", "node", node, "-d", "--metric")
        held = [card for pod in cards.by_pod.values() for card in pod if card.node == node]
        expected = [
            [
                str(card.index),
                "80.0 GiB",
                "80.0 GiB",
                f"{card.used_mib / 1024:.1f} GiB",
                f"{card.duty}.0%",
            ]
            for card in held
        ]
        rows = [row for row in block(printed, "GPUs") if len(row) == 5]
        assert rows == [*sorted(expected), ["7", "80.0 GiB", "0.0 GiB", "0.0 GiB", "0.0%"]]
        pod, mine = next((pod, held) for pod, held in cards.by_pod.items() if held[0].node == node)
        (row,) = (row for row in block(printed, "Instances") if pod[1] in row)
        assert row[-1] == ",".join(f"gpu{card.index}" for card in mine)

    def test_a_node_that_shares(self, arena: Asking) -> None:
        printed = arena.output("top", "node", "share-1", "-d", "--metric")
        (row,) = (row for row in block(printed, "GPUs") if len(row) == 5)
        assert (row[0], row[3:]) == ("0", ["3.3 GiB", "35.0%"])

    def test_documents(self, arena: Asking, cards: Cards) -> None:
        """The exporter's own pod, whose name Prometheus adds to every series, holds no card."""
        document = json.loads(arena.output("top", "node", "--metric", "-o", "json"))
        by_name = {
            node["name"]: node
            for node in (*document["gpuExclusiveNodes"], *document["gpuShareNodes"])
        }
        reported = {
            each["uuid"]: each
            for name in {*cards.nodes.values(), "share-1"}
            for each in by_name[name]["gpuMetrics"]
        }
        for pod, held in cards.by_pod.items():
            for card in held:
                assert reported[card.uuid]["podNames"] == [f"{pod[0]}/{pod[1]}"]
                assert reported[card.uuid]["gpuDutyCycle"] == card.duty
                assert reported[card.uuid]["usedGPUMemory"] == card.used_mib * MIB
        assert {uuid for uuid, each in reported.items() if not each["podNames"]} == {
            card.uuid for card in cards.idle
        }


COMMANDS = (
    ("top", "job", "bert", "-n", "research"),
    ("list", "-n", "research", "-o", "json"),
    ("get", "bert", "-g", "-n", "research"),
    ("top", "node", "-d", "--metric"),
    ("top", "node", "-o", "yaml", "--metric"),
)


def unavailable(done: subprocess.CompletedProcess[str]) -> str:
    """Why there are no metrics. It is the only warning of the command, which succeeds."""
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(UNAVAILABLE) == len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr.partition(UNAVAILABLE)[2]


class TestTrouble:
    def test_a_prometheus_that_stopped(
        self, arena: Asking, prometheus: Prometheus, cards: Cards
    ) -> None:
        """`N/A` and one warning; everything else is unchanged."""
        before = [arena.output(*command) for command in COMMANDS]
        prometheus.component.stop()
        try:
            after = [arena(*command) for command in COMMANDS]
        finally:
            prometheus.component.start()
            prometheus.component.wait_until(prometheus.is_ready, 60)
        assert all("refused the connection" in unavailable(done) for done in after)
        instances, before_it = block(after[0].stdout, "Instances"), block(before[0], "Instances")
        assert [row[-3:] for row in instances] == [["N/A", "N/A", "N/A"]] * 4
        assert [row[:4] for row in instances] == [row[:4] for row in before_it if len(row) == 7]
        assert cards.reported("bert-worker-0")[0][1] in before[2] and not re.search(
            r"\d%", after[2].stdout
        )
        with_values, without = (json.loads(text) for text in (before[1], after[1].stdout))
        for job in with_values + without:
            job["duration"] = ""
            for each in job["instances"]:
                each["age"], each["gpuMetrics"] = "", {}
        assert with_values == without
        assert "DUTY_CYCLE" in before[3] and "DUTY_CYCLE" not in after[3].stdout
        wait_until("values are there again", lambda: arena(*COMMANDS[0]).stderr == "")

    def test_one_that_does_not_answer(self, arena: Asking, prometheus: Prometheus) -> None:
        """After ten seconds the table is printed without the values."""
        prometheus.component.freeze()
        try:
            done = arena(*COMMANDS[0])
        finally:
            prometheus.component.thaw()
        assert "did not answer in time" in unavailable(done)

    @pytest.mark.parametrize(
        ("address", "why"),
        [
            ("http://127.0.0.1:1", "Prometheus `http://127.0.0.1:1` refused the connection"),
            # No DNS server is asked for a name with two dots.
            (
                "prom..example:9090",
                "Prometheus `http://prom..example:9090` has an unknown host name",
            ),
        ],
    )
    def test_a_wrong_address(self, company: ControlPlane, address: str, why: str) -> None:
        assert why in unavailable(
            Asking(company.kubeconfig, PROMETHEUS_ADDRESS=address)(*COMMANDS[0])
        )

    def test_what_is_no_address(self, company: ControlPlane) -> None:
        """A malformed address is an error to correct, not an absent Prometheus."""
        done = Asking(company.kubeconfig, PROMETHEUS_ADDRESS="ftp://x")(*COMMANDS[0])
        assert (
            done.returncode == 1 and "`ftp://x` is not the address of a Prometheus" in done.stderr
        )

    def test_an_api_server_is_no_prometheus(self, company: ControlPlane) -> None:
        done = Asking(company.kubeconfig, PROMETHEUS_ADDRESS=company.server)(*COMMANDS[0])
        assert "the certificate" in unavailable(done)

    def test_it_refuses_the_question(self, company: ControlPlane, targets: dict[str, str]) -> None:
        with running_prometheus(
            targets, company.logs / "prometheus-few.log", flags=["--query.max-samples=1"]
        ) as server:
            arena = Asking(company.kubeconfig, PROMETHEUS_ADDRESS=server.url)
            wait_until(
                "it has samples, and they are too many",
                lambda: "answered 422: " in arena(*COMMANDS[0]).stderr,
            )
            assert "query processing would load too many samples" in unavailable(
                arena(*COMMANDS[0])
            )

    def test_one_without_samples(self, company: ControlPlane) -> None:
        with running_prometheus({}, company.logs / "prometheus-empty.log") as server:
            assert unavailable(
                Asking(company.kubeconfig, PROMETHEUS_ADDRESS=server.url)(*COMMANDS[0])
            ).startswith("no samples")

    def test_a_password(
        self, company: ControlPlane, targets: dict[str, str], tmp_path: Path, cards: Cards
    ) -> None:
        web = tmp_path / "web.yml"
        web.write_text(f"basic_auth_users: {{ann: '{HASH_OF_S3CRET}'}}\n")
        with running_prometheus(
            targets,
            company.logs / "prometheus-auth.log",
            labels={"dcgm": EXPORTER},
            flags=[f"--web.config.file={web}"],
        ) as server:

            def asked_as(user: str) -> Asking:
                return Asking(
                    company.kubeconfig, PROMETHEUS_ADDRESS=server.url.replace("//", f"//{user}")
                )

            for user in ("", "ann:wrong@"):
                assert "answered 401: Unauthorized" in unavailable(asked_as(user)(*COMMANDS[0]))
            wait_until(
                "it has all values",
                lambda: (
                    cards.reported("bert-worker-2")[0][1]
                    in asked_as("ann:s3cret@")(*COMMANDS[0]).stdout
                ),
            )


HASH_OF_S3CRET = "$2b$04$4p8fR8SxnYO51w/2OrFslOBN.RntJrEXsL7RCdFave0BDxmVHExS2"


@pytest.fixture
def behind_a_service(company: ControlPlane, targets: dict[str, str]) -> Iterator[Prometheus]:
    """A Prometheus as clusters have it: a Service with the well-known label, and one pod behind it,
    at whose address Prometheus listens.
    """
    with running_prometheus(
        targets,
        company.logs / "prometheus-service.log",
        SCRAPE_SECONDS,
        labels={"dcgm": EXPORTER},
        host=company.address,
    ) as server:
        try:
            company.admin.create(_service_and_pod())
            yield server
        finally:
            company.admin.delete("service,endpoints", "-n", "default", "-l", "is=prometheus")
            company.admin.run(
                "delete",
                "pod",
                "prometheus-0",
                "-n",
                "default",
                "--grace-period=0",
                "--force",
                "--ignore-not-found",
            )


def _service_and_pod() -> list[objects.Object]:
    """The Service has no selector: the test writes its endpoints itself, so no controller needs to
    be waited for.
    """
    metadata = {
        "name": "prometheus",
        "namespace": "default",
        "labels": {"app.kubernetes.io/name": "prometheus", "is": "prometheus"},
    }
    lonely = objects.pod("prometheus-0")
    lonely["spec"]["schedulerName"] = "nobody"
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"ports": [{"port": 9090}]},
        },
        lonely,
    ]


def _put_behind(company: ControlPlane, server: Prometheus) -> None:
    """Write what the kubelet and the endpoints controller would write."""
    status = {"phase": "Running", "podIP": company.address, "podIPs": [{"ip": company.address}]}
    company.admin.patch_status("pods", "prometheus-0", "default", status)
    there = {
        "ip": company.address,
        "targetRef": {"kind": "Pod", "name": "prometheus-0", "namespace": "default"},
    }
    metadata = {"name": "prometheus", "namespace": "default", "labels": {"is": "prometheus"}}
    subset = {"addresses": [there], "ports": [{"port": server.port}]}
    company.admin.create(
        [{"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": [subset]}]
    )


class TestThroughTheApiServer:
    def test_a_service_with_a_known_label_is_found(
        self, company: ControlPlane, behind_a_service: Prometheus, cards: Cards
    ) -> None:
        arena = Asking(company.kubeconfig)
        why = unavailable(arena(*COMMANDS[0]))
        assert (
            "nothing runs behind the Prometheus Service" in why
            and "services/prometheus:9090/proxy" in why
            and "set PROMETHEUS_ADDRESS" in why
        )
        _put_behind(company, behind_a_service)
        wait_until(
            "its values are there",
            lambda: cards.reported("bert-worker-2")[0][1] in arena(*COMMANDS[0]).stdout,
        )
        behind_a_service.wait_for_data("nvidia_gpu_memory_total_bytes")
        behind_a_service.wait_for_data("DCGM_FI_DEV_FB_RESERVED")
        reported = []
        # The API server's own proxy sometimes cuts an answer off. `arena` reports that in one
        # warning, and the next answer is whole.
        wait_until(
            "an answer is whole",
            lambda: (
                not reported.append(arena("list", "-n", "research", "-o", "json"))
                and not reported[-1].stderr
            ),
        )
        found = {
            each["name"]: each["gpuMetrics"]
            for job in json.loads(reported[-1].stdout)
            for each in job["instances"]
        }
        assert {name: cards.measured(name) for name in found} == found
        behind_a_service.component.stop()
        assert "connection refused" in unavailable(arena(*COMMANDS[0]))

    def test_without_the_right_to_look_for_it(self, company: ControlPlane) -> None:
        rules = [
            {"apiGroups": ["kubeflow.org"], "resources": ["mpijobs"], "verbs": ["get", "list"]}
        ]
        rules.append({"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]})
        mine = company.write_service_account_kubeconfig("looks-at-jobs", rules)
        why = unavailable(Asking(mine)("top", "job", "bert", "-n", "research", "-T", "mpi"))
        assert (
            "services cannot be listed: services is forbidden: User "
            '\\"system:serviceaccount:default:looks-at-jobs\\"'
        ) in why
