"""Does every query of every board have a result at every instant of a quarter of an hour of the
world `default`, scraped in both ways?

The boards are the reference's four, the public 12239, and Fairlead's. With `honor_labels` the
page's own labels of pods win; without, they become `exported_…` and the labels of the exporter's
target take their place. Both are a real Prometheus's past, read every 15 s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache

import pytest
from tests.kube.boards_over_time import NEVER as ALWAYS_NEVER
from tests.kube.boards_over_time import START, STEP, gaps
from tests.kube.our_boards import asked_of, boards, choose, fill_in
from tests.kube.prometheus import Prometheus, running_prometheus
from tests.kube.reference_boards import (
    BOARD_12239,
    BOARDS,
    TENSOR_OF_12239,
    UNHEALTHY_NODES,
    VARIABLES_OF_12239,
    variables,
)
from tests.kube.reference_boards import fill_in as fill_in_values
from tests.kube.world_pages import pages_of

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.scenario.file import load_scenario

pytestmark = pytest.mark.turns(2, 1)

FIRST, LAST = 3600, 3600 + 15 * 60
"""Seconds of the world's life: jobs of a whole day's mix run, wait, end and fail."""
INSTANTS = range(FIRST + STEP, LAST + 1, STEP)
TARGET = {
    "namespace": "fairlead-system",
    "pod": "fairlead-gpu-exporter-x1y2z",
    "container": "fairlead-gpu-exporter",
}
FAMILIES = ("fairlead_", "DCGM_", "arena_", "nvidia_gpu_")

NEVER = {
    **ALWAYS_NEVER,
    "fairlead-dcgm / Tensor Core Utilization / A": "no card of Hopper or later",
}


@cache
def pages() -> list[tuple[int, str, str]]:
    """(second, job, page), made once for both ways of scraping."""
    world = sharing_world(load_scenario("default"), 0, START)
    found = []
    for seconds in range(FIRST, LAST + 1, STEP):
        world.run_until(START + seconds)
        made = pages_of(world)
        found += [(seconds, "gpu", made.gpu), (seconds, "cluster", made.cluster)]
    return found


def history(*, honors: bool) -> Iterator[str]:
    """OpenMetrics, with labels as Prometheus's scrape makes them."""
    for seconds, job, page in pages():
        for line in page.splitlines():
            if line.startswith(FAMILIES):
                series, _, value = line.rpartition(" ")
                name, _, text = series.rstrip("}").partition("{")
                own = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', text))
                target = {"job": job, "instance": f"{job}:9400", **TARGET}
                labels = (
                    {**target, **own}
                    if honors
                    else {**{_exported(key, target): word for key, word in own.items()}, **target}
                )
                message = ",".join(f'{key}="{word}"' for key, word in labels.items())
                yield f"{name}{{{message}}} {value} {START + seconds:.0f}\n"
    yield "# EOF\n"


def _exported(label: str, target: Mapping[str, str]) -> str:
    return f"exported_{label}" if label in target else label


@pytest.fixture(scope="module", params=[False, True], ids=["honorLabels false", "honorLabels true"])
def prometheus(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Prometheus]:
    log = tmp_path_factory.mktemp("default") / "prometheus.log"
    past = "".join(history(honors=request.param))
    with running_prometheus(
        {}, log, flags=["--storage.tsdb.retention.time=100y"], history=past
    ) as server:
        yield server


def test_the_references_boards(prometheus: Prometheus) -> None:
    values: dict[str, list[str]] = {}
    for name, metric, label in variables():
        values[name] = prometheus.label_values(fill_in_values(metric, values), label)
    found = {
        expression: gaps(prometheus, fill_in_values(expression, values), INSTANTS)
        for expression in (*BOARDS, UNHEALTHY_NODES)
    }
    assert {expression: missing for expression, missing in found.items() if missing} == {
        UNHEALTHY_NODES: [*INSTANTS]
    }


def test_board_12239(prometheus: Prometheus) -> None:
    values = {
        name: prometheus.label_values(metric, label)
        for name, (metric, label) in VARIABLES_OF_12239.items()
    }
    found = {
        expression: gaps(prometheus, fill_in_values(expression, values), INSTANTS)
        for expression in BOARD_12239
    }
    assert {expression: missing for expression, missing in found.items() if missing} == {
        TENSOR_OF_12239: [*INSTANTS]
    }


@pytest.mark.parametrize("uid", sorted(boards()))
def test_our_boards(prometheus: Prometheus, uid: str) -> None:
    chosen = choose(prometheus, uid)
    found = {
        query.name: gaps(prometheus, fill_in(query.expression, chosen), INSTANTS)
        for query in asked_of(uid)
    }
    assert {name for name, missing in found.items() if missing} == {
        name for name in NEVER if name.startswith(f"{uid} /")
    }
