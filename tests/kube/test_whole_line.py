"""Do cluster exporter, console and `arena top node` agree with what kubectl shows of a real
cluster?

The counts come from counts.py, which shares no code with Fairlead. Nothing here depends on how
Fairlead computes the numbers.
"""

from __future__ import annotations

import json
import re

import pytest
from tests.kube.company import CORDONED, FAULTY_CARDS, SICK
from tests.kube.control_plane import ControlPlane
from tests.kube.counts import Counts, count
from tests.kube.objects import pod
from tests.kube.servers import Server, run_arena
from tests.waiting import wait_until

JOB_STATUS = {
    "bert": "RUNNING",
    "waits": "PENDING",
    "finished": "SUCCEEDED",
    "mnist": "RUNNING",
    "broken": "FAILED",
}
REQUESTED_GPUS = {"bert": "12", "waits": "12", "finished": "1", "mnist": "2", "broken": "2"}


@pytest.fixture(scope="module")
def counts(company: ControlPlane) -> Counts:
    """The counts are compared with numbers that a person can check in company.py, so that counts.py
    itself is tested.
    """
    counted = count(company.admin)
    assert (len(counted.nodes), counted.gpus, counted.unhealthy, counted.unhealthy_nodes) == (
        20,
        12 * 8 + 4 * 4 + 4 * 4,
        2,
        1,
    )
    # Jobs 2 x (1+2+3+1+2+3), notebooks 7 x (0+1+2) + 0, slow-to-die 2, bert 12, mnist 2, and 33 of
    # 15 GiB in parts.
    assert counted.allocated == 24 + 21 + 2 + 12 + 2 + 2.2
    return counted


class TestClusterExporter:
    def test_sums_of_the_cluster(self, cluster_exporter: Server, counts: Counts) -> None:
        page = cluster_exporter.metrics()
        assert page.value("arena_total_gpus_of_cluster") == counts.gpus
        assert page.value("arena_allocated_gpus_of_cluster") == pytest.approx(counts.allocated)
        assert page.value("arena_unhealthy_gpus_of_cluster") == counts.unhealthy
        assert page.value("fairlead_cluster_gpu_nodes") == len(counts.nodes)
        assert page.value("fairlead_cluster_gpu_nodes_allocated") == counts.allocated_nodes
        assert page.value("fairlead_cluster_gpu_nodes_unhealthy") == counts.unhealthy_nodes

    def test_every_node(self, cluster_exporter: Server, counts: Counts) -> None:
        page = cluster_exporter.metrics()
        assert page.by("arena_used_gpus_of_node", "node_name") == {
            name: node.allocated for name, node in counts.nodes.items()
        }
        for name, node in counts.nodes.items():
            labels = page.labels("arena_used_gpus_of_node", node_name=name)
            assert (labels["total_gpus"], labels["node_status"]) == (str(node.total), node.status)
            assert labels["gpu_mode"] == ("share" if node.is_shared else "exclusive")
            assert page.value("fairlead_node_gpus_unhealthy", node_name=name) == node.unhealthy

    def test_cpu_nodes_have_no_gpu_series(self, cluster_exporter: Server) -> None:
        assert not {"cpu-1", "cpu-2"} & set(
            cluster_exporter.metrics().by("arena_used_gpus_of_node", "node_name")
        )

    def test_a_cordoned_node_is_not_unhealthy(self, cluster_exporter: Server) -> None:
        page = cluster_exporter.metrics()
        assert page.value("fairlead_node_schedulable", node_name=CORDONED) == 0
        assert page.value("fairlead_node_ready", node_name=CORDONED) == 1
        assert page.value("fairlead_node_ready", node_name=SICK) == 0

    def test_training_jobs(self, cluster_exporter: Server) -> None:
        page = cluster_exporter.metrics()
        found = {
            s.labels["job_name"]: s.labels
            for s in page.samples
            if s.name == "arena_duration_of_training_job"
        }
        assert {name: labels["job_status"] for name, labels in found.items()} == JOB_STATUS
        assert {name: labels["request_gpus"] for name, labels in found.items()} == REQUESTED_GPUS
        assert {
            name: labels["job_type"] for name, labels in found.items() if name in ("bert", "mnist")
        } == {
            "bert": "mpijob",
            "mnist": "tfjob",
        }

    def test_nothing_without_a_measurement_is_a_zero(self, cluster_exporter: Server) -> None:
        page = cluster_exporter.metrics()
        assert not page.has("arena_used_gpu_memory_of_cluster")
        assert set(page.by("arena_gpu_utilization_of_node", "node_name").values()) == {-1}
        assert not page.has("fairlead_node_gpu_utilization_ratio")

    def test_scraping_asks_the_api_server_nothing(
        self, cluster_exporter: Server, company: ControlPlane
    ) -> None:
        before = _lists_of_job_kinds(company)
        assert before > 0, "the count itself sees no list"
        for _ in range(20):
            cluster_exporter.get("/metrics")
        assert _lists_of_job_kinds(company) == before


class TestConsole:
    def test_the_cluster_board(self, console: Server, counts: Counts) -> None:
        overview = console.api("/overview")
        assert overview["gpus"] == {
            "total": counts.gpus,
            "allocated": pytest.approx(counts.allocated),
            "unhealthy": counts.unhealthy,
        }
        assert overview["gpuNodes"]["total"] == len(counts.nodes)
        assert overview["gpuNodes"]["allocated"] == counts.allocated_nodes
        assert overview["gpuNodes"]["unhealthy"] == counts.unhealthy_nodes
        assert overview["jobs"] == {"running": 2, "pending": 1, "succeeded": 1, "failed": 1}
        assert overview["gpuUtilPercent"] is None
        assert overview["gpuMemory"]["usedMiB"] is None

    def test_the_nodes_board(self, console: Server, counts: Counts) -> None:
        rows = {row["name"]: row for row in console.api("/nodes", size="500")["items"]}
        for name, node in counts.nodes.items():
            row = rows[name]
            assert (row["gpusTotal"], row["gpusUnhealthy"], row["status"]) == (
                node.total,
                node.unhealthy,
                node.status,
            )
            assert row["gpusAllocated"] == pytest.approx(node.allocated)
            assert row["gpuUtilPercent"] is None
        assert rows[CORDONED]["schedulable"] is False
        assert rows[FAULTY_CARDS]["gpusUnhealthy"] == 2

    def test_the_jobs_board(self, console: Server) -> None:
        rows = {row["name"]: row for row in console.api("/jobs")["items"]}
        assert {name: row["status"].upper() for name, row in rows.items()} == JOB_STATUS
        assert {name: f"{row['gpusRequested']:g}" for name, row in rows.items()} == REQUESTED_GPUS
        assert rows["bert"]["instances"] == {
            "desired": 4,
            "running": 4,
            "unknown": 0,
            "pending": 0,
            "succeeded": 0,
            "failed": 0,
        }
        assert rows["waits"]["waiting"] is not None

    def test_the_quota_board_gives_the_reason_it_is_empty(self, console: Server) -> None:
        answer = console.api("/quota/usage")
        assert answer["items"] == []
        assert [warning["code"] for warning in answer["warnings"]] == ["crd-missing"]


class TestArenaTopNode:
    def test_the_table(self, company: ControlPlane, counts: Counts) -> None:
        lines = run_arena("top", "node", kubeconfig=company.kubeconfig).splitlines()
        heads = re.split(r"\s{2,}", lines[0].strip())
        rows = {
            cells[0]: dict(zip(heads, cells, strict=False))
            for cells in (line.split() for line in lines[1:])
            if cells
        }
        for name, node in counts.nodes.items():
            assert rows[name]["GPU(Total)"] == str(node.total)
            assert rows[name]["GPU(Allocated)"] == f"{node.allocated:g}"
            assert rows[name]["UNHEALTHY"] == str(node.unhealthy)
        assert rows[CORDONED]["STATUS"] == "Ready,SchedulingDisabled"
        percent = 100 * counts.allocated / counts.gpus
        assert f"{counts.allocated:g}/{counts.gpus} ({percent:.1f}%)" in lines
        assert (
            f"{counts.unhealthy}/{counts.gpus} ({100 * counts.unhealthy / counts.gpus:.1f}%)"
        ) in lines

    def test_json(self, company: ControlPlane, counts: Counts) -> None:
        document = json.loads(run_arena("top", "node", "-o", "json", kubeconfig=company.kubeconfig))
        nodes = {
            node["name"]: node
            for kind in ("gpuExclusiveNodes", "gpuShareNodes")
            for node in document[kind]
        }
        assert {name: node["totalGPUs"] for name, node in nodes.items()} == {
            name: node.total for name, node in counts.nodes.items()
        }
        assert {name: node["allocatedGPUs"] for name, node in nodes.items()} == {
            name: node.allocated for name, node in counts.nodes.items()
        }
        assert {node["name"] for node in document["normalNodes"]} == {"cpu-1", "cpu-2"}


def test_a_change_in_the_cluster_reaches_all_three(
    cluster_exporter: Server, console: Server, company: ControlPlane, counts: Counts
) -> None:
    admin = company.admin
    admin.create([pod("late", namespace="research", gpus=8)])
    try:
        more = pytest.approx(counts.allocated + 8)
        wait_until(
            "the exporter counts 8 more",
            lambda: cluster_exporter.metrics().value("arena_allocated_gpus_of_cluster") == more,
            10,
        )
        wait_until(
            "the console counts 8 more",
            lambda: console.api("/overview")["gpus"]["allocated"] == more,
            10,
        )
        assert f"{counts.allocated + 8:g}/{counts.gpus} (" in run_arena(
            "top", "node", kubeconfig=company.kubeconfig
        )
    finally:
        admin.delete("pod", "late", "-n", "research")
    wait_until(
        "the exporter counts as before",
        lambda: (
            cluster_exporter.metrics().value("arena_allocated_gpus_of_cluster")
            == pytest.approx(counts.allocated)
        ),
        10,
    )


def _lists_of_job_kinds(cluster: ControlPlane) -> int:
    """LIST requests for job kinds since the API server started, by its own count; only the exporter
    and the console send them.
    """
    page = cluster.admin.run("get", "--raw", "/metrics")
    lines = re.findall(
        (
            r'^apiserver_request_total\{[^}]*resource="(?:mpijobs|tfjobs|'
            r'pytorchjobs)"[^}]*verb="LIST"[^}]*\} (\d+)'
        ),
        page,
        re.MULTILINE,
    )
    return sum(map(int, lines))
