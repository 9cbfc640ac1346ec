"""How long a card has been idle follows from its series: back to the last busy moment or gap, and
no further.
"""

from __future__ import annotations

import asyncio
import random

import pytest
from tests.console.clusters import EPOCH, cluster, gpu_node, pod, reading

from fairlead.console.boards.board_state import BoardState
from fairlead.console.boards.idle_cards import IdleHours
from fairlead.console.charts.history import History, LineSample
from fairlead.console.charts.idle import (
    IdleTimes,
    idle_hours_in_history,
    idle_in_history,
    idle_in_series,
    idle_since,
    with_longer_idle,
)
from fairlead.model.node import Condition
from fairlead.ports import SeriesLine

LABELS = (("node", "gpu-1"), ("gpu", "0"), ("uuid", "GPU-a"))


def lived(values: list[float | None]) -> History:
    """One tick every 15 s, the last at EPOCH."""
    history = History()
    for back, value in enumerate(reversed(values)):
        at = EPOCH - 15 * back
        samples = [] if value is None else [LineSample("gpu-duty-cycle", LABELS, value)]
        if back == 0:
            history.add(at, samples)
        else:
            history.add_past(at, samples)
    return history


@pytest.mark.parametrize(
    ("values", "idle_ticks"),
    [
        ([0.0] * 5, 4),
        ([50.0, 0.0, 0.0], 1),
        ([0.0, None, 0.0, 0.0], 1),
        ([0.0, 0.0, 2.0], None),
        ([0.0, 0.0, None], None),
        ([0.99, 0.5], 1),
    ],
)
def test_the_built_in_history_knows_it_at_the_first_look(
    values: list[float | None], idle_ticks: int | None
) -> None:
    expected = {} if idle_ticks is None else {"GPU-a": EPOCH - 15 * idle_ticks}
    assert idle_in_history(lived(values), EPOCH + 7).since == expected


def test_a_card_idle_for_longer_than_the_history_reaches_back_stays_idle_for_over_an_hour() -> None:
    """The history is read again each minute; each time its oldest tick is 3585 to 3600 s old."""
    history, reported, seconds = lived([0.0] * 300), IdleTimes(), list[float]()
    for look in range(8):
        now = EPOCH + 60 * look + 7
        for tick in range(1, 5) if look else ():
            history.add(
                EPOCH + 60 * (look - 1) + 15 * tick, [LineSample("gpu-duty-cycle", LABELS, 0.0)]
            )
        reported = idle_in_history(history, now, reported)
        seconds.append(now - reported.since["GPU-a"])
    assert seconds == [3592 + 60 * look for look in range(8)]


@pytest.mark.parametrize("value", [80.0, None], ids=["busy", "a gap"])
def test_what_was_reported_of_a_card_ends_with_its_idleness(value: float | None) -> None:
    before = IdleTimes(EPOCH - 60, {"GPU-a": EPOCH - 7200})
    assert idle_in_history(lived([0.0] * 230 + [value] + [0.0] * 9), EPOCH, before).since == {
        "GPU-a": EPOCH - 15 * 8
    }
    assert idle_in_history(lived([0.0] * 239 + [value]), EPOCH, before).since == {}


def test_what_was_reported_before_the_history_begins_is_no_part_of_it() -> None:
    """Time ran fast, so between the earlier value and the oldest tick there was no look."""
    before = IdleTimes(EPOCH - 5000, {"GPU-a": EPOCH - 7200})
    assert idle_in_history(lived([0.0] * 300), EPOCH, before).since == {"GPU-a": EPOCH - 15 * 239}


def test_any_series_counted_by_hand() -> None:
    chance = random.Random(7)
    for _ in range(300):
        values = [chance.choice([0.0, 0.0, 0.0, 0.5, None]) for _ in range(chance.randint(1, 12))]
        points = [(float(10 * number), value) for number, value in enumerate(values)]
        back = 0
        while back < len(values) and values[-1 - back] == 0.0:
            back += 1
        expected = None if back == 0 else points[-back][0] - 10
        assert idle_since(points, 0.01, 10) == expected, values


class ReportingSeries:
    """A Prometheus that has one family."""

    name = "prometheus"

    def __init__(self, family: str, lines: list[SeriesLine]) -> None:
        self.family, self.lines, self.asked = family, lines, 0

    async def query_range(
        self, promql: str, start: float, end: float, step: float
    ) -> list[SeriesLine]:
        self.asked += 1
        return self.lines if self.family in promql else []


@pytest.mark.parametrize(
    ("family", "label"),
    [("fairlead_gpu_utilization_ratio", "uuid"), ("DCGM_FI_DEV_GPU_UTIL", "UUID")],
)
def test_prometheus_is_asked_in_the_spellings_that_it_has(family: str, label: str) -> None:
    points = tuple((EPOCH - 600 * back, 0.0 if back < 18 else 90.0) for back in reversed(range(30)))
    series = ReportingSeries(family, [SeriesLine({label: "GPU-a"}, points)])
    assert asyncio.run(idle_in_series(series, EPOCH)).since == {"GPU-a": EPOCH - 18 * 600}


def test_where_some_nodes_have_another_exporter_idle_cards_of_all_are_known() -> None:
    """For a card in both families Fairlead's own family counts."""

    class Both:
        async def query_range(
            self, promql: str, start: float, end: float, step: float
        ) -> list[SeriesLine]:
            def idle(back: int) -> tuple[tuple[float, float], ...]:
                return tuple((EPOCH - 600 * each, 0.0) for each in reversed(range(back)))

            if "fairlead" in promql:
                return [
                    SeriesLine({"uuid": "GPU-a"}, idle(10)),
                    SeriesLine({"uuid": "GPU-both"}, idle(8)),
                ]
            return (
                [
                    SeriesLine({"UUID": "GPU-b"}, idle(20)),
                    SeriesLine({"UUID": "GPU-both"}, idle(30)),
                ]
                if "DCGM" in promql
                else []
            )

    found = asyncio.run(idle_in_series(Both(), EPOCH)).since  # type: ignore[arg-type]
    assert found == {"GPU-a": EPOCH - 6000, "GPU-b": EPOCH - 12_000, "GPU-both": EPOCH - 4800}


def test_a_gap_that_prometheus_leaves_out_ends_idleness() -> None:
    points = tuple((EPOCH - 600 * back, 0.0) for back in reversed(range(30)) if back != 9)
    series = ReportingSeries("fairlead", [SeriesLine({"uuid": "GPU-a"}, points)])
    assert asyncio.run(idle_in_series(series, EPOCH)).since == {"GPU-a": EPOCH - 9 * 600}


@pytest.mark.parametrize(
    ("seen", "reported", "reported_at", "since"),
    [
        (EPOCH - 5, EPOCH - 3600, EPOCH - 1, EPOCH - 3600),
        (EPOCH - 5, EPOCH - 3600, EPOCH - 60, EPOCH - 5),
        (EPOCH - 5, EPOCH - 2, EPOCH - 1, EPOCH - 5),
        (None, EPOCH - 3600, EPOCH - 1, None),
    ],
    ids=["known to the series", "busy since they were asked", "the reader knows more", "busy now"],
)
def test_series_lengthen_what_the_reader_saw(
    seen: float | None, reported: float, reported_at: float, since: float | None
) -> None:
    card = reading(ratio=0.0 if seen else 0.5, idle_since=seen)
    (longer,) = with_longer_idle([card], IdleTimes(reported_at, {card.uuid: reported}))
    assert longer.idle_since == since


def test_the_built_in_history_counts_idle_ticks_of_all_containers_of_a_pod_together() -> None:
    history = History(tick_seconds=36, slots=100)

    def sample(pod: str, container: str, percent: float) -> LineSample:
        labels = {
            "node": "n",
            "gpu": "0",
            "uuid": "GPU-a",
            "namespace": "team",
            "pod": pod,
            "container": container,
        }
        return LineSample("container-gpu-utilization", tuple(labels.items()), percent)

    for tick in range(50):
        busy = 50.0 if tick < 20 else 0.0
        history.add(
            EPOCH + 36 * tick,
            [sample("p", "main", busy), sample("p", "side", 0.0), sample("q", "main", 99.0)],
        )
    reported = idle_hours_in_history(history, EPOCH + 36 * 49)
    assert reported.hours_by_key == {("team", "p", "GPU-a"): pytest.approx(0.3)}


@pytest.mark.parametrize(
    ("ratio", "idle_since", "reported", "held_hours", "hours"),
    [
        (0.5, None, 6.0, 20.0, 6.0),
        (0.0, EPOCH - 7200, 6.0, 20.0, 6.0),
        (0.0, EPOCH - 7200, 1.0, 20.0, 2.0),
        (0.0, EPOCH - 7200, 6.0, 1.0, 1.0),
        (0.5, None, 6.0, 1.5, 1.5),
        (0.5, None, 0.0, 20.0, 0.0),
    ],
    ids=[
        "busy now, idle before",
        "idle again",
        "the series begin later",
        "held later",
        "another of its name before",
        "never",
    ],
)
def test_idle_hours_of_holders(
    ratio: float, idle_since: float | None, reported: float, held_hours: float, hours: float
) -> None:
    bound = Condition("PodScheduled", "True", at=EPOCH - 3600 * held_hours)
    holder = pod("p", "gpu-1", {"nvidia.com/gpu": 1}, conditions=[bound])
    gpu = reading(ratio=ratio, idle_since=idle_since, holder=holder)
    snapshot = cluster([gpu_node(gpus=1)], [holder], gpus=[gpu])
    state = BoardState(snapshot, EPOCH, idle_hours=IdleHours({("team-a", "p", gpu.uuid): reported}))
    (row,) = [entry.row for entry in state.holders.entries]
    assert row.gpu_hours_idle == hours
