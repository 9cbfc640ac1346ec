"""Does every query of Fairlead's boards have a result at every instant of a quarter of an hour in
which cards are lost and hang?

The pages of the scenario `telemetry`, read every 15 s, are a real Prometheus's past.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.kube.boards_over_time import NEVER as ALWAYS_NEVER
from tests.kube.boards_over_time import START, STEP, gaps
from tests.kube.our_boards import asked_of, boards, choose, fill_in
from tests.kube.prometheus import Prometheus, running_prometheus
from tests.kube.reference_boards import BOARD_12239, VARIABLES_OF_12239
from tests.kube.reference_boards import fill_in as fill_in_values
from tests.kube.world_pages import pages_of

from fairlead.run.hooks.sharing_hooks import sharing_world
from fairlead_sim.scenario.file import load_scenario

FIRST, LAST = 38 * 60, 53 * 60
"""Seconds of the scenario."""
INSTANTS = range(FIRST + STEP, LAST + 1, STEP)
"""Starts one step later, because a rate needs two samples."""
LOST = 40 * 60
"""A card falls off the bus; ten minutes later a call to another card does not return."""


NEVER = {**ALWAYS_NEVER, "fairlead-cluster / Jobs by status / A": "no user submitted a job"}
SOMETIMES = {
    "fairlead-gpu-node / Health checks that fail / A": ("every check passes until the card is lost")
}
JOBS = "fairlead-jobs"
"""A board without any data: no job was submitted."""


def history() -> Iterator[str]:
    """OpenMetrics: every sample with its time and its target's labels."""
    world = sharing_world(load_scenario("telemetry"), 0, START)
    for seconds in range(FIRST, LAST + 1, STEP):
        world.run_until(START + seconds)
        pages = pages_of(world)
        for job, page in (("gpu", pages.gpu), ("cluster", pages.cluster)):
            for line in page.splitlines():
                if line.startswith(("fairlead_", "DCGM_")):
                    series, _, value = line.rpartition(" ")
                    name, _, labels = series.rstrip("}").partition("{")
                    target = f'job="{job}",instance="{job}:9400"'
                    yield (
                        f"{name}{{{target}{',' if labels else ''}{labels}}} {value} "
                        f"{START + seconds:.0f}\n"
                    )
    yield "# EOF\n"


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    log = tmp_path_factory.mktemp("past") / "prometheus.log"
    with running_prometheus(
        {}, log, flags=["--storage.tsdb.retention.time=100y"], history="".join(history())
    ) as server:
        yield server


@pytest.mark.parametrize("uid", sorted(boards().keys() - {JOBS}))
def test_every_query_has_an_answer_at_every_instant(prometheus: Prometheus, uid: str) -> None:
    chosen = choose(prometheus, uid)
    found = {
        query.name: gaps(prometheus, fill_in(query.expression, chosen), INSTANTS)
        for query in asked_of(uid)
    }
    assert {name for name, missing in found.items() if missing} == {
        name for name in (*NEVER, *SOMETIMES) if name.startswith(f"{uid} /")
    }
    assert {name for name, missing in found.items() if missing == [*INSTANTS]} == {
        name for name in NEVER if name.startswith(f"{uid} /")
    }
    assert all(max(found[name]) < LOST for name in SOMETIMES.keys() & found.keys())


def test_board_12239_has_an_answer_at_every_instant(prometheus: Prometheus) -> None:
    values = {
        name: prometheus.label_values(metric, label)
        for name, (metric, label) in VARIABLES_OF_12239.items()
    }
    assert {
        expression: missing
        for expression in BOARD_12239
        if (missing := gaps(prometheus, fill_in_values(expression, values), INSTANTS))
    } == {}


def test_a_lost_card_and_one_that_hangs_stay_on_their_boards(prometheus: Prometheus) -> None:
    """Their values disappear, their names do not: `Answers` is 0 and the number of cards stays."""
    assert (
        prometheus.query_range("count(fairlead_gpu_up == 0)", START + FIRST, START + FIRST, STEP)
        == []
    )
    (one,) = prometheus.query_range(
        "count(fairlead_gpu_up == 0)", START + LOST + 60, START + LOST + 60, STEP
    )
    (two,) = prometheus.query_range("count(fairlead_gpu_up == 0)", START + LAST, START + LAST, STEP)
    assert (list(one.values()), list(two.values())) == ([1], [2])
    (cards,) = prometheus.query_range("count(fairlead_gpu_up)", START + FIRST, START + LAST, STEP)
    assert set(cards.values()) == {12}


def test_an_instance_that_is_held_and_does_nothing_is_on_the_panel_of_idle_cards(
    prometheus: Prometheus,
) -> None:
    (panel,) = [
        query
        for query in asked_of("fairlead-cluster")
        if "Which GPUs are idle but allocated / A" in query.name
    ]
    reported = prometheus.query(
        f"last_over_time(({fill_in(panel.expression, {})})[{STEP}s:{STEP}s] @ {START + LAST:.0f})"
    )
    names = ("node_name", "gpu", "mig_gi_id", "mig_profile")
    assert [tuple(each.labels[name] for name in names) for each in reported] == [
        ("mig-1", "0", "3", "2g.35gb")
    ]


def test_a_divided_card_s_power_counts_once(prometheus: Prometheus) -> None:
    node = 'node_name="mig-1"'
    (dcgm,) = prometheus.query_range(
        'sum(DCGM_FI_DEV_POWER_USAGE{Hostname="mig-1"})', START + FIRST, START + LAST, STEP
    )
    (boards_power,) = prometheus.query_range(
        f"sum(fairlead_gpu_power_watts{{{node}}})", START + FIRST, START + LAST, STEP
    )
    (count,) = prometheus.query_range(
        f"count(fairlead_gpu_power_watts{{{node}}})", START + FIRST, START + LAST, STEP
    )
    assert set(count.values()) == {2}, "one series a board, not one an instance"
    assert dcgm == pytest.approx(boards_power, abs=1e-3)
