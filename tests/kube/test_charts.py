"""Do the console's charts read a real Prometheus, in each of the four spellings, with the same
lines as without one?
"""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.kube.laptop import Laptop, running_laptop
from tests.kube.prometheus import Prometheus, running_prometheus
from tests.kube.servers import Server, running
from tests.waiting import wait_until

from fairlead.console.charts.queries import CHART_QUERIES
from fairlead.console.charts.request import beginning_promql

LOGS = Path(__file__).resolve().parents[2] / "test-output" / "kube"

pytestmark = pytest.mark.turns(2, 1)


@pytest.fixture(scope="module")
def laptop() -> Iterator[Laptop]:
    LOGS.mkdir(parents=True, exist_ok=True)
    with running_laptop(LOGS / "charts-laptop.log") as one:
        yield one


@pytest.fixture(scope="module")
def prometheus(laptop: Laptop) -> Iterator[Prometheus]:
    targets = {"cluster": laptop.cluster_exporter.address, "gpu": laptop.gpu_exporter.address}
    with running_prometheus(targets, LOGS / "charts-prometheus.log") as server:
        server.wait_for_data("fairlead_job_instance_gpu_utilization_ratio")
        server.wait_for_data("DCGM_FI_DEV_GPU_UTIL")
        yield server


@pytest.fixture(scope="module")
def console(laptop: Laptop, prometheus: Prometheus) -> Iterator[Server]:
    """A console of its own that uses the Prometheus."""
    flags = (
        f"--kubeconfig={laptop.kubeconfig}",
        f"--prometheus={prometheus.url}",
        "--gpu-source=prometheus",
    )
    with running("console", *flags, log=LOGS / "charts-console.log") as server:
        wait_until(
            "the console has readings from Prometheus",
            lambda: server.api("/overview")["gpusReporting"] > 0,
            60,
        )
        yield server


KEPT = [query.name for query in CHART_QUERIES.values() if query.is_kept]
DISCOVERED = {
    "namespace": "fairlead-system",
    "pod": "fairlead-gpu-exporter-x1y2z",
    "container": "fairlead-gpu-exporter",
}


def spellings(*, of_newer: bool) -> list[Any]:
    return [
        pytest.param(query.name, spelling.promql("", 60), id=f"{query.name}-{number}")
        for query in CHART_QUERIES.values()
        for number, spelling in enumerate(query.spellings)
        if of_newer == (not query.is_kept or 'exported_pod!=""' in spelling.expression)
    ]


@pytest.mark.parametrize(("name", "expression"), spellings(of_newer=False))
def test_every_spelling_is_understood_and_has_data(
    prometheus: Prometheus, name: str, expression: str
) -> None:
    assert prometheus.wait_for_data(expression), name


@pytest.fixture(scope="module")
def newer_cards() -> Iterator[Prometheus]:
    """Cards with profiling metrics, and the values of them that only a Prometheus keeps; scraped as
    discovery in a cluster does.
    """
    with running_laptop(LOGS / "charts-telemetry.log", "--scenario", "telemetry") as laptop:
        targets = {"gpu": laptop.gpu_exporter.address}
        with running_prometheus(
            targets, LOGS / "charts-telemetry-prometheus.log", labels={"gpu": DISCOVERED}
        ) as server:
            yield server


@pytest.mark.parametrize(("name", "expression"), spellings(of_newer=True))
def test_what_only_such_a_prometheus_has_is_understood_and_has_data(
    newer_cards: Prometheus, name: str, expression: str
) -> None:
    # no shipped counters file contains them
    if "DCGM_FI_PROF_NVLINK" in expression or "DCGM_FI_DEV_ECC" in expression:
        assert newer_cards.query(expression) == []
    else:
        assert newer_cards.wait_for_data(expression), name


def test_whether_our_metrics_begin_is_understood(prometheus: Prometheus) -> None:
    """The three answers: metrics exist; none exist, and no exporter is still reading; or an
    exporter still reads and began a moment ago.
    """
    assert [sample.value for sample in prometheus.query(beginning_promql("vector(1)"))] == [1]
    assert prometheus.query(beginning_promql("fairlead_nothing")) == []
    reading = beginning_promql("fairlead_nothing").replace(" == 0", " == 1")
    assert prometheus.query(re.sub(r"< \d+", "< 1e9", reading)) != []
    assert prometheus.query(re.sub(r"< \d+", "< 0", reading)) == []


def drawn(console: Server, name: str, **parameters: str) -> Any:
    """The chart once it has a point. Points are at whole steps,
    so a young Prometheus has none yet.
    """
    found: list[Any] = []

    def has_points() -> bool:
        found[:] = [console.api(f"/charts/{name}", **parameters)]
        return any(value is not None for line in found[0]["series"] for _, value in line["points"])

    wait_until(f"the chart {name} has a point", has_points, 60)
    return found[0]


@pytest.mark.parametrize("name", KEPT)
def test_every_chart_is_answered_by_our_own_metrics(console: Server, name: str) -> None:
    chart = drawn(console, name, top="50")
    assert chart["source"] == "prometheus"
    assert "fairlead_" in chart["query"]
    assert chart["series"] and chart["shown"] <= chart["total"]


def test_the_top_lines_are_those_of_the_highest_mean_and_all_are_counted(console: Server) -> None:
    everything = drawn(console, "gpu-duty-cycle", top="50")
    top = console.api("/charts/gpu-duty-cycle", top="3")
    assert everything["total"] == len(everything["series"]) > 3
    assert (top["shown"], top["total"]) == (3, everything["total"])
    means = [mean(line["points"]) for line in everything["series"]]
    assert means == sorted(means, reverse=True)


def mean(points: list[tuple[int, float | None]]) -> float:
    known = [value for _, value in points if value is not None]
    return sum(known) / len(known)


def test_filters_choose_lines_in_prometheus(console: Server) -> None:
    chart = drawn(console, "gpu-duty-cycle", gpu_node="gpu-a100-1", GPU="0")
    assert [(line["labels"]["node"], line["labels"]["gpu"]) for line in chart["series"]] == [
        ("gpu-a100-1", "0")
    ]
    uuid = chart["series"][0]["labels"]["uuid"]
    assert [
        line["labels"]["uuid"] for line in console.api("/charts/gpu-power", GPU=uuid)["series"]
    ] == [uuid]


@pytest.mark.parametrize("name", [name for name in KEPT if not name.startswith("cluster")])
def test_the_built_in_series_has_the_same_lines(console: Server, laptop: Laptop, name: str) -> None:
    """Both sources have the same labels, so that a page and its colours stay the same when
    Prometheus is added.
    """

    def agree() -> bool:
        own = {
            frozenset(line["labels"].items())
            for line in laptop.console.api(f"/charts/{name}", top="50")["series"]
        }
        theirs = {
            frozenset(line["labels"].items())
            for line in console.api(f"/charts/{name}", top="50")["series"]
        }
        return bool(own & theirs)

    wait_until(f"both sources know a line of {name}", agree, 60)


def test_a_prometheus_that_is_gone_is_named_and_the_tables_stay(laptop: Laptop) -> None:
    flags = (
        f"--kubeconfig={laptop.kubeconfig}",
        "--prometheus=http://127.0.0.1:9",
        "--gpu-source=none",
    )
    with running("console", *flags, log=LOGS / "charts-without.log") as server:
        assert server.api("/nodes")["total"] > 0
        answer = refused(server, "/api/v1/charts/gpu-duty-cycle")
    assert re.search(r'"status":502.*127\.0\.0\.1:9', answer), answer


def refused(server: Server, path: str) -> str:
    try:
        urllib.request.urlopen(f"{server.url}{path}", timeout=30)
    except urllib.error.HTTPError as error:
        return error.read().decode()
    raise AssertionError(f"{path} was answered")
