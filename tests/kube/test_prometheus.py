"""Does a real Prometheus accept Fairlead's pages? It scrapes both exporters; every reference board
and every board of Fairlead's has data.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import yaml
from tests.kube.control_plane import ControlPlane
from tests.kube.deployed import DEPLOY
from tests.kube.gpu_pages import MIB, served
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.our_boards import RATE_INTERVAL, Asked, asked_of, boards, choose, fill_in, legend_of
from tests.kube.prometheus import Prometheus, check_metrics, running_prometheus
from tests.kube.reference_boards import (
    BOARD_12239,
    BOARDS,
    TENSOR_OF_12239,
    UNHEALTHY_NODES,
    VARIABLES_OF_12239,
    variables,
)
from tests.kube.reference_boards import fill_in as fill_in_values
from tests.kube.servers import Server, environment
from tests.kube.world_pages import document_001, pages_of, world_of
from tests.programs import run_program
from tests.waiting import wait_until

ADAPTER_RULES = DEPLOY / "autoscaling" / "adapter-rules.yaml"
EXPORTER = {
    "namespace": "fairlead-system",
    "pod": "fairlead-gpu-exporter-x1y2z",
    "container": "fairlead-gpu-exporter",
}
"""Labels that discovery in a cluster adds to an exporter's target; the page has labels of these
names, too.
"""

pytestmark = pytest.mark.turns(2, 0)


@pytest.fixture(scope="module")
def laptop(company: ControlPlane) -> Iterator[Laptop]:
    with running_laptop(company.logs / "laptop.log") as running:
        yield running


@pytest.fixture(scope="module")
def prometheus(company: ControlPlane, laptop: Laptop) -> Iterator[Prometheus]:
    """Scrapes the laptop's two exporters and nothing else."""
    targets = {"cluster": laptop.cluster_exporter.address, "gpu": laptop.gpu_exporter.address}
    with running_prometheus(
        targets, company.logs / "prometheus.log", labels={"gpu": EXPORTER}
    ) as server:
        for metric in (
            "arena_gpu_utilization_of_training_job_instance",
            "nvidia_gpu_duty_cycle",
            "arena_elastic_resource_quota_tree",
        ):
            server.wait_for_data(metric)
        yield server


@pytest.fixture(scope="module")
def board_values(prometheus: Prometheus) -> dict[str, list[str]]:
    values: dict[str, list[str]] = {}
    for name, metric, label in variables():
        values[name] = prometheus.label_values(fill_in_values(metric, values), label)
        assert values[name], f"label_values({metric}, {label}) is empty"
    return values


def test_both_exporters_are_scraped_without_an_error(prometheus: Prometheus) -> None:
    assert {
        target["labels"]["job"]: (target["health"], target["lastError"])
        for target in prometheus.targets()
    } == {
        "cluster": ("up", ""),
        "gpu": ("up", ""),
    }


@pytest.mark.parametrize("expression", BOARDS)
def test_a_reference_expression_returns_data(
    prometheus: Prometheus, board_values: dict[str, list[str]], expression: str
) -> None:
    samples = prometheus.wait_for_data(fill_in_values(expression, board_values), seconds=15)
    assert all(sample.value == sample.value for sample in samples), "a sample is NaN"


def test_unhealthy_nodes_are_counted_where_there_are_some(
    company: ControlPlane, cluster_exporter: Server
) -> None:
    with running_prometheus(
        {"cluster": cluster_exporter.address}, company.logs / "prometheus-company.log"
    ) as server:
        assert server.wait_for_data(UNHEALTHY_NODES)[0].value == 1


def test_what_prometheus_holds_is_what_kubectl_prints(
    prometheus: Prometheus, laptop: Laptop
) -> None:
    """The simulated cluster never rests: both are read until they were read in the same moment."""

    def agree() -> bool:
        nodes = [
            node
            for node in laptop.kubectl.get("nodes")
            if node["status"]["capacity"].get("nvidia.com/gpu", "0") != "0"
        ]
        total = sum(int(node["status"]["capacity"]["nvidia.com/gpu"]) for node in nodes)
        by_node = {
            sample.labels["node_name"]: int(sample.labels["total_gpus"])
            for sample in prometheus.query("arena_used_gpus_of_node")
        }
        return sum(by_node.get(node["metadata"]["name"], -1) for node in nodes) == total

    wait_until("Prometheus and kubectl count the same whole GPUs", agree, 60)


def test_arena_has_the_same_cards_from_prometheus_and_from_the_page(
    prometheus: Prometheus, laptop: Laptop
) -> None:
    """Which pod has which cards, and how large they are: by namespace, from Fairlead's own
    families. Utilization differs by the moment, so it is not compared.
    """

    def cards(namespace: str, **settings: str) -> dict[str, dict[str, int]]:
        code = (
            "import sys; from fairlead.run.main import main; sys.exit(main('arena', sys.argv[1:]))"
        )
        argv = [sys.executable, "-c", code, "list", "-n", namespace, "-o", "json"]
        typed_in = {**environment(), "KUBECONFIG": str(laptop.kubeconfig), **settings}
        listed = json.loads(run_program(argv, env=typed_in, check=True).stdout)
        reported = [
            (each["name"], each["gpuMetrics"])
            for job in listed
            for each in job["instances"]
            if each["gpuMetrics"]
        ]
        return {
            name: {index: use.get("totalGPUMemory") for index, use in metrics.items()}
            for name, metrics in reported
        }

    def agree() -> bool:
        found = [
            (cards(name), cards(name, PROMETHEUS_ADDRESS=prometheus.url))
            for name in ("vision", "language")
        ]
        return all(page and page == series for page, series in found)

    wait_until("Prometheus and the page know the same cards of training jobs", agree)


class TestPromtool:
    def test_the_cluster_exporters_native_families(self, laptop: Laptop) -> None:
        assert check_metrics(laptop.cluster_exporter.metrics().native()) == ""

    def test_the_gpu_exporters_native_families(self, laptop: Laptop) -> None:
        assert check_metrics(laptop.gpu_exporter.metrics().native()) == ""

    def test_the_cluster_exporter_on_a_real_cluster(self, cluster_exporter: Server) -> None:
        assert check_metrics(cluster_exporter.metrics().native()) == ""


def nothing_on_12239(prometheus: Prometheus) -> set[str]:
    """The expressions of board 12239, unmodified, that have no result."""
    values = {
        name: prometheus.label_values(metric, label)
        for name, (metric, label) in VARIABLES_OF_12239.items()
    }
    return {
        expression
        for expression in BOARD_12239
        if not prometheus.query(fill_in_values(expression, values))
    }


def test_board_12239_has_data(prometheus: Prometheus) -> None:
    assert nothing_on_12239(prometheus) == {TENSOR_OF_12239}, (
        "no card of `default` reports its tensor cores"
    )


NO_RULES = "no rules are loaded"
NO_AGENT = "no node agent is scraped"
NOT_IN_THE_TREE = "no node of the quota tree names such a resource"
NOTHING_IN_DEFAULT = {
    "fairlead-cluster / Firing alerts / A": NO_RULES,
    "fairlead-gpu-app / Memory above the grant / A": NO_AGENT,
    "fairlead-gpu-app / Containers refused a device / A": NO_AGENT,
    "fairlead-dcgm / Tensor Core Utilization / A": "no card of Hopper or later",
    **{
        f"fairlead-quota / Quota(aliyun.com/gpu) / {letter}": "no leaf of the tree names it"
        for letter in "ABC"
    },
    **{
        f"fairlead-quota / Other resources over time / {letter}": NOT_IN_THE_TREE
        for letter in "ABCD"
    },
}
"""Queries of Fairlead's boards that have no result in the world `default`, and why. All others have
one.
"""


def asked(prometheus: Prometheus, query: Asked, chosen: dict[str, str]) -> list[tuple[str, float]]:
    """Legend and value of each series. Two series with one legend could not be distinguished."""
    samples = prometheus.query(fill_in(query.expression, chosen))
    found = [(legend_of(query.legend, sample.labels), sample.value) for sample in samples]
    twice = [
        legend for legend, count in Counter(legend for legend, _ in found).items() if count > 1
    ]
    assert query.kind == "table" or not twice, (
        f"{query.name}: `{twice[0]}` is the legend of several series"
    )
    return found


def holders(prometheus: Prometheus, modes: str) -> set[tuple[str, str]]:
    """Namespace and name of the pods that hold cards in one of these modes and have series."""
    held = prometheus.query(f'fairlead_container_gpu_utilization_ratio{{allocate_mode=~"{modes}"}}')
    return {(sample.labels["namespace_name"], sample.labels["pod_name"]) for sample in held}


class TestOurBoards:
    @pytest.mark.parametrize("uid", boards())
    def test_every_query_has_an_answer(self, prometheus: Prometheus, uid: str) -> None:
        prometheus.wait_for_data(f"rate(fairlead_gpu_pcie_bytes_total[{RATE_INTERVAL}])")
        chosen = choose(prometheus, uid)
        empty = {query.name for query in asked_of(uid) if not asked(prometheus, query, chosen)}
        assert empty == {name for name in NOTHING_IN_DEFAULT if name.startswith(f"{uid} /")}

    @pytest.mark.parametrize("uid", boards())
    def test_every_query_is_understood_with_one_value_chosen(
        self, prometheus: Prometheus, uid: str
    ) -> None:
        """Whether a query has a result as well depends on the chosen value."""
        chosen = choose(prometheus, uid, only_one=True)
        for query in asked_of(uid):
            asked(prometheus, query, chosen)

    def test_what_is_printed_is_what_the_cluster_has(
        self, prometheus: Prometheus, laptop: Laptop
    ) -> None:
        nodes = [node["status"]["capacity"] for node in laptop.kubectl.get("nodes")]
        cards = sum(
            int(each.get("nvidia.com/gpu", 0)) + int(each.get("aliyun.com/gpu-count", 0))
            for each in nodes
        )
        summary = [
            query
            for query in asked_of("fairlead-cluster")
            if query.panel == "GPU Summary Of Cluster"
        ]
        shown = {query.legend: asked(prometheus, query, {})[0][1] for query in summary}
        assert (shown["GPUs"], shown["GPU nodes"]) == (
            cards,
            sum("nvidia.com/gpu" in each or "aliyun.com/gpu-mem" in each for each in nodes),
        )
        (by_model,) = [
            query for query in asked_of("fairlead-cluster") if query.panel == "GPUs by model"
        ]
        assert sum(value for _, value in asked(prometheus, by_model, {})) == cards

    def test_with_labels_of_the_page_kept_and_more_worlds(
        self, prometheus: Prometheus, laptop: Laptop
    ) -> None:
        """`honor_labels: true`: in DCGM's series `pod` is the container's pod, Fairlead's series
        are unchanged; and document 001 is readable.
        """
        before, after, later = document_001()
        telemetry = pages_of(world_of("telemetry"))
        shown = [before]
        with ExitStack() as leaving:
            targets = {
                "cluster": laptop.cluster_exporter.address,
                "gpu": laptop.gpu_exporter.address,
                "gpu-001": leaving.enter_context(served(lambda: shown[0].gpu)),
                "cluster-001": leaving.enter_context(served(lambda: shown[0].cluster)),
                "gpu-telemetry": leaving.enter_context(served(telemetry.gpu)),
            }
            labels = {name: {**EXPORTER, "pod": name} for name in targets}
            assert prometheus.query(
                'DCGM_FI_DEV_GPU_UTIL{exported_pod!="", pod=~"fairlead-gpu-exporter-.*"}'
            )
            assert self.adapter_sees(prometheus, "DCGM_FI_DEV_GPU_UTIL") == {
                "exported_namespace": holders(prometheus, "exclusive")
            }
            prometheus.configure(targets, labels, honor_labels=True)
            prometheus.reload()
            prometheus.wait_for_data(
                'DCGM_FI_DEV_GPU_UTIL{container="app-3g-v1", exported_pod="", pod="app-3g-v1-0"}'
            )
            old = (
                'DCGM_FI_DEV_GPU_UTIL{exported_pod!=""} or fairlead_gpu_up{pod=~"fairlead-.*"} or '
                'fairlead_cluster_gpus{pod=""}'
            )
            wait_until("what was scraped before is stale", lambda: not prometheus.query(old))
            prometheus.wait_for_data('DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{Hostname=~"hopper-.*"}')
            assert self.adapter_sees(prometheus, "DCGM_FI_DEV_GPU_UTIL") == {
                "namespace": holders(prometheus, "exclusive")
            }
            for uid in boards():
                chosen = choose(prometheus, uid)
                empty = {
                    query.name for query in asked_of(uid) if not asked(prometheus, query, chosen)
                }
                expected = {
                    name
                    for name in NOTHING_IN_DEFAULT
                    if name.startswith(f"{uid} /") and "Tensor" not in name
                }
                assert empty == expected, uid
            assert nothing_on_12239(prometheus) == set()
            (part,) = self.of_app(prometheus, "GPU memory used / limit", "app-3g-v1").values()
            assert 0.18 < part < 0.21, "about 20 % of a card of 16 GiB"
            shown[0] = after
            both_pages = ("fairlead_container_gpu_memory_used_bytes", "fairlead_gpu_pod_info")
            for metric in both_pages:
                prometheus.wait_for_data(f'{metric}{{pod_name="app-6g-v1-0"}}')
            both = {f"app-3g-v1-{index} app-3g-v1 GPU 0  " for index in (0, 1)}
            assert self.of_app(prometheus, "GPU memory used", "app-3g-v1") == dict.fromkeys(
                both, 3193 * MIB
            )
            parts = self.of_app(prometheus, "GPU memory used / limit", "app-3g-v1")
            assert parts == pytest.approx(dict.fromkeys(both, 3193 / 4301))
            assert self.of_app(prometheus, "GPU memory used", "app-6g-v1") == {
                "app-6g-v1-0 app-6g-v1 GPU 0  ": 0
            }
            flat = {"app-3g-v1-0": 0, "app-3g-v1-1": 0}
            wait_until(
                "both pods were scraped twice",
                lambda: self.of_app(prometheus, "Restarts", "app-3g-v1") == flat,
            )
            shown[0] = later
            wait_until(
                "its restarts are drawn",
                lambda: (
                    max(self.of_app(prometheus, "Restarts", "app-6g-v1").values(), default=0) >= 1
                ),
            )
            assert self.of_app(prometheus, "Restarts", "app-3g-v1") == flat, (
                "its neighbours stay flat"
            )
            (used,) = [
                query
                for query in asked_of("fairlead-gpu-node")
                if (query.panel, query.letter) == ("GPU memory", "A")
            ]
            (node,) = prometheus.label_values(
                'fairlead_container_gpu_memory_used_bytes{pod_name="app-6g-v1-0"}', "node_name"
            )
            ((_, value),) = asked(
                prometheus, used, choose(prometheus, "fairlead-gpu-node", {"node_name": node})
            )
            assert value == pytest.approx(6396 * MIB, abs=10 * MIB)

    def adapter_sees(self, prometheus: Prometheus, metric: str) -> dict[str, set[tuple[str, str]]]:
        """Pods for which the adapter's rules for DCGM find the metric, by the label of the rule
        that does.

        Its rule for Fairlead's own families finds all pods, whatever the scrape does with labels.
        """
        found: dict[str, set[tuple[str, str]]] = {}
        for rule in yaml.safe_load(ADAPTER_RULES.read_text(encoding="utf-8"))["rules"]:
            (space, pod) = rule["resources"]["overrides"]
            name = (
                "fairlead_container_gpu_utilization_ratio" if space == "namespace_name" else metric
            )
            series = [
                sample
                for sample in prometheus.query(rule["seriesQuery"])
                if sample.labels["__name__"] == name
            ]
            pods = {(sample.labels[space], sample.labels[pod]) for sample in series}
            for namespace in {namespace for namespace, _ in pods}:
                names = "|".join(sorted(name for space_of, name in pods if space_of == namespace))
                asked_for = {
                    "Series": name,
                    "LabelMatchers": f'{space}="{namespace}",{pod}=~"{names}"',
                    "GroupBy": pod,
                }
                expression = re.sub(
                    r"<<\.(\w+)>>",
                    lambda part, words=asked_for: words[part.group(1)],
                    rule["metricsQuery"],
                )
                assert {sample.labels[pod] for sample in prometheus.query(expression)} == set(
                    names.split("|")
                )
            if space == "namespace_name":
                assert pods == holders(prometheus, "exclusive|share|mig")
            elif pods:
                found[space] = pods
        return found

    @staticmethod
    def of_app(prometheus: Prometheus, panel: str, app: str) -> dict[str, float]:
        """What a panel of GPU APP shows of one application of the namespace `default`."""
        chosen = choose(prometheus, "fairlead-gpu-app", {"namespace_name": "default", "app": app})
        (query,) = [query for query in asked_of("fairlead-gpu-app") if query.panel == panel]
        return dict(asked(prometheus, query, chosen))
