"""What does a real Prometheus make of our pages? It scrapes both exporters, and every reference board has data."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tests.kube.control_plane import ControlPlane
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.prometheus import Prometheus, check_metrics, running_prometheus
from tests.kube.reference_boards import BOARDS, UNHEALTHY_NODES, fill_in, variables
from tests.kube.servers import Server, environment
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def laptop(company: ControlPlane) -> Iterator[Laptop]:
    with running_laptop(company.logs / "laptop.log") as running:
        yield running


@pytest.fixture(scope="module")
def prometheus(company: ControlPlane, laptop: Laptop) -> Iterator[Prometheus]:
    """Scrapes the laptop's two exporters and nothing else."""
    targets = {"cluster": laptop.cluster_exporter.address, "gpu": laptop.gpu_exporter.address}
    with running_prometheus(targets, company.logs / "prometheus.log") as server:
        for metric in ("arena_gpu_utilization_of_training_job_instance", "nvidia_gpu_duty_cycle", "arena_elastic_resource_quota_tree"):
            server.wait_for_data(metric)
        yield server


@pytest.fixture(scope="module")
def board_values(prometheus: Prometheus) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for name, metric, label in variables():
        values[name] = prometheus.label_values(fill_in(metric, values), label)
        assert values[name], f"label_values({metric}, {label}) is empty"
    return values


def test_both_exporters_are_scraped_without_an_error(prometheus: Prometheus) -> None:
    assert {target["labels"]["job"]: (target["health"], target["lastError"]) for target in prometheus.targets()} == {
        "cluster": ("up", ""),
        "gpu": ("up", ""),
    }


@pytest.mark.parametrize("expression", BOARDS)
def test_a_reference_expression_returns_data(prometheus: Prometheus, board_values: dict[str, list[str]], expression: str) -> None:
    samples = prometheus.wait_for_data(fill_in(expression, board_values), seconds=15)
    assert all(sample.value == sample.value for sample in samples), "a sample is NaN"


def test_unhealthy_nodes_are_counted_where_there_are_some(company: ControlPlane, cluster_exporter: Server) -> None:
    with running_prometheus({"cluster": cluster_exporter.address}, company.logs / "prometheus-company.log") as server:
        assert server.wait_for_data(UNHEALTHY_NODES)[0].value == 1


def test_what_prometheus_holds_is_what_kubectl_says(prometheus: Prometheus, laptop: Laptop) -> None:
    """The simulated cluster never rests: the two are read until they were read in the same moment."""

    def agree() -> bool:
        nodes = [node for node in laptop.kubectl.get("nodes") if node["status"]["capacity"].get("nvidia.com/gpu", "0") != "0"]
        total = sum(int(node["status"]["capacity"]["nvidia.com/gpu"]) for node in nodes)
        by_node = {sample.labels["node_name"]: int(sample.labels["total_gpus"]) for sample in prometheus.query("arena_used_gpus_of_node")}
        return sum(by_node.get(node["metadata"]["name"], -1) for node in nodes) == total

    wait_until("Prometheus and kubectl count the same whole GPUs", agree, 20)


def test_arena_has_the_same_cards_from_prometheus_and_from_the_page(prometheus: Prometheus, laptop: Laptop) -> None:
    """Which pod holds which cards, and how large they are: by namespace, from our own families. Their use differs by the moment."""

    def cards(namespace: str, **settings: str) -> dict[str, dict[str, int]]:
        code = "import sys; from fairlead.run.main import main; sys.exit(main('arena', sys.argv[1:]))"
        argv = [sys.executable, "-c", code, "list", "-n", namespace, "-o", "json"]
        typed_in = {**environment(), "KUBECONFIG": str(laptop.kubeconfig), **settings}
        listed = json.loads(subprocess.run(argv, env=typed_in, capture_output=True, text=True, timeout=60, check=True).stdout)
        told = [(each["name"], each["gpuMetrics"]) for job in listed for each in job["instances"] if each["gpuMetrics"]]
        return {name: {index: use.get("totalGPUMemory") for index, use in metrics.items()} for name, metrics in told}

    def agree() -> bool:
        found = [(cards(name), cards(name, PROMETHEUS_ADDRESS=prometheus.url)) for name in ("vision", "language")]
        return all(page and page == series for page, series in found)

    wait_until("Prometheus and the page know the same cards of training jobs", agree)


class TestPromtool:
    def test_the_cluster_exporters_native_families(self, laptop: Laptop) -> None:
        assert check_metrics(laptop.cluster_exporter.metrics().native()) == ""

    def test_the_gpu_exporters_native_families(self, laptop: Laptop) -> None:
        assert check_metrics(laptop.gpu_exporter.metrics().native()) == ""

    def test_the_cluster_exporter_on_a_real_cluster(self, cluster_exporter: Server) -> None:
        assert check_metrics(cluster_exporter.metrics().native()) == ""
